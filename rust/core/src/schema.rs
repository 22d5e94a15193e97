//! What to take out of each record, and in which form.

use std::collections::HashMap;

use crate::buffer::FROM_SYSTEM;
use crate::error::{Error, Result};
use crate::example::{Kind, Level};
use crate::image::Shape;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dtype {
    Float16,
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Bool,
    Bytes,
}

impl Dtype {
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "float16" => Dtype::Float16,
            "float32" => Dtype::Float32,
            "float64" => Dtype::Float64,
            "int8" => Dtype::Int8,
            "int16" => Dtype::Int16,
            "int32" => Dtype::Int32,
            "int64" => Dtype::Int64,
            "uint8" => Dtype::Uint8,
            "uint16" => Dtype::Uint16,
            "uint32" => Dtype::Uint32,
            "uint64" => Dtype::Uint64,
            "bool" => Dtype::Bool,
            "bytes" => Dtype::Bytes,
            _ => return None,
        })
    }

    /// Bytes of one value; of a bytes value, those are counted one by one.
    pub fn width(self) -> usize {
        match self {
            Dtype::Int8 | Dtype::Uint8 | Dtype::Bool | Dtype::Bytes => 1,
            Dtype::Float16 | Dtype::Int16 | Dtype::Uint16 => 2,
            Dtype::Float32 | Dtype::Int32 | Dtype::Uint32 => 4,
            Dtype::Float64 | Dtype::Int64 | Dtype::Uint64 => 8,
        }
    }

    /// The kind of list that such values are stored in.
    pub fn kind(self) -> Kind {
        match self {
            Dtype::Bytes => Kind::Bytes,
            Dtype::Float16 | Dtype::Float32 | Dtype::Float64 => Kind::Floats,
            _ => Kind::Ints,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A fixed number of values.
    Dense,
    /// One bytes value of a fixed size, reinterpreted.
    Raw,
    /// One bytes value that is a JPEG or PNG file, as pixels of this shape.
    Image(Shape),
    /// Any number of values.
    Ragged,
}

/// What stands in for a missing dense value: one whole item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fallback {
    None,
    Numbers(Vec<u8>),
    Strings(Vec<Vec<u8>>),
}

impl Fallback {
    /// What one item of it takes.
    fn bytes(&self) -> usize {
        match self {
            Fallback::None => 0,
            Fallback::Numbers(bytes) => bytes.len(),
            Fallback::Strings(values) => values.iter().map(Vec::len).sum(),
        }
    }
}

#[derive(Debug, Clone)]
pub struct Field {
    pub key: String,
    pub level: Level,
    pub form: Form,
    pub dtype: Dtype,
    /// Values per item, for dense and raw forms; what a ragged one's are a multiple of, unless 0.
    pub count: usize,
    pub default: Fallback,
    pub required: bool,
}

impl Field {
    /// The kind of list the values come out of.
    pub fn kind(&self) -> Kind {
        match self.form {
            Form::Raw | Form::Image(_) => Kind::Bytes,
            Form::Dense | Form::Ragged => self.dtype.kind(),
        }
    }

    /// Bytes of one dense item, where that is fixed.
    pub fn item_bytes(&self) -> usize {
        self.count.saturating_mul(self.dtype.width())
    }

    fn varies(&self) -> bool {
        self.form == Form::Ragged || self.dtype == Dtype::Bytes || self.level == Level::Lists
    }

    /// What the values of `rows` records of `data_bytes` together can become.
    pub(crate) fn most_value_bytes(&self, rows: usize, data_bytes: usize) -> usize {
        if !self.varies() {
            return self.item_bytes().saturating_mul(rows);
        }
        let defaults = self.most_defaults(rows, data_bytes).saturating_mul(self.default.bytes());
        self.decoded_bytes(data_bytes).saturating_add(defaults)
    }

    /// What `data_bytes` of encoded values can become: a float takes four bytes on the wire, an
    /// integer one at least, a bytes value two besides its own.
    fn decoded_bytes(&self, data_bytes: usize) -> usize {
        match self.kind() {
            Kind::Bytes => data_bytes,
            Kind::Floats => (data_bytes / 4).saturating_mul(self.dtype.width()),
            Kind::Ints => data_bytes.saturating_mul(self.dtype.width()),
        }
    }

