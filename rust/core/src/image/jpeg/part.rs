//! One component of an image on its way from blocks to samples.

use super::frame::Component;
use super::idct;

#[derive(Debug)]
pub struct Part {
    /// How many blocks of an MCU lie across and down.
    pub h: usize,
    pub v: usize,
    /// Samples per block and axis: 8, or 4, 2 or 1 of a smaller image; 0 if nobody needs the component.
    pub size: usize,
    /// Blocks across and down, whole MCUs.
    pub across: usize,
    pub down: usize,
    /// Samples across and down that belong to the image.
    pub width: usize,
    pub height: usize,
    pub quants: [i32; 64],
    /// Whether a scan has given it anything.
    pub begun: bool,
    pub samples: Vec<u8>,
    /// All coefficients, where several scans give a part of them each.
    pub coefficients: Vec<[i16; 64]>,
}

impl Default for Part {
    fn default() -> Self {
        Part {
            h: 1,
            v: 1,
            size: 0,
            across: 0,
            down: 0,
            width: 0,
            height: 0,
            quants: [0; 64],
            begun: false,
            samples: Vec::new(),
            coefficients: Vec::new(),
        }
    }
}

impl Part {
    /// Make room for the component of an image of so many MCUs.
    pub fn begin(&mut self, component: &Component, size: usize, mcus: (usize, usize), keep: bool) {
        (self.h, self.v, self.size, self.begun) = (component.h, component.v, size, false);
        (self.across, self.down) = (mcus.0 * component.h, mcus.1 * component.v);
        let blocks = self.across * self.down;
        // not cleared: a whole image fills all that is looked at later
        if self.samples.len() < blocks * size * size {
            self.samples.resize(blocks * size * size, 0);
        }
        self.coefficients.clear();
        self.coefficients.resize(if keep { blocks } else { 0 }, [0; 64]);
    }

    pub fn stride(&self) -> usize {
        self.across * self.size
    }

    /// How many coefficients have to be known, in the order in which they come.
    pub fn needed(&self) -> usize {
        match self.size {
            8 => 64,
            4 => 25,
            2 => 5,
            _ => 1,
        }
    }

    /// A row of samples, as far as they belong to the image.
    pub fn row(&self, row: usize) -> &[u8] {
        self.samples.get(row * self.stride()..).and_then(|rest| rest.get(..self.width)).unwrap_or_default()
    }

    /// Turn a block into samples. From `extent` on, in the order in which they come, its coefficients are 0.
    #[inline(always)]
    pub fn put(&mut self, column: usize, row: usize, block: &[i16; 64], extent: usize) {
        let stride = self.stride();
        let Some(samples) = self.samples.get_mut((row * stride + column) * self.size..) else { return };
        let quants = &self.quants;
        match self.size {
            8 if extent <= 1 => idct::flat::<8>(block, quants, samples, stride),
            // the first ten coefficients lie in the first four rows and columns
            8 if extent <= 10 => idct::eight_by_eight::<4>(block, quants, samples, stride),
            8 => idct::eight_by_eight::<8>(block, quants, samples, stride),
            4 if extent <= 1 => idct::flat::<4>(block, quants, samples, stride),
            4 => idct::four_by_four(block, quants, samples, stride),
            2 => idct::two_by_two(block, quants, samples, stride),
            1 => idct::flat::<1>(block, quants, samples, stride),
            _ => {}
        }
    }

    /// Turn all coefficients that were kept into samples.
    #[inline(always)]
    pub fn put_all(&mut self) {
        let blocks = std::mem::take(&mut self.coefficients);
        for (row, blocks) in blocks.chunks(self.across.max(1)).enumerate() {
            for (column, block) in blocks.iter().enumerate() {
                let extent = if block[1..].iter().all(|coefficient| *coefficient == 0) { 1 } else { 64 };
                self.put(column, row, block, extent);
            }
        }
        self.coefficients = blocks;
    }
}
