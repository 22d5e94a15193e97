//! One record's bytes into one more row of every column.

use std::borrow::Cow;
use std::fmt::Display;
use std::mem::replace;
use std::sync::Arc;

use crate::column::Column;
use crate::example::{self, Kind, Level};
use crate::image::{self, Failure, Room, Shape};
use crate::schema::{Dtype, Fallback, Field, Form, Schema};
use crate::template::{Layout, Slot, Templates};
use crate::wire::Malformed;

mod values;

use values::{item, one_bytes_value, wrong_kind};

/// Why a record gives no row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The bytes are no `tf.train.Example`: damage, as far as anyone can tell.
    Malformed(&'static str),
    /// The record is sound but not what was asked for.
    Feature { feature: String, problem: String },
    /// The bytes of a feature are no image that can be read: damage, too.
    Image { feature: String, why: String },
    /// An image takes more memory than there is for images.
    TooLarge { feature: String, width: usize, height: usize, needed_bytes: usize },
    /// A value that was read straight into its column lies elsewhere in this record.
    Moved,
}

impl From<Malformed> for Fault {
    fn from(Malformed(why): Malformed) -> Self {
        Fault::Malformed(why)
    }
}

type Outcome = Result<(), Fault>;

/// Where a key's value lies: within the record, or merged from several pieces.
#[derive(Debug, Clone)]
enum Found {
    Nowhere,
    Within(usize, usize),
    Merged(Vec<u8>),
}

impl Found {
    fn value<'a>(&'a self, record: &'a [u8]) -> Option<&'a [u8]> {
        match self {
            Found::Nowhere => None,
            Found::Within(start, len) => record.get(*start..*start + *len),
            Found::Merged(bytes) => Some(bytes),
        }
    }
}

/// Decodes records one after the other; remembers the order in which their keys came, and their layouts.
#[derive(Debug, Default)]
pub struct Decoder {
    found: Vec<Found>,
    order: Vec<usize>,
    templates: Templates,
    images: image::Decoder,
}

impl Decoder {
    /// Decode images in no more memory than there is in a room.
    pub fn keep_within(&mut self, room: &Arc<Room>) {
        self.images.keep_within(room);
    }

    /// Append `record` to the columns, one per field. On a fault the columns are as they were.
    pub fn decode(&mut self, schema: &Schema, record: &[u8], columns: &mut [Column], row: usize) -> Outcome {
        if let Some(slots) = self.templates.fitting(record) {
            if fill_like(slots, schema, record, columns, &mut self.images).is_ok() {
                return Ok(());
            }
            columns.iter_mut().for_each(|column| column.keep_rows(row));
        } else if !schema.has_lists {
            self.templates.learn(|| layout_of(schema, record));
        }
        self.decode_around(schema, record, columns, row, None)
    }

    /// The same for a record of which one raw value is in its column already.
    pub fn decode_around(
        &mut self,
        schema: &Schema,
        record: &[u8],
        columns: &mut [Column],
        row: usize,
        there: Option<RawPlace>,
    ) -> Outcome {
        let outcome = self.locate(schema, record).and_then(|()| self.fill(schema, record, columns, there));
        if outcome.is_err() {
            columns.iter_mut().for_each(|column| column.keep_rows(row));
        }
        outcome
    }

    /// Where in a sound record the bytes of a raw field lie.
    pub fn place_of_raw(&mut self, schema: &Schema, record: &[u8], field: usize) -> Option<RawPlace> {
        self.locate(schema, record).ok()?;
        let value = value_of(&self.found, schema, record, field)?;
        let (_, list) = example::feature(Level::Context, value).ok()??;
        let at = offset_within(record, one_bytes_value(schema.fields.get(field)?, &list).ok()?)?;
        Some(RawPlace { field, at })
    }

