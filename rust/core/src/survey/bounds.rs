//! Packed numbers held against bounds without decoding them, many at a time.
//!
//! After a few records of a data set hardly any number lies outside what was seen before. So it is enough to tell
//! that none does, and that takes no branch per number.

use fearless_simd::{Level, Select, Simd, SimdBase, SimdMask, dispatch, u8x64};

use super::Range;
use crate::wire;

/// So many bytes are looked at together, as if a number began at every one of them.
const LANES: usize = 64;
/// The longest number has so many groups of seven bits.
const LONGEST: usize = 10;
/// With what a number goes on that begins at the last of them.
const PIECE: usize = LANES + LONGEST - 1;

/// A number by sevens of its bits, each for all lanes: loaded, not made anew for every list.
type Groups = [[u8; LANES]; LONGEST];

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
    pub fn of(range: Range<i64>) -> Self {
        let mut bounds = Bounds { range, low: [[0; LANES]; LONGEST], high: [[0; LANES]; LONGEST], bytes: 0 };
        bounds.move_to(range);
        bounds
    }

    pub fn move_to(&mut self, range: Range<i64>) {
        self.range = range;
        self.bytes = most_bytes(range);
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
            4 => self.count_by::<4, _>(simd, bytes, size),
            5 => self.count_by::<5, _>(simd, bytes, size),
            6 => self.count_by::<6, _>(simd, bytes, size),
            9 => self.count_by::<9, _>(simd, bytes, size),
            _ => self.count_by::<LONGEST, _>(simd, bytes, size),
        })
    }

    /// Bounds within which the first and the last number of a list lie as well. Where numbers rise or fall, from
    /// record to record too, these are within which all of them do.
    pub fn with_ends_of(&self, packed: &[u8]) -> Option<Self> {
        let (_, before_last) = packed.split_last()?;
        let last = before_last.iter().rposition(|byte| *byte < 0x80).map_or(0, |end| end + 1);
        let Range { mut low, mut high } = self.range;
        for from in [0, last] {
            let number = wire::varint(&mut &packed[from..]).ok()?.cast_signed();
            (low, high) = (low.min(number), high.max(number));
        }
        Some(Bounds::of(Range { low, high }))
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
            let (low, high) =
                (u8x64::from_slice(simd, &self.low[at]), u8x64::from_slice(simd, &self.high[at]));
            below = group.simd_lt(low) | (group.simd_eq(low) & below);
            above = group.simd_gt(high) | (group.simd_eq(high) & above);
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

/// Seven bits of a number, the lowest first.
fn group(number: i64, at: usize) -> u8 {
    ((number.cast_unsigned() >> (7 * at)) as u8 & significant(at)) ^ flipped(at)
}

/// How many bytes numbers take at most, rounded up to what is compiled.
fn most_bytes(range: Range<i64>) -> usize {
    let bits = 64 - (range.low | range.high).leading_zeros();
    match bits.div_ceil(7) {
        few @ 1..=6 => few as usize,
        0 => 1,
        7..=9 => 9,
        _ => LONGEST,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
                let bounds = Bounds::of(within);
                for found in [bounds.count(&bytes, list.len()), bounds.count_on(Level::baseline(), &bytes, list.len())] {
                    prop_assert_eq!(found, expected.then_some(numbers.len() as u64));
                }
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
    fn the_ends_of_a_list_widen_bounds_on_both_sides() {
        let bounds = Bounds::of(Range { low: 10, high: 20 });
        let widened = |numbers: &[i64]| bounds.with_ends_of(&packed(numbers)).unwrap().range();
        assert_eq!(widened(&[300, 5_000, 7]), Range { low: 7, high: 300 });
        assert_eq!(widened(&[-4]), Range { low: -4, high: 20 });
        assert_eq!(widened(&[15, 70_000]), Range { low: 10, high: 70_000 });
        assert!(bounds.with_ends_of(&[]).is_none());
        assert!(bounds.with_ends_of(&[0xff; 11]).is_none());
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
