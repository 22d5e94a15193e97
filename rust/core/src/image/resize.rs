//! Any size to the wanted one, and any channels to the wanted ones.

use anybatch_pixels::{Scaler, Size};

use super::{Pixels, Read, Shape};

/// What resizing an image of a width and a height takes: rows of the wanted number before their columns
/// are, the wanted number of both before the channels are, and weights.
pub fn needed_bytes((width, height): (usize, usize), shape: Shape) -> usize {
    let pixels = width.saturating_add(shape.width).saturating_mul(shape.height);
    let weights = width.saturating_add(height).saturating_add(shape.width).saturating_add(shape.height);
    pixels.saturating_mul(4).saturating_add(weights.saturating_mul(64))
}

#[derive(Debug, Default)]
pub struct Resizer {
    scaler: Scaler,
    /// Pixels of the wanted size before their channels are the wanted ones.
    resized: Vec<u8>,
}

impl Resizer {
    pub fn resize(&mut self, pixels: &Pixels, shape: Shape, out: &mut [u8]) -> Read<()> {
        if pixels.channels == shape.channels {
            return self.scale(pixels, shape, out);
        }
        let mut resized = std::mem::take(&mut self.resized);
        let bytes = shape.width * shape.height * pixels.channels;
        if resized.len() < bytes {
            resized.resize(bytes, 0);
        }
        let scaled = self.scale(pixels, shape, &mut resized[..bytes]);
        convert(&resized[..bytes], pixels.channels, out, shape.channels);
        self.resized = resized;
        scaled
    }

    fn scale(&mut self, pixels: &Pixels, shape: Shape, out: &mut [u8]) -> Read<()> {
        let from = Size { width: pixels.width, height: pixels.height };
        let to = Size { width: shape.width, height: shape.height };
        let scaled = self.scaler.scale(pixels.channels, (pixels.all(), from), (out, to));
        scaled.map_err(|why| format!("it could not be resized: {why}").into())
    }

    pub fn held_bytes(&self) -> usize {
        self.resized.capacity() + self.scaler.held_bytes()
    }

    pub fn give_back(&mut self) {
        self.resized = Vec::new();
        self.scaler.give_back();
    }
}

fn convert(from: &[u8], channels: usize, to: &mut [u8], wanted: usize) {
    match (channels, wanted) {
        (1, 3) => each(from, to, |[grey]| [grey; 3]),
        (1, _) => each(from, to, |[grey]| [grey, grey, grey, 255]),
        (2, 1) => each(from, to, |[grey, _]| [grey]),
        (2, 3) => each(from, to, |[grey, _]| [grey; 3]),
        (2, _) => each(from, to, |[grey, alpha]| [grey, grey, grey, alpha]),
        (3, 1) => each(from, to, |colour| [luma(colour)]),
        (3, _) => each(from, to, |[r, g, b]| [r, g, b, 255]),
        (_, 1) => each(from, to, |[r, g, b, _]| [luma([r, g, b])]),
        _ => each(from, to, |[r, g, b, _]| [r, g, b]),
    }
}

fn each<const FROM: usize, const TO: usize>(
    from: &[u8],
    to: &mut [u8],
    change: impl Fn([u8; FROM]) -> [u8; TO],
) {
    let pixels = from.as_chunks::<FROM>().0.iter().zip(to.as_chunks_mut::<TO>().0);
    pixels.for_each(|(from, to)| *to = change(*from));
}

/// How bright a colour is, as JPEG has it.
#[inline(always)]
fn luma([r, g, b]: [u8; 3]) -> u8 {
    ((u32::from(r) * 19595 + u32::from(g) * 38470 + u32::from(b) * 7471 + (1 << 15)) >> 16) as u8
}