    fn locate(&mut self, schema: &Schema, record: &[u8]) -> Outcome {
        self.found.clear();
        self.found.resize(schema.keys.len(), Found::Nowhere);
        let mut nth = 0;
        example::entries(record, schema.has_lists, |level, key, value| {
            let guess = self.order.get(nth).copied().unwrap_or(nth);
            if let Some(place) = schema.find(level, key, guess) {
                remember(&mut self.order, nth, place);
                let now = match value {
                    Cow::Borrowed(bytes) => {
                        Found::Within(offset_within(record, bytes).unwrap_or(0), bytes.len())
                    }
                    Cow::Owned(bytes) => Found::Merged(bytes),
                };
                if let Some(former) = replace(&mut self.found[place], now).value(record) {
                    example::check_value(level, former)?;
                }
            } else {
                example::checked_key(key)?;
            }
            nth += 1;
            Ok(())
        })?;
        Ok(())
    }

    fn fill(
        &mut self,
        schema: &Schema,
        record: &[u8],
        columns: &mut [Column],
        there: Option<RawPlace>,
    ) -> Outcome {
        for (number, (field, column)) in schema.fields.iter().zip(columns).enumerate() {
            let value = value_of(&self.found, schema, record, number);
            let outcome = match (field.form, field.level, there) {
                (_, _, Some(there)) if there.field == number => is_there(field, value, record, there.at),
                (Form::Image(shape), ..) => image(field, shape, value, column, &mut self.images),
                (_, Level::Context, _) => context(field, value, column),
                (_, Level::Lists, _) => feature_list(field, value, column),
            };
            outcome.map_err(|fault| explained(fault, record, schema.has_lists))?;
        }
        Ok(())
    }
}

fn value_of<'a>(found: &'a [Found], schema: &Schema, record: &'a [u8], field: usize) -> Option<&'a [u8]> {
    found.get(*schema.key_of_field.get(field)?)?.value(record)
}

/// The layout of a record that has every key asked for.
fn layout_of(schema: &Schema, record: &[u8]) -> Option<Layout> {
    let place = |level, key: &[u8]| match schema.find(level, key, 0) {
        Some(place) => Ok(Some(place)),
        None => example::checked_key(key).map(|_| None),
    };
    Layout::of(record, false, place).filter(|layout| layout.slots().len() == schema.keys.len())
}

/// The values of a record that is laid out as another one was.
fn fill_like(
    slots: &[Slot],
    schema: &Schema,
    record: &[u8],
    columns: &mut [Column],
    images: &mut image::Decoder,
) -> Outcome {
    for ((field, key), column) in schema.fields.iter().zip(&schema.key_of_field).zip(columns) {
        let slot = &slots[*key];
        let as_stored = matches!((field.form, field.dtype), (Form::Raw, _) | (Form::Dense, Dtype::Float32));
        if as_stored && slot.kind == field.kind() && slot.values.len() == field.item_bytes() {
            column.values.extend(&record[slot.values.clone()]);
        } else if let Some(number) = small_number(field, slot, record) {
            column.values.push_i64(number);
        } else if let (Form::Image(shape), Kind::Bytes) = (field.form, slot.kind) {
            paint(field, shape, &record[slot.values.clone()], column, images)?;
        } else {
            item(field, slot.kind, &record[slot.list.clone()], column)?;
            column.end_item();
        }
    }
    Ok(())
}

/// A label, most likely: one number below 128, which takes one byte.
fn small_number(field: &Field, slot: &Slot, record: &[u8]) -> Option<i64> {
    let alone = field.form == Form::Dense && field.dtype == Dtype::Int64 && field.count == 1;
    match &record[slot.values.clone()] {
        [byte @ 0..=127] if alone && slot.kind == Kind::Ints => Some(i64::from(*byte)),
        _ => None,
    }
}

/// Where a raw value lies within its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawPlace {
    pub field: usize,
    pub at: usize,
}

fn is_there(field: &Field, value: Option<&[u8]>, record: &[u8], at: usize) -> Outcome {
    let list = value.map(|value| example::feature(field.level, value)).transpose()?.flatten();
    match list {
        Some((Kind::Bytes, list)) if offset_within(record, one_bytes_value(field, &list)?) == Some(at) => {
            Ok(())
        }
        _ => Err(Fault::Moved),
    }
}

/// Where `part` starts in `whole`, if it is a part of it.
fn offset_within(whole: &[u8], part: &[u8]) -> Option<usize> {
    let at = part.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
    (at.checked_add(part.len())? <= whole.len()).then_some(at)
}

