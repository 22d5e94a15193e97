//! One feature's list into a column, each value in the type that was asked for.

use std::fmt::Debug;

use half::f16;

use super::{Fault, Outcome, problem};
use crate::buffer::Bytes;
use crate::column::Column;
use crate::example::{self, Kind, Run};
use crate::schema::{Dtype, Field, Form};
use crate::wire::{self, Parsed};

/// Append one list's values to a column, as many and of the kind that the field asks for.
pub(super) fn item(field: &Field, kind: Kind, list: &[u8], column: &mut Column) -> Outcome {
    if kind != field.kind() {
        return Err(wrong_kind(field, kind));
    }
    let before = column.values_so_far();
    match kind {
        Kind::Floats => floats(field, list, column)?,
        Kind::Ints => ints(field, list, column)?,
        Kind::Bytes if field.form == Form::Raw => column.values.extend(one_bytes_value(field, list)?),
        Kind::Bytes => example::byte_strings(field.level, list, |bytes| column.push_string(bytes))?,
    }
    let count = column.values_so_far() - before;
    let wanted = match field.form {
        Form::Dense if count != field.count => field.count.to_string(),
        Form::Ragged if field.count > 1 && !count.is_multiple_of(field.count) => {
            format!("multiples of {}", field.count)
        }
        _ => return Ok(()),
    };
    let values = if count == 1 { "value" } else { "values" };
    Err(problem(field, format!("has {count} {values}; {wanted} were asked for")))
}

pub(super) fn wrong_kind(field: &Field, kind: Kind) -> Fault {
    let wanted = field.kind().name();
    problem(field, format!("holds {} values; {wanted} values were asked for", kind.name()))
}

/// The one bytes value of a raw field, of exactly the size it must have, or of an image's.
pub(super) fn one_bytes_value<'a>(field: &Field, list: &'a [u8]) -> Result<&'a [u8], Fault> {
    let (mut count, mut found) = (0, &[][..]);
    example::byte_strings(field.level, list, |bytes| {
        count += 1;
        found = bytes;
    })?;
    if count != 1 {
        return Err(problem(field, format!("has {count} bytes values; one was asked for")));
    }
    if field.form == Form::Raw && found.len() != field.item_bytes() {
        return Err(problem(
            field,
            format!("has {} bytes; {} were asked for", found.len(), field.item_bytes()),
        ));
    }
    Ok(found)
}

fn floats(field: &Field, list: &[u8], column: &mut Column) -> Outcome {
    let values = &mut column.values;
    let mut outside = None;
    let each = |packed: &[u8], push: &mut dyn FnMut(f32)| {
        packed.as_chunks::<4>().0.iter().for_each(|bytes| push(f32::from_le_bytes(*bytes)));
    };
    match field.dtype {
        Dtype::Float64 => {
            example::floats(field.level, list, |packed| {
                each(packed, &mut |value| values.extend(&f64::from(value).to_le_bytes()))
            })?;
        }
        Dtype::Float16 => {
            example::floats(field.level, list, |packed| {
                each(packed, &mut |value| {
                    let half = f16::from_f32(value);
                    let fits = half.is_finite() || !value.is_finite();
                    push(fits.then(|| half.to_le_bytes()), value, values, &mut outside);
                })
            })?;
        }
        _ => example::floats(field.level, list, |packed| values.extend(packed))?,
    }
    all_fit(field, outside)
}

fn ints(field: &Field, list: &[u8], column: &mut Column) -> Outcome {
    let values = &mut column.values;
    let mut outside = None;
    match field.dtype {
        Dtype::Int64 => example::int_runs(field.level, list, |run| int64_run(run, values))?,
        Dtype::Int32 => example::ints(field.level, list, |value| {
            push(i32::try_from(value).ok().map(i32::to_le_bytes), value, values, &mut outside)
        })?,
        Dtype::Int16 => example::ints(field.level, list, |value| {
            push(i16::try_from(value).ok().map(i16::to_le_bytes), value, values, &mut outside)
        })?,
        Dtype::Int8 => example::ints(field.level, list, |value| {
            push(i8::try_from(value).ok().map(i8::to_le_bytes), value, values, &mut outside)
        })?,
        Dtype::Uint64 => example::ints(field.level, list, |value| {
            push(u64::try_from(value).ok().map(u64::to_le_bytes), value, values, &mut outside)
        })?,
        Dtype::Uint32 => example::ints(field.level, list, |value| {
            push(u32::try_from(value).ok().map(u32::to_le_bytes), value, values, &mut outside)
        })?,
        Dtype::Uint16 => example::ints(field.level, list, |value| {
            push(u16::try_from(value).ok().map(u16::to_le_bytes), value, values, &mut outside)
        })?,
        Dtype::Bool => example::ints(field.level, list, |value| {
            let truth = u8::try_from(value).ok().filter(|value| *value < 2).map(|value| [value]);
            push(truth, value, values, &mut outside);
        })?,
        _ => example::ints(field.level, list, |value| {
            push(u8::try_from(value).ok().map(u8::to_le_bytes), value, values, &mut outside)
        })?,
    }
    all_fit(field, outside)
}

/// Append a run of numbers: room for all of them is found once.
fn int64_run(run: Run<'_>, values: &mut Bytes) -> Parsed<()> {
    match run {
        Run::One(value) => values.push_i64(value),
        Run::Packed(packed) => {
            let mut room = values.appended(wire::packed_count(packed) * 8).as_chunks_mut().0.iter_mut();
            wire::packed(packed, |value| {
                if let Some(place) = room.next() {
                    *place = value.to_le_bytes();
                }
            })?;
        }
    }
    Ok(())
}

/// Append a value as the bytes it has in its new type, or note the first one that has none.
fn push<const N: usize, T: Copy>(
    bytes: Option<[u8; N]>,
    value: T,
    values: &mut Bytes,
    outside: &mut Option<T>,
) {
    match bytes {
        Some(bytes) => values.extend(&bytes),
        None => *outside = Some(outside.unwrap_or(value)),
    }
}

fn all_fit(field: &Field, outside: Option<impl Debug>) -> Outcome {
    let Some(value) = outside else { return Ok(()) };
    let dtype = format!("{:?}", field.dtype).to_lowercase();
    Err(problem(field, format!("holds the value {value:?}, which is no {dtype}")))
}
