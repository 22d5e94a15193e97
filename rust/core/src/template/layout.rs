//! The order and kinds of a record's keys, whatever lengths their values have.

use std::borrow::Cow;
use std::ops::Range;

use super::opening::Opening;
use super::{NOT_PLAIN, Slot};
use crate::example::{self, Kind, Level};
use crate::wire::Parsed;

/// The tag of the first field of a message: a record's map, a map's entry, an entry's key, a list's values.
const FIRST: u8 = 0x0a;
/// The tag of an entry's value.
const VALUE: u8 = 0x12;

/// One key of the map, as it is written.
#[derive(Debug)]
struct Entry {
    /// All of the entry up to the length of its value.
    head: Vec<u8>,
    asked: Option<Asked>,
}

/// What somebody asks for: which slot the values belong to.
#[derive(Debug)]
struct Asked {
    slot: usize,
    opening: Opening,
}

/// Keys in the order of the wire, each once and with all its values in one piece.
#[derive(Debug)]
pub(crate) struct Layout {
    entries: Vec<Entry>,
    slots: Vec<Slot>,
    /// What nobody asks for, in the record that was looked at last.
    unasked: Vec<Range<usize>>,
}

impl Layout {
    /// The layout of a sound record, if it is plain. `place` numbers the keys; what lies under one without a
    /// number can be anything.
    pub fn of(
        record: &[u8],
        lists: bool,
        place: impl Fn(Level, &[u8]) -> Parsed<Option<usize>>,
    ) -> Option<Self> {
        let (mut heads, mut slots) = (Vec::new(), Vec::new());
        example::entries(record, lists, |level, key, value| {
            let place = place(level, key)?;
            heads.push((head_of(level, key)?, place));
            if let Some(place) = place {
                let Cow::Borrowed(value) = value else { return Err(NOT_PLAIN) };
                let (kind, _) = example::feature(level, value)?.ok_or(NOT_PLAIN)?;
                slots.push(Slot { place, kind, list: 0..0, values: 0..0 });
            }
            Ok(())
        })
        .ok()?;
        slots.sort_unstable_by_key(|slot| slot.place);
        let once = slots.windows(2).all(|pair| pair[0].place != pair[1].place);
        let slot_of = |place| slots.iter().position(|slot| Some(slot.place) == place);
        let asked_of = |head: &[u8], place| {
            slot_of(place).map(|slot| Asked { slot, opening: opening_of(head, slots[slot].kind) })
        };
        let entries = heads.into_iter().map(|(head, place)| Entry { asked: asked_of(&head, place), head });
        let mut layout = Layout { entries: entries.collect(), slots, unasked: Vec::new() };
        // what cannot be walked through, such as a list in several pieces, is no layout
        (once && layout.fits(record)).then_some(layout)
    }

    /// Where everything lies in the record that fitted last, by place.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// What may be anything in the record that fitted last.
    pub(super) fn free(&self) -> Vec<Range<usize>> {
        let values = self.slots.iter().map(|slot| &slot.values);
        values.chain(&self.unasked).cloned().collect()
    }

    /// Whether a record is laid out like this; then `slots` tell where its values are.
    pub fn fits(&mut self, record: &[u8]) -> bool {
        self.unasked.clear();
        self.walk(record).is_some()
    }

    fn walk(&mut self, record: &[u8]) -> Option<()> {
        let mut at = 0;
        let map_end = end_of(FIRST, record, &mut at)?;
        for entry in &self.entries {
            at = match &entry.asked {
                Some(asked) => asked.find(&entry.head, &mut self.slots[asked.slot], record, at)?,
                None => {
                    let value = value_of(&entry.head, record, at)?;
                    self.unasked.push(value.clone());
                    value.end
                }
            };
        }
        (at == map_end && at == record.len()).then_some(())
    }
}

