//! Huffman codes as tables. Where codes are short, one look gives two coefficients with their values.

use super::bits::Bits;
use crate::image::Read;

/// Codes of up to so many bits are found at one look. With one more, tables would crowd the fastest cache out.
const LOOK: u32 = 11;
const SPAN: usize = 1 << LOOK;
/// How far an end of block leads: behind every place that a run of zeros leads to, be it beyond the block.
pub const END: usize = 80;
/// How far a code leads that does not exist: behind every place that an end of block leads to.
pub const NOWHERE: usize = 151;

/// Up to two coefficients: the bits they take, how far ahead each lies, where to go on, their values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pair(u64);

impl Pair {
    #[inline(always)]
    pub fn is_some(self) -> bool {
        self.0 != 0
    }

    #[inline(always)]
    pub fn bits(self) -> u32 {
        (self.0 & 0xff) as u32
    }

    /// How many places ahead the next coefficient is to be found.
    #[inline(always)]
    pub fn advance(self) -> usize {
        (self.0 >> 8 & 0xff) as usize
    }

    #[inline(always)]
    pub fn first(self) -> (usize, i16) {
        ((self.0 >> 16 & 0xff) as usize, (self.0 >> 32) as i16)
    }

    /// Without a second one, a 0 in the place that is written next.
    #[inline(always)]
    pub fn second(self) -> (usize, i16) {
        ((self.0 >> 24 & 0xff) as usize, (self.0 >> 48) as i16)
    }
}

/// Coefficients that nobody needs: the bits they take, how many places they fill, whether they are the last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Skip(u16);

impl Skip {
    #[inline(always)]
    pub fn is_some(self) -> bool {
        self.0 != 0
    }

    #[inline(always)]
    pub fn bits(self) -> u32 {
        u32::from(self.0 & 31)
    }

    #[inline(always)]
    pub fn advance(self) -> usize {
        usize::from(self.0 >> 8)
    }

    /// 1 if they are the last of their block, else 0.
    #[inline(always)]
    pub fn ends(self) -> usize {
        usize::from(self.0 >> 5 & 1)
    }
}

/// A symbol with its code's length, which is 0 if it has to be looked up otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Code(u16);

impl Code {
    /// What stands for bits that are no code.
    const NONE: Code = Code(0x9000);

    #[inline(always)]
    fn bits(self) -> u32 {
        u32::from(self.0 >> 8 & 31)
    }

    #[inline(always)]
    fn symbol(self) -> u32 {
        u32::from(self.0 & 0xff)
    }

    /// For coefficients: how many zeros come first and how many bits the value has.
    #[inline(always)]
    fn run_and_size(self) -> (usize, u32) {
        match (self.symbol() >> 4, self.symbol() & 15) {
            (run, 0) if run < 15 => (if self == Code::NONE { NOWHERE } else { END }, 0),
            (run, size) => (run as usize, size),
        }
    }
}

#[derive(Debug)]
pub struct Table {
    codes: Box<[Code; SPAN]>,
    pairs: Box<[Pair; SPAN]>,
    skips: Box<[Skip; SPAN]>,
    has_pairs: bool,
    /// By length: the end of all codes up to that length, as 16 bits, and what leads from a code to its symbol.
    ends: [u32; 17],
    shifts: [i32; 17],
    symbols: [u8; 256],
    /// What the table was made from: most files of a set have the same.
    definition: Vec<u8>,
    defined: bool,
}

impl Default for Table {
    fn default() -> Self {
        Table {
            codes: Box::new([Code::default(); SPAN]),
            pairs: Box::new([Pair::default(); SPAN]),
            skips: Box::new([Skip::default(); SPAN]),
            has_pairs: false,
            ends: [0; 17],
            shifts: [0; 17],
            symbols: [0; 256],
            definition: Vec::new(),
            defined: false,
        }
    }
}

impl Table {
    /// What one takes, nearly.
    pub const BYTES: usize = SPAN * (size_of::<Code>() + size_of::<Pair>() + size_of::<Skip>());

    /// Make the table of how many codes there are of each length, 16 numbers, and their symbols.
    pub fn define(&mut self, definition: &[u8]) -> Read<()> {
        self.defined = true;
        if self.definition == definition {
            return Ok(());
        }
        self.definition.clear();
        self.has_pairs = false;
        self.codes.fill(Code::default());
        let (counts, symbols) = definition.split_at_checked(16).ok_or("a Huffman table is cut short")?;
        let (mut code, mut place) = (0_u32, 0);
        for (length, count) in (1_u32..).zip(counts) {
            self.shifts[length as usize] = place as i32 - code as i32;
            for _ in 0..*count {
                let symbol = *symbols.get(place).ok_or("a Huffman table is cut short")?;
                *self.symbols.get_mut(place).ok_or("a Huffman table has more than 256 codes")? = symbol;
                self.enter(code, length, symbol);
                (code, place) = (code + 1, place + 1);
            }
            if code > 1 << length {
                return Err("a Huffman table has more codes than their length allows".into());
            }
            self.ends[length as usize] = code << (16 - length);
            code <<= 1;
        }
        self.definition.extend_from_slice(definition);
        Ok(())
    }

