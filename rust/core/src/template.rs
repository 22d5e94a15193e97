//! The layouts of records seen lately: most records of a data set differ from others in nothing but their
//! values, and then need not be parsed, only compared; those that differ in how many values they have too are
//! walked through by what is expected next. Saves half of what decoding a small record costs.

use std::ops::Range;

use crate::example::Kind;
use crate::wire::Malformed;

mod layout;
mod opening;

pub(crate) use layout::Layout;

/// Templates and layouts that are remembered: labels of one and of two bytes, keys in one order and in another.
const REMEMBERED: usize = 4;
/// After so many records of one length in a row, comparing with the last one is worth it: where lengths vary, two
/// that are equal by chance promise nothing.
const OF_ONE_LENGTH: u32 = 4;
/// A larger record is no template: comparing saves nothing beside copying its values, and each takes memory.
pub(crate) const LARGEST_TEMPLATE: usize = 64 << 10;
/// After so many records in a row that were like none before, looking for layouts is seldom worth it.
const PATIENCE: u32 = 64;

/// Where one key's values lie within a record.
#[derive(Debug, Clone)]
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
    /// A record that a layout has just fitted, as the measure of others of its length.
    fn of(record: &[u8], layout: &Layout) -> Self {
        let fixed = between(layout.free(), record.len());
        Template { record: record.to_vec(), fixed, slots: layout.slots().to_vec() }
    }

    fn fits(&self, record: &[u8]) -> bool {
        record.len() == self.record.len()
            && self.fixed.iter().all(|range| record[range.clone()] == self.record[range.clone()])
    }
}

/// What records seen lately have in common.
#[derive(Debug, Default)]
pub(crate) struct Templates {
    known: Few<Template>,
    layouts: Few<Layout>,
    last_length: usize,
    of_last_length: u32,
    misses: u32,
}

impl Templates {
    /// Where everything lies in a record that is like one before.
    pub fn fitting(&mut self, record: &[u8]) -> Option<&[Slot]> {
        if let Some(at) = self.known.items.iter().position(|template| template.fits(record)) {
            self.misses = 0;
            return Some(&self.known.items[at].slots);
        }
        let layout =
            self.layouts.items.iter_mut().find_map(|layout| layout.fits(record).then_some(layout))?;
        self.misses = 0;
        let as_before = self.last_length == record.len();
        self.of_last_length = if as_before { self.of_last_length + 1 } else { 1 };
        self.last_length = record.len();
        // records of one length are told by comparing, in a fraction of the time
        if self.of_last_length == OF_ONE_LENGTH {
            self.of_last_length = 0;
            if record.len() <= LARGEST_TEMPLATE {
                self.known.keep(Template::of(record, layout));
            }
        }
        Some(layout.slots())
    }

    /// Take note of a record that was like none of those known; `made` is asked now and then only.
    pub fn learn(&mut self, made: impl FnOnce() -> Option<Layout>) {
        self.misses = self.misses.saturating_add(1);
        if (self.misses <= PATIENCE || self.misses.is_multiple_of(PATIENCE))
            && let Some(layout) = made()
        {
            self.layouts.keep(layout);
        }
    }
}

/// The last few of something.
#[derive(Debug)]
struct Few<T> {
    items: Vec<T>,
    next: usize,
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Few { items: Vec::new(), next: 0 }
    }
}

impl<T> Few<T> {
    fn keep(&mut self, item: T) {
        match self.items.get_mut(self.next) {
            Some(oldest) => *oldest = item,
            None => self.items.push(item),
        }
        self.next = (self.next + 1) % REMEMBERED;
    }
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
    use crate::encode::{self, Values};

    #[test]
    fn large_records_are_not_remembered() {
        for (size, remembered) in [(10, 1), (LARGEST_TEMPLATE, 0)] {
            let record = encode::example([("a", &Values::Strings(vec![vec![7; size]]))]);
            let mut templates = Templates::default();
            templates.learn(|| Layout::of(&record, false, |_, _| Ok(Some(0))));
            for _ in 0..10 {
                assert!(templates.fitting(&record).is_some());
            }
            assert_eq!(templates.known.items.len(), remembered);
        }
    }

    #[test]
    fn what_lies_between_ranges_is_found() {
        assert_eq!(between(vec![5..7, 2..3], 9), [0..2, 3..5, 7..9]);
        assert_eq!(between(vec![0..9, 9..9], 9), []);
    }
}
