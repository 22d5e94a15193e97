//! The layouts of records seen lately: most records of a data set differ from others in nothing but their
//! values, and then need not be parsed, only compared. Saves half of what decoding a small record costs.

use std::borrow::Cow;
use std::ops::Range;

use crate::example::{self, Kind};
use crate::schema::Schema;
use crate::wire::Malformed;

/// Layouts that are remembered: labels of one and of two bytes, keys in one order and in another.
const REMEMBERED: usize = 4;
/// After so many records in a row that were like none before, looking for layouts is seldom worth it.
const PATIENCE: u32 = 64;

/// Where one key's values lie within a record.
#[derive(Debug, Clone)]
pub(crate) struct Slot {
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
    /// One per key of the schema.
    pub slots: Vec<Slot>,
}

const NOT_PLAIN: Malformed = Malformed("not laid out plainly");

impl Template {
    /// The layout of a sound record, if it is plain: every key there, once, with all values in one piece.
    fn of(schema: &Schema, record: &[u8]) -> Option<Self> {
        let mut slots = vec![None; schema.keys.len()];
        let mut free = Vec::new();
        example::entries(record, schema.has_lists, |level, key, value| {
            let Cow::Borrowed(value) = value else { return Err(NOT_PLAIN) };
            let Some(place) = schema.find(level, key, 0) else {
                example::checked_key(key)?;
                free.push(within(record, value));
                return Ok(());
            };
            let Some((kind, Cow::Borrowed(list))) = example::feature(level, value)? else {
                return Err(NOT_PLAIN);
            };
            let values = within(record, example::only_value(level, kind, list)?.ok_or(NOT_PLAIN)?);
            free.push(values.clone());
            let slot = Slot { kind, list: within(record, list), values };
            slots[place].replace(slot).map_or(Ok(()), |_| Err(NOT_PLAIN))
        })
        .ok()?;
        let slots = slots.into_iter().collect::<Option<Vec<_>>>()?;
        Some(Template { record: record.to_vec(), fixed: between(free, record.len()), slots })
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

    /// Take note of a record that was like none of those known.
    pub fn learn(&mut self, schema: &Schema, record: &[u8]) {
        self.misses = self.misses.saturating_add(1);
        if schema.has_lists || (self.misses > PATIENCE && !self.misses.is_multiple_of(PATIENCE)) {
            return;
        }
        self.next = (self.next + 1) % REMEMBERED;
        // a length that never comes again promises nothing
        if !self.lengths.contains(&record.len()) {
            self.lengths[self.next] = record.len();
        } else if let Some(template) = Template::of(schema, record) {
            match self.known.get_mut(self.next) {
                Some(place) => *place = template,
                None => self.known.push(template),
            }
        }
    }
}

/// Where `part` lies in the record that it is a part of.
pub(crate) fn within(record: &[u8], part: &[u8]) -> Range<usize> {
    let start = part.as_ptr().addr().saturating_sub(record.as_ptr().addr()).min(record.len());
    start..(start + part.len()).min(record.len())
}

/// What lies between the ranges.
pub(crate) fn between(mut ranges: Vec<Range<usize>>, end: usize) -> Vec<Range<usize>> {
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
