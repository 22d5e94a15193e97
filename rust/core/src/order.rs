//! Which record stands at which position of a stream: pure arithmetic, the same on every thread.

use crate::blocks::Blocks;
use crate::error::{Error, Result};
use crate::permute::Permutation;

/// One operation of a stream as a map from its own positions to those of the stream before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Position `p` is `start + p * stride` of the stream before.
    Every {
        start: u64,
        stride: u64,
    },
    /// Position `p` is `start + p % rows * stride` of run `p / rows` of `batch` positions of the stream before.
    Dealt {
        batch: u64,
        rows: u64,
        start: u64,
        stride: u64,
    },
    Permuted(Permutation),
    Windowed(Blocks),
    /// First the positions listed, then everything from `then` on.
    Listed {
        first: Vec<u64>,
        then: u64,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    len: u64,
    /// The stream's last operation first.
    steps: Vec<Step>,
}

impl Order {
    /// All `len` records as they lie.
    pub fn of(len: u64) -> Self {
        Order { len, steps: Vec::new() }
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn shuffled(self, seed: u64, epoch: u64) -> Self {
        let step = Step::Permuted(Permutation::new(self.len, seed, epoch));
        self.then(step)
    }

    /// Block-wise: blocks of `size` records in random order, and `per_window` blocks shuffled together.
    pub fn windowed(self, seed: u64, epoch: u64, size: u64, per_window: u64) -> Self {
        let step = Step::Windowed(Blocks::new(self.len, seed, epoch, size, per_window));
        self.then(step)
    }

    pub fn skip(self, count: u64) -> Self {
        let left = self.len.saturating_sub(count);
        Order { len: left, ..self.then(Step::Every { start: count, stride: 1 }) }
    }

    pub fn take(self, count: u64) -> Self {
        Order { len: self.len.min(count), ..self }
    }

    /// Every `count`-th record from `index` on.
    pub fn shard(self, count: u64, index: u64) -> Result<Self> {
        if index >= count {
            return Err(Error::Misuse(format!("shard {index} of {count} does not exist")));
        }
        let mine = self.len.saturating_sub(index).div_ceil(count);
        Ok(Order { len: mine, ..self.then(Step::Every { start: index, stride: count }) })
    }

    /// Of every `batch` records, the last ones may be fewer, each `count`-th from `index` on.
    pub fn dealt(self, batch: u64, count: u64, index: u64) -> Result<Self> {
        if index >= count || batch == 0 {
            return Err(Error::Misuse(format!(
                "hand {index} of {count} in batches of {batch} does not exist"
            )));
        }
        let rows_of = |records: u64| records.saturating_sub(index).div_ceil(count);
        let (rows, len) = (rows_of(batch), self.len);
        // whoever has no row of a batch has none at all, and is never asked for one
        let step = Step::Dealt { batch, rows: rows.max(1), start: index, stride: count };
        Ok(Order { len: len / batch * rows + rows_of(len % batch), ..self.then(step) })
    }

    /// What is left after shard `w` of as many as there are `counts` has given out its first `counts[w]`.
    pub fn remaining(self, counts: &[u64]) -> Self {
        let (Some(least), Some(most)) = (counts.iter().min(), counts.iter().max()) else { return self };
        let (shards, len) = (counts.len() as u64, self.len);
        let rows =
            (*least..*most).flat_map(|row| counts.iter().zip(0..).map(move |(count, w)| (row, *count, w)));
        let open = rows.filter(|(row, count, _)| row >= count).map(|(row, _, w)| row * shards + w);
        let first: Vec<u64> = open.filter(|position| *position < len).collect();
        let then = most.saturating_mul(shards).min(len);
        Order { len: first.len() as u64 + (len - then), ..self.then(Step::Listed { first, then }) }
    }

    /// The number of the record at position `at`.
    pub fn record(&self, at: u64) -> u64 {
        self.steps.iter().fold(at, |at, step| match step {
            Step::Every { start, stride } => start.saturating_add(at.saturating_mul(*stride)),
            Step::Dealt { batch, rows, start, stride } => {
                let row = start.saturating_add((at % rows).saturating_mul(*stride));
                (at / rows).saturating_mul(*batch).saturating_add(row)
            }
            Step::Permuted(order) => order.at(at),
            Step::Windowed(blocks) => blocks.at(at),
            Step::Listed { first, then } => match usize::try_from(at).ok().and_then(|at| first.get(at)) {
                Some(listed) => *listed,
                None => then.saturating_add(at - first.len() as u64),
            },
        })
    }

    fn then(mut self, step: Step) -> Self {
        self.steps.insert(0, step);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn records(order: &Order) -> Vec<u64> {
        (0..order.len()).map(|at| order.record(at)).collect()
    }

    proptest! {
        #[test]
        fn shards_are_disjoint_complete_and_even(len in 0..300u64, count in 1..9u64, seed: u64) {
            let whole = Order::of(len).shuffled(seed, 1);
            let parts: Vec<_> =
                (0..count).map(|index| records(&whole.clone().shard(count, index).unwrap())).collect();
            let lengths: Vec<_> = parts.iter().map(Vec::len).collect();
            prop_assert!(lengths.iter().max().unwrap() - lengths.iter().min().unwrap() <= 1);
            let mut all = parts.concat();
            all.sort_unstable();
            prop_assert_eq!(all, (0..len).collect::<Vec<_>>());
        }

        #[test]
        fn hands_are_every_so_manieth_row_of_each_batch(
            len in 0..300u64, batch in 1..40u64, count in 1..9u64, seed: u64,
        ) {
            let whole = Order::of(len).shuffled(seed, 3);
            let all = records(&whole);
            for index in 0..count {
                let rows = all.chunks(batch as usize);
                let own = rows.flat_map(|rows| rows.iter().skip(index as usize).step_by(count as usize));
                let dealt = records(&whole.clone().dealt(batch, count, index).unwrap());
                prop_assert_eq!(dealt, own.copied().collect::<Vec<_>>());
            }
        }

        #[test]
        fn what_some_workers_left_is_shared_by_others(
            len in 0..300u64, seed: u64, done in prop::collection::vec(0..60u64, 1..5), workers in 1..5u64,
        ) {
            let whole = Order::of(len).shuffled(seed, 2);
            let before: Vec<_> = done.iter().zip(0..).flat_map(|(count, w)| {
                records(&whole.clone().shard(done.len() as u64, w).unwrap().take(*count))
            }).collect();
            let counts: Vec<_> = done.iter().zip(0..).map(|(count, w)| {
                whole.clone().shard(done.len() as u64, w).unwrap().take(*count).len()
            }).collect();
            let rest = whole.remaining(&counts);
            let after = (0..workers).flat_map(|w| records(&rest.clone().shard(workers, w).unwrap()));
            let mut all: Vec<_> = before.into_iter().chain(after).collect();
            all.sort_unstable();
            prop_assert_eq!(all, (0..len).collect::<Vec<_>>());
        }

        #[test]
        fn operations_mean_what_they_mean_on_lists(len in 0..200u64, skip in 0..250u64, take in 0..250u64, seed: u64) {
            let shuffled = Order::of(len).shuffled(seed, 0);
            let listed: Vec<_> = records(&shuffled).into_iter().skip(skip as usize).take(take as usize).collect();
            prop_assert_eq!(records(&shuffled.skip(skip).take(take)), listed);
        }
    }
}