impl Asked {
    /// Note where the values lie in the entry that begins at `at`, and return where it ends.
    #[inline]
    fn find(&self, head: &[u8], slot: &mut Slot, record: &[u8], at: usize) -> Option<usize> {
        if let Some(places) = self.opening.places(record, at) {
            (slot.list, slot.values) = (places.list, places.values);
        } else {
            let value = value_of(head, record, at)?;
            fill(slot, record, value.start, value.end)?;
        }
        let whole = slot.kind != Kind::Floats || slot.values.len().is_multiple_of(4);
        whole.then_some(slot.values.end)
    }
}

/// Where the value lies of the entry that begins at `at`, if it has this head and nothing behind its value.
fn value_of(head: &[u8], record: &[u8], mut at: usize) -> Option<Range<usize>> {
    let end = end_of(FIRST, record, &mut at)?;
    at = behind(head, record, at)?;
    let value_end = end_behind_length(record, &mut at)?;
    // whatever ends earlier has another field behind it
    (value_end == end).then_some(at..end)
}

/// Note where the values of a feature lie that goes from `at` to `end`, if there is one list and nothing else.
fn fill(slot: &mut Slot, record: &[u8], mut at: usize, end: usize) -> Option<()> {
    let list_end = end_of(tag_of(slot.kind), record, &mut at)?;
    slot.list = at..end;
    // an empty list of numbers has no field for them; one of bytes would have no value
    let values_end =
        if at == end && slot.kind != Kind::Bytes { end } else { end_of(FIRST, record, &mut at)? };
    slot.values = at..end;
    (list_end == end && values_end == end).then_some(())
}

fn tag_of(kind: Kind) -> u8 {
    match kind {
        Kind::Bytes => 0x0a,
        Kind::Floats => 0x12,
        Kind::Ints => 0x1a,
    }
}

fn opening_of(head: &[u8], kind: Kind) -> Opening {
    Opening::of(FIRST, head, tag_of(kind), FIRST)
}

/// An entry's key and the tag of its value.
fn head_of(level: Level, key: &[u8]) -> Parsed<Vec<u8>> {
    match u8::try_from(key.len()) {
        Ok(length @ 0..=127) if level == Level::Context => Ok([&[FIRST, length], key, &[VALUE]].concat()),
        _ => Err(NOT_PLAIN),
    }
}

/// Where the field ends that begins at `at` with this tag; `at` is then where its content begins.
#[inline]
fn end_of(tag: u8, record: &[u8], at: &mut usize) -> Option<usize> {
    if *record.get(*at)? != tag {
        return None;
    }
    *at += 1;
    end_behind_length(record, at)
}

/// Where what follows a length ends; `at` is then where it begins.
#[inline]
fn end_behind_length(record: &[u8], at: &mut usize) -> Option<usize> {
    // whether a length has one byte or two changes from record to record: no branch
    if let Some([low, high]) = record.get(*at..).and_then(|rest| rest.first_chunk())
        && low & high < 0x80
    {
        let two = usize::from(low >> 7);
        *at += 1 + two;
        return Some(*at + (usize::from(low & 0x7f) | (two * usize::from(*high)) << 7));
    }
    let mut length = 0;
    for shift in [0, 7, 14, 21] {
        let byte = usize::from(*record.get(*at)?);
        *at += 1;
        length |= (byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(*at + length);
        }
    }
    None
}

