//! The range of packed numbers of any length, decoded side by side.
//!
//! Where some numbers are below zero, those of one byte and of ten stand next to each other, and a branch for each
//! would guess wrong every other time. So where numbers begin is told for 64 bytes at once, and what they are for
//! four of them by the same few operations.

use std::num::NonZero;

use fearless_simd::{
    Bytes, Level, Select, Simd, SimdBase, SimdIntWiden, SimdMask, dispatch, i16x16, i64x4, u64x4,
};

use super::Range;
use super::pieces::{Begins, LANES, PIECE, ends, piece_of};

/// So many numbers are decoded at a time.
pub(super) const TOGETHER: usize = 4;
/// The bits of eight bytes that tell whether their number goes on.
pub(super) const CONTINUED: u64 = 0x8080_8080_8080_8080;

/// What some numbers are, beside those seen before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbers {
    Within { count: u64 },
    Outside { count: u64, range: Range<i64> },
}

/// What the numbers are that the first `size` bytes hold; `None` if there are none or if they are malformed. What
/// follows does not matter.
#[inline]
pub(super) fn numbers_of(bytes: &[u8], size: usize, seen: Range<i64>) -> Option<Numbers> {
    match &bytes[..size] {
        [.., last] if *last < 0x80 => numbers_on(Level::new(), bytes, size, seen),
        _ => None,
    }
}

#[inline]
fn numbers_on(level: Level, bytes: &[u8], size: usize, seen: Range<i64>) -> Option<Numbers> {
    dispatch!(level, simd => numbers_by(simd, bytes, size, seen))
}

#[inline(always)]
fn numbers_by<S: Simd>(simd: S, bytes: &[u8], size: usize, seen: Range<i64>) -> Option<Numbers> {
    let (mut count, mut begins, mut found) = (0, Begins::new(), Found::nothing(simd));
    let mut room = [0; PIECE];
    for from in (0..size).step_by(LANES) {
        let piece = piece_of(&bytes[from..], &mut room);
        // none begins where one is longer than this piece
        let Some(mut left) = NonZero::new(begins.after(ends(simd, piece), size - from)) else { continue };
        let here = left.count_ones().get();
        for _ in 0..here.div_ceil(TOGETHER as u32) {
            found.add(piece, next_of(&mut left));
        }
        count += u64::from(here);
    }
    if found.endless() {
        None
    } else if found.within(seen) {
        Some(Numbers::Within { count })
    } else {
        Some(Numbers::Outside { count, range: found.range() })
    }
}

/// The next few lanes that have a bit; the last one over and over where there are no more.
#[inline(always)]
fn next_of(left: &mut NonZero<u64>) -> [usize; TOGETHER] {
    [(); TOGETHER].map(|()| {
        let at = left.trailing_zeros() as usize;
        *left = NonZero::new(left.get() & (left.get() - 1)).unwrap_or(*left);
        at
    })
}

/// What decoded numbers come to, each lane for itself.
struct Found<S: Simd> {
    simd: S,
    low: i64x4<S>,
    high: i64x4<S>,
    /// Has the sign in a lane that met more than ten bytes.
    endless: u64x4<S>,
}

impl<S: Simd> Found<S> {
    #[inline(always)]
    fn nothing(simd: S) -> Self {
        Found {
            simd,
            low: i64x4::splat(simd, i64::MAX),
            high: i64x4::splat(simd, i64::MIN),
            endless: u64x4::splat(simd, 0),
        }
    }

    /// Decode the numbers that begin at these places.
    #[inline(always)]
    fn add(&mut self, piece: &[u8; PIECE], places: [usize; TOGETHER]) {
        let words = u64x4::from_slice(self.simd, &places.map(|at| word_at(piece, at)));
        let may_end = !words & CONTINUED;
        // the first byte with which a number can end, and all bits below it; all there are if there is none
        let end = may_end & (u64x4::splat(self.simd, 0) - may_end);
        let mut numbers = joined(self.simd, words & (end - 1) & !CONTINUED);
        let long = end.simd_eq(0);
        if long.any_true() {
            let tops = u64x4::from_slice(self.simd, &places.map(|at| top_at(piece, at)));
            let long: u64x4<S> = long.select(u64x4::splat(self.simd, u64::MAX), u64x4::splat(self.simd, 0));
            // the tenth byte counts if the ninth goes on, and only its lowest bit
            numbers |= ((tops & (tops >> 1 | 0x7f)) << 56) & long;
            self.endless |= (tops << 8 & tops) << 48 & long;
        }
        let numbers: i64x4<S> = numbers.bitcast();
        self.low = self.low.min(numbers);
        self.high = self.high.max(numbers);
    }

