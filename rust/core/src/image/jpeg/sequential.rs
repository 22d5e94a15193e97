//! Scans of ordinary JPEGs: each block is read whole and becomes samples at once.

use super::bits::Bits;
use super::frame::PLACES;
use super::huffman::{END, NOWHERE, Table};
use super::part::Part;
use super::walk::{Blocks, Unit};
use crate::image::Read;

/// So far two coefficients may be read at a time: a run of 15 zeros does not lead out of the block.
const PAIRS_END: usize = 64 - 16;

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
    let mut put = |at: usize, value: i16| block[usize::from(PLACES[at & 255])] = value;
    let mut at = 1;
    while at < needed.min(PAIRS_END) {
        bits.refill();
        let pair = table.pair(bits);
        if pair.is_some() {
            let ((first, value), (second, other)) = (pair.first(), pair.second());
            bits.skip(pair.bits());
            put(at + first, value);
            put(at + second, other);
            at += pair.advance();
        } else {
            let (run, value) = table.step(bits);
            put(at + run, value);
            at += run + 1;
        }
    }
    while at < needed {
        bits.refill();
        let (run, value) = table.step(bits);
        put(at + run, value);
        at += run + 1;
    }
    while at < 64 {
        bits.refill();
        let skip = table.skip(bits);
        if skip.is_some() && at + skip.advance() < 64 {
            bits.skip(skip.bits());
            at += skip.advance();
            if skip.ends() {
                return Some(at);
            }
        } else {
            at += table.step(bits).0 + 1;
        }
    }
    match at {
        64 => Some(64),
        END..=NOWHERE => at.checked_sub(END + 1),
        _ => None,
    }
}
