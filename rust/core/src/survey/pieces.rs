//! Packed numbers 64 bytes at a time.

use fearless_simd::{Simd, SimdBase, SimdMask, u8x64};

/// So many bytes are looked at together, as if a number began at every one of them.
pub(super) const LANES: usize = 64;
/// The longest number has so many groups of seven bits.
pub(super) const LONGEST: usize = 10;
/// With what a number goes on that begins at the last of them.
pub(super) const PIECE: usize = LANES + LONGEST - 1;

/// The first bytes, and anything behind the last of them.
#[inline(always)]
pub(super) fn piece_of<'a>(bytes: &'a [u8], room: &'a mut [u8; PIECE]) -> &'a [u8; PIECE] {
    if let Some(whole) = bytes.first_chunk() {
        return whole;
    }
    room[..bytes.len()].copy_from_slice(bytes);
    room
}

/// A bit per lane: whether a number ends there.
#[inline(always)]
pub(super) fn ends<S: Simd>(simd: S, piece: &[u8; PIECE]) -> u64 {
    !u8x64::from_slice(simd, &piece[..LANES]).simd_ge(0x80).to_bitmask()
}

/// Seven bits of a number, the lowest first.
pub(super) fn group(number: i64, at: usize) -> u8 {
    (number >> (7 * at)) as u8 & 0x7f
}

/// Where numbers begin in one piece after the other.
#[derive(Debug)]
pub(super) struct Begins {
    /// Whether one begins in the first lane of the next piece.
    first: u64,
}

impl Begins {
    /// In front of a list.
    pub fn new() -> Self {
        Begins { first: 1 }
    }

    /// A bit per lane that the list has left: whether a number begins there.
    #[inline(always)]
    pub fn after(&mut self, ends: u64, left: usize) -> u64 {
        let begins = (ends << 1 | self.first) & (u64::MAX >> LANES.saturating_sub(left));
        self.first = ends >> (LANES - 1);
        begins
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::super::Range;
    use super::*;
    use crate::wire;

    /// Numbers of every length; neighbours, which differ in one group only; any at all.
    pub fn number() -> impl Strategy<Value = i64> {
        let of_bits = (0..64_u32, any::<u64>()).prop_map(|(bits, number)| (number >> bits).cast_signed());
        prop_oneof![of_bits, -3..3_i64, 120..260_i64, 16_380..16_390_i64, any::<i64>()]
    }

    pub fn packed(numbers: &[i64]) -> Vec<u8> {
        let mut list = Vec::new();
        for number in numbers {
            let mut left = number.cast_unsigned();
            while left >= 0x80 {
                list.push(left as u8 | 0x80);
                left >>= 7;
            }
            list.push(left as u8);
        }
        list
    }

    pub fn range_between(one: i64, other: i64) -> Range<i64> {
        Range { low: one.min(other), high: one.max(other) }
    }

    pub fn decoded(list: &[u8]) -> Option<Vec<i64>> {
        let mut numbers = Vec::new();
        wire::packed(list, |number| numbers.push(number.cast_signed())).ok()?;
        Some(numbers)
    }

    #[test]
    fn a_number_begins_behind_the_end_of_another_in_the_next_piece_too() {
        let mut begins = Begins::new();
        assert_eq!(begins.after(0b100 | 1 << 63, 200), 0b1001);
        assert_eq!(begins.after(0b10, 136), 0b101);
        assert_eq!(begins.after(u64::MAX, 8), 0b1111_1110);
    }
}
