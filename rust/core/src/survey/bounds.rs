//! Packed numbers held against bounds without decoding them, many at a time.
//!
//! After a few records of a data set hardly any number lies outside what was seen before. So it is enough to tell
//! that none does, and that takes no branch per number.

use fearless_simd::{Level, Select, Simd, SimdBase, SimdMask, dispatch, u8x64};

use super::Range;

/// So many bytes are looked at together, as if a number began at every one of them.
const LANES: usize = 64;
/// The longest number has so many groups of seven bits.
const LONGEST: usize = 10;
/// With what a number goes on that begins at the last of them.
const PIECE: usize = LANES + LONGEST - 1;

/// What numbers are held against.
#[derive(Debug)]
pub(super) struct Bounds {
    range: Range<i64>,
    low: [u8; LONGEST],
    high: [u8; LONGEST],
    /// Numbers within the bounds take no more bytes, unless they are padded.
    bytes: usize,
}

impl Bounds {
    pub fn of(range: Range<i64>) -> Self {
        let (low, high) = (groups(range.low), groups(range.high));
        let bytes = if range.low < 0 { LONGEST } else { used_bytes(range.high) };
        Bounds { range, low, high, bytes }
    }

    pub fn range(&self) -> Range<i64> {
        self.range
    }

    /// How many numbers the first `size` bytes hold if all of them lie within the bounds; `None` also if they are
    /// malformed, or if a number is written with more bytes than it needs. What follows them does not matter.
    #[inline]
    pub fn count(&self, bytes: &[u8], size: usize) -> Option<u64> {
        match &bytes[..size] {
            [] => return Some(0),
            [.., last] if *last >= 0x80 => return None,
            [one] => return self.range.holds(i64::from(*one)).then_some(1),
            _ => {}
        }
        dispatch!(Level::new(), simd => match self.bytes {
            1 => self.count_by::<1, _>(simd, bytes, size),
            2 => self.count_by::<2, _>(simd, bytes, size),
            3 => self.count_by::<3, _>(simd, bytes, size),
            4..=5 => self.count_by::<5, _>(simd, bytes, size),
            6..=9 => self.count_by::<9, _>(simd, bytes, size),
            _ => self.count_by::<LONGEST, _>(simd, bytes, size),
        })
    }

    /// The same for numbers of at most so many bytes.
    #[inline(always)]
    fn count_by<const BYTES: usize, S: Simd>(&self, simd: S, bytes: &[u8], size: usize) -> Option<u64> {
        let (mut count, mut first) = (0, 1);
        let mut room = [0; PIECE];
        for from in (0..size).step_by(LANES) {
            let piece = piece_of(&bytes[from..], &mut room);
            let (outside, ends) = self.outside_and_ends::<BYTES, S>(simd, piece);
            let begins = (ends << 1 | first) & lanes(size - from);
            if outside & begins != 0 {
                return None;
            }
            count += u64::from(begins.count_ones());
            first = ends >> (LANES - 1);
        }
        Some(count)
    }

    /// A bit per lane: whether what begins there lies outside, and whether a number ends there.
    #[inline(always)]
    fn outside_and_ends<const BYTES: usize, S: Simd>(&self, simd: S, piece: &[u8; PIECE]) -> (u64, u64) {
        let nothing = u8x64::splat(simd, 0);
        let mut goes_on = nothing.simd_eq(nothing);
        let (mut below, mut above) = (!goes_on, !goes_on);
        let mut ends = 0;
        for at in 0..BYTES {
            let bytes = u8x64::from_slice(simd, &piece[at..at + LANES]);
            let group = goes_on.select(bytes & significant(at), nothing) ^ flipped(at);
            // a higher group decides, whatever the lower ones say
            below = group.simd_lt(self.low[at]) | (group.simd_eq(self.low[at]) & below);
            above = group.simd_gt(self.high[at]) | (group.simd_eq(self.high[at]) & above);
            let continued = bytes.simd_ge(0x80);
            if at == 0 {
                ends = !continued.to_bitmask();
            }
            goes_on &= continued;
        }
        ((below | above | goes_on).to_bitmask(), ends)
    }
}

