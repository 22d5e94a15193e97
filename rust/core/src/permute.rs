//! A keyed permutation of `0..n`, computed one position at a time in constant memory.
//!
//! A Feistel network permutes the next power of two; positions that land outside `0..n` walk on
//! along their cycle until they are inside, which keeps it a permutation.

const ROUNDS: usize = 6;
/// Fewer bits make a Feistel network too regular; tiny ranges walk a little further instead.
const FEWEST_BITS: u32 = 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permutation {
    n: u64,
    low_bits: u32,
    high_bits: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// The permutation that belongs to `seed` and `epoch`.
    pub fn new(n: u64, seed: u64, epoch: u64) -> Self {
        let bits = (u64::BITS - n.saturating_sub(1).leading_zeros()).max(FEWEST_BITS);
        let mut state = mix(mix(seed) ^ mix(epoch.wrapping_add(0x5851_f42d_4c95_7f2d)) ^ n);
        let keys = std::array::from_fn(|_| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            mix(state)
        });
        Permutation { n, low_bits: bits / 2, high_bits: bits - bits / 2, keys }
    }

    /// What stands at position `at`; positions outside `0..n` stand for themselves.
    pub fn at(&self, at: u64) -> u64 {
        if at >= self.n {
            return at;
        }
        let mut at = self.encrypt(at);
        while at >= self.n {
            at = self.encrypt(at);
        }
        at
    }

    /// Alternating rounds: each half is moved by a keyed function of the other.
    fn encrypt(&self, value: u64) -> u64 {
        let (low_mask, high_mask) = (ones(self.low_bits), ones(self.high_bits));
        let (mut low, mut high) = (value & low_mask, value >> self.low_bits);
        for pair in self.keys.as_chunks::<2>().0 {
            low ^= mix(high ^ pair[0]) & low_mask;
            high ^= mix(low ^ pair[1]) & high_mask;
        }
        high << self.low_bits | low
    }
}

fn ones(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// Spreads every bit of its input over every bit of its output.
pub fn mix(mut x: u64) -> u64 {
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn everything_comes_exactly_once(n in 1..5000u64, seed: u64, epoch: u64) {
            let order = Permutation::new(n, seed, epoch);
            let mut seen: Vec<_> = (0..n).map(|at| order.at(at)).collect();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..n).collect::<Vec<_>>());
        }

        #[test]
        fn the_largest_ranges_work(n in u64::MAX / 2..=u64::MAX, seed: u64, at: u64) {
            let order = Permutation::new(n, seed, 0);
            prop_assert!(at >= n || order.at(at) < n);
        }
    }

    /// Chi-square of where each of `n` elements lands over many seeds: about n² - n either way.
    fn unevenness(n: u64, seeds: u64, order: impl Fn(u64) -> Permutation) -> f64 {
        let mut counts = vec![0u64; (n * n) as usize];
        for seed in 0..seeds {
            let order = order(seed);
            (0..n).for_each(|at| counts[(at * n + order.at(at)) as usize] += 1);
        }
        let expected = seeds as f64 / n as f64;
        counts.iter().map(|count| (*count as f64 - expected).powi(2) / expected).sum()
    }

    #[test]
    fn every_element_lands_everywhere_equally_often() {
        for n in [2, 3, 7, 24, 61] {
            let freedom = ((n - 1) * (n - 1)) as f64;
            let bound = freedom + 6.0 * (2.0 * freedom).sqrt() + 10.0;
            assert!(
                unevenness(n, 20_000, |seed| Permutation::new(n, seed, 0)) < bound,
                "over seeds, n = {n}"
            );
            assert!(
                unevenness(n, 20_000, |epoch| Permutation::new(n, 7, epoch)) < bound,
                "over epochs, n = {n}"
            );
        }
    }

    #[test]
    fn all_orders_of_four_come_equally_often() {
        let mut counts = std::collections::HashMap::new();
        for seed in 0..24_000 {
            let order = Permutation::new(4, seed, 3);
            *counts.entry([0, 1, 2, 3].map(|at| order.at(at))).or_insert(0u32) += 1;
        }
        assert_eq!(counts.len(), 24);
        assert!(counts.values().all(|count| (800..1200).contains(count)), "{counts:?}");
    }
}
