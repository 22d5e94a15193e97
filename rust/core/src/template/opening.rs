//! How an entry begins, up to its values, if it is short: compared by words instead of parsed.

use std::ops::Range;

/// Where the list begins, as seen from its values: behind a tag and a length.
const LIST_BEFORE: usize = 2;

/// The bytes in front of a key's values where every length has one byte. All lengths follow from the entry's.
#[derive(Debug)]
pub(super) struct Opening {
    words: Vec<Word>,
    /// The last eight bytes, which may overlap those before them.
    last: Word,
    size: usize,
}

/// Eight bytes, some of which are lengths.
#[derive(Debug)]
struct Word {
    /// As they are in an entry of the length zero, if there were one.
    of_none: u64,
    /// A one for every length.
    lengths: u64,
}

/// Where the parts of an entry lie.
pub(super) struct Places {
    pub list: Range<usize>,
    pub values: Range<usize>,
}

impl Opening {
    /// Of an entry with a head between its own length and its value's, and one field in its list.
    pub fn of(entry_tag: u8, head: &[u8], list_tag: u8, values_tag: u8) -> Self {
        let bytes = [&[entry_tag, 0], head, &[0, list_tag, 0, values_tag, 0]].concat();
        let size = bytes.len();
        let word = |from: usize| {
            (from..from + 8).fold(Word { of_none: 0, lengths: 0 }, |word, at| {
                let shift = 8 * (at - from);
                // what a length counts begins behind it; the entry's own counts from the third byte
                let (byte, is_length) = match at {
                    _ if at == 1 || [size - 5, size - 3, size - 1].contains(&at) => ((at - 1) as u64, true),
                    _ => (u64::from(bytes[at]), false),
                };
                let byte = if is_length { byte.wrapping_neg() } else { byte };
                Word {
                    of_none: word.of_none.wrapping_add(byte << shift),
                    lengths: word.lengths | u64::from(is_length) << shift,
                }
            })
        };
        Opening { words: (0..size / 8).map(|at| word(8 * at)).collect(), last: word(size - 8), size }
    }

    /// Where the values lie of the entry that begins at `at`; `None` if it is another one, or not short. Its end
    /// may lie behind the record's.
    #[inline]
    pub fn places(&self, record: &[u8], at: usize) -> Option<Places> {
        let bytes = record.get(at..)?.get(..self.size)?;
        let length = *bytes.get(1)?;
        let other = bytes
            .as_chunks()
            .0
            .iter()
            .zip(&self.words)
            .fold(self.last.difference(length, bytes.last_chunk()?), |other, (bytes, word)| {
                other | word.difference(length, bytes)
            });
        let end = 2 + usize::from(length);
        let values = at + self.size..at + end;
        (other == 0 && length < 0x80 && end >= self.size)
            .then(|| Places { list: values.start - LIST_BEFORE..values.end, values })
    }
}

impl Word {
    /// Zero if the bytes are those of an entry of this length.
    #[inline]
    fn difference(&self, length: u8, bytes: &[u8; 8]) -> u64 {
        let expected = self.of_none.wrapping_add(self.lengths.wrapping_mul(u64::from(length)));
        expected ^ u64::from_le_bytes(*bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEAD: &[u8] = &[0x0a, 4, b'n', b'a', b'm', b'e', 0x12];

    fn opening() -> Opening {
        Opening::of(0x0a, HEAD, 0x1a, 0x0a)
    }

    /// An entry with values of this size, if its lengths have one byte each.
    fn entry(size: u8) -> Vec<u8> {
        let lengths = [size, size + 2, size + 4, size + 5 + HEAD.len() as u8];
        [&[0x0a, lengths[3]], HEAD, &[lengths[2], 0x1a, lengths[1], 0x0a, lengths[0]], &vec![9; size.into()]]
            .concat()
    }

    #[test]
    fn the_values_of_short_entries_are_found() {
        for size in 0..=127 - 5 - HEAD.len() as u8 {
            let record = [&[0; 3], &entry(size)[..], &[1]].concat();
            let places = opening().places(&record, 3).unwrap();
            let values = record.len() - 1 - usize::from(size)..record.len() - 1;
            assert_eq!((places.list, places.values), (values.start - 2..values.end, values));
        }
    }

    #[test]
    fn one_that_is_not_short_or_cut_is_not_found() {
        assert!(opening().places(&entry(128 - 5 - HEAD.len() as u8), 0).is_none());
        let whole = entry(0);
        for cut in 0..whole.len() {
            assert!(opening().places(&whole[..cut], 0).is_none());
        }
        assert!(opening().places(&whole, usize::MAX).is_none());
    }

    proptest! {
        #[test]
        fn one_with_any_other_byte_is_not_found(size in 0..100_u8, at in 0..7 + HEAD.len(), byte: u8) {
            let mut changed = entry(size);
            let same = changed[at] == byte;
            changed[at] = byte;
            prop_assert_eq!(opening().places(&changed, 0).is_some(), same);
        }

        #[test]
        fn lengths_that_do_not_agree_are_not_found(size in 0..100_u8, lengths: [u8; 4]) {
            let sound = entry(size);
            let mut changed = sound.clone();
            let end = 7 + HEAD.len();
            for (at, length) in [1, end - 5, end - 3, end - 1].into_iter().zip(lengths) {
                changed[at] = length;
            }
            let expected = u16::from(lengths[3]) + 5 + HEAD.len() as u16;
            let agree = lengths[0] < 0x80
                && u16::from(lengths[0]) == expected
                && lengths[1] == lengths[3] + 4
                && lengths[2] == lengths[3] + 2;
            prop_assert_eq!(opening().places(&changed, 0).is_some(), agree);
        }
    }
}
