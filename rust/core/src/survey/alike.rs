//! Packed numbers that all take as many bytes: hashes of few bits, times, counters.
//!
//! Bytes of two such numbers go on in the same places, so that of their words, as they stand there, the larger one
//! is the larger number. Nothing is decoded but the smallest and the largest. A list of 16 times that rise from
//! record to record, and so are never within what was seen before, took 24 ns to decode; so it takes 16.

use fearless_simd::{Level, Simd, SimdBase, SimdMask, dispatch, i64x4};

use super::Range;
use crate::wire::{CONTINUED, joined};

/// The bytes of a word; longer numbers are not told so.
const MOST: usize = size_of::<u64>();

/// How many numbers the first `size` bytes hold and between what they lie, if all of them take as many bytes, and
/// not more than a word has; `None` otherwise, and where not even a word follows the last one's beginning.
#[inline]
pub(super) fn alike(bytes: &[u8], size: usize) -> Option<(u64, Range<i64>)> {
    alike_on(Level::new(), bytes, size)
}

#[inline]
fn alike_on(level: Level, bytes: &[u8], size: usize) -> Option<(u64, Range<i64>)> {
    let ends = !word_at(bytes, 0)? & CONTINUED;
    let length = ends.trailing_zeros() as usize / 8 + 1;
    if size < length || length > MOST || !size.is_multiple_of(length) {
        return None;
    }
    let words = dispatch!(level, simd => words_by(simd, bytes, size, length))?;
    let number = |word: i64| joined(word.cast_unsigned()).cast_signed();
    Some(((size / length) as u64, Range { low: number(words.low), high: number(words.high) }))
}

/// The smallest and the largest word, if a number ends with every `length`th byte and with no other.
#[inline(always)]
fn words_by<S: Simd>(simd: S, bytes: &[u8], size: usize, length: usize) -> Option<Range<i64>> {
    let last = size - length;
    let bytes = bytes.get(..last + MOST)?;
    let mask = u64::MAX >> (64 - 8 * length);
    let (mut low, mut high) = (i64x4::splat(simd, i64::MAX), i64x4::splat(simd, 0));
    let (mut some, mut all) = (i64x4::splat(simd, 0), i64x4::splat(simd, -1));
    let mut at = 0;
    while at <= last {
        // the last one over and over where there are no more
        let words = [0, 1, 2, 3].map(|number| word_at(bytes, (at + number * length).min(last)).unwrap_or(0));
        let words = i64x4::from_slice(simd, &words.map(|word| (word & mask).cast_signed()));
        (low, high, some, all) = (low.min(words), high.max(words), some | words, all & words);
        at += 4 * length;
    }
    let go_on = (CONTINUED & (mask >> 8)).cast_signed();
    let continued = CONTINUED.cast_signed();
    let apart = ((some ^ go_on) | (all ^ go_on)) & continued;
    if apart.simd_ne(0).any_true() {
        return None;
    }
    Some(Range { low: low.reduce_min(), high: high.reduce_max() })
}

#[inline(always)]
fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
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
            numbers in prop::collection::vec(any::<i64>(), 1..60),
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
