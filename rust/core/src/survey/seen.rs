//! One feature: how often, of which kinds, how many values, between which bounds.

use crate::example::{self, Kind, Level};
use crate::wire::{self, Parsed};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub struct Range<T> {
    pub low: T,
    pub high: T,
}

impl<T: PartialOrd> Range<T> {
    pub(super) fn holds(&self, value: T) -> bool {
        self.low <= value && value <= self.high
    }
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

/// So many floats are compared at a time.
const LANES: usize = 8;

/// How many of some little-endian floats are finite, and their range.
fn finite_range(values: &[[u8; 4]]) -> (u64, Option<Range<f32>>) {
    let (some, rest) = values.as_chunks::<LANES>();
    let (mut low, mut high, mut odd) = ([f32::MAX; LANES], [f32::MIN; LANES], [false; LANES]);
    // no branch, and nothing that goes from one lane to another: the compiler makes vectors of it
    for chunk in some {
        for lane in 0..LANES {
            let value = f32::from_le_bytes(chunk[lane]);
            low[lane] = if value < low[lane] { value } else { low[lane] };
            high[lane] = if value > high[lane] { value } else { high[lane] };
            odd[lane] |= !value.is_finite();
        }
    }
    if odd.contains(&true) {
        return finite_range_one_by_one(values);
    }
    let (finite, mut range) = finite_range_one_by_one(rest);
    if !some.is_empty() {
        low.into_iter().chain(high).for_each(|value| widen(&mut range, value));
    }
    ((some.len() * LANES) as u64 + finite, range)
}

fn finite_range_one_by_one(values: &[[u8; 4]]) -> (u64, Option<Range<f32>>) {
    let (mut finite, mut range) = (0, None);
    for value in values.iter().map(|bytes| f32::from_le_bytes(*bytes)).filter(|value| value.is_finite()) {
        finite += 1;
        widen(&mut range, value);
    }
    (finite, range)
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

/// What a list holds that is in one piece: packed numbers, or one bytes value. A range that widens nothing may be
/// left out.
#[derive(Debug)]
pub(super) enum Values {
    Bytes { size: u64 },
    Floats { count: u64, finite: u64, range: Option<Range<f32>> },
    Ints { count: u64, range: Option<Range<i64>> },
}

impl Values {
    pub fn of(kind: Kind, values: &[u8]) -> Parsed<Self> {
        Ok(match kind {
            Kind::Bytes => Values::Bytes { size: values.len() as u64 },
            Kind::Floats => Values::of_floats(values),
            Kind::Ints => Values::of_ints(values)?,
        })
    }

    fn of_floats(packed: &[u8]) -> Self {
        let values = packed.as_chunks::<4>().0;
        let (finite, range) = finite_range(values);
        Values::Floats { count: values.len() as u64, finite, range }
    }

    // seldom needed, and long: not a part of whoever asks
    #[inline(never)]
    fn of_ints(packed: &[u8]) -> Parsed<Self> {
        let (mut count, mut low, mut high) = (0, i64::MAX, i64::MIN);
        wire::packed(packed, |value| {
            let value = value.cast_signed();
            (count, low, high) = (count + 1, low.min(value), high.max(value));
        })?;
        Ok(Values::Ints { count, range: (count > 0).then_some(Range { low, high }) })
    }
}

impl Seen {
    /// Count one record that has it.
    pub(super) fn count(&mut self, kind: Kind) {
        self.present += 1;
        self.kinds[kind as usize] += 1;
    }

    /// Add all values of one record.
    pub(super) fn widen(&mut self, values: &Values) {
        let count = self.add(values);
        widen(&mut self.counts, count);
    }

    pub(super) fn has_counted(&self, count: u64) -> bool {
        self.counts.is_some_and(|counts| counts.holds(count))
    }

    pub(super) fn has_sized(&self, size: u64) -> bool {
        self.sizes.is_some_and(|sizes| sizes.holds(size))
    }

    /// Add values, and return how many these are.
    fn add(&mut self, values: &Values) -> u64 {
        match *values {
            Values::Bytes { size } => {
                widen(&mut self.sizes, size);
                1
            }
            Values::Floats { count, finite, range } => {
                self.not_finite += count - finite;
                join(&mut self.floats, range);
                count
            }
            Values::Ints { count, range } => {
                join(&mut self.ints, range);
                count
            }
        }
    }

    /// The same for a list in several pieces, or without any.
    fn add_pieces(&mut self, level: Level, kind: Kind, list: &[u8]) -> Parsed<u64> {
        let mut count = 0;
        match kind {
            Kind::Bytes => example::byte_strings(level, list, |value| {
                count += 1;
                widen(&mut self.sizes, value.len() as u64);
            })?,
            Kind::Floats => {
                example::floats(level, list, |packed| count += self.add(&Values::of_floats(packed)))?
            }
            Kind::Ints => example::ints(level, list, |value| {
                count += 1;
                widen(&mut self.ints, value);
            })?,
        }
        Ok(count)
    }

    pub(super) fn look_at_list(&mut self, list: &[u8]) -> Parsed<()> {
        let mut steps = 0;
        example::steps(list, |feature| {
            steps += 1;
            self.look_at_feature(Level::Lists, feature)
        })?;
        self.present = 1;
        widen(&mut self.steps, steps);
        Ok(())
    }

    pub(super) fn look_at_feature(&mut self, level: Level, feature: &[u8]) -> Parsed<()> {
        let Some((kind, list)) = example::feature(level, feature)? else {
            // no step of a list is ever missing: this one has no values
            if level == Level::Lists {
                widen(&mut self.counts, 0);
            }
            return Ok(());
        };
        let count = match example::only_value(level, kind, &list)? {
            Some(values) => self.add(&Values::of(kind, values)?),
            None => self.add_pieces(level, kind, &list)?,
        };
        self.present = 1;
        self.kinds[kind as usize] = 1;
        widen(&mut self.counts, count);
        Ok(())
    }

    pub(super) fn merge(&mut self, other: &Seen) {
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
        let expected = (4, Some(Range { low: -2.0, high: 1.5 }));
        assert_eq!(finite_range(&little_endian(&values)), expected);
        assert_eq!(finite_range(&little_endian(&[f32::NAN])), (0, None));
        assert_eq!(finite_range(&[]), (0, None));
        let ends = [f32::MAX, f32::MIN];
        assert_eq!(finite_range(&little_endian(&ends)), (2, Some(Range { low: f32::MIN, high: f32::MAX })));
        // wherever one that is not finite stands among many
        for at in 0..20 {
            let mut many: Vec<f32> = (0..20).map(|number| (number - 7) as f32).collect();
            many.rotate_left(at);
            assert_eq!(finite_range(&little_endian(&many)), (20, Some(Range { low: -7.0, high: 12.0 })));
            many.insert(at, f32::NAN);
            assert_eq!(finite_range(&little_endian(&many)), (20, Some(Range { low: -7.0, high: 12.0 })));
        }
    }
}
