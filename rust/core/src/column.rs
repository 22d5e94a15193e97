//! One feature of many records: values one behind the other, and where each record's begin.

use std::sync::Arc;

use crate::buffer::{Bytes, Pool};
use crate::example::Level;
use crate::schema::{Dtype, Fallback, Field, Form, LARGE};

/// Room behind a large column for what follows its last value when a record is read into place.
pub(crate) const SPILL: usize = 4 << 10;

/// Values and up to three levels of offsets, outermost first: record → steps, item → values,
/// value → bytes. Each list of offsets is int64 and starts with 0.
#[derive(Debug)]
pub struct Column {
    pub values: Bytes,
    pub steps: Option<Bytes>,
    pub items: Option<Bytes>,
    pub strings: Option<Bytes>,
    count: usize,
    width: usize,
}

impl Column {
    /// An empty column with room for `rows` records of `data_bytes` together: memory that is not needed
    /// after all is never touched.
    pub fn new(field: &Field, rows: usize, data_bytes: usize, pool: &Arc<Pool>) -> Self {
        let strings = field.dtype == Dtype::Bytes;
        let room = field.most_value_bytes(rows, data_bytes);
        let large = field.form == Form::Raw && field.level == Level::Context && field.item_bytes() >= LARGE;
        let values = pool.take(room.saturating_add(if large { SPILL } else { 0 }));
        if large {
            values.ask_for_large_pages();
        }
        let offsets = |wanted: bool, entries: usize| wanted.then(|| started(pool, entries));
        Column {
            values,
            steps: offsets(field.level == Level::Lists, rows),
            items: offsets(field.form == Form::Ragged, rows),
            strings: offsets(strings, rows.saturating_mul(field.count.max(1))),
            count: field.count,
            width: field.dtype.width(),
        }
    }

    /// A column that takes each record's bytes as they are.
    pub fn of_records(rows: usize, data_bytes: usize, pool: &Arc<Pool>) -> Self {
        let (values, strings) = (pool.take(data_bytes), Some(started(pool, rows)));
        Column { values, steps: None, items: None, strings, count: 1, width: 1 }
    }

    pub fn push_string(&mut self, bytes: &[u8]) {
        self.values.extend(bytes);
        let end = self.values.len() as i64;
        if let Some(strings) = &mut self.strings {
            strings.push_i64(end);
        }
    }

    pub fn push_default(&mut self, default: &Fallback) {
        match default {
            Fallback::None => {}
            Fallback::Numbers(bytes) => self.values.extend(bytes),
            Fallback::Strings(values) => values.iter().for_each(|value| self.push_string(value)),
        }
    }

    /// How many values there are.
    pub fn values_so_far(&self) -> usize {
        match &self.strings {
            Some(strings) => entries(strings),
            None => self.values.len() / self.width,
        }
    }

    /// The item that was being written is complete.
    pub fn end_item(&mut self) {
        let values = self.values_so_far() as i64;
        if let Some(items) = &mut self.items {
            items.push_i64(values);
        }
    }

    /// The record that was being written has `steps` steps more.
    pub fn end_steps(&mut self, steps: usize) {
        if let Some(all) = &mut self.steps {
            let before = all.i64_at(entries(all));
            all.push_i64(before + steps as i64);
        }
    }

    /// Forget everything behind the first `rows` records: one of them could not be read to its end.
    pub fn keep_rows(&mut self, rows: usize) {
        let items = cut(&mut self.steps, rows).unwrap_or(rows);
        let values = cut(&mut self.items, items).unwrap_or(items.saturating_mul(self.count));
        let bytes = cut(&mut self.strings, values).unwrap_or(values.saturating_mul(self.width));
        self.values.truncate(bytes);
    }

    /// How much memory this holds on to.
    pub fn held(&self) -> usize {
        let offsets = [&self.steps, &self.items, &self.strings].into_iter().flatten();
        self.values.held() + offsets.map(Bytes::held).sum::<usize>()
    }

    /// Values, then offsets, outermost first.
    pub fn into_buffers(self) -> (Bytes, Vec<Bytes>) {
        (self.values, [self.steps, self.items, self.strings].into_iter().flatten().collect())
    }
}

fn started(pool: &Arc<Pool>, entries: usize) -> Bytes {
    let mut offsets = pool.take(entries.saturating_add(1).saturating_mul(8));
    offsets.push_i64(0);
    offsets
}

fn entries(offsets: &Bytes) -> usize {
    (offsets.len() / 8).saturating_sub(1)
}

/// Keep `keep` entries of a list of offsets; how much they cover.
fn cut(offsets: &mut Option<Bytes>, keep: usize) -> Option<usize> {
    let offsets = offsets.as_mut()?;
    offsets.truncate(keep.saturating_add(1).saturating_mul(8));
    Some(usize::try_from(offsets.i64_at(keep)).unwrap_or(0))
}
