//! Which record stands at which position of a stream: pure arithmetic, the same on every thread.

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
    Permuted(Permutation),
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

    /// The number of the record at position `at`.
    pub fn record(&self, at: u64) -> u64 {
        self.steps.iter().fold(at, |at, step| match step {
            Step::Every { start, stride } => start.saturating_add(at.saturating_mul(*stride)),
            Step::Permuted(order) => order.at(at),
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
        fn operations_mean_what_they_mean_on_lists(len in 0..200u64, skip in 0..250u64, take in 0..250u64, seed: u64) {
            let shuffled = Order::of(len).shuffled(seed, 0);
            let listed: Vec<_> = records(&shuffled).into_iter().skip(skip as usize).take(take as usize).collect();
            prop_assert_eq!(records(&shuffled.skip(skip).take(take)), listed);
        }
    }
}
