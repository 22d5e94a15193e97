//! `tf.train.Example` and `SequenceExample` by protobuf's rules: repeated submessages merge, which
//! on the wire means that they are read one behind the other; the last of two kinds and the last of
//! two equal map keys win; a map entry without key or value has the default.

use std::borrow::Cow;

use crate::wire::{Fields, Malformed, Parsed, Value, varint};

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

/// Call `visit(level, key, value)` for every map entry, in the order of the wire. The feature lists
/// are looked at only if `lists` says so; in an `Example` they are an unknown field.
pub fn entries<'a>(
    record: &'a [u8],
    lists: bool,
    mut visit: impl FnMut(Level, &'a [u8], Cow<'a, [u8]>) -> Parsed<()>,
) -> Parsed<()> {
    let mut fields = Fields::of(record);
    while let Some((number, value)) = fields.next_field()? {
        let level = match number {
            1 => Level::Context,
            2 if lists => Level::Lists,
            _ => continue,
        };
        if let Value::Bytes(map) = value {
            let mut fields = Fields::of(map);
            while let Some((number, value)) = fields.next_field()? {
                if let (1, Value::Bytes(entry)) = (number, value) {
                    let (key, value) = key_and_value(entry)?;
                    visit(level, key, value)?;
                }
            }
        }
    }
    Ok(())
}

fn key_and_value(entry: &[u8]) -> Parsed<(&[u8], Cow<'_, [u8]>)> {
    let (mut key, mut value): (&[u8], Option<Cow<'_, [u8]>>) = (&[], None);
    let mut fields = Fields::of(entry);
    while let Some(field) = fields.next_field()? {
        match field {
            (1, Value::Bytes(bytes)) => key = bytes,
            (2, Value::Bytes(bytes)) => merge(&mut value, bytes),
            _ => {}
        }
    }
    Ok((key, value.unwrap_or_default()))
}

fn merge<'a>(whole: &mut Option<Cow<'a, [u8]>>, part: &'a [u8]) {
    match whole {
        None => *whole = Some(Cow::Borrowed(part)),
        Some(whole) => whole.to_mut().extend_from_slice(part),
    }
}

/// A feature's kind and list; `None` if it has no kind, which counts as missing.
pub fn feature(value: &[u8]) -> Parsed<Option<(Kind, Cow<'_, [u8]>)>> {
    let mut found: Option<(Kind, Cow<'_, [u8]>)> = None;
    let mut fields = Fields::of(value);
    while let Some((number, value)) = fields.next_field()? {
        let kind = match number {
            1 => Kind::Bytes,
            2 => Kind::Floats,
            3 => Kind::Ints,
            _ => continue,
        };
        if let Value::Bytes(list) = value {
            let mut whole = found.take().filter(|(known, _)| *known == kind).map(|(_, list)| list);
            merge(&mut whole, list);
            found = whole.map(|list| (kind, list));
        }
    }
    Ok(found)
}

/// Call `visit` for every feature of a feature list.
pub fn steps<'a>(list: &'a [u8], mut visit: impl FnMut(&'a [u8]) -> Parsed<()>) -> Parsed<()> {
    let mut fields = Fields::of(list);
    while let Some(field) = fields.next_field()? {
        if let (1, Value::Bytes(feature)) = field {
            visit(feature)?;
        }
    }
    Ok(())
}

/// Call `visit` for every run of float32 values, as the little-endian bytes they are stored in.
pub fn floats(list: &[u8], mut visit: impl FnMut(&[u8])) -> Parsed<()> {
    let mut fields = Fields::of(list);
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

/// Call `visit` for every int64 value.
pub fn ints(list: &[u8], mut visit: impl FnMut(i64)) -> Parsed<()> {
    let mut fields = Fields::of(list);
    while let Some(field) = fields.next_field()? {
        match field {
            (1, Value::Bytes(mut packed)) => {
                while !packed.is_empty() {
                    visit(varint(&mut packed)?.cast_signed());
                }
            }
            (1, Value::Varint(one)) => visit(one.cast_signed()),
            _ => {}
        }
    }
    Ok(())
}

/// Call `visit` for every bytes value.
pub fn byte_strings<'a>(list: &'a [u8], mut visit: impl FnMut(&'a [u8])) -> Parsed<()> {
    let mut fields = Fields::of(list);
    while let Some(field) = fields.next_field()? {
        if let (1, Value::Bytes(one)) = field {
            visit(one);
        }
    }
    Ok(())
}

/// Map keys are proto3 strings: protobuf takes no others.
pub fn checked_key(key: &[u8]) -> Parsed<&str> {
    str::from_utf8(key).map_err(|_| Malformed("a feature's name is not UTF-8"))
}
