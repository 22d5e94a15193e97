//! Packed numbers that all take as many bytes: hashes of few bits, times, counters.
//!
//! Bytes of two such numbers go on in the same places, so that of their words, as they stand there, the larger one
//! is the larger number. Nothing is decoded but the smallest and the largest. A list of 16 times that rise from
//! record to record, and so are never within what was seen before, took 24 ns to decode; so it takes 15 less.

use fearless_simd::{Bytes, Level, Simd, SimdBase, SimdMask, dispatch, i64x4, u64x4};

use super::Range;
use super::numbers::{CONTINUED, TOGETHER, joined};

/// The bytes of a word; longer numbers are not told so.
const MOST: usize = size_of::<u64>();

/// How many numbers the first `size` bytes hold and between what they lie, if all of them take as many bytes, and
/// not more than a word has. `None` otherwise, for a few numbers, and where no word follows the last one's beginning.
#[inline]
pub(super) fn alike(bytes: &[u8], size: usize) -> Option<(u64, Range<i64>)> {
    alike_on(Level::new(), bytes, size)
}

#[inline]
fn alike_on(level: Level, bytes: &[u8], size: usize) -> Option<(u64, Range<i64>)> {
    let first = u64::from_le_bytes(*bytes.first_chunk()?);
    let length = (!first & CONTINUED).trailing_zeros() as usize / 8 + 1;
    dispatch!(level, simd => match length {
        1 => range_by::<1, _>(simd, bytes, size),
        2 => range_by::<2, _>(simd, bytes, size),
        3 => range_by::<3, _>(simd, bytes, size),
        4 => range_by::<4, _>(simd, bytes, size),
        5 => range_by::<5, _>(simd, bytes, size),
        6 => range_by::<6, _>(simd, bytes, size),
        7 => range_by::<7, _>(simd, bytes, size),
        MOST => range_by::<MOST, _>(simd, bytes, size),
        _ => None,
    })
}

/// How many numbers there are, the smallest and the largest, if one ends with every `LENGTH`th byte and no other.
#[inline(always)]
fn range_by<const LENGTH: usize, S: Simd>(simd: S, bytes: &[u8], size: usize) -> Option<(u64, Range<i64>)> {
    if !size.is_multiple_of(LENGTH) {
        return None;
    }
    let step = TOGETHER * LENGTH;
    let last = size.checked_sub(step)?;
    let mask = u64::MAX >> (64 - 8 * LENGTH);
    let (mut low, mut high) = (i64x4::splat(simd, i64::MAX), i64x4::splat(simd, 0));
    let (mut some, mut all) = (i64x4::splat(simd, 0), i64x4::splat(simd, -1));
    let mut at = 0;
    while at < size {
        // the last ones overlap those before them, which changes nothing
        let four = bytes.get(at.min(last)..)?.get(..step - LENGTH + MOST)?;
        let words = [0, 1, 2, 3].map(|number| word_at(four, number * LENGTH) & mask);
        let words: i64x4<S> = u64x4::from_slice(simd, &words).bitcast();
        (low, high, some, all) = (low.min(words), high.max(words), some | words, all & words);
        at += step;
    }
    let continued = CONTINUED.cast_signed();
    let goes_on = continued & (mask >> 8).cast_signed();
    if (((some ^ goes_on) | (all ^ goes_on)) & continued).simd_ne(0).any_true() {
        return None;
    }
    let range = Range { low: numbers_of(simd, low).reduce_min(), high: numbers_of(simd, high).reduce_max() };
    Some(((size / LENGTH) as u64, range))
}

/// What numbers words have in their groups of seven bits.
#[inline(always)]
fn numbers_of<S: Simd>(simd: S, words: i64x4<S>) -> i64x4<S> {
    joined(simd, words.bitcast::<u64x4<S>>() & !CONTINUED).bitcast()
}

#[inline(always)]
fn word_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::pieces::tests::{decoded, packed};
    use super::*;

    /// As this processor tells it and as the oldest would, with anything behind.
    fn found(list: &[u8], behind: &[u8]) -> [Option<(u64, Range<i64>)>; 2] {
        let bytes = [list, behind].concat();
        [alike(&bytes, list.len()), alike_on(Level::baseline(), &bytes, list.len())]
    }

    fn expected(numbers: &[i64]) -> Option<(u64, Range<i64>)> {
        let range = Range { low: *numbers.iter().min()?, high: *numbers.iter().max()? };
        Some((numbers.len() as u64, range))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn numbers_of_one_length_are_told(
            bytes in 1..=MOST,
            numbers in prop::collection::vec(any::<i64>(), TOGETHER..60),
            behind in prop::collection::vec(any::<u8>(), MOST..90),
        ) {
            let most = 1_i64 << (7 * bytes - 1);
            let numbers: Vec<_> = numbers.iter().map(|number| number & (most - 1) | most).collect();
            prop_assert_eq!(found(&packed(&numbers), &behind), [expected(&numbers); 2]);
        }

        #[test]
        fn of_any_bytes_only_what_decoding_confirms_is_told(
            list in prop::collection::vec(prop_oneof![any::<u8>(), 0x80..=0x81_u8, 0..2_u8], 0..40),
            times in 1..6_usize,
            behind in prop::collection::vec(any::<u8>(), 0..90),
        ) {
            let list = list.repeat(times);
            let [found, by_baseline] = found(&list, &behind);
            prop_assert_eq!(found, by_baseline);
            if found.is_some() {
                prop_assert_eq!(found, expected(&decoded(&list).unwrap()));
            }
        }
    }

    #[test]
    fn a_few_numbers_are_left_to_others() {
        for count in 0..TOGETHER {
            assert_eq!(found(&packed(&vec![1_000; count]), &[0xff; MOST]), [None; 2]);
        }
    }

    #[test]
    fn numbers_of_two_lengths_are_left_to_others() {
        for at in 0..40 {
            let mut numbers = [1_000_i64; 40];
            assert_eq!(found(&packed(&numbers), &[0xff; MOST]), [expected(&numbers); 2]);
            numbers[at] = 1;
            assert_eq!(found(&packed(&numbers), &[0xff; MOST]), [None; 2]);
            numbers[at] = -1;
            assert_eq!(found(&packed(&numbers), &[0xff; MOST]), [None; 2]);
        }
    }
}
