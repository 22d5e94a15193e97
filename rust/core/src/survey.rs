//! What the features of many records have in common: kinds, counts, sizes and ranges.

use std::collections::HashMap;

use crate::example::{self, Kind, Level};
use crate::sizes::Sizes;
use crate::template::{LARGEST_TEMPLATE, Layout, NOT_PLAIN, Slot, Templates};
use crate::wire::Parsed;

mod alike;
mod bounds;
mod edges;
mod numbers;
mod pieces;
mod seen;
mod within;

use alike::alike;
use numbers::{Numbers, numbers_of};
use seen::Values;
pub use seen::{Range, Seen};
use within::Within;

/// More names than any schema has: a bound on what hostile records can make us remember.
const MOST_NAMES: usize = 10_000;

/// What the records that were looked at hold. Looking at one more that holds nothing new allocates nothing.
#[derive(Debug, Default)]
pub struct Survey {
    pub records: u64,
    /// Records that are no `tf.train.Example`.
    pub malformed: u64,
    pub sizes: Sizes,
    names: Names,
    templates: Templates,
}

impl Survey {
    pub fn add(&mut self, record: &[u8]) {
        self.add_first(record, record.len());
    }

    /// Look at the record that the first `size` bytes are. What lies behind it changes nothing, but saves copying:
    /// numbers are loaded many at a time, and those of the last key would end too soon for that.
    pub fn add_first(&mut self, bytes: &[u8], size: usize) {
        let record = &bytes[..size];
        self.records += 1;
        self.sizes.add(size as u64);
        if self.templates.fitting(record).is_some_and(|like| self.names.fill(like, bytes).is_ok()) {
            return;
        }
        // an Example may carry an unknown field where a SequenceExample has its lists
        if self.names.look_at(record, true).is_ok() {
            self.learn(record);
        } else if self.names.look_at(record, false).is_err() {
            self.malformed += 1;
        }
    }

