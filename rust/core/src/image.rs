//! JPEG and PNG files into pixels of a wanted size.
//!
//! What a file says of itself is compared with its length and with limits before anything is allocated.
//! Resizing is that of `tf.image.resize(method="bilinear", antialias=True)`: each pixel is a weighted mean
//! of those it covers, by a triangle that grows with the scale. A JPEG is first decoded at 1/2, 1/4 or 1/8
//! of its size where that is still no smaller than wanted.

mod jpeg;
mod png;
mod resize;

use std::borrow::Cow;

/// What one image becomes: rows of pixels of 1 (grey), 3 (RGB) or 4 (RGBA) bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub height: usize,
    pub width: usize,
    pub channels: usize,
}

impl Shape {
    pub fn bytes(&self) -> usize {
        self.height.saturating_mul(self.width).saturating_mul(self.channels)
    }
}

/// Why a file gives no image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable(pub Cow<'static, str>);

impl From<&'static str> for Unreadable {
    fn from(why: &'static str) -> Self {
        Unreadable(Cow::Borrowed(why))
    }
}

type Read<T> = Result<T, Unreadable>;

/// No image may have more; an eighth of a square kilopixel decodes to 256 MB.
const MOST_PIXELS: usize = 64 << 20;
/// What is kept from image to image; what a larger one needed is given back.
const KEEP_BYTES: usize = 32 << 20;

fn check_size(width: usize, height: usize) -> Read<()> {
    match width.checked_mul(height) {
        Some(1..=MOST_PIXELS) => Ok(()),
        _ => {
            let most = MOST_PIXELS >> 20;
            Err(Unreadable(format!("it claims {width} x {height} pixels; up to {most} Mi pixels are read").into()))
        }
    }
}

/// How bright a colour is, as JPEG and TensorFlow have it.
#[inline(always)]
fn luma([r, g, b]: [u8; 3]) -> u8 {
    ((u32::from(r) * 19595 + u32::from(g) * 38470 + u32::from(b) * 7471 + (1 << 15)) >> 16) as u8
}

/// A decoded image: grey with one byte per pixel, or red, green, blue and alpha.
#[derive(Debug, Default)]
struct Pixels {
    width: usize,
    height: usize,
    channels: usize,
    bytes: Vec<u8>,
}

impl Pixels {
    /// Be ready for an image of that size, every pixel of which will be written.
    fn begin(&mut self, width: usize, height: usize, channels: usize) {
        (self.width, self.height, self.channels) = (width, height, channels);
        let bytes = width * height * channels;
        if self.bytes.len() < bytes {
            self.bytes.resize(bytes, 0);
        }
    }

    fn row_mut(&mut self, y: usize) -> &mut [u8] {
        let row_bytes = self.width * self.channels;
        &mut self.bytes[y * row_bytes..(y + 1) * row_bytes]
    }
}

/// Decodes images one after the other, in memory that is used again.
#[derive(Debug, Default)]
pub struct Decoder {
    jpeg: jpeg::Decoder,
    png: png::Decoder,
    resizer: resize::Resizer,
    pixels: Pixels,
}

impl Decoder {
    /// Fill `out`, which has as many bytes as the shape, with the image in a file.
    pub fn decode(&mut self, file: &[u8], shape: Shape, out: &mut [u8]) -> Read<()> {
        let (wanted, grey) = ((shape.width, shape.height), shape.channels == 1);
        if jpeg::is_jpeg(file) {
            self.jpeg.decode(file, wanted, grey, &mut self.pixels).map_err(|why| said_of("JPEG", &why))?;
        } else if png::is_png(file) {
            self.png.decode(file, grey, &mut self.pixels).map_err(|why| said_of("PNG", &why))?;
        } else {
            return Err(neither(file));
        }
        self.resizer.resize(&self.pixels, shape, out)?;
        self.give_back();
        Ok(())
    }

    fn give_back(&mut self) {
        if self.pixels.bytes.capacity() > KEEP_BYTES {
            self.pixels = Pixels::default();
        }
        if self.jpeg.held_bytes() > KEEP_BYTES {
            self.jpeg = jpeg::Decoder::default();
        }
        if self.png.held_bytes() > KEEP_BYTES {
            self.png = png::Decoder::default();
        }
        self.resizer.give_back(KEEP_BYTES);
    }
}

fn said_of(kind: &str, Unreadable(why): &Unreadable) -> Unreadable {
    Unreadable(format!("not a whole {kind}: {why}").into())
}

fn neither(file: &[u8]) -> Unreadable {
    let start: Vec<String> = file.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let (bytes, start) = (file.len(), start.join(" "));
    Unreadable(match bytes {
        0 => "neither JPEG nor PNG: it is empty".into(),
        _ => format!("neither JPEG nor PNG: {bytes} bytes that start with {start}").into(),
    })
}

#[cfg(test)]
mod tests;