/// Where a record goes on behind bytes that it must have at `at`.
#[inline]
fn behind(expected: &[u8], record: &[u8], at: usize) -> Option<usize> {
    record.get(at..)?.starts_with(expected).then(|| at + expected.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: u8, kind: u8, list: &[u8]) -> Vec<u8> {
        let feature = [&[kind, list.len() as u8], list].concat();
        let value = [&[FIRST, 1, key, VALUE, feature.len() as u8], &feature[..]].concat();
        [&[FIRST, value.len() as u8], &value[..]].concat()
    }

    fn packed(values: &[u8]) -> Vec<u8> {
        [&[FIRST, values.len() as u8], values].concat()
    }

    fn record(entries: &[Vec<u8>]) -> Vec<u8> {
        let map = entries.concat();
        [&[FIRST, map.len() as u8], &map[..]].concat()
    }

    /// Numbers under `i`, bytes under `b`; nobody asks for `u`.
    fn example(numbers: &[u8], bytes: &[u8], unasked: &[u8]) -> Vec<u8> {
        record(&[
            entry(b'i', 0x1a, &packed(numbers)),
            entry(b'u', 0x1a, unasked),
            entry(b'b', 0x0a, &packed(bytes)),
        ])
    }

    fn layout(record: &[u8]) -> Option<Layout> {
        let place = |_, key: &[u8]| Ok([b"b", b"i"].iter().position(|asked| *asked == key));
        Layout::of(record, false, place)
    }

    #[test]
    fn records_with_values_of_other_lengths_fit_and_tell_where_they_are() {
        let mut layout = layout(&example(&[1, 2], b"one", &[])).unwrap();
        for (numbers, bytes, unasked) in
            [(&[1][..], &b"one"[..], &[][..]), (&[7; 9], b"", &[9; 5]), (&[], b"another", &[0xff])]
        {
            let record = example(numbers, bytes, unasked);
            assert!(layout.fits(&record));
            let [found_bytes, found_numbers] = layout.slots() else { panic!("two keys were asked for") };
            assert_eq!(&record[found_bytes.values.clone()], bytes);
            assert_eq!(&record[found_numbers.values.clone()], numbers);
            assert_eq!(layout.free().len(), 3);
        }
    }

    #[test]
    fn a_list_without_its_field_is_empty_if_it_is_of_numbers() {
        let mut layout = layout(&example(&[1], b"one", &[])).unwrap();
        let unasked = entry(b'u', 0x1a, &[]);
        let bytes = entry(b'b', 0x0a, &packed(b"one"));
        assert!(layout.fits(&record(&[entry(b'i', 0x1a, &[]), unasked.clone(), bytes])));
        assert!(layout.slots()[1].values.is_empty());
        let numbers = entry(b'i', 0x1a, &packed(&[1]));
        assert!(!layout.fits(&record(&[numbers, unasked, entry(b'b', 0x0a, &[])])));
    }

    #[test]
    fn nothing_else_fits() {
        let sound = example(&[1, 2], b"one", &[]);
        let mut layout = layout(&sound).unwrap();
        for cut in 0..sound.len() {
            assert!(!layout.fits(&sound[..cut]));
        }
        let (numbers, unasked, bytes) =
            (entry(b'i', 0x1a, &packed(&[1])), entry(b'u', 0x1a, &[]), entry(b'b', 0x0a, &packed(b"one")));
        let two_values = entry(b'b', 0x0a, &[packed(b"one"), packed(b"two")].concat());
        let floats = entry(b'i', 0x12, &packed(&[0; 4]));
        for other in [
            vec![unasked.clone(), numbers.clone(), bytes.clone()],
            vec![numbers.clone(), unasked.clone()],
            vec![numbers.clone(), unasked.clone(), bytes.clone(), bytes.clone()],
            vec![numbers.clone(), unasked.clone(), two_values],
            vec![floats, unasked.clone(), bytes.clone()],
        ] {
            assert!(!layout.fits(&record(&other)));
        }
        // a map in two pieces, and something behind it
        let twice = [record(&[numbers, unasked]), record(&[bytes])].concat();
        assert!(!layout.fits(&twice));
        assert!(!layout.fits(&[&sound[..], &[0x18, 0]].concat()));
    }

    #[test]
    fn what_comes_in_pieces_has_no_layout() {
        let pieces = [packed(&[1]), packed(&[2])].concat();
        assert!(layout(&record(&[entry(b'i', 0x1a, &pieces), entry(b'b', 0x0a, &packed(b"one"))])).is_none());
        let twice = [entry(b'i', 0x1a, &packed(&[1])), entry(b'i', 0x1a, &packed(&[2]))];
        assert!(layout(&record(&twice)).is_none());
    }
}