fn remember(order: &mut Vec<usize>, nth: usize, place: usize) {
    match order.get_mut(nth) {
        Some(known) => *known = place,
        // a record may have any number of keys; only the first few are worth remembering
        None if nth < 256 => order.resize(nth + 1, place),
        None => {}
    }
}

fn problem(field: &Field, problem: impl Display) -> Fault {
    Fault::Feature { feature: field.key.clone(), problem: problem.to_string() }
}

const MISSING: &str = "is missing";

/// A damaged record is damaged, whatever else is wrong with it; and a user who mistyped a name wants to
/// see the names that are there.
fn explained(fault: Fault, record: &[u8], lists: bool) -> Fault {
    let Fault::Feature { feature, problem } = fault else {
        return fault;
    };
    if let Err(malformed) = example::check(record, lists) {
        return malformed.into();
    }
    if problem != MISSING {
        return Fault::Feature { feature, problem };
    }
    let mut names = Vec::new();
    let _ = example::entries(record, lists, |_, key, _| {
        let name = String::from_utf8_lossy(key).into_owned();
        if names.len() < 20 && !names.contains(&name) {
            names.push(name);
        }
        Ok(())
    });
    names.sort();
    let problem = match &names[..] {
        [] => format!("{MISSING}: the record has no features at all"),
        names => format!("{MISSING}; the record has: {}", names.join(", ")),
    };
    Fault::Feature { feature, problem }
}

fn context(field: &Field, value: Option<&[u8]>, column: &mut Column) -> Outcome {
    let present = value.map(|value| example::feature(field.level, value)).transpose()?.flatten();
    match present {
        Some((kind, list)) => item(field, kind, &list, column)?,
        None if field.required => return Err(problem(field, MISSING)),
        None => column.push_default(&field.default),
    }
    column.end_item();
    Ok(())
}

fn image(
    field: &Field,
    shape: Shape,
    value: Option<&[u8]>,
    column: &mut Column,
    images: &mut image::Decoder,
) -> Outcome {
    match value.map(|value| example::feature(field.level, value)).transpose()?.flatten() {
        Some((Kind::Bytes, list)) => paint(field, shape, one_bytes_value(field, &list)?, column, images),
        Some((kind, _)) => Err(wrong_kind(field, kind)),
        None => Err(problem(field, MISSING)),
    }
}

/// Decode an image file into one more row.
fn paint(
    field: &Field,
    shape: Shape,
    file: &[u8],
    column: &mut Column,
    images: &mut image::Decoder,
) -> Outcome {
    let row = column.values.len();
    let pixels = column.values.memory(row, shape.bytes());
    images.decode(file, shape, pixels).map_err(|failure| {
        let feature = field.key.clone();
        match failure {
            Failure::Unreadable(why) => Fault::Image { feature, why: why.into_owned() },
            Failure::TooLarge { width, height, needed_bytes } => {
                Fault::TooLarge { feature, width, height, needed_bytes }
            }
        }
    })?;
    column.values.grow_to(row + shape.bytes());
    Ok(())
}

fn feature_list(field: &Field, value: Option<&[u8]>, column: &mut Column) -> Outcome {
    let Some(list) = value else {
        if field.required {
            return Err(problem(field, MISSING));
        }
        column.end_steps(0);
        return Ok(());
    };
    let mut steps = 0;
    let mut outcome = Ok(());
    example::steps(list, |value| {
        if outcome.is_ok() {
            outcome = step(field, value, column).map_err(|fault| in_step(fault, steps));
        }
        steps += 1;
        Ok(())
    })?;
    outcome?;
    column.end_steps(steps);
    Ok(())
}

fn step(field: &Field, value: &[u8], column: &mut Column) -> Outcome {
    match example::feature(field.level, value)? {
        Some((kind, list)) => item(field, kind, &list, column)?,
        None if field.form == Form::Ragged => {}
        None if field.default != Fallback::None => column.push_default(&field.default),
        None => return Err(problem(field, "has no value")),
    }
    column.end_item();
    Ok(())
}

fn in_step(fault: Fault, step: usize) -> Fault {
    match fault {
        Fault::Feature { feature, problem } => {
            Fault::Feature { feature, problem: format!("step {step}: {problem}") }
        }
        other => other,
    }
}
