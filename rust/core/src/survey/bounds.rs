//! Packed numbers of few bytes held against bounds without decoding them, many at a time.
//!
//! After a few records of a data set hardly any number lies outside what was seen before. So it is enough to tell
//! that none does, and that takes no branch per number.

use fearless_simd::{Level, Select, Simd, SimdBase, SimdMask, dispatch, u8x64};

use super::Range;
use super::pieces::{Begins, LANES, PIECE, ends, group, piece_of};

/// Longer numbers are decoded in less time than these comparisons take.
const MOST: usize = 4;

/// A number by sevens of its bits, each for all lanes: loaded, not made anew for every list.
type Groups = [[u8; LANES]; MOST];

/// What numbers are held against.
#[derive(Debug)]
pub(super) struct Bounds {
    range: Range<i64>,
    low: Groups,
    high: Groups,
    /// No number within the bounds takes more, unless it is padded.
    bytes: usize,
}

impl Bounds {
    /// Whether all numbers of a range take few bytes.
    pub fn suit(range: Range<i64>) -> bool {
        // asked for every record where numbers rise
        range.low >= 0 && range.high < 1 << (7 * MOST)
    }

    /// Bounds of a range that suits.
    pub fn of(range: Range<i64>) -> Self {
        let mut bounds = Bounds { range, low: [[0; LANES]; MOST], high: [[0; LANES]; MOST], bytes: 0 };
        bounds.move_to(range);
        bounds
    }

    pub fn move_to(&mut self, range: Range<i64>) {
        self.range = range;
        self.bytes = most_bytes(range).min(MOST);
        for at in 0..self.bytes {
            (self.low[at], self.high[at]) = ([group(range.low, at); LANES], [group(range.high, at); LANES]);
        }
    }

    pub fn range(&self) -> Range<i64> {
        self.range
    }

    /// How many numbers the first `size` bytes hold if all of them lie within the bounds; `None` also if they are
    /// malformed, or if a number is padded to more bytes than any within takes. What follows does not matter.
    #[inline]
    pub fn count(&self, bytes: &[u8], size: usize) -> Option<u64> {
        match &bytes[..size] {
            [] => return Some(0),
            [.., last] if *last >= 0x80 => return None,
            [one] => return self.range.holds(i64::from(*one)).then_some(1),
            _ => {}
        }
        self.count_on(Level::new(), bytes, size)
    }

    #[inline]
    fn count_on(&self, level: Level, bytes: &[u8], size: usize) -> Option<u64> {
        dispatch!(level, simd => match self.bytes {
            1 => self.count_by::<1, _>(simd, bytes, size),
            2 => self.count_by::<2, _>(simd, bytes, size),
            3 => self.count_by::<3, _>(simd, bytes, size),
            _ => self.count_by::<MOST, _>(simd, bytes, size),
        })
    }

    /// The same for numbers of at most so many bytes.
    #[inline(always)]
    fn count_by<const BYTES: usize, S: Simd>(&self, simd: S, bytes: &[u8], size: usize) -> Option<u64> {
        let (mut count, mut begins) = (0, Begins::new());
        let mut room = [0; PIECE];
        for from in (0..size).step_by(LANES) {
            let piece = piece_of(&bytes[from..], &mut room);
            let begins = begins.after(ends(simd, piece), size - from);
            if self.outside::<BYTES, S>(simd, piece) & begins != 0 {
                return None;
            }
            count += u64::from(begins.count_ones());
        }
        Some(count)
    }

    /// A bit per lane: whether what begins there lies outside.
    #[inline(always)]
    fn outside<const BYTES: usize, S: Simd>(&self, simd: S, piece: &[u8; PIECE]) -> u64 {
        let nothing = u8x64::splat(simd, 0);
        let mut goes_on = nothing.simd_eq(nothing);
        let (mut below, mut above) = (!goes_on, !goes_on);
        for at in 0..BYTES {
            let bytes = u8x64::from_slice(simd, &piece[at..at + LANES]);
            let group = goes_on.select(bytes & 0x7f, nothing);
            // a higher group decides, whatever the lower ones say
            let (low, high) =
                (u8x64::from_slice(simd, &self.low[at]), u8x64::from_slice(simd, &self.high[at]));
            below = group.simd_lt(low) | (group.simd_eq(low) & below);
            above = group.simd_gt(high) | (group.simd_eq(high) & above);
            goes_on &= bytes.simd_ge(0x80);
        }
        (below | above | goes_on).to_bitmask()
    }
}

/// How many bytes numbers take at most.
fn most_bytes(range: Range<i64>) -> usize {
    let bits = 64 - (range.low | range.high).leading_zeros();
    bits.div_ceil(7).max(1) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::pieces::tests::{decoded, number, packed, range_between};
    use super::*;

    /// Numbers of few bytes, and both ends of what these can be.
    fn few() -> impl Strategy<Value = i64> {
        let most = (1_i64 << (7 * MOST)) - 1;
        prop_oneof![0..=most, 0..3_i64, 120..260_i64, 16_380..16_390_i64, most - 3..=most]
    }

    #[test]
    fn ranges_suit_whose_numbers_take_few_bytes() {
        let suits = |low, high| Bounds::suit(Range { low, high });
        assert!(suits(0, 0) && suits(3, (1 << (7 * MOST)) - 1));
        assert!(!suits(0, 1 << (7 * MOST)) && !suits(-1, 1) && !suits(i64::MIN, i64::MAX));
    }

    proptest! {
        #[test]
        fn numbers_are_counted_if_all_lie_within(
            numbers in prop::collection::vec(prop_oneof![4 => few(), 1 => number()], 0..80),
            (one, other) in (few(), few()),
            behind in prop::collection::vec(any::<u8>(), 0..90),
        ) {
            let within = range_between(one, other);
            let (some, all) = (numbers.iter().filter(|number| within.holds(**number)), &numbers);
            for numbers in [some.copied().collect(), all.clone()] {
                let list = packed(&numbers);
                let expected = numbers.iter().all(|number| within.holds(*number));
                let bytes = [&list[..], &behind[..]].concat();
                let bounds = Bounds::of(within);
                for found in [bounds.count(&bytes, list.len()), bounds.count_on(Level::baseline(), &bytes, list.len())] {
                    prop_assert_eq!(found, expected.then_some(numbers.len() as u64));
                }
            }
        }

        #[test]
        fn of_any_bytes_only_what_decoding_confirms_is_counted(
            list in prop::collection::vec(prop_oneof![any::<u8>(), 0x80..=0x81_u8, 0..2_u8], 0..200),
            (one, other) in (few(), few()),
        ) {
            let within = range_between(one, other);
            if let Some(count) = Bounds::of(within).count(&list, list.len()) {
                let numbers = decoded(&list);
                prop_assert_eq!(numbers.as_ref().map(|numbers| numbers.len() as u64), Some(count));
                prop_assert!(numbers.iter().flatten().all(|number| within.holds(*number)));
            }
        }
    }

    #[test]
    fn both_ends_lie_within_and_their_neighbours_outside() {
        for bits in 0..7 * MOST - 1 {
            let (low, high) = ((1_i64 << bits) - 1, 1_i64 << bits);
            let bounds = Bounds::of(Range { low, high });
            let count = |number| bounds.count(&packed(&[number; 70]), packed(&[number; 70]).len());
            assert_eq!((count(low), count(high)), (Some(70), Some(70)));
            assert_eq!((count(low - 1), count(high + 1)), (None, None));
        }
    }
}
