//! What the features of many records have in common: kinds, counts, sizes and ranges.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops;

use crate::example::{self, Kind, Level};
use crate::template::{between, within};
use crate::wire::{Malformed, Parsed, varint};

/// More names than any schema has: a bound on what hostile records can make us remember.
const MOST_NAMES: usize = 10_000;
/// Layouts that are remembered: labels of one and of two bytes, keys in one order and in another.
const REMEMBERED: usize = 4;
/// After so many records in a row that were like none before, looking for layouts is seldom worth it.
const PATIENCE: u32 = 16;
/// Parsing a large record costs nothing beside reading it.
const LARGEST_LAYOUT: usize = 64 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub struct Range<T> {
    pub low: T,
    pub high: T,
}

fn widen<T: Copy + PartialOrd>(range: &mut Option<Range<T>>, value: T) {
    *range = Some(match *range {
        None => Range { low: value, high: value },
        Some(Range { low, high }) => Range {
            low: if value < low { value } else { low },
            high: if value > high { value } else { high },
        },
    });
}

fn join<T: Copy + PartialOrd>(mine: &mut Option<Range<T>>, theirs: Option<Range<T>>) {
    if let Some(Range { low, high }) = theirs {
        widen(mine, low);
        widen(mine, high);
    }
}

/// How many of some little-endian floats are finite, and their range.
fn finite_range(values: &[[u8; 4]]) -> (u64, Option<Range<f32>>) {
    const EXPONENT: i32 = 0x7f80_0000;
    let (mut finite, mut low, mut high) = (0_u32, i32::MAX, i32::MIN);
    // whole numbers in the order of the floats: those the compiler folds several at a time
    for bits in values.iter().map(|bytes| i32::from_le_bytes(*bytes)) {
        let is_finite = bits & EXPONENT != EXPONENT;
        let key = ordered(bits);
        finite += u32::from(is_finite);
        low = low.min(if is_finite { key } else { i32::MAX });
        high = high.max(if is_finite { key } else { i32::MIN });
    }
    let float = |key| f32::from_bits(ordered(key).cast_unsigned());
    (u64::from(finite), (finite > 0).then(|| Range { low: float(low), high: float(high) }))
}

/// A float's bits as a number that is larger where the float is, and back again.
fn ordered(bits: i32) -> i32 {
    bits ^ ((bits >> 31) & i32::MAX)
}

/// One feature over all records that were looked at.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Seen {
    /// Records in which it has a kind.
    pub present: u64,
    /// Records by kind: bytes, float, int64.
    pub kinds: [u64; 3],
    /// Values per record, or per step of a feature list.
    pub counts: Option<Range<u64>>,
    pub steps: Option<Range<u64>>,
    /// Bytes per bytes value.
    pub sizes: Option<Range<u64>>,
    pub floats: Option<Range<f32>>,
    pub ints: Option<Range<i64>>,
    pub not_finite: u64,
}

/// What the records that were looked at hold. Looking at one more that holds nothing new allocates nothing.
#[derive(Debug, Default)]
pub struct Survey {
    pub records: u64,
    /// Records that are no `tf.train.Example`.
    pub malformed: u64,
    names: Names,
    layouts: Layouts,
}

impl Survey {
    pub fn add(&mut self, record: &[u8]) {
        self.records += 1;
        if self.layouts.fitting(record).is_some_and(|layout| self.names.fill(layout, record).is_ok()) {
            return;
        }
        // an Example may carry an unknown field where a SequenceExample has its lists
        if self.names.look_at(record, true).is_ok() {
            self.layouts.learn(record, &self.names);
        } else if self.names.look_at(record, false).is_err() {
            self.malformed += 1;
        }
    }

    /// Every feature of a level with what was seen of it, by name.
    pub fn features(&self, level: Level) -> Vec<(&str, &Seen)> {
        let named = self.names.known.iter().filter(|named| named.level == level);
        let mut all: Vec<_> = named.map(|named| (&named.key[..], &named.seen)).collect();
        all.sort_unstable_by_key(|(key, _)| *key);
        all
    }
}

/// One name, over all records and in the record that is looked at.
#[derive(Debug)]
struct Named {
    level: Level,
    key: String,
    seen: Seen,
    now: Seen,
    /// The last look that met it.
    look: u64,
}

/// A record's layout: which bytes any record like it has in common with it, and where its values are.
#[derive(Debug)]
struct Layout {
    record: Vec<u8>,
    fixed: Vec<ops::Range<usize>>,
    slots: Vec<Slot>,
}