    fn enter(&mut self, code: u32, length: u32, symbol: u8) {
        if length > LOOK {
            return;
        }
        let (from, span) = ((code << (LOOK - length)) as usize, 1 << (LOOK - length));
        if let Some(codes) = self.codes.get_mut(from..from + span) {
            codes.fill(Code((length as u16) << 8 | u16::from(symbol)));
        }
    }

    /// The next image has to define its own.
    pub fn forget(&mut self) {
        self.defined = false;
    }

    /// Whether this image has defined the table.
    pub fn check(&self) -> Read<()> {
        if self.defined { Ok(()) } else { Err("a Huffman table is missing".into()) }
    }

    /// The same for DC values, whose symbols are sizes.
    pub fn check_dc(&self) -> Read<()> {
        self.check()?;
        if self.definition.iter().skip(16).any(|size| *size > 15) {
            return Err("a Huffman table for DC values has a size above 15".into());
        }
        Ok(())
    }

    /// Be ready to give pairs and skips, if the table is there at all.
    pub fn make_pairs(&mut self) {
        if self.has_pairs || !self.defined {
            return;
        }
        for look in 0..SPAN {
            let bits = Bits::of_word((look as u64) << (64 - LOOK));
            self.pairs[look] = self.pair_at(&bits);
            self.skips[look] = self.skip_at(bits);
        }
        self.has_pairs = true;
    }

    fn pair_at(&self, bits: &Bits<'_>) -> Pair {
        let Some((first_bits, first, value)) = self.whole_step(bits, LOOK) else {
            return Pair::default();
        };
        let mut rest = bits.clone();
        rest.skip(first_bits);
        let second = if first < END { self.whole_step(&rest, LOOK - first_bits) } else { None };
        let (all_bits, after, second_value, go_on) = match second {
            Some((more, run, value)) => (first_bits + more, first + 1 + run, value, first + run + 2),
            None => (first_bits, first + 1, 0, first + 1),
        };
        Pair(
            u64::from(all_bits)
                | (go_on as u64) << 8
                | (first as u64) << 16
                | (after as u64) << 24
                | u64::from(value.cast_unsigned()) << 32
                | u64::from(second_value.cast_unsigned()) << 48,
        )
    }

    /// As many codes as can be seen. What follows the last of them need not be: it is not looked at.
    fn skip_at(&self, mut bits: Bits<'_>) -> Skip {
        let (mut used, mut places, mut ends) = (0, 0, false);
        while used < LOOK && !ends {
            let code = self.codes[bits.peek::<LOOK>() as usize];
            if code.bits() == 0 || used + code.bits() > LOOK {
                break;
            }
            let (run, size) = code.run_and_size();
            bits.skip(code.bits() + size);
            used += code.bits() + size;
            ends = run >= END;
            places += if ends { 0 } else { run + 1 };
        }
        Skip((places as u16) << 8 | u16::from(ends) << 5 | used as u16)
    }

    /// A code and its value, if they take no more than `most` bits: bits, zeros that come first, value.
    fn whole_step(&self, bits: &Bits<'_>, most: u32) -> Option<(u32, usize, i16)> {
        let code = self.codes[bits.peek::<LOOK>() as usize];
        let (run, size) = code.run_and_size();
        let all = code.bits() + size;
        (code.bits() > 0 && all <= most).then(|| (all, run, bits.signed_behind(code.bits(), size) as i16))
    }

    #[inline(always)]
    pub fn pair(&self, bits: &Bits<'_>) -> Pair {
        self.pairs[bits.peek::<LOOK>() as usize]
    }

    #[inline(always)]
    pub fn skip(&self, bits: &Bits<'_>) -> Skip {
        self.skips[bits.peek::<LOOK>() as usize]
    }

    /// How many zeros come first and the value behind them. Takes up to 31 of the bits, which must be held.
    #[inline(always)]
    pub fn step(&self, bits: &mut Bits<'_>) -> (usize, i16) {
        let code = self.code(bits);
        let (run, size) = code.run_and_size();
        let value = bits.signed_behind(code.bits(), size);
        bits.skip(code.bits() + size);
        (run, value as i16)
    }

    /// A DC value's difference. Takes up to 31 of the bits, which must be held.
    #[inline(always)]
    pub fn difference(&self, bits: &mut Bits<'_>) -> Option<i32> {
        let code = self.code(bits);
        let size = code.symbol() & 15;
        let value = bits.signed_behind(code.bits(), size);
        bits.skip(code.bits() + size);
        (code != Code::NONE).then_some(value)
    }