    /// How often the default can stand in: once for a record, or for each step, which takes two bytes at least.
    fn most_defaults(&self, rows: usize, data_bytes: usize) -> usize {
        if self.level == Level::Lists { data_bytes / 2 } else { rows }
    }

    /// Bytes of this field's column at most, but for those that every byte of its key's can become.
    fn bound_per_row(&self, rows: usize, data_bytes: usize) -> usize {
        let strings = match (self.dtype, self.form, self.level) {
            (Dtype::Bytes, Form::Dense, Level::Context) => rows.saturating_mul(self.count),
            (Dtype::Bytes, ..) => rows,
            _ => 0,
        };
        let lists = if self.level == Level::Lists { rows } else { 0 };
        let ragged = if self.form == Form::Ragged { rows } else { 0 };
        let offsets =
            strings.saturating_add(lists).saturating_add(ragged).saturating_add(3).saturating_mul(8);
        let most = self.most_value_bytes(rows, data_bytes);
        // a column that is not the system's to give piece by piece has all of its room from the beginning
        let room = if self.varies() { most.min(FROM_SYSTEM) } else { most };
        let defaults = if self.level == Level::Lists { 0 } else { rows.saturating_mul(self.default.bytes()) };
        let defaults = if self.varies() { defaults } else { 0 };
        room.saturating_add(defaults).saturating_add(offsets)
    }

    /// Bytes that `data_bytes` of its key's can become at most, in this field's column.
    fn bound_of_key(&self, data_bytes: usize) -> usize {
        if !self.varies() {
            return 0;
        }
        let is_lists = self.level == Level::Lists;
        let counted = self.dtype == Dtype::Bytes && (self.form != Form::Dense || is_lists);
        let entries = usize::from(counted) + usize::from(is_lists);
        let mut bytes =
            self.decoded_bytes(data_bytes).saturating_add((data_bytes / 2).saturating_mul(8 * entries));
        if is_lists && self.default != Fallback::None {
            let offsets = if self.dtype == Dtype::Bytes { self.count.saturating_mul(8) } else { 0 };
            let default = self.default.bytes().saturating_add(offsets);
            bytes = bytes.saturating_add((data_bytes / 2).saturating_mul(default));
        }
        bytes
    }

    fn check(&self) -> Result<()> {
        let fits = match (&self.default, self.dtype) {
            (Fallback::None, _) => true,
            (Fallback::Numbers(bytes), dtype) => dtype != Dtype::Bytes && bytes.len() == self.item_bytes(),
            (Fallback::Strings(values), dtype) => dtype == Dtype::Bytes && values.len() == self.count,
        };
        let sized =
            self.count.checked_mul(self.dtype.width()).is_some_and(|bytes| bytes <= i32::MAX as usize);
        if let Form::Image(shape) = self.form
            && !(shape.is_possible()
                && (self.level, self.dtype, self.count) == (Level::Context, Dtype::Uint8, shape.bytes()))
        {
            let problem = format!("feature {:?} cannot be an image of {shape:?}", self.key);
            return Err(Error::Misuse(problem));
        }
        if fits && sized {
            return Ok(());
        }
        Err(Error::Misuse(format!("the default or the size of feature {:?} does not fit its type", self.key)))
    }
}

/// Fields that were checked, and where to find them by key.
#[derive(Debug)]
pub struct Schema {
    pub fields: Vec<Field>,
    pub(crate) has_lists: bool,
    /// Distinct keys; several fields may ask for one.
    pub(crate) keys: Vec<(Level, Vec<u8>)>,
    pub(crate) key_of_field: Vec<usize>,
    by_key: HashMap<(bool, Vec<u8>), usize>,
}

/// Up to so many keys, comparing them one by one is faster than hashing.
const FEW: usize = 12;
/// From this size on, copying a value costs more than the trouble of reading it into place.
pub(crate) const LARGE: usize = 32 << 10;

