//! Protobuf's wire format, read by checked access alone.

/// Why bytes are not a protobuf message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

pub type Parsed<T> = Result<T, Malformed>;

const CUT: Malformed = Malformed("a field ends after the message does");
/// As deep as protobuf's own parser follows messages and groups, all levels together.
const DEEPEST: u32 = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    Varint(u64),
    Fixed64,
    Bytes(&'a [u8]),
    Group,
    Fixed32([u8; 4]),
}

/// The fields of one message, in order.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a> {
    rest: &'a [u8],
    depth: u32,
}

impl<'a> Fields<'a> {
    /// `depth`: how many messages lie around this one.
    pub fn of(message: &'a [u8], depth: u32) -> Self {
        Fields { rest: message, depth }
    }

    /// Whether the rest of the message is one field after the other, whatever they hold.
    pub fn check(mut self) -> Parsed<()> {
        while self.next_field()?.is_some() {}
        Ok(())
    }

    /// The next field's number and value, or `None` at the end of the message.
    pub fn next_field(&mut self) -> Parsed<Option<(u32, Value<'a>)>> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (number, kind) = self.tag()?;
        if number == 0 {
            return Err(Malformed("a field has the number 0"));
        }
        Ok(Some((number, self.value(number, kind, self.depth)?)))
    }

    fn tag(&mut self) -> Parsed<(u32, u32)> {
        let tag = u32::try_from(varint_of_at_most(&mut self.rest, 5)?)
            .map_err(|_| Malformed("a field tag is too large"))?;
        Ok((tag >> 3, tag & 7))
    }

    fn value(&mut self, number: u32, kind: u32, depth: u32) -> Parsed<Value<'a>> {
        Ok(match kind {
            0 => Value::Varint(varint(&mut self.rest)?),
            1 => self.fixed::<8>().map(|_| Value::Fixed64)?,
            2 => Value::Bytes(self.bytes()?),
            3 => self.group(number, depth + 1).map(|()| Value::Group)?,
            5 => Value::Fixed32(self.fixed()?),
            4 => return Err(Malformed("a group ends that never began")),
            _ => return Err(Malformed("a field has an unknown wire type")),
        })
    }

    fn fixed<const N: usize>(&mut self) -> Parsed<[u8; N]> {
        let (fixed, rest) = self.rest.split_first_chunk().ok_or(CUT)?;
        self.rest = rest;
        Ok(*fixed)
    }

    fn bytes(&mut self) -> Parsed<&'a [u8]> {
        let length = usize::try_from(varint_of_at_most(&mut self.rest, 5)?).map_err(|_| CUT)?;
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(CUT)?;
        self.rest = rest;
        Ok(bytes)
    }

    fn group(&mut self, number: u32, depth: u32) -> Parsed<()> {
        if depth > DEEPEST {
            return Err(Malformed("groups are nested too deeply"));
        }
        loop {
            // protobuf lets the number 0 pass in here
            let (inner, kind) = self.tag()?;
            if kind == 4 {
                return if inner == number { Ok(()) } else { Err(Malformed("a group ends as another one")) };
            }
            self.value(inner, kind, depth)?;
        }
    }
}

/// Whether more bytes of the same number follow, for each of eight bytes.
const CONTINUED: u64 = 0x8080_8080_8080_8080;

/// Call `visit` for every number of a packed list.
///
/// Lists mix short and long numbers, and a branch per byte would guess wrong for every other one: where numbers
/// end is computed from eight bytes at once, and so that none waits for the one before it.
#[inline]
pub fn packed(list: &[u8], mut visit: impl FnMut(u64)) -> Parsed<()> {
    let mut start = 0;
    if let Some(first) = list.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes)) {
        for from in (0..list.len()).step_by(8) {
            // the last eight bytes overlap those before them
            let at = from.min(list.len() - 8);
            let mut ends = !word_at(list, at) & CONTINUED & (u64::MAX << (8 * (from - at)));
            while ends != 0 {
                let end = at + ends.trailing_zeros() as usize / 8;
                ends &= ends - 1;
                if end - start >= 8 {
                    visit(varint(&mut &list[start..])?);
                } else {
                    let until_end = if end < 7 { first << (8 * (7 - end)) } else { word_at(list, end - 7) };
                    visit(joined(until_end >> (8 * (7 - (end - start)))));
                }
                start = end + 1;
            }
        }
    }
    let mut rest = &list[start..];
    while !rest.is_empty() {
        visit(varint(&mut rest)?);
    }
    Ok(())
}

