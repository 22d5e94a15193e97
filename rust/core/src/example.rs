//! `tf.train.Example` and `SequenceExample` by protobuf's rules: repeated submessages merge, which
//! on the wire means that they are read one behind the other; the last of two kinds and the last of
//! two equal map keys win; a map entry without key or value has the default; what a later one
//! replaces has to be sound all the same. Where protobuf's implementations differ, upb is followed,
//! on which Python's rests.

use std::borrow::Cow;

use crate::wire::{self, Fields, Malformed, Parsed, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Bytes,
    Floats,
    Ints,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Bytes => "bytes",
            Kind::Floats => "float",
            Kind::Ints => "int64",
        }
    }
}

/// The two maps of a record. An `Example` has only the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Context,
    Lists,
}

impl Level {
    /// How many messages lie around a feature: of a list, the list is one more.
    fn depth_of_features(self) -> u32 {
        match self {
            Level::Context => DEPTH_OF_VALUES,
            Level::Lists => DEPTH_OF_VALUES + 1,
        }
    }
}

/// A map's values lie in their entry, the map and the record.
const DEPTH_OF_VALUES: u32 = 3;

/// Call `visit(level, key, value)` for every map entry, in the order of the wire. The feature lists
/// are looked at only if `lists` says so; in an `Example` they are an unknown field.
pub fn entries<'a>(
    record: &'a [u8],
    lists: bool,
    mut visit: impl FnMut(Level, &'a [u8], Cow<'a, [u8]>) -> Parsed<()>,
) -> Parsed<()> {
    let mut fields = Fields::of(record, 0);
    while let Some((number, value)) = fields.next_field()? {
        let level = match number {
            1 => Level::Context,
            2 if lists => Level::Lists,
            _ => continue,
        };
        if let Value::Bytes(map) = value {
            let mut fields = Fields::of(map, 1);
            while let Some(field) = fields.next_field()? {
                if let (1, Value::Bytes(entry)) = field
                    && let Some((key, value)) = key_and_value(level, entry)?
                {
                    visit(level, key, value)?;
                }
            }
        }
    }
    Ok(())
}

type Entry<'a> = (&'a [u8], Cow<'a, [u8]>);

/// `None` if the entry has further fields: upb then takes all of it for an unknown field of the map.
fn key_and_value(level: Level, entry: &[u8]) -> Parsed<Option<Entry<'_>>> {
    let (mut key, mut value, mut known) = (None, None, true);
    let mut fields = Fields::of(entry, DEPTH_OF_VALUES - 1);
    while let Some(field) = fields.next_field()? {
        match field {
            (1, Value::Bytes(bytes)) => {
                key.replace(bytes).map(checked_key).transpose()?;
            }
            (2, Value::Bytes(bytes)) => merge(&mut value, bytes, DEPTH_OF_VALUES)?,
            _ => known = false,
        }
    }
    let (key, value) = (key.unwrap_or_default(), value.unwrap_or_default());
    if known {
        return Ok(Some((key, value)));
    }
    checked_key(key)?;
    check_value(level, &value)?;
    Ok(None)
}

/// Each part has to end with one of its fields: the next one never completes it.
fn merge<'a>(whole: &mut Option<Cow<'a, [u8]>>, part: &'a [u8], depth: u32) -> Parsed<()> {
    let Some(parts) = whole else {
        *whole = Some(Cow::Borrowed(part));
        return Ok(());
    };
    if let Cow::Borrowed(first) = parts {
        Fields::of(first, depth).check()?;
    }
    Fields::of(part, depth).check()?;
    parts.to_mut().extend_from_slice(part);
    Ok(())
}

/// Whether everything in a record is sound, also what nobody asks for.
pub fn check(record: &[u8], lists: bool) -> Parsed<()> {
    entries(record, lists, |level, key, value| {
        checked_key(key)?;
        check_value(level, &value)
    })
}

/// Whether the value of a map entry is sound.
pub fn check_value(level: Level, value: &[u8]) -> Parsed<()> {
    match level {
        Level::Context => check_feature(level, value),
        Level::Lists => steps(value, |feature| check_feature(level, feature)),
    }
}

fn check_feature(level: Level, value: &[u8]) -> Parsed<()> {
    match feature(level, value)? {
        Some((kind, list)) => check_list(level, kind, &list),
        None => Ok(()),
    }
}

