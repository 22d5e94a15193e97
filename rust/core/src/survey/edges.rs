//! Packed numbers of any length held against a range by how they end, without decoding them.
//!
//! Masks of where numbers end tell how long each is, and of two numbers of one length the highest two groups
//! mostly tell which one is larger. So 64 bytes take a few comparisons, whatever stands in them. Beside decoding
//! every number, four at a time, that took the doctor's full pass over such lists from 38 to 42 % of `verify`.

use fearless_simd::{Level, Simd, SimdBase, SimdMask, dispatch, u8x64};

use super::Range;
use super::pieces::{LANES, LONGEST, group};

/// So many bytes of a window belong to numbers that end further on.
const BEFORE: usize = LONGEST;
/// So many of its bytes were not looked at before.
const FRESH: usize = LANES - BEFORE;
/// Above every group of seven bits.
const ABOVE_ALL: u8 = 0x80;
/// What a number below zero ends with: the tenth byte has the sign alone.
const SIGN: u8 = 1;

/// What the ends of numbers are held against.
#[derive(Debug)]
pub(super) struct Edges {
    range: Range<i64>,
    /// How many bytes the largest number takes.
    high_bytes: usize,
    /// Its highest group, and what is too much behind an equal one.
    high: [u8; 2],
    /// How many groups of the smallest number are not all ones.
    low_groups: usize,
    /// The highest of these, and what is enough behind an equal one.
    low: [u8; 2],
}

impl Edges {
    /// Whether a range has zero in it: then nothing is too short, above zero or below.
    pub fn suit(range: Range<i64>) -> bool {
        range.holds(0)
    }

    /// Edges of a range that suits.
    pub fn of(range: Range<i64>) -> Self {
        let (high_bytes, low_groups) = (groups_of(range.high), groups_of(!range.low));
        // behind two equal groups others decide, unless there are none: then nobody looks at them
        let high = match high_bytes {
            1 => [group(range.high, 0), ABOVE_ALL],
            2 => [group(range.high, 1), group(range.high, 0) + 1],
            more => [group(range.high, more - 1), group(range.high, more - 2)],
        };
        let low = match low_groups {
            _ if range.low >= 0 => [ABOVE_ALL, 0],
            1 => [group(range.low, 0), 0],
            2 => [group(range.low, 1), group(range.low, 0)],
            more => [group(range.low, more - 1), group(range.low, more - 2) + 1],
        };
        Edges { range, high_bytes, high, low_groups, low }
    }

    pub fn range(&self) -> Range<i64> {
        self.range
    }

    /// How many numbers `size` bytes hold if all of them lie within; `None` also if they are malformed, if that cannot
    /// be told without decoding them, or where too few bytes stand before and behind. What these are does not matter.
    #[inline]
    pub fn count(&self, bytes: &[u8], from: usize, size: usize) -> Option<u64> {
        match &bytes[from..from + size] {
            [] => Some(0),
            [.., last] if *last >= 0x80 => None,
            _ => self.count_on(Level::new(), bytes, from, size),
        }
    }

    #[inline]
    fn count_on(&self, level: Level, bytes: &[u8], from: usize, size: usize) -> Option<u64> {
        // no list begins with its record, and hardly any ends with what is held: room to copy those into that do cost
        // all lists 1 ns each
        let bytes = bytes.get(from.checked_sub(BEFORE + 1)?..)?;
        dispatch!(level, simd => self.count_by(simd, bytes, size))
    }

    #[inline(always)]
    fn count_by<S: Simd>(&self, simd: S, mut bytes: &[u8], size: usize) -> Option<u64> {
        let (mut count, mut left) = (0, size);
        // the list begins as if a number ended in front of it
        let mut in_front = 1 << (BEFORE - 1);
        loop {
            let both = bytes.first_chunk::<{ LANES + 1 }>()?;
            let (window, before) =
                (u8x64::from_slice(simd, &both[1..]), u8x64::from_slice(simd, &both[..LANES]));
            let ends = window.simd_lt(0x80).to_bitmask() | in_front;
            let fresh = (u64::MAX << BEFORE) & (u64::MAX >> FRESH.saturating_sub(left));
            if self.outside(window, before, ends) & fresh != 0 {
                return None;
            }
            count += u64::from((ends & fresh).count_ones());
            if left <= FRESH {
                return Some(count);
            }
            (bytes, left, in_front) = (&bytes[FRESH..], left - FRESH, 0);
        }
    }

    /// A bit per lane with which a number ends: whether it may lie outside. `before` has in each lane the byte in front
    /// of the window's: loaded, as shifting what comparisons gave would take a mask out of the vector unit for each.
    #[inline(always)]
    fn outside<S: Simd>(&self, window: u8x64<S>, before: u8x64<S>, ends: u64) -> u64 {
        let (groups, second) = (window & 0x7f, before & 0x7f);
        let longer = |bytes: usize| ends & !lately(ends, bytes);
        let ten = longer(LONGEST - 1);

        let highest = groups.simd_eq(self.high[0]) & second.simd_ge(self.high[1]);
        let above = (groups.simd_gt(self.high[0]) | highest).to_bitmask();
        let too_long = !(ends << self.high_bytes);
        let too_large = longer(self.high_bytes - 1) & !ten & (above | too_long);

        // below zero, the lowest groups have been there for so many bytes, and nothing but ones since
        let since = LONGEST - self.low_groups;
        let not_ones = lately(!window.simd_eq(0xff).to_bitmask(), since - 1);
        let lowest = groups.simd_eq(self.low[0]) & second.simd_lt(self.low[1]);
        let below = (groups.simd_lt(self.low[0]) | lowest).to_bitmask() << since;
        let no_sign = !window.simd_eq(SIGN).to_bitmask();
        let endless = !(ends << LONGEST);
        too_large | ten & (not_ones | below | no_sign | endless)
    }
}

