//! The entropy-coded part of a JPEG as a stream of bits, the most significant first.

/// A scan's bytes once the zeros that follow every 0xff are taken out, in the stretches that restart
/// markers make of them.
#[derive(Debug, Default)]
pub struct Entropy {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Entropy {
    /// Take in everything up to the next marker that is no restart marker; how many bytes those were.
    pub fn read(&mut self, file: &[u8]) -> usize {
        self.bytes.clear();
        self.ends.clear();
        let mut at = 0;
        while let Some(found) = memchr::memchr(0xff, &file[at..]) {
            let mark = at + found;
            let (keep, next) = match file.get(mark + 1) {
                Some(0) => (mark + 1, mark + 2),
                Some(0xd0..=0xd7) => (mark, mark + 2),
                Some(0xff) => (mark, mark + 1),
                _ => (mark, mark),
            };
            self.bytes.extend_from_slice(&file[at..keep]);
            if keep == mark && file.get(mark + 1) != Some(&0xff) {
                self.ends.push(self.bytes.len());
            }
            if next == mark {
                return mark;
            }
            at = next;
        }
        self.bytes.extend_from_slice(&file[at..]);
        self.ends.push(self.bytes.len());
        file.len()
    }

    /// The bits up to the first restart marker, between the first and the second, and so on.
    pub fn stretch(&self, number: usize) -> Option<Bits<'_>> {
        let end = *self.ends.get(number)?;
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        Some(Bits { bytes: self.bytes.get(start..end)?, at: 0, held: 0, count: 0 })
    }
}

/// The bits of one stretch; behind its end come zeros, and `overrun` says so.
#[derive(Debug, Clone)]
pub struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The next bits, the first of them on top. Below the first `count` there may be more, right ones.
    held: u64,
    count: u32,
}

impl Bits<'_> {
    /// Nothing but 64 bits that are held already.
    pub fn of_word(held: u64) -> Self {
        Bits { bytes: &[], at: 8, held, count: 63 }
    }

    /// Hold 56 bits or more. No function is called with a reference to `self`: it has to stay in registers.
    #[inline(always)]
    pub fn refill(&mut self) {
        let word = match self.bytes.get(self.at..).and_then(<[u8]>::first_chunk::<8>) {
            Some(word) => u64::from_be_bytes(*word),
            None => last_word(self.bytes, self.at),
        };
        self.held |= word >> self.count;
        self.at += ((63 - self.count) >> 3) as usize;
        self.count |= 56;
    }

    /// The next bits, 1 to 32 of them.
    #[inline(always)]
    pub fn peek<const COUNT: u32>(&self) -> u32 {
        (self.held >> (64 - COUNT)) as u32
    }

    /// The `size` bits, 0 to 15, that follow the next `before`: a number as JPEG writes it, where those
    /// that start with a 0 are negative.
    #[inline(always)]
    pub fn signed_behind(&self, before: u32, size: u32) -> i32 {
        let bits = self.held << before;
        let number = (bits >> 1 >> (63 - size)) as i32;
        let negative = !(bits.cast_signed() >> 63) as i32;
        number + (negative & (1 - (1 << size)))
    }

    #[inline(always)]
    pub fn skip(&mut self, count: u32) {
        self.held <<= count;
        self.count = self.count.wrapping_sub(count);
    }

    /// The next bits as a number, 0 to 15 of them.
    #[inline(always)]
    pub fn take(&mut self, count: u32) -> u32 {
        self.refill();
        let number = (self.held >> 1 >> (63 - count)) as u32;
        self.skip(count);
        number
    }

    /// Whether more bits were taken than there are.
    pub fn overrun(&self) -> bool {
        (self.at * 8).saturating_sub(self.count as usize) > self.bytes.len() * 8
    }
}

#[cold]
#[inline(never)]
fn last_word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    for (to, from) in word.iter_mut().zip(bytes.get(at..).unwrap_or_default()) {
        *to = *from;
    }
    u64::from_be_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(bits: &mut Bits<'_>, counts: &[u32]) -> Vec<u32> {
        counts.iter().map(|count| bits.take(*count)).collect()
    }

    #[test]
    fn stuffed_zeros_fill_bytes_and_markers_are_left_out() {
        let mut entropy = Entropy::default();
        let file = [0x12, 0xff, 0, 0x34, 0xff, 0xff, 0xd3, 0x56, 0xff, 0xd9, 0x78];
        assert_eq!(entropy.read(&file), 8);
        assert_eq!(taken(&mut entropy.stretch(0).unwrap(), &[8, 8, 8]), [0x12, 0xff, 0x34]);
        assert_eq!(taken(&mut entropy.stretch(1).unwrap(), &[8]), [0x56]);
        assert!(entropy.stretch(2).is_none());
    }

    #[test]
    fn a_stretch_goes_on_with_zeros_and_says_so() {
        let mut entropy = Entropy::default();
        assert_eq!(entropy.read(&[0xab; 11]), 11);
        let mut bits = entropy.stretch(0).unwrap();
        assert_eq!(
            taken(&mut bits, &[4, 0, 15, 15, 15, 15, 15]),
            [0xa, 0, 0x5d5d, 0x2eae, 0x5757, 0x2bab, 0x55d5]
        );
        assert_eq!((taken(&mut bits, &[9]), bits.overrun()), (vec![0x1ab], false));
        assert_eq!((taken(&mut bits, &[1]), bits.overrun()), (vec![0], true));
    }

    #[test]
    fn numbers_with_a_leading_zero_are_negative() {
        let mut entropy = Entropy::default();
        entropy.read(&[0b0101_1010, 0b1100_0000, 0, 0, 0, 0, 0, 0]);
        let mut bits = entropy.stretch(0).unwrap();
        bits.refill();
        let numbers: Vec<_> = [(0, 0), (0, 1), (1, 1), (0, 3), (1, 3), (8, 2), (1, 15)]
            .iter()
            .map(|(before, size)| bits.signed_behind(*before, *size))
            .collect();
        assert_eq!(numbers, [0, -1, 1, -5, 5, 3, 0b101_1010_1100_0000]);
    }
}