    fn learn(&mut self, record: &[u8]) {
        if record.len() <= LARGEST_TEMPLATE {
            self.templates
                .learn(|| Layout::of(record, true, |level, key| self.names.known_place(level, key)));
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
    /// What whole numbers are held against, once there are some.
    within: Option<Within>,
    /// The last look that met it.
    look: u64,
}

impl Named {
    /// The values in a slot, if there are any outside of what was seen before: most lie within.
    #[inline]
    fn outside(&self, slot: &Slot, bytes: &[u8]) -> Parsed<Option<Values>> {
        let packed = &bytes[slot.values.clone()];
        match slot.kind {
            Kind::Bytes if self.seen.has_counted(1) && self.seen.has_sized(packed.len() as u64) => Ok(None),
            // of floats it is not told any faster than what they are
            Kind::Bytes | Kind::Floats => Values::of(slot.kind, packed).map(Some),
            Kind::Ints => self.ints_outside(bytes, slot.values.start, packed.len()),
        }
    }

    #[inline]
    fn ints_outside(&self, bytes: &[u8], from: usize, size: usize) -> Parsed<Option<Values>> {
        if let Some(count) = self.within.as_ref().and_then(|within| within.count(bytes, from, size))
            && self.seen.has_counted(count)
        {
            return Ok(None);
        }
        let bytes = &bytes[from..];
        let packed = || Values::of(Kind::Ints, &bytes[..size]).map(Some);
        let Some(seen) = self.seen.ints else { return packed() };
        if let Some((count, range)) = alike(bytes, size) {
            return Ok(Some(Values::Ints { count, range: Some(range) }));
        }
        match numbers_of(bytes, size, seen) {
            Some(Numbers::Within { count }) if self.seen.has_counted(count) => Ok(None),
            Some(Numbers::Within { count }) => Ok(Some(Values::Ints { count, range: None })),
            Some(Numbers::Outside { count, range }) => Ok(Some(Values::Ints { count, range: Some(range) })),
            None => packed(),
        }
    }

    fn widen(&mut self, values: &Values) {
        self.seen.widen(values);
        self.keep_within();
    }

    fn merge_now(&mut self) {
        self.seen.merge(&self.now);
        self.keep_within();
    }

    fn keep_within(&mut self) {
        if let Some(range) = self.seen.ints {
            Within::keep(&mut self.within, range);
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
    /// The values of a record of a known layout that may lie outside of all that was seen before, by place.
    now: Vec<(usize, Values)>,
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
    fn fill(&mut self, slots: &[Slot], bytes: &[u8]) -> Parsed<()> {
        self.now.clear();
        for slot in slots {
            if let Some(values) = self.known[slot.place].outside(slot, bytes)? {
                self.now.push((slot.place, values));
            }
        }
        for slot in slots {
            self.known[slot.place].seen.count(slot.kind);
        }
        for (place, values) in &self.now {
            self.known[*place].widen(values);
        }
        Ok(())
    }

    /// The number of a name outside feature lists; every one has to be known, as every one counts.
    fn known_place(&self, level: Level, key: &[u8]) -> Parsed<Option<usize>> {
        let places = &self.places[Level::Context as usize];
        let known = (level == Level::Context).then(|| places.get(example::checked_key(key).ok()?)).flatten();
        known.map(|place| Some(*place)).ok_or(NOT_PLAIN)
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
        self.known.push(Named {
            level,
            key,
            seen: Seen::default(),
            now: Seen::default(),
            within: None,
            look: 0,
        });
        Ok(Some(place))
    }

    fn count(&mut self) {
        for place in self.met.drain(..) {
            self.known[place].merge_now();
        }
    }

    fn forget_behind(&mut self, count: usize) {
        for named in self.known.drain(count..) {
            self.places[named.level as usize].remove(&named.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
        assert!(seasoned.templates.fitting(&records[0]).is_some());
        let mut expected = Survey::default();
        for record in &records {
            expected.templates = Templates::default();
            expected.add(record);
        }
        assert_eq!((seasoned.records, seasoned.malformed), (5, 1));
        assert_eq!(expected.malformed, 1);
        assert_eq!(seasoned.features(Level::Context), expected.features(Level::Context));
        let ints = seasoned.features(Level::Context)[2].1;
        assert_eq!((ints.present, ints.counts), (4, Some(Range { low: 1, high: 2 })));
        assert_eq!(ints.ints, Some(Range { low: 1, high: 128 }));
    }

    /// A list of any bytes under `i`, and one value under `b`.
    fn any_record() -> impl Strategy<Value = Vec<u8>> {
        let short = prop_oneof![8 => 0..0x80_u8, 1 => 0x80..=0xff_u8];
        let long = prop_oneof![1 => 0..0x80_u8, 4 => 0x80..=0xff_u8];
        let list = prop_oneof![prop::collection::vec(short, 0..90), prop::collection::vec(long, 0..90)];
        (list, prop::collection::vec(any::<u8>(), 0..9)).prop_map(|(numbers, value)| {
            let packed = [&[0x0a, numbers.len() as u8], &numbers[..]].concat();
            let value = [&[0x0a, value.len() as u8], &value[..]].concat();
            let ints = entry(b'i', &[&[0x1a, packed.len() as u8], &packed[..]].concat());
            let bytes = entry(b'b', &[&[0x0a, value.len() as u8], &value[..]].concat());
            let map = [ints, bytes].concat();
            let length = match map.len() {
                short @ ..0x80 => vec![short as u8],
                long => vec![long as u8 | 0x80, (long >> 7) as u8],
            };
            [&[0x0a], &length[..], &map[..]].concat()
        })
    }

    proptest! {
        #[test]
        fn lists_of_any_length_count_as_without_layouts(
            records in prop::collection::vec(any_record(), 0..40),
            behind in prop::collection::vec(any::<u8>(), 0..90),
        ) {
            let (mut seasoned, mut with_more, mut expected) =
                (Survey::default(), Survey::default(), Survey::default());
            for record in &records {
                seasoned.add(record);
                with_more.add_first(&[&record[..], &behind[..]].concat(), record.len());
                expected.templates = Templates::default();
                expected.add(record);
            }
            for found in [&seasoned, &with_more] {
                prop_assert_eq!((found.records, found.malformed), (expected.records, expected.malformed));
                prop_assert_eq!(found.features(Level::Context), expected.features(Level::Context));
            }
        }
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