/// A bit per lane: whether one of the `most` lanes before it has one, of ten at most.
#[inline(always)]
fn lately(bits: u64, most: usize) -> u64 {
    let one = bits << 1;
    let two = one | one << 1;
    let four = two | two << 2;
    match most {
        0 => 0,
        1 => one,
        2..=3 => two | two << (most - 2),
        4..=7 => four | four << (most - 4),
        _ => four | four << 4 | four << (most - 4),
    }
}

/// How many groups a number takes; one if it is below zero, as all of it is the sign then.
fn groups_of(number: i64) -> usize {
    (64 - number.max(1).leading_zeros()).div_ceil(7) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::pieces::tests::{decoded, number, packed};
    use super::*;

    fn any_range() -> impl Strategy<Value = Range<i64>> {
        let below = || number().prop_map(|number| number.min(!number));
        prop_oneof![
            (below(), number()).prop_map(|(low, high)| Range { low, high: high.max(!high) }),
            number().prop_map(|high| Range { low: 0, high: high.max(!high) }),
        ]
    }

    /// The same list with anything before and behind, as this processor does it and as the oldest would.
    fn counts(within: Range<i64>, before: &[u8], list: &[u8], behind: &[u8]) -> [Option<u64>; 2] {
        let bytes = [before, list, behind].concat();
        let edges = Edges::of(within);
        let ends = list.last().is_some_and(|last| *last < 0x80);
        let found = edges.count(&bytes, before.len(), list.len());
        [
            found,
            if ends { edges.count_on(Level::baseline(), &bytes, before.len(), list.len()) } else { found },
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn of_any_numbers_only_those_within_are_counted(
            numbers in prop::collection::vec(number(), 0..60),
            within in any_range(),
            before in prop::collection::vec(any::<u8>(), 0..30),
            behind in prop::collection::vec(any::<u8>(), 0..90),
        ) {
            let some = numbers.iter().copied().filter(|number| within.holds(*number)).collect();
            for numbers in [some, numbers] {
                let list = packed(&numbers);
                let found = counts(within, &before, &list, &behind);
                prop_assert_eq!(found[0], found[1]);
                if let Some(count) = found[0] {
                    prop_assert_eq!(count, numbers.len() as u64);
                    prop_assert!(numbers.iter().all(|number| within.holds(*number)));
                }
            }
        }

        #[test]
        fn of_any_bytes_only_what_decoding_confirms_is_counted(
            list in prop::collection::vec(prop_oneof![any::<u8>(), 0x80..=0x81_u8, Just(0xff), 0..2_u8], 0..200),
            within in any_range(),
            before in prop::collection::vec(any::<u8>(), 0..30),
            behind in prop::collection::vec(any::<u8>(), 0..90),
        ) {
            let found = counts(within, &before, &list, &behind);
            prop_assert_eq!(found[0], found[1]);
            if let Some(count) = found[0] {
                let numbers = decoded(&list);
                prop_assert_eq!(numbers.as_ref().map(|numbers| numbers.len() as u64), Some(count));
                prop_assert!(numbers.iter().flatten().all(|number| within.holds(*number)));
            }
        }

        #[test]
        fn numbers_well_within_are_told_without_decoding(
            bits in (0..63_u32, 0..63_u32),
            numbers in prop::collection::vec(any::<i64>(), 1..60),
        ) {
            let within = Range { low: -(1_i64 << bits.0), high: (1 << bits.1) };
            // at most half of what would be within
            let numbers: Vec<i64> = numbers.iter().map(|number| {
                let most = if *number < 0 { bits.0 } else { bits.1 };
                if most == 0 { 0 } else { number >> (64 - most) }
            }).collect();
            let list = packed(&numbers);
            prop_assert_eq!(counts(within, &[0xff; BEFORE + 1], &list, &[0xff; LANES]), [Some(numbers.len() as u64); 2]);
        }
    }

    #[test]
    fn ranges_suit_that_have_zero_in_them() {
        let suits = |low, high| Edges::suit(Range { low, high });
        assert!(suits(0, 0) && suits(-1, 0) && suits(0, 1) && suits(i64::MIN, i64::MAX));
        assert!(!suits(-2, -1) && !suits(1, 2));
    }

    #[test]
    fn short_ranges_are_told_to_their_ends() {
        for (low, high) in [(-1_000, 999), (-128, 127), (-1, 0), (0, 16_383), (-16_384, 7), (0, 0)] {
            for number in [low - 1, low, low + 1, high - 1, high, high + 1] {
                let within = Range { low, high };
                let list = packed(&[number; 20]);
                assert_eq!(
                    counts(within, &[0xff; BEFORE + 1], &list, &[0xff; LANES]),
                    [within.holds(number).then_some(20); 2]
                );
            }
        }
    }
}