/// Where one name's values lie within a record.
#[derive(Debug)]
struct Slot {
    place: usize,
    kind: Kind,
    values: ops::Range<usize>,
}

const NOT_PLAIN: Malformed = Malformed("not laid out plainly");

impl Layout {
    /// The layout of a sound record, if it is plain: every key once, with all its values in one piece.
    fn of(record: &[u8], names: &Names) -> Option<Self> {
        let mut slots: Vec<Slot> = Vec::new();
        example::entries(record, true, |level, key, value| {
            let (Level::Context, Cow::Borrowed(value)) = (level, value) else { return Err(NOT_PLAIN) };
            let key = example::checked_key(key)?;
            let place = *names.places[level as usize].get(key).ok_or(NOT_PLAIN)?;
            let Some((kind, Cow::Borrowed(list))) = example::feature(level, value)? else {
                return Err(NOT_PLAIN);
            };
            let values = within(record, example::only_value(level, kind, list)?.ok_or(NOT_PLAIN)?);
            let twice = slots.iter().any(|slot| slot.place == place);
            slots.push(Slot { place, kind, values });
            if twice { Err(NOT_PLAIN) } else { Ok(()) }
        })
        .ok()?;
        let free = slots.iter().map(|slot| slot.values.clone()).collect();
        Some(Layout { record: record.to_vec(), fixed: between(free, record.len()), slots })
    }

    fn fits(&self, record: &[u8]) -> bool {
        record.len() == self.record.len()
            && self.fixed.iter().all(|range| record[range.clone()] == self.record[range.clone()])
    }
}

/// The layouts of records seen lately: most records differ from others in nothing but their values.
#[derive(Debug, Default)]
struct Layouts {
    known: Vec<Layout>,
    next: usize,
    misses: u32,
}

impl Layouts {
    fn fitting(&mut self, record: &[u8]) -> Option<&Layout> {
        let found = self.known.iter().find(|layout| layout.fits(record));
        if found.is_some() {
            self.misses = 0;
        }
        found
    }

    fn learn(&mut self, record: &[u8], names: &Names) {
        self.misses = self.misses.saturating_add(1);
        if record.len() > LARGEST_LAYOUT || (self.misses > PATIENCE && !self.misses.is_multiple_of(PATIENCE))
        {
            return;
        }
        if let Some(layout) = Layout::of(record, names) {
            self.next = (self.next + 1) % REMEMBERED;
            match self.known.get_mut(self.next) {
                Some(place) => *place = layout,
                None => self.known.push(layout),
            }
        }
    }
}

#[derive(Debug, Default)]
struct Names {
    known: Vec<Named>,
    places: [HashMap<String, usize>; 2],
    /// Those met in the record that is looked at.
    met: Vec<usize>,
    /// Records mostly have their names in one order.
    expected: usize,
    look: u64,
}

impl Names {
    fn look_at(&mut self, record: &[u8], lists: bool) -> Parsed<()> {
        let before = self.known.len();
        self.look += 1;
        self.expected = 0;
        self.met.clear();
        let outcome = example::entries(record, lists, |level, key, value| self.meet(level, key, &value));
        match outcome {
            Ok(()) => self.count(),
            Err(_) => self.forget_behind(before),
        }
        outcome
    }

    /// Count a record of a known layout. Only packed numbers can still be wrong: then nothing is counted.
    fn fill(&mut self, layout: &Layout, record: &[u8]) -> Parsed<()> {
        for slot in &layout.slots {
            self.known[slot.place].now = Seen::of_values(slot.kind, &record[slot.values.clone()])?;
        }
        for slot in &layout.slots {
            let named = &mut self.known[slot.place];
            named.seen.merge(&named.now);
        }
        Ok(())
    }

    /// The last of two equal keys wins, so nothing counts before the record's end.
    fn meet(&mut self, level: Level, key: &[u8], value: &[u8]) -> Parsed<()> {
        let Some(place) = self.place(level, key)? else {
            return example::check_value(level, value);
        };
        self.expected = place + 1;
        let named = &mut self.known[place];
        if named.look != self.look {
            named.look = self.look;
            self.met.push(place);
        }
        named.now = Seen::default();
        match level {
            Level::Context => named.now.look_at_feature(level, value),
            Level::Lists => named.now.look_at_list(value),
        }
    }