fn check_list(level: Level, kind: Kind, list: &[u8]) -> Parsed<()> {
    match kind {
        Kind::Bytes => byte_strings(level, list, |_| {}),
        Kind::Floats => floats(level, list, |_| {}),
        Kind::Ints => ints(level, list, |_| {}),
    }
}

/// A feature's kind and list; `None` if it has no kind, which counts as missing.
pub fn feature(level: Level, value: &[u8]) -> Parsed<Option<(Kind, Cow<'_, [u8]>)>> {
    let depth = level.depth_of_features();
    let mut found: Option<(Kind, Cow<'_, [u8]>)> = None;
    let mut fields = Fields::of(value, depth);
    while let Some((number, value)) = fields.next_field()? {
        let kind = match number {
            1 => Kind::Bytes,
            2 => Kind::Floats,
            3 => Kind::Ints,
            _ => continue,
        };
        if let Value::Bytes(list) = value {
            let mut whole = match found.take() {
                Some((same, list)) if same == kind => Some(list),
                Some((other, list)) => {
                    check_list(level, other, &list)?;
                    None
                }
                None => None,
            };
            merge(&mut whole, list, depth + 1)?;
            found = whole.map(|list| (kind, list));
        }
    }
    Ok(found)
}

/// Call `visit` for every feature of a feature list.
pub fn steps<'a>(list: &'a [u8], mut visit: impl FnMut(&'a [u8]) -> Parsed<()>) -> Parsed<()> {
    let mut fields = Fields::of(list, DEPTH_OF_VALUES);
    while let Some(field) = fields.next_field()? {
        if let (1, Value::Bytes(feature)) = field {
            visit(feature)?;
        }
    }
    Ok(())
}

/// Call `visit` for every run of float32 values, as the little-endian bytes they are stored in.
pub fn floats(level: Level, list: &[u8], mut visit: impl FnMut(&[u8])) -> Parsed<()> {
    let mut fields = Fields::of(list, level.depth_of_features() + 1);
    while let Some(field) = fields.next_field()? {
        match field {
            (1, Value::Bytes(packed)) if packed.len() % 4 == 0 => visit(packed),
            (1, Value::Bytes(_)) => {
                return Err(Malformed("a float list's bytes are no multiple of four"));
            }
            (1, Value::Fixed32(one)) => visit(&one),
            _ => {}
        }
    }
    Ok(())
}

/// Whole numbers as they are stored.
#[derive(Debug, Clone, Copy)]
pub enum Run<'a> {
    One(i64),
    Packed(&'a [u8]),
}

/// Call `visit` for every run of int64 values.
pub fn int_runs(level: Level, list: &[u8], mut visit: impl FnMut(Run<'_>) -> Parsed<()>) -> Parsed<()> {
    let mut fields = Fields::of(list, level.depth_of_features() + 1);
    while let Some(field) = fields.next_field()? {
        match field {
            (1, Value::Bytes(packed)) => visit(Run::Packed(packed))?,
            (1, Value::Varint(one)) => visit(Run::One(one.cast_signed()))?,
            _ => {}
        }
    }
    Ok(())
}

/// Call `visit` for every int64 value.
pub fn ints(level: Level, list: &[u8], mut visit: impl FnMut(i64)) -> Parsed<()> {
    int_runs(level, list, |run| match run {
        Run::One(value) => {
            visit(value);
            Ok(())
        }
        Run::Packed(packed) => wire::packed(packed, |value| visit(value.cast_signed())),
    })
}

/// Call `visit` for every bytes value.
pub fn byte_strings<'a>(level: Level, list: &'a [u8], mut visit: impl FnMut(&'a [u8])) -> Parsed<()> {
    let mut fields = Fields::of(list, level.depth_of_features() + 1);
    while let Some(field) = fields.next_field()? {
        if let (1, Value::Bytes(one)) = field {
            visit(one);
        }
    }
    Ok(())
}

/// The packed numbers or the one bytes value of a list that holds nothing else.
pub(crate) fn only_value(level: Level, kind: Kind, list: &[u8]) -> Parsed<Option<&[u8]>> {
    let mut fields = Fields::of(list, level.depth_of_features() + 1);
    let first = fields.next_field()?;
    Ok(match (first, fields.next_field()?) {
        (Some((1, Value::Bytes(value))), None) if kind != Kind::Floats || value.len() % 4 == 0 => Some(value),
        _ => None,
    })
}

/// Map keys are proto3 strings: protobuf takes no others.
pub fn checked_key(key: &[u8]) -> Parsed<&str> {
    str::from_utf8(key).map_err(|_| Malformed("a feature's name is not UTF-8"))
}
