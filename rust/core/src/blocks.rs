//! A shuffle for storage where random reads are dear: blocks of neighbours in random order, and
//! within a window of several blocks every record in random order.
//!
//! Like the exact shuffle it is a permutation computed position by position. Whoever reads a window's
//! records finds them in as many stretches of the disk as the window has blocks.

use crate::permute::{Permutation, mix};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocks {
    /// Records per block, and blocks per window.
    size: u64,
    per_window: u64,
    /// Whole blocks; what is left over lies at the end of the last window.
    whole: u64,
    left_over: u64,
    order: Permutation,
    seed: u64,
    epoch: u64,
}

impl Blocks {
    pub fn new(records: u64, seed: u64, epoch: u64, size: u64, per_window: u64) -> Self {
        let (size, per_window) = (size.max(1), per_window.max(1));
        let whole = records / size;
        let order = Permutation::new(whole, mix(seed ^ 0x9e6c_63d0_676a_9a99), epoch);
        Blocks { size, per_window, whole, left_over: records % size, order, seed, epoch }
    }

    /// The record at position `at`.
    pub fn at(&self, at: u64) -> u64 {
        let window = self.window_of(at);
        let (first, blocks) = self.blocks_of(window);
        let in_blocks = blocks * self.size;
        let records = in_blocks + if window + 1 == self.windows() { self.left_over } else { 0 };
        let within =
            Permutation::new(records, mix(self.seed ^ window), self.epoch).at(at - first * self.size);
        if within < in_blocks {
            return self.order.at(first + within / self.size) * self.size + within % self.size;
        }
        self.whole * self.size + (within - in_blocks)
    }

    /// How many windows there are, at least one.
    pub fn windows(&self) -> u64 {
        self.whole.div_ceil(self.per_window).max(1)
    }

    /// The window in which a position lies.
    pub fn window_of(&self, at: u64) -> u64 {
        (at / self.per_window.saturating_mul(self.size)).min(self.windows() - 1)
    }

    /// The stretches of record numbers that a window is made of: `(first, count)`.
    pub fn stretches(&self, window: u64) -> Vec<(u64, u64)> {
        let (first, blocks) = self.blocks_of(window);
        let mut all: Vec<_> =
            (first..first + blocks).map(|at| (self.order.at(at) * self.size, self.size)).collect();
        if window + 1 == self.windows() && self.left_over > 0 {
            all.push((self.whole * self.size, self.left_over));
        }
        all
    }

    /// The first of a window's blocks, by their order, and how many there are.
    fn blocks_of(&self, window: u64) -> (u64, u64) {
        let first = window * self.per_window;
        (first, self.per_window.min(self.whole - first.min(self.whole)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn everything_comes_exactly_once_and_from_its_window(
            records in 1..3000u64, seed: u64, epoch in 0..4u64, size in 1..200u64, per_window in 1..9u64,
        ) {
            let blocks = Blocks::new(records, seed, epoch, size, per_window);
            let found: Vec<_> = (0..records).map(|at| blocks.at(at)).collect();
            let mut sorted = found.clone();
            sorted.sort_unstable();
            prop_assert_eq!(sorted, (0..records).collect::<Vec<_>>());
            for (at, record) in found.iter().enumerate() {
                let stretches = blocks.stretches(blocks.window_of(at as u64));
                prop_assert!(stretches.iter().any(|(first, count)| (*first..first + count).contains(record)));
            }
        }
    }

    #[test]
    fn windows_larger_than_can_be_counted_are_one_window() {
        for (size, per_window) in [(1 << 58, 64), (u64::MAX, 1), (7, u64::MAX), (u64::MAX, u64::MAX)] {
            let blocks = Blocks::new(100, 1, 0, size, per_window);
            let mut found: Vec<_> = (0..100).map(|at| blocks.at(at)).collect();
            found.sort_unstable();
            assert_eq!((found, blocks.windows()), ((0..100).collect(), 1), "{size} {per_window}");
        }
    }

    #[test]
    fn epochs_and_seeds_differ() {
        let order =
            |seed, epoch| (0..500).map(|at| Blocks::new(500, seed, epoch, 10, 5).at(at)).collect::<Vec<_>>();
        assert_ne!(order(1, 0), order(1, 1));
        assert_ne!(order(1, 0), order(2, 0));
        assert_eq!(order(1, 0), order(1, 0));
    }
}