    /// Where a name is kept; `None` if there are too many of them.
    fn place(&mut self, level: Level, key: &[u8]) -> Parsed<Option<usize>> {
        if let Some(named) = self.known.get(self.expected)
            && named.level == level
            && named.key.as_bytes() == key
        {
            return Ok(Some(self.expected));
        }
        let key = example::checked_key(key)?;
        let places = &mut self.places[level as usize];
        if let Some(place) = places.get(key) {
            return Ok(Some(*place));
        }
        if places.len() >= MOST_NAMES {
            return Ok(None);
        }
        let (key, place) = (key.to_owned(), self.known.len());
        places.insert(key.clone(), place);
        self.known.push(Named { level, key, seen: Seen::default(), now: Seen::default(), look: 0 });
        Ok(Some(place))
    }

    fn count(&mut self) {
        for place in self.met.drain(..) {
            let named = &mut self.known[place];
            named.seen.merge(&named.now);
        }
    }

    fn forget_behind(&mut self, count: usize) {
        for named in self.known.drain(count..) {
            self.places[named.level as usize].remove(&named.key);
        }
    }
}

impl Seen {
    /// One record's packed numbers, or its one bytes value.
    fn of_values(kind: Kind, values: &[u8]) -> Parsed<Self> {
        let mut one = Seen { present: 1, ..Seen::default() };
        one.kinds[kind as usize] = 1;
        let count = one.add_values(kind, values)?;
        widen(&mut one.counts, count);
        Ok(one)
    }

    /// Add packed numbers or one bytes value, and return how many values these are.
    fn add_values(&mut self, kind: Kind, values: &[u8]) -> Parsed<u64> {
        match kind {
            Kind::Bytes => widen(&mut self.sizes, values.len() as u64),
            Kind::Floats => return Ok(self.add_floats(values)),
            Kind::Ints => return self.add_ints(values),
        }
        Ok(1)
    }

    /// The same for a list in several pieces, or without any.
    fn add_pieces(&mut self, level: Level, kind: Kind, list: &[u8]) -> Parsed<u64> {
        let mut count = 0;
        match kind {
            Kind::Bytes => example::byte_strings(level, list, |value| {
                count += 1;
                widen(&mut self.sizes, value.len() as u64);
            })?,
            Kind::Floats => example::floats(level, list, |packed| count += self.add_floats(packed))?,
            Kind::Ints => example::ints(level, list, |value| {
                count += 1;
                widen(&mut self.ints, value);
            })?,
        }
        Ok(count)
    }

    /// Add little-endian floats, and return how many there are.
    fn add_floats(&mut self, packed: &[u8]) -> u64 {
        let values = packed.as_chunks::<4>().0;
        let count = values.len() as u64;
        let (finite, range) = finite_range(values);
        self.not_finite += count - finite;
        join(&mut self.floats, range);
        count
    }

    /// Add packed whole numbers, and return how many there are.
    fn add_ints(&mut self, mut packed: &[u8]) -> Parsed<u64> {
        let (mut count, mut low, mut high) = (0, i64::MAX, i64::MIN);
        while !packed.is_empty() {
            let value = varint(&mut packed)?.cast_signed();
            (count, low, high) = (count + 1, low.min(value), high.max(value));
        }
        if count > 0 {
            join(&mut self.ints, Some(Range { low, high }));
        }
        Ok(count)
    }

    fn look_at_list(&mut self, list: &[u8]) -> Parsed<()> {
        let mut steps = 0;
        example::steps(list, |feature| {
            steps += 1;
            self.look_at_feature(Level::Lists, feature)
        })?;
        self.present = 1;
        widen(&mut self.steps, steps);
        Ok(())
    }

    fn look_at_feature(&mut self, level: Level, feature: &[u8]) -> Parsed<()> {
        let Some((kind, list)) = example::feature(level, feature)? else {
            // no step of a list is ever missing: this one has no values
            if level == Level::Lists {
                widen(&mut self.counts, 0);
            }
            return Ok(());
        };
        let count = match example::only_value(level, kind, &list)? {
            Some(values) => self.add_values(kind, values)?,
            None => self.add_pieces(level, kind, &list)?,
        };
        self.present = 1;
        self.kinds[kind as usize] = 1;
        widen(&mut self.counts, count);
        Ok(())
    }