fn word_at(list: &[u8], at: usize) -> u64 {
    list[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// How many numbers a packed list holds.
pub fn packed_count(list: &[u8]) -> usize {
    list.iter().filter(|byte| **byte < 0x80).count()
}

/// Eight groups of seven bits as one number.
fn joined(word: u64) -> u64 {
    let sevens = word & !CONTINUED;
    let pairs = (sevens & 0x007f_007f_007f_007f) | (sevens & 0x7f00_7f00_7f00_7f00) >> 1;
    let fours = (pairs & 0x0000_3fff_0000_3fff) | (pairs & 0x3fff_0000_3fff_0000) >> 2;
    (fours & 0x0fff_ffff) | (fours & 0x0fff_ffff_0000_0000) >> 4
}

/// A number of up to ten bytes; the tenth byte's surplus bits are dropped, as protobuf does.
#[inline]
pub fn varint(rest: &mut &[u8]) -> Parsed<u64> {
    if let [first, after @ ..] = rest
        && *first < 0x80
    {
        *rest = after;
        return Ok(u64::from(*first));
    }
    varint_of_at_most(rest, 10)
}

fn varint_of_at_most(rest: &mut &[u8], bytes: usize) -> Parsed<u64> {
    let mut value = 0;
    for (at, byte) in rest.iter().take(bytes).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if *byte < 0x80 {
            *rest = rest.split_at(at + 1).1;
            return Ok(value);
        }
    }
    Err(if rest.len() < bytes { CUT } else { Malformed("a number has too many bytes") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_out_in_order() {
        let message = [0x08, 0x96, 0x01, 0x12, 2, b'h', b'i', 0x1d, 1, 2, 3, 4];
        let mut fields = Fields::of(&message, 0);
        assert_eq!(fields.next_field(), Ok(Some((1, Value::Varint(150)))));
        assert_eq!(fields.next_field(), Ok(Some((2, Value::Bytes(b"hi")))));
        assert_eq!(fields.next_field(), Ok(Some((3, Value::Fixed32([1, 2, 3, 4])))));
        assert_eq!(fields.next_field(), Ok(None));
    }

    #[test]
    fn a_message_cut_anywhere_is_malformed() {
        let message = [0x12, 2, b'h', b'i'];
        for cut in 1..message.len() {
            assert!(Fields::of(&message[..cut], 0).next_field().is_err());
        }
    }

    #[test]
    fn packed_numbers_are_those_read_one_by_one() {
        let ends = (0..64).flat_map(|bits| [1_u64 << bits, (1 << bits) - 1, u64::MAX << bits]);
        let numbers: Vec<u64> = ends.collect();
        let mut list = Vec::new();
        for number in &numbers {
            let mut left = *number;
            while left >= 0x80 {
                list.push(left as u8 | 0x80);
                left >>= 7;
            }
            list.push(left as u8);
        }
        let mut found = Vec::new();
        assert_eq!(packed(&list, |number| found.push(number)), Ok(()));
        assert_eq!(found, numbers);
        assert_eq!(packed_count(&list), numbers.len());
        for cut in 0..list.len() {
            let (mut one_by_one, mut rest) = (Vec::new(), &list[..cut]);
            let mut outcome = Ok(());
            while !rest.is_empty() && outcome.is_ok() {
                outcome = varint_of_at_most(&mut rest, 10).map(|number| one_by_one.push(number));
            }
            let mut found = Vec::new();
            assert_eq!(packed(&list[..cut], |number| found.push(number)), outcome);
            assert_eq!(found, one_by_one);
        }
        assert_eq!(packed(&[0xff; 11], |_| {}), Err(Malformed("a number has too many bytes")));
    }

    #[test]
    fn groups_nest_only_so_deep() {
        let nested = |depth: usize| [vec![0x0b; depth], vec![0x0c; depth]].concat();
        assert_eq!(Fields::of(&nested(100), 0).next_field(), Ok(Some((1, Value::Group))));
        assert!(Fields::of(&nested(101), 0).next_field().is_err());
        assert_eq!(Fields::of(&nested(96), 4).next_field(), Ok(Some((1, Value::Group))));
        assert!(Fields::of(&nested(97), 4).next_field().is_err());
        assert!(Fields::of(&nested(100_000), 0).next_field().is_err());
    }
}
