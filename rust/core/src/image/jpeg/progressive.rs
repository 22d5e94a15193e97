//! Scans of progressive JPEGs: each gives some coefficients of all blocks, or one more bit of them.

use super::bits::Bits;
use super::frame::{PLACES, Scan};
use super::huffman::Table;
use super::part::Part;
use super::walk::{Blocks, Unit};
use crate::image::Read;

pub struct Progressive<'a> {
    scan: &'a Scan,
    predictions: [i32; 4],
    /// How many blocks, this one included, have nothing more in this scan.
    ended: u32,
}

impl<'a> Progressive<'a> {
    pub fn new(scan: &'a Scan) -> Self {
        Progressive { scan, predictions: [0; 4], ended: 0 }
    }
}

impl Blocks for Progressive<'_> {
    fn check(&self, dc: &Table, ac: &Table) -> Read<()> {
        match self.scan {
            Scan { first: 0, refines: true, .. } => Ok(()),
            Scan { first: 0, .. } => dc.check_dc(),
            _ => ac.check(),
        }
    }

    fn restart(&mut self) {
        (self.predictions, self.ended) = ([0; 4], 0);
    }

    #[inline(always)]
    fn read(
        &mut self,
        bits: &mut Bits<'_>,
        unit: &Unit<'_>,
        part: &mut Part,
        place: (usize, usize),
    ) -> Option<()> {
        let block = part.coefficients.get_mut(place.1 * part.across + place.0)?;
        match (self.scan.first, self.scan.refines) {
            (0, false) => {
                bits.refill();
                let prediction = &mut self.predictions[unit.part & 3];
                *prediction = prediction.wrapping_add(unit.dc.difference(bits)?);
                block[0] = (*prediction << self.scan.low) as i16;
            }
            (0, true) => block[0] |= (bits.take(1) << self.scan.low) as i16,
            (_, false) => self.read_ac(bits, unit.ac, block)?,
            (_, true) => self.refine_ac(bits, unit.ac, block)?,
        }
        Some(())
    }
}

impl Progressive<'_> {
    #[inline(always)]
    fn read_ac(&mut self, bits: &mut Bits<'_>, table: &Table, block: &mut [i16; 64]) -> Option<()> {
        if self.ended > 0 {
            self.ended -= 1;
            return Some(());
        }
        let mut at = self.scan.first;
        while at <= self.scan.last {
            match table.symbol(bits)? {
                (15, 0) => at += 16,
                (run, 0) => {
                    self.ended = (1 << run) - 1 + bits.take(run);
                    break;
                }
                (run, size) => {
                    at += run as usize;
                    bits.refill();
                    let value = bits.signed_behind(0, size);
                    bits.skip(size);
                    if let Some(coefficient) = block.get_mut(usize::from(PLACES[at & 255])) {
                        *coefficient = (value << self.scan.low) as i16;
                    }
                    at += 1;
                }
            }
        }
        Some(())
    }

    #[inline(always)]
    fn refine_ac(&mut self, bits: &mut Bits<'_>, table: &Table, block: &mut [i16; 64]) -> Option<()> {
        let mut at = self.scan.first;
        while self.ended == 0 && at <= self.scan.last {
            let (run, size) = table.symbol(bits)?;
            if size == 0 && run < 15 {
                self.ended = (1 << run) + bits.take(run);
                break;
            }
            let new = match (size, bits.take(u32::from(size > 0))) {
                (0, _) => 0,
                (_, 0) => -1 << self.scan.low,
                _ => 1 << self.scan.low,
            };
            at = self.refine_known(bits, block, at, run as usize);
            if let Some(coefficient) = block.get_mut(usize::from(PLACES[at & 255]))
                && new != 0
            {
                *coefficient = new;
            }
            at += 1;
        }
        if self.ended > 0 {
            self.refine_known(bits, block, at, usize::MAX);
            self.ended -= 1;
        }
        Some(())
    }

    /// One more bit for every coefficient that is known, up to the zero behind `zeros` others; where that is.
    #[inline(always)]
    fn refine_known(
        &self,
        bits: &mut Bits<'_>,
        block: &mut [i16; 64],
        from: usize,
        mut zeros: usize,
    ) -> usize {
        let bit = 1_i16 << self.scan.low;
        for at in from..=self.scan.last {
            let coefficient = &mut block[usize::from(PLACES[at & 63] & 63)];
            if *coefficient == 0 {
                if zeros == 0 {
                    return at;
                }
                zeros -= 1;
            } else if bits.take(1) == 1 && *coefficient & bit == 0 {
                *coefficient = coefficient.wrapping_add(if *coefficient > 0 { bit } else { -bit });
            }
        }
        self.scan.last + 1
    }
}