/// The first bytes, and anything behind the last of them.
#[inline(always)]
fn piece_of<'a>(bytes: &'a [u8], room: &'a mut [u8; PIECE]) -> &'a [u8; PIECE] {
    if let Some(whole) = bytes.first_chunk() {
        return whole;
    }
    room[..bytes.len()].copy_from_slice(bytes);
    room
}

/// A bit for each of the first lanes.
#[inline(always)]
fn lanes(count: usize) -> u64 {
    u64::MAX >> LANES.saturating_sub(count)
}

/// The bits of a number's byte that count.
#[inline(always)]
fn significant(at: usize) -> u8 {
    if at == LONGEST - 1 { 1 } else { 0x7f }
}

/// What makes negative numbers the lower ones: their sign is the last group.
#[inline(always)]
fn flipped(at: usize) -> u8 {
    u8::from(at == LONGEST - 1)
}

/// A number by sevens of its bits, the lowest first.
fn groups(number: i64) -> [u8; LONGEST] {
    std::array::from_fn(|at| ((number.cast_unsigned() >> (7 * at)) as u8 & significant(at)) ^ flipped(at))
}

fn used_bytes(number: i64) -> usize {
    (64 - number.leading_zeros() as usize).div_ceil(7).max(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire;

    /// Numbers of every length; neighbours, which differ in one group only; any at all.
    fn number() -> impl Strategy<Value = i64> {
        let of_bits = (0..64_u32, any::<u64>()).prop_map(|(bits, number)| (number >> bits).cast_signed());
        prop_oneof![of_bits, -3..3_i64, 120..260_i64, 16_380..16_390_i64, any::<i64>()]
    }

    fn packed(numbers: &[i64]) -> Vec<u8> {
        let mut list = Vec::new();
        for number in numbers {
            let mut left = number.cast_unsigned();
            while left >= 0x80 {
                list.push(left as u8 | 0x80);
                left >>= 7;
            }
            list.push(left as u8);
        }
        list
    }

    fn range_of(one: i64, other: i64) -> Range<i64> {
        Range { low: one.min(other), high: one.max(other) }
    }

    fn decoded(list: &[u8]) -> Option<Vec<i64>> {
        let mut numbers = Vec::new();
        wire::packed(list, |number| numbers.push(number.cast_signed())).ok()?;
        Some(numbers)
    }

    proptest! {
        #[test]
        fn numbers_are_counted_if_all_lie_within(
            numbers in prop::collection::vec(number(), 0..80),
            (one, other) in (number(), number()),
            behind in prop::collection::vec(any::<u8>(), 0..90),
        ) {
            let within = range_of(one, other);
            let (some, all) = (numbers.iter().filter(|number| within.holds(**number)), &numbers);
            for numbers in [some.copied().collect(), all.clone()] {
                let list = packed(&numbers);
                let expected = numbers.iter().all(|number| within.holds(*number));
                let bytes = [&list[..], &behind[..]].concat();
                let found = Bounds::of(within).count(&bytes, list.len());
                prop_assert_eq!(found, expected.then_some(numbers.len() as u64));
            }
        }

        #[test]
        fn of_any_bytes_only_what_decoding_confirms_is_counted(
            list in prop::collection::vec(prop_oneof![any::<u8>(), 0x80..=0x81_u8, 0..2_u8], 0..200),
            (one, other) in (number(), number()),
        ) {
            let within = range_of(one, other);
            if let Some(count) = Bounds::of(within).count(&list, list.len()) {
                let numbers = decoded(&list);
                prop_assert_eq!(numbers.as_ref().map(|numbers| numbers.len() as u64), Some(count));
                prop_assert!(numbers.iter().flatten().all(|number| within.holds(*number)));
            }
        }
    }

    #[test]
    fn both_ends_lie_within_and_their_neighbours_outside() {
        for bits in 0..63 {
            let (low, high) = ((1_i64 << bits) - 1, 1_i64 << bits);
            let bounds = Bounds::of(Range { low, high });
            let count = |number| bounds.count(&packed(&[number; 70]), packed(&[number; 70]).len());
            assert_eq!((count(low), count(high)), (Some(70), Some(70)));
            assert_eq!((count(low - 1), count(high.saturating_add(1))), (None, None));
        }
    }
}
