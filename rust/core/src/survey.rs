//! What the features of many records have in common: kinds, counts, sizes and ranges.

use std::collections::BTreeMap;

use crate::example::{self, Kind, Level};
use crate::wire::Parsed;

/// More names than any schema has: a bound on what hostile records can make us remember.
const MOST_NAMES: usize = 10_000;

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

/// One feature over all records that were looked at.
#[derive(Debug, Clone, Default)]
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

#[derive(Debug, Default)]
pub struct Survey {
    pub records: u64,
    /// Records that are no `tf.train.Example`.
    pub malformed: u64,
    pub context: BTreeMap<String, Seen>,
    pub lists: BTreeMap<String, Seen>,
}

impl Survey {
    pub fn add(&mut self, record: &[u8]) {
        self.records += 1;
        // an Example may carry an unknown field where a SequenceExample has its lists
        if self.look_at(record, true).is_err() && self.look_at(record, false).is_err() {
            self.malformed += 1;
        }
    }

    fn look_at(&mut self, record: &[u8], lists: bool) -> Parsed<()> {
        // the last of two equal keys wins, so nothing counts before the record's end
        let mut found = BTreeMap::new();
        example::entries(record, lists, |level, key, value| {
            let name = example::checked_key(key)?.to_owned();
            let key = (level == Level::Lists, name);
            if found.len() >= MOST_NAMES && !found.contains_key(&key) {
                return Ok(());
            }
            match found.insert(key, value) {
                Some(former) => example::check_value(level, &former),
                None => Ok(()),
            }
        })?;
        let mut seen = Vec::with_capacity(found.len());
        for ((in_lists, name), value) in found {
            let mut one = Seen::default();
            if in_lists {
                one.look_at_list(&value)?
            } else {
                one.look_at_feature(Level::Context, &value)?
            }
            seen.push((in_lists, name, one));
        }
        for (in_lists, name, one) in seen {
            let names = if in_lists { &mut self.lists } else { &mut self.context };
            if names.len() < MOST_NAMES || names.contains_key(&name) {
                names.entry(name).or_default().merge(&one);
            }
        }
        Ok(())
    }

    pub fn merge(&mut self, other: &Survey) {
        self.records += other.records;
        self.malformed += other.malformed;
        for (mine, theirs) in [(&mut self.context, &other.context), (&mut self.lists, &other.lists)] {
            for (name, seen) in theirs {
                mine.entry(name.clone()).or_default().merge(seen);
            }
        }
    }
}

impl Seen {
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
        let mut count = 0;
        match kind {
            Kind::Bytes => example::byte_strings(level, &list, |value| {
                count += 1;
                widen(&mut self.sizes, value.len() as u64);
            })?,
            Kind::Floats => example::floats(level, &list, |packed| {
                for value in packed.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)) {
                    count += 1;
                    if value.is_finite() { widen(&mut self.floats, value) } else { self.not_finite += 1 }
                }
            })?,
            Kind::Ints => example::ints(level, &list, |value| {
                count += 1;
                widen(&mut self.ints, value);
            })?,
        }
        self.present = 1;
        self.kinds[kind as usize] = 1;
        widen(&mut self.counts, count);
        Ok(())
    }

    fn merge(&mut self, other: &Seen) {
        fn join<T: Copy + PartialOrd>(mine: &mut Option<Range<T>>, theirs: Option<Range<T>>) {
            if let Some(Range { low, high }) = theirs {
                widen(mine, low);
                widen(mine, high);
            }
        }
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