    fn merge(&mut self, other: &Seen) {
        self.present += other.present;
        self.not_finite += other.not_finite;
        for (mine, theirs) in self.kinds.iter_mut().zip(other.kinds) {
            *mine += theirs;
        }
        join(&mut self.counts, other.counts);
        join(&mut self.steps, other.steps);
        join(&mut self.sizes, other.sizes);
        join(&mut self.floats, other.floats);
        join(&mut self.ints, other.ints);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn little_endian(values: &[f32]) -> Vec<[u8; 4]> {
        values.iter().map(|value| value.to_le_bytes()).collect()
    }

    #[test]
    fn the_range_is_that_of_the_finite_floats() {
        let values = [1.5, -2.0, f32::NAN, f32::INFINITY, -f32::INFINITY, f32::MIN_POSITIVE, -0.5];
        assert_eq!(finite_range(&little_endian(&values)), (4, Some(Range { low: -2.0, high: 1.5 })));
        assert_eq!(finite_range(&little_endian(&[f32::NAN])), (0, None));
        let ends = [f32::MAX, f32::MIN];
        assert_eq!(finite_range(&little_endian(&ends)), (2, Some(Range { low: f32::MIN, high: f32::MAX })));
    }

    fn entry(key: u8, feature: &[u8]) -> Vec<u8> {
        let value = [&[0x0a, 1, key, 0x12, feature.len() as u8], feature].concat();
        [&[0x0a, value.len() as u8], &value[..]].concat()
    }

    fn record(entries: &[Vec<u8>]) -> Vec<u8> {
        let map = entries.concat();
        [&[0x0a, map.len() as u8], &map[..]].concat()
    }

    #[test]
    fn records_of_a_known_layout_count_like_any_other() {
        let ints = |a, b| entry(b'i', &[0x1a, 4, 0x0a, 2, a, b]);
        let floats = |value: f32| {
            let [a, b, c, d] = value.to_le_bytes();
            entry(b'f', &[0x12, 6, 0x0a, 4, a, b, c, d])
        };
        let bytes = |value| entry(b'b', &[0x0a, 3, 0x0a, 1, value]);
        let records = [
            record(&[ints(1, 2), floats(0.5), bytes(1)]),
            record(&[ints(9, 1), floats(f32::NAN), bytes(2)]),
            // one number of two bytes: the same layout, another count
            record(&[ints(0x80, 1), floats(-3.0), bytes(3)]),
            // a number that never ends: the same layout, and malformed
            record(&[ints(1, 0x80), floats(100.0), bytes(3)]),
            record(&[floats(7.0), ints(3, 4), bytes(4)]),
        ];
        let mut seasoned = Survey::default();
        for record in &records {
            seasoned.add(record);
        }
        assert!(!seasoned.layouts.known.is_empty());
        let mut expected = Survey::default();
        for record in &records {
            expected.layouts = Layouts::default();
            expected.add(record);
        }
        assert_eq!((seasoned.records, seasoned.malformed), (5, 1));
        assert_eq!(expected.malformed, 1);
        assert_eq!(seasoned.features(Level::Context), expected.features(Level::Context));
        let ints = seasoned.features(Level::Context)[2].1;
        assert_eq!((ints.present, ints.counts), (4, Some(Range { low: 1, high: 2 })));
        assert_eq!(ints.ints, Some(Range { low: 1, high: 128 }));
    }

    #[test]
    fn a_malformed_record_leaves_no_name_behind() {
        // a map with one sound entry, then a field that ends after the message does
        let sound = [0x0a, 7, 0x0a, 5, 0x0a, 1, b'a', 0x12, 0];
        let mut survey = Survey::default();
        survey.add(&[&sound[..], &[0x0a, 9]].concat());
        assert_eq!((survey.malformed, survey.features(Level::Context).len()), (1, 0));
        survey.add(&sound);
        assert_eq!((survey.malformed, survey.features(Level::Context).len()), (1, 1));
    }

    #[test]
    fn the_last_of_two_equal_keys_counts() {
        let mut survey = Survey::default();
        survey.add(&record(&[entry(b'a', &[0x1a, 4, 0x0a, 2, 5, 6]), entry(b'a', &[0x1a, 3, 0x0a, 1, 7])]));
        let features = survey.features(Level::Context);
        let (key, seen) = features[0];
        assert_eq!((key, seen.present, seen.kinds), ("a", 1, [0, 0, 1]));
        assert_eq!(seen.ints, Some(Range { low: 7, high: 7 }));
        assert_eq!(seen.counts, Some(Range { low: 1, high: 1 }));
    }
}