impl Schema {
    pub fn new(fields: Vec<Field>) -> Result<Self> {
        let mut schema = Schema {
            has_lists: fields.iter().any(|field| field.level == Level::Lists),
            keys: Vec::new(),
            key_of_field: Vec::new(),
            by_key: HashMap::new(),
            fields,
        };
        for field in &schema.fields {
            field.check()?;
            let key = (field.level, field.key.clone().into_bytes());
            let place = *schema
                .by_key
                .entry((field.level == Level::Lists, key.1.clone()))
                .or_insert(schema.keys.len());
            if place == schema.keys.len() {
                schema.keys.push(key);
            }
            schema.key_of_field.push(place);
        }
        Ok(schema)
    }

    /// Bytes of all columns at most, for `rows` records of `data_bytes` together. A byte of a record belongs to one
    /// key, so the worst is that all belong to the key of which most can be made.
    pub fn bound_bytes(&self, rows: usize, data_bytes: usize) -> usize {
        let mut of_keys = vec![0_usize; self.keys.len()];
        let mut bound = 0_usize;
        for (field, key) in self.fields.iter().zip(&self.key_of_field) {
            of_keys[*key] = of_keys[*key].saturating_add(field.bound_of_key(data_bytes));
            bound = bound.saturating_add(field.bound_per_row(rows, data_bytes));
        }
        bound.saturating_add(of_keys.into_iter().max().unwrap_or(0))
    }

    /// What the images among the fields become.
    pub fn image_shapes(&self) -> impl Iterator<Item = Shape> {
        self.fields.iter().filter_map(|field| match field.form {
            Form::Image(shape) => Some(shape),
            _ => None,
        })
    }

    /// The field that is worth reading straight into its column, if there is one.
    pub(crate) fn large_raw(&self) -> Option<usize> {
        let raw = |field: &&Field| field.form == Form::Raw && field.level == Level::Context;
        let largest =
            self.fields.iter().filter(raw).map(Field::item_bytes).max().filter(|bytes| *bytes >= LARGE)?;
        self.fields.iter().position(|field| raw(&field) && field.item_bytes() == largest)
    }

    /// The number of a key, looked for first at `guess`: records tend to repeat their order.
    pub(crate) fn find(&self, level: Level, key: &[u8], guess: usize) -> Option<usize> {
        let is = |place: &(Level, Vec<u8>)| place.0 == level && place.1 == key;
        if self.keys.get(guess).is_some_and(is) {
            return Some(guess);
        }
        if self.keys.len() <= FEW {
            return self.keys.iter().position(is);
        }
        self.by_key.get(&(level == Level::Lists, key.to_vec())).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(key: &str, level: Level, form: Form, dtype: Dtype, default: Fallback) -> Field {
        let count = usize::from(form == Form::Dense);
        Field { key: key.into(), level, form, dtype, count, default, required: false }
    }

    fn ragged(key: &str, dtype: Dtype) -> Field {
        field(key, Level::Context, Form::Ragged, dtype, Fallback::None)
    }

    /// What many bytes can become, per byte.
    fn per_byte(fields: Vec<Field>) -> usize {
        const MANY: usize = 1 << 40;
        Schema::new(fields).unwrap().bound_bytes(1, MANY) / MANY
    }

    #[test]
    fn a_byte_of_a_record_is_counted_for_one_key() {
        let ints = |key: &str| ragged(key, Dtype::Int64);
        assert_eq!(per_byte((0..40).map(|number| ints(&number.to_string())).collect()), 8);
        assert_eq!(per_byte(vec![ints("a"), ints("a"), ints("b")]), 16);
        assert_eq!(per_byte(vec![ints("a"), ragged("b", Dtype::Bytes)]), 8);
        let steps = field("a", Level::Lists, Form::Ragged, Dtype::Int64, Fallback::None);
        assert_eq!(per_byte(vec![ints("a"), steps]), 12);
    }

    #[test]
    fn a_default_is_counted_wherever_it_can_stand_in() {
        let default = || Fallback::Strings(vec![vec![0; 1000]]);
        let of_level = |level| field("a", level, Form::Dense, Dtype::Bytes, default());
        let bound = |level, rows, bytes| Schema::new(vec![of_level(level)]).unwrap().bound_bytes(rows, bytes);
        assert!(bound(Level::Context, 50, 0) >= 50 * 1000);
        assert!(bound(Level::Lists, 1, 80) >= 40 * 1000);
    }
}
