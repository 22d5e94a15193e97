//! The layouts of records seen lately: most records of a data set differ from others in nothing but their
//! values, and then need not be parsed, only compared. Saves half of what decoding a small record costs.

use std::borrow::Cow;
use std::ops::Range;

use crate::example::{self, Kind, Level};
use crate::wire::{Malformed, Parsed};

/// Layouts that are remembered: labels of one and of two bytes, keys in one order and in another.
const REMEMBERED: usize = 4;
/// After so many records in a row that were like none before, looking for layouts is seldom worth it.
const PATIENCE: u32 = 64;

/// Where one key's values lie within a record.
#[derive(Debug)]
pub(crate) struct Slot {
    /// The key's number, for whoever reads the record.
    pub place: usize,
    pub kind: Kind,
    /// The whole list, and within it its packed numbers or its one bytes value.
    pub list: Range<usize>,
    pub values: Range<usize>,
}

/// A record's layout: what any record like it has in common with it, and where the rest belongs.
#[derive(Debug)]
pub(crate) struct Template {
    record: Vec<u8>,
    fixed: Vec<Range<usize>>,
    /// By place.
    pub slots: Vec<Slot>,
}

/// Why a record is no template for others.
pub(crate) const NOT_PLAIN: Malformed = Malformed("not laid out plainly");

impl Template {
    /// The layout of a sound record, if it is plain: every key once, with all its values in one piece. `place`
    /// numbers the keys; what lies under one without a number can be anything.
    pub fn of(
        record: &[u8],
        lists: bool,
        place: impl Fn(Level, &[u8]) -> Parsed<Option<usize>>,
    ) -> Option<Self> {
        let (mut slots, mut free) = (Vec::new(), Vec::new());
        example::entries(record, lists, |level, key, value| {
            let Cow::Borrowed(value) = value else { return Err(NOT_PLAIN) };
            let Some(place) = place(level, key)? else {
                free.push(within(record, value));
                return Ok(());
            };
            let Some((kind, Cow::Borrowed(list))) = example::feature(level, value)? else {
                return Err(NOT_PLAIN);
            };
            let values = within(record, example::only_value(level, kind, list)?.ok_or(NOT_PLAIN)?);
            free.push(values.clone());
            slots.push(Slot { place, kind, list: within(record, list), values });
            Ok(())
        })
        .ok()?;
        slots.sort_unstable_by_key(|slot| slot.place);
        let once = slots.windows(2).all(|pair| pair[0].place != pair[1].place);
        once.then(|| Template { record: record.to_vec(), fixed: between(free, record.len()), slots })
    }

    fn fits(&self, record: &[u8]) -> bool {
        record.len() == self.record.len()
            && self.fixed.iter().all(|range| record[range.clone()] == self.record[range.clone()])
    }
}

/// The templates of records seen lately.
#[derive(Debug, Default)]
pub(crate) struct Templates {
    known: Vec<Template>,
    lengths: [usize; REMEMBERED],
    next: usize,
    misses: u32,
}

impl Templates {
    pub fn fitting(&mut self, record: &[u8]) -> Option<&Template> {
        let found = self.known.iter().find(|template| template.fits(record));
        if found.is_some() {
            self.misses = 0;
        }
        found
    }

    /// Take note of a record that was like none of those known; `made` is asked now and then only.
    pub fn learn(&mut self, record: &[u8], made: impl FnOnce() -> Option<Template>) {
        self.misses = self.misses.saturating_add(1);
        if self.misses > PATIENCE && !self.misses.is_multiple_of(PATIENCE) {
            return;
        }
        self.next = (self.next + 1) % REMEMBERED;
        // a length that never comes again promises nothing
        if !self.lengths.contains(&record.len()) {
            self.lengths[self.next] = record.len();
        } else if let Some(template) = made() {
            match self.known.get_mut(self.next) {
                Some(place) => *place = template,
                None => self.known.push(template),
            }
        }
    }
}

/// Where `part` lies in the record that it is a part of.
fn within(record: &[u8], part: &[u8]) -> Range<usize> {
    let start = part.as_ptr().addr().saturating_sub(record.as_ptr().addr()).min(record.len());
    start..(start + part.len()).min(record.len())
}

/// What lies between the ranges.
fn between(mut ranges: Vec<Range<usize>>, end: usize) -> Vec<Range<usize>> {
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    let mut from = 0;
    let mut gaps = Vec::with_capacity(ranges.len() + 1);
    for range in ranges {
        if from < range.start {
            gaps.push(from..range.start);
        }
        from = from.max(range.end);
    }
    if from < end {
        gaps.push(from..end);
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_between_ranges_is_found() {
        assert_eq!(between(vec![5..7, 2..3], 9), [0..2, 3..5, 7..9]);
        assert_eq!(between(vec![0..9, 9..9], 9), []);
    }
}
