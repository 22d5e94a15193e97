//! How an entry begins, up to its values, if it is short: compared by words instead of parsed.

use std::ops::Range;

/// Where the list begins, as seen from its values: behind a tag and a length.
const LIST_BEFORE: usize = 2;

/// The bytes in front of a key's values where every length has one byte. All lengths follow from the entry's.
#[derive(Debug)]
pub(super) struct Opening {
    first: Word,
    /// What a long key has in between.
    middle: Vec<Word>,
    /// The last eight bytes, which may overlap those before them.
    last: Word,
    size: usize,
}

/// Eight bytes, some of which are lengths.
#[derive(Debug)]
struct Word {
    /// What they would be in an entry of the length zero: the sum of all of them, where lengths are below zero.
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
        let lengths = [1, size - 5, size - 3, size - 1];
        let word = |from| Word::of(&bytes, from, &lengths);
        let middle = (8..size - 8).step_by(8).map(word).collect();
        Opening { first: word(0), middle, last: word(size - 8), size }
    }

    /// Where the values lie of the entry that begins at `at`; `None` if it is another one, or not short. Its end
    /// may lie behind the record's.
    #[inline]
    pub fn places(&self, record: &[u8], at: usize) -> Option<Places> {
        let bytes = record.get(at..)?.get(..self.size)?;
        let length = *bytes.get(1)?;
        let end = 2 + usize::from(length);
        let same = self.first.is(length, bytes.first_chunk()?)
            && self.last.is(length, bytes.last_chunk()?)
            && (self.middle.is_empty() || self.is_middle(length, bytes));
        let values = at + self.size..at + end;
        (same && length < 0x80 && end >= self.size)
            .then(|| Places { list: values.start - LIST_BEFORE..values.end, values })
    }

    fn is_middle(&self, length: u8, bytes: &[u8]) -> bool {
        let mut words = bytes.as_chunks().0.iter().skip(1).zip(&self.middle);
        words.all(|(bytes, word)| word.is(length, bytes))
    }
}

impl Word {
    /// Eight of the bytes, with lengths at some places: each counts what lies behind it, the deeper the less.
    fn of(bytes: &[u8], from: usize, lengths: &[usize]) -> Self {
        let mut word = Word { of_none: 0, lengths: 0 };
        for (at, byte) in bytes.iter().enumerate().skip(from).take(8) {
            let one = 1 << (8 * (at - from));
            if lengths.contains(&at) {
                word.of_none = word.of_none.wrapping_sub(one * (at as u64 - 1));
                word.lengths |= one;
            } else {
                word.of_none = word.of_none.wrapping_add(one * u64::from(*byte));
            }
        }
        word
    }

    /// Whether the bytes are those of an entry of this length.
    #[inline]
    fn is(&self, length: u8, bytes: &[u8; 8]) -> bool {
        u64::from_le_bytes(*bytes) == self.of_none.wrapping_add(self.lengths.wrapping_mul(length.into()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Keys that make two words, two that overlap, and more.
    const HEADS: [&[u8]; 4] =
        [b"\x0a\x06tokens\x12", b"\x0a\x00\x12", b"\x0a\x04name\x12", b"\x0a\x16a name that takes more\x12"];

    fn opening(head: &[u8]) -> Opening {
        Opening::of(0x0a, head, 0x1a, 0x0a)
    }

    /// An entry with values of this size, if its lengths have one byte each.
    fn entry(head: &[u8], size: u8) -> Vec<u8> {
        let own = size + 5 + head.len() as u8;
        [&[0x0a, own], head, &[size + 4, 0x1a, size + 2, 0x0a, size], &vec![9; size.into()]].concat()
    }

    /// The largest size of values in a short entry.
    fn most(head: &[u8]) -> u8 {
        127 - 5 - head.len() as u8
    }

    #[test]
    fn the_values_of_short_entries_are_found() {
        for head in HEADS {
            for size in 0..=most(head) {
                let record = [&[0; 3], &entry(head, size)[..], &[1]].concat();
                let places = opening(head).places(&record, 3).unwrap();
                let values = record.len() - 1 - usize::from(size)..record.len() - 1;
                assert_eq!((places.list, places.values), (values.start - 2..values.end, values));
            }
        }
    }

    #[test]
    fn one_that_is_not_short_or_is_cut_is_not_found() {
        for head in HEADS {
            let opening = opening(head);
            assert!(opening.places(&entry(head, most(head) + 1), 0).is_none());
            let whole = entry(head, 0);
            for cut in 0..whole.len() {
                assert!(opening.places(&whole[..cut], 0).is_none());
            }
            assert!(opening.places(&whole, usize::MAX).is_none());
        }
    }

    #[test]
    fn one_with_any_other_byte_is_not_found() {
        for head in HEADS {
            let sound = entry(head, 20);
            for at in 0..head.len() + 7 {
                for byte in (0..=255).filter(|byte| *byte != sound[at]) {
                    let mut changed = sound.clone();
                    changed[at] = byte;
                    assert!(opening(head).places(&changed, 0).is_none(), "{byte} at {at}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn lengths_are_found_if_all_agree(
            head in prop::sample::select(&HEADS[..]),
            own: u8,
            (wrong, other) in (0..4_usize, any::<u8>()),
        ) {
            let size = head.len() + 7;
            let places = [1, size - 5, size - 3, size - 1];
            // as they would be, but for one of them
            let mut lengths = places.map(|at| own.wrapping_sub(at as u8 - 1));
            lengths[wrong] = other;
            let mut bytes = entry(head, 0);
            places.iter().zip(lengths).for_each(|(at, length)| bytes[*at] = length);
            let end = |at: usize| at + 1 + usize::from(bytes[at]);
            let agree = places.iter().all(|at| bytes[*at] < 0x80 && end(*at) == end(1));
            prop_assert_eq!(opening(head).places(&bytes, 0).is_some(), agree);
        }
    }
}
