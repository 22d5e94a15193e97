//! JPEG and PNG files into pixels of a wanted size.
//!
//! What a file says of itself is compared with its length and with limits before anything is allocated.
//! Resizing is that of `tf.image.resize(method="bilinear", antialias=True)`: each pixel is a weighted mean
//! of those it covers, by a triangle that grows with the scale. A JPEG is first decoded at 1/2, 1/4 or 1/8
//! of its size where that is still no smaller than wanted.

mod jpeg;
mod png;
mod resize;
mod room;

use std::borrow::Cow;
use std::sync::Arc;

pub use self::room::Room;

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

    /// Whether it is a shape that images can be given.
    pub fn is_possible(&self) -> bool {
        let side = 1..=MOST_PIXELS;
        side.contains(&self.height) && side.contains(&self.width) && matches!(self.channels, 1 | 3 | 4)
    }

    /// What decoding a JPEG of ordinary proportions takes, as it is at most twice as large on its way.
    fn usual_bytes(&self) -> usize {
        self.height.saturating_mul(self.width).saturating_mul(32).saturating_add(1 << 20)
    }
}

/// Why a file gives no image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    Unreadable(Cow<'static, str>),
    /// It would take more memory than there is for images.
    TooLarge {
        width: usize,
        height: usize,
        needed_bytes: usize,
    },
}

/// A file is damaged, or of a kind that is not read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Unreadable(Cow<'static, str>);

impl From<&'static str> for Unreadable {
    fn from(why: &'static str) -> Self {
        Unreadable(Cow::Borrowed(why))
    }
}

impl From<String> for Unreadable {
    fn from(why: String) -> Self {
        Unreadable(Cow::Owned(why))
    }
}

impl From<Unreadable> for Failure {
    fn from(Unreadable(why): Unreadable) -> Self {
        Failure::Unreadable(why)
    }
}

type Read<T> = Result<T, Unreadable>;

/// No image may have more, whatever the memory.
const MOST_PIXELS: usize = 64 << 20;

fn check_size(width: usize, height: usize) -> Read<()> {
    match width.checked_mul(height) {
        Some(1..=MOST_PIXELS) => Ok(()),
        _ => {
            let most = MOST_PIXELS >> 20;
            Err(format!("it claims {width} x {height} pixels; up to {most} Mi pixels are read").into())
        }
    }
}

/// A decoded image: grey, grey and alpha, RGB, or RGB and alpha.
#[derive(Debug, Default)]
struct Pixels {
    width: usize,
    height: usize,
    channels: usize,
    bytes: Vec<u8>,
}

impl Pixels {
    /// Be ready for an image of that size, every pixel of which will be written.
    fn begin(&mut self, width: usize, height: usize, channels: usize) -> &mut [u8] {
        (self.width, self.height, self.channels) = (width, height, channels);
        let bytes = width * height * channels;
        if self.bytes.len() < bytes {
            self.bytes.resize(bytes, 0);
        }
        &mut self.bytes[..bytes]
    }

    fn row_mut(&mut self, y: usize) -> &mut [u8] {
        let row_bytes = self.width * self.channels;
        &mut self.bytes[y * row_bytes..(y + 1) * row_bytes]
    }

    fn all(&self) -> &[u8] {
        &self.bytes[..self.width * self.height * self.channels]
    }
}

/// A file whose header was read: what decoding it will take is known, and nothing allocated yet.
enum Opened<'a> {
    Jpeg(jpeg::Opened<'a>),
    Png(Box<png::Opened<'a>>),
}

impl Opened<'_> {
    /// Width and height of what will be decoded, and the bytes that takes.
    fn needs(&self) -> (usize, usize, usize) {
        match self {
            Opened::Jpeg(file) => file.needs(),
            Opened::Png(file) => file.needs(),
        }
    }
}

/// Decodes images one after the other, in memory that is used again.
#[derive(Debug, Default)]
pub struct Decoder {
    jpeg: jpeg::Decoder,
    resizer: resize::Resizer,
    pixels: Pixels,
    room: Arc<Room>,
}

impl Decoder {
    /// Take no more memory than there is in a room.
    pub fn keep_within(&mut self, room: &Arc<Room>) {
        self.room = Arc::clone(room);
    }

    /// Fill `out`, which has as many bytes as the shape, with the image in a file.
    pub fn decode(&mut self, file: &[u8], shape: Shape, out: &mut [u8]) -> Result<(), Failure> {
        let opened = self.open(file, shape)?;
        let (width, height, decoding_bytes) = opened.needs();
        let needed_bytes = decoding_bytes + resize::needed_bytes((width, height), shape);
        let room = Arc::clone(&self.room);
        let Some(lease) = room.lend(needed_bytes) else {
            return Err(Failure::TooLarge { width, height, needed_bytes });
        };
        let decoded = self.fill(opened, shape, out);
        // each image alone is usual, but a progressive JPEG and a PNG after it leave unlike buffers behind
        if lease.is_borrowed() || !room.lets_keep(self.held_bytes()) {
            self.give_back();
        }
        Ok(decoded?)
    }

    fn open<'a>(&mut self, file: &'a [u8], shape: Shape) -> Read<Opened<'a>> {
        if jpeg::is_jpeg(file) {
            let opened = self.jpeg.open(file, (shape.width, shape.height), shape.channels == 1);
            opened.map(Opened::Jpeg).map_err(of_jpeg)
        } else if png::is_png(file) {
            png::Opened::read(file).map(Box::new).map(Opened::Png).map_err(of_png)
        } else {
            Err(neither(file))
        }
    }

    fn fill(&mut self, opened: Opened<'_>, shape: Shape, out: &mut [u8]) -> Read<()> {
        match opened {
            Opened::Jpeg(file) => self.jpeg.decode(file, &mut self.pixels).map_err(of_jpeg)?,
            Opened::Png(file) => file.decode(&mut self.pixels).map_err(of_png)?,
        }
        self.resizer.resize(&self.pixels, shape, out)
    }

    /// The memory kept for the next image.
    fn held_bytes(&self) -> usize {
        self.pixels.bytes.capacity() + self.jpeg.held_bytes() + self.resizer.held_bytes()
    }

    fn give_back(&mut self) {
        (self.jpeg, self.pixels) = Default::default();
        self.resizer.give_back();
    }
}

fn of_jpeg(Unreadable(why): Unreadable) -> Unreadable {
    format!("JPEG: {why}").into()
}

fn of_png(Unreadable(why): Unreadable) -> Unreadable {
    format!("PNG: {why}").into()
}

fn neither(file: &[u8]) -> Unreadable {
    let start: Vec<String> = file.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let (bytes, start) = (file.len(), start.join(" "));
    match file {
        [] => "neither JPEG nor PNG: it is empty".into(),
        [b'G', b'I', b'F', b'8', ..] => "a GIF; JPEG and PNG are read".into(),
        [b'R', b'I', b'F', b'F', ..] => "a WebP or another RIFF file; JPEG and PNG are read".into(),
        [b'B', b'M', ..] => "a BMP; JPEG and PNG are read".into(),
        _ => format!("neither JPEG nor PNG: {bytes} bytes that start with {start}").into(),
    }
}

#[cfg(test)]
mod tests;