    #[inline(always)]
    fn endless(&self) -> bool {
        self.endless.bitcast::<i64x4<S>>().simd_lt(0).any_true()
    }

    #[inline(always)]
    fn within(&self, seen: Range<i64>) -> bool {
        !(self.low.simd_lt(seen.low) | self.high.simd_gt(seen.high)).any_true()
    }

    #[inline(always)]
    fn range(&self) -> Range<i64> {
        Range { low: self.low.reduce_min(), high: self.high.reduce_max() }
    }
}

#[inline(always)]
fn word_at(piece: &[u8; PIECE], at: usize) -> u64 {
    piece[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// The ninth and the tenth byte of a number.
#[inline(always)]
fn top_at(piece: &[u8; PIECE], at: usize) -> u64 {
    piece[at + 8..].first_chunk().map_or(0, |bytes| u64::from(u16::from_le_bytes(*bytes)))
}

/// Eight groups of seven bits as one number.
#[inline(always)]
pub(super) fn joined<S: Simd>(simd: S, sevens: u64x4<S>) -> u64x4<S> {
    let pairs = sevens - ((sevens & 0x7f00_7f00_7f00_7f00) >> 1);
    let shifts = i16x16::from_fn(simd, |at| if at % 2 == 0 { 1 } else { 1 << 14 });
    let fours: u64x4<S> = pairs.bitcast::<i16x16<S>>().pairwise_dot_product(shifts).bitcast();
    (fours & 0x0fff_ffff) | (fours >> 4 & 0x00ff_ffff_f000_0000)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::pieces::tests::{decoded, number, packed, range_between};
    use super::*;

    /// What decoding one by one finds.
    fn expected(list: &[u8], seen: Range<i64>) -> Option<Numbers> {
        let numbers = decoded(list)?;
        let count = numbers.len() as u64;
        let range = Range { low: *numbers.iter().min()?, high: *numbers.iter().max()? };
        let within = seen.holds(range.low) && seen.holds(range.high);
        Some(if within { Numbers::Within { count } } else { Numbers::Outside { count, range } })
    }

    fn found(list: &[u8], behind: &[u8], seen: Range<i64>) -> [Option<Numbers>; 2] {
        let bytes = [list, behind].concat();
        let by_baseline = || numbers_on(Level::baseline(), &bytes, list.len(), seen);
        let ends = list.last().is_some_and(|last| *last < 0x80);
        [numbers_of(&bytes, list.len(), seen), ends.then(by_baseline).flatten()]
    }

    proptest! {
        #[test]
        fn numbers_are_those_decoded_one_by_one(
            numbers in prop::collection::vec(number(), 0..80),
            (one, other) in (number(), number()),
            behind in prop::collection::vec(any::<u8>(), 0..90),
        ) {
            let (list, seen) = (packed(&numbers), range_between(one, other));
            prop_assert_eq!(found(&list, &behind, seen), [expected(&list, seen); 2]);
            let all = Range { low: i64::MIN, high: i64::MAX };
            prop_assert_eq!(found(&list, &behind, all), [expected(&list, all); 2]);
        }

        #[test]
        fn any_bytes_are_what_decoding_makes_of_them(
            // padded numbers, surplus bits, and numbers that do not end
            list in prop::collection::vec(prop_oneof![any::<u8>(), 0x80..=0x81_u8, Just(0xff), 0..2_u8], 0..200),
            behind in prop::collection::vec(any::<u8>(), 0..90),
            (one, other) in (number(), number()),
        ) {
            let seen = range_between(one, other);
            prop_assert_eq!(found(&list, &behind, seen), [expected(&list, seen); 2]);
        }
    }

    #[test]
    fn only_what_ends_after_ten_bytes_is_a_number() {
        let all = Range { low: i64::MIN, high: i64::MAX };
        for before in 0..70 {
            let number = |bytes: usize| [&vec![1; before][..], &vec![0x80; bytes - 1], &[1]].concat();
            for bytes in 1..=10 {
                let within = Some(Numbers::Within { count: before as u64 + 1 });
                assert_eq!(found(&number(bytes), &[0xff; 9], all), [within; 2]);
            }
            for bytes in [11, 12, 64, 65, 150] {
                assert_eq!(found(&number(bytes), &[], all), [None; 2]);
            }
            assert_eq!(found(&[0x80; 9], &[1], all), [None; 2]);
        }
    }
}
