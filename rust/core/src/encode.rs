//! `tf.train.Example` messages, written as TensorFlow's own writer writes them.

/// One feature's values.
#[derive(Debug, Clone)]
pub enum Values {
    /// No list at all: of no kind, and therefore missing.
    Nothing,
    /// Little-endian float32 values.
    Floats(Vec<u8>),
    Ints(Vec<i64>),
    Strings(Vec<Vec<u8>>),
}

const FIELD_1: u8 = 0x0a;
const FIELD_2: u8 = 0x12;

pub fn example<'a>(features: impl IntoIterator<Item = (&'a str, &'a Values)>) -> Vec<u8> {
    let mut map = Vec::new();
    for (name, values) in features {
        let mut entry = Vec::new();
        field(&mut entry, FIELD_1, name.as_bytes());
        field(&mut entry, FIELD_2, &feature(values));
        field(&mut map, FIELD_1, &entry);
    }
    let mut out = Vec::with_capacity(map.len() + 8);
    field(&mut out, FIELD_1, &map);
    out
}

fn feature(values: &Values) -> Vec<u8> {
    let mut list = Vec::new();
    let kind = match values {
        Values::Nothing => return list,
        Values::Strings(strings) => {
            strings.iter().for_each(|bytes| field(&mut list, FIELD_1, bytes));
            FIELD_1
        }
        Values::Floats(bytes) => {
            packed(&mut list, bytes);
            FIELD_2
        }
        Values::Ints(ints) => {
            let mut bytes = Vec::with_capacity(ints.len());
            ints.iter().for_each(|value| varint(&mut bytes, value.cast_unsigned()));
            packed(&mut list, &bytes);
            0x1a
        }
    };
    let mut out = Vec::with_capacity(list.len() + 8);
    field(&mut out, kind, &list);
    out
}

/// An empty packed list is not written at all.
fn packed(list: &mut Vec<u8>, bytes: &[u8]) {
    if !bytes.is_empty() {
        field(list, FIELD_1, bytes);
    }
}

fn field(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    out.push(tag);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