    /// A symbol's two halves.
    #[inline(always)]
    pub fn symbol(&self, bits: &mut Bits<'_>) -> Option<(u32, u32)> {
        bits.refill();
        let code = self.code(bits);
        bits.skip(code.bits());
        (code != Code::NONE).then_some((code.symbol() >> 4, code.symbol() & 15))
    }

    #[inline(always)]
    fn code(&self, bits: &Bits<'_>) -> Code {
        let code = self.codes[bits.peek::<LOOK>() as usize];
        if code.bits() > 0 { code } else { self.long_code(bits.peek::<16>()) }
    }

    #[cold]
    #[inline(never)]
    fn long_code(&self, bits: u32) -> Code {
        let Some(length) = (1..=16).find(|length| bits < self.ends[*length]) else {
            return Code::NONE;
        };
        let place = (bits >> (16 - length)) as i32 + self.shifts[length];
        let symbol = usize::try_from(place).ok().and_then(|place| self.symbols.get(place));
        symbol.map_or(Code::NONE, |symbol| Code((length as u16) << 8 | u16::from(*symbol)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::bits::Entropy;
    use super::*;

    /// Codes 0, 10, 110, 1110 and a long one for (run, size) = (0, 1), (1, 2), end, (15, 0) and (0, 10).
    fn table() -> Table {
        let mut table = Table::default();
        table
            .define(&[1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x01, 0x12, 0x00, 0xf0, 0x0a])
            .unwrap();
        table.make_pairs();
        table
    }

    fn bits_of(entropy: &mut Entropy, text: &str) -> String {
        let digits: Vec<u8> = text.bytes().filter(|digit| *digit != b' ').map(|digit| digit - b'0').collect();
        let byte = |bits: &[u8]| bits.iter().enumerate().fold(0, |byte, (at, bit)| byte | bit << (7 - at));
        entropy.read(&digits.chunks(8).map(byte).collect::<Vec<u8>>());
        text.into()
    }

    #[test]
    fn one_look_gives_two_values_and_where_they_belong() {
        let mut entropy = Entropy::default();
        for (text, used, advance, first, second) in [
            ("0 1  10 01", 6, 3, (0, 1), (2, -2)),
            ("0 0  110", 5, END + 2, (0, -1), (END + 1, 0)),
            ("110 0 1", 3, END + 1, (END, 0), (END + 1, 0)),
            ("1110 10 11", 8, 18, (15, 0), (17, 3)),
            ("0 1 1111111110000", 2, 1, (0, 1), (1, 0)),
        ] {
            bits_of(&mut entropy, text);
            let mut bits = entropy.stretch(0).unwrap();
            bits.refill();
            let pair = table().pair(&bits);
            assert_eq!(
                (pair.bits(), pair.advance(), pair.first(), pair.second()),
                (used, advance, first, second)
            );
        }
    }

    #[test]
    fn one_look_skips_what_nobody_needs() {
        let mut entropy = Entropy::default();
        for (text, used, advance, ends) in [
            ("0 1 0 1 0 0 0 1 0 1 0 1", 12, 6, 0),
            ("0 1 10 01 110 0 1", 9, 3, 1),
            ("1110 10 11 0 1 10 01", 10, 19, 0),
            ("0 1 0 1 1110 10 01", 12, 20, 0),
        ] {
            bits_of(&mut entropy, text);
            let mut bits = entropy.stretch(0).unwrap();
            bits.refill();
            let skip = table().skip(&bits);
            assert_eq!((skip.bits(), skip.advance(), skip.ends()), (used, advance, ends), "{text}");
        }
    }

    #[test]
    fn long_codes_are_found_and_others_are_none() {
        let mut entropy = Entropy::default();
        bits_of(&mut entropy, "1111000000000 1000000001 1111100000000000");
        let mut bits = entropy.stretch(0).unwrap();
        bits.refill();
        assert!(!table().pair(&bits).is_some() && !table().skip(&bits).is_some());
        assert_eq!(table().step(&mut bits), (0, 513));
        assert_eq!(table().step(&mut bits), (NOWHERE, 0));
    }

    #[test]
    fn impossible_tables_are_refused() {
        let mut table = Table::default();
        let counts = |first: u8, second: u8| {
            let mut counts = vec![0; 16];
            (counts[0], counts[1]) = (first, second);
            counts
        };
        for definition in [vec![1; 10], counts(1, 0), [counts(3, 0), vec![0; 3]].concat(), vec![255; 5000]] {
            assert!(table.define(&definition).is_err());
        }
        assert!(table.define(&[counts(1, 1), vec![0; 2]].concat()).is_ok());
    }
}
