//! Scans of ordinary JPEGs: each block is read whole and becomes samples at once.

use super::bits::Bits;
use super::frame::PLACES;
use super::huffman::{END, NOWHERE, Table};
use super::part::Part;
use super::walk::{Blocks, Unit};
use crate::image::Read;

/// So far two coefficients may be read at a time: a run of 15 zeros does not lead out of the block.
const PAIRS_END: usize = 64 - 16;
/// The 56 bits of one refill are enough for so many looks at two coefficients, or for all but one of them and
/// a coefficient that takes 31 bits.
const LOOKS: usize = 3;
/// They are enough to pass over coefficients so often, or to read one.
const SKIPS: usize = 2;

pub struct Sequential {
    predictions: [i32; 4],
    /// Coefficients by rows, and behind them room for what impossible runs would write.
    block: [i16; 256],
}

impl Default for Sequential {
    fn default() -> Self {
        Sequential { predictions: [0; 4], block: [0; 256] }
    }
}

impl Blocks for Sequential {
    fn check(&self, dc: &Table, ac: &Table) -> Read<()> {
        dc.check_dc().and_then(|()| ac.check())
    }

    fn restart(&mut self) {
        self.predictions = [0; 4];
    }

    #[inline(always)]
    fn read(
        &mut self,
        bits: &mut Bits<'_>,
        unit: &Unit<'_>,
        part: &mut Part,
        place: (usize, usize),
    ) -> Option<()> {
        bits.refill();
        let prediction = &mut self.predictions[unit.part & 3];
        *prediction = prediction.wrapping_add(unit.dc.difference(bits)?);
        *self.block.first_chunk_mut::<64>()? = [0; 64];
        self.block[0] = *prediction as i16;
        let extent = read_ac(bits, unit.ac, part.needed(), &mut self.block)?;
        part.put(place.0, place.1, self.block.first_chunk()?, extent);
        Some(())
    }
}

/// Read a block's coefficients but the first; behind which one there are only zeros. `None`: a code that does
/// not exist, or a run beyond the block.
#[inline(always)]
fn read_ac(bits: &mut Bits<'_>, table: &Table, needed: usize, block: &mut [i16; 256]) -> Option<usize> {
    let mut at = read_pairs(bits, table, needed.min(PAIRS_END), block);
    while at < needed {
        bits.refill();
        let (run, value) = table.step(bits);
        put(block, at + run, value);
        at += run + 1;
    }
    match pass_over(bits, table, at) {
        64 => Some(64),
        at @ END..=NOWHERE => at.checked_sub(END + 1),
        _ => None,
    }
}

#[inline(always)]
fn put(block: &mut [i16; 256], at: usize, value: i16) {
    block[usize::from(PLACES[at & 255])] = value;
}

/// Read coefficients up to `end`, two at a time where their codes are short; where to go on.
#[inline(always)]
fn read_pairs(bits: &mut Bits<'_>, table: &Table, end: usize, block: &mut [i16; 256]) -> usize {
    let mut at = 1;
    while at < end {
        bits.refill();
        for _ in 0..LOOKS {
            let pair = table.pair(bits);
            if !pair.is_some() {
                let (run, value) = table.step(bits);
                put(block, at + run, value);
                at += run + 1;
                break;
            }
            let ((first, value), (second, other)) = (pair.first(), pair.second());
            bits.skip(pair.bits());
            put(block, at + first, value);
            put(block, at + second, other);
            at += pair.advance();
            if at >= end {
                break;
            }
        }
    }
    at
}

/// Pass over what is left of a block and nobody needs; where that leads: an end of block as it was written.
#[inline(always)]
fn pass_over(bits: &mut Bits<'_>, table: &Table, mut at: usize) -> usize {
    while at < 64 {
        bits.refill();
        for look in 0..SKIPS {
            let skip = table.skip(bits);
            if !skip.is_some() || at + skip.advance() + skip.ends() > 64 {
                if look == 0 {
                    at += table.step(bits).0 + 1;
                }
                break;
            }
            bits.skip(skip.bits());
            at += skip.advance();
            if skip.ends() > 0 {
                return at + END + 1;
            }
        }
    }
    at
}
