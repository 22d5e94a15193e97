//! JPEG files, decoded no larger than they are wanted.
//!
//! The decoders there are as crates take as long as the libjpeg-turbo in TensorFlow, whose time goes into
//! codes and samples that a resize throws away afterwards. This one reads the codes two at a time, passes
//! over those nobody needs, and makes the smaller image at once: with 512 pixels to 224, in half the time.
//! At full size its samples are those of libjpeg-turbo to the last bit.

mod bits;
mod colour;
mod frame;
mod huffman;
mod idct;
mod part;
mod progressive;
mod sequential;
mod upsample;
mod walk;

use fearless_simd::{Level, dispatch};

use self::bits::Entropy;
use self::frame::{Colours, Component, EOI, Frame, SOI, SOS, Scan, Segments, Tables};
use self::part::Part;
use self::progressive::Progressive;
use self::sequential::Sequential;
use self::upsample::Upsample;
use super::{Pixels, Read, check_size};

/// Every scan costs a pass over all blocks, however short it is.
const MOST_SCANS: usize = 100;
/// All coefficients of a progressive image are held until the last scan.
const MOST_COEFFICIENT_BYTES: usize = 256 << 20;
/// Eight Huffman tables with what is made ready of them, and what is small.
const TABLE_BYTES: usize = 8 * huffman::Table::BYTES + (32 << 10);

pub fn is_jpeg(file: &[u8]) -> bool {
    file.starts_with(&[0xff, SOI, 0xff])
}

#[derive(Debug, Default)]
pub struct Decoder {
    tables: Tables,
    entropy: Entropy,
    parts: [Part; 4],
    upsamples: [Upsample; 4],
    colours: Colours,
}

/// A file up to its frame header.
pub struct Opened<'a> {
    file_bytes: usize,
    segments: Segments<'a>,
    frame: Frame,
    /// Eighths of the image's own size at which it is decoded.
    scale: usize,
    /// Colours are not asked for.
    grey: bool,
}

impl Opened<'_> {
    /// Width and height of what is decoded, and the bytes that takes.
    pub fn needs(&self) -> (usize, usize, usize) {
        let (frame, scale) = (&self.frame, self.scale);
        let [width, height] = [frame.width, frame.height].map(|pixels| (pixels * scale).div_ceil(8));
        let kept = if frame.progressive { size_of::<[i16; 64]>() } else { 0 };
        let part = |component: &Component| {
            let size = size(frame, component.h, component.v, scale);
            frame.padded_blocks(component) * (size * size + kept)
        };
        let parts: usize = frame.components.iter().map(part).sum();
        let pixels = width * height * if frame.components.len() == 1 { 1 } else { 4 };
        // the file without its stuffing, rows of components on their way, tables
        (width, height, parts + pixels + self.file_bytes + width * 16 + TABLE_BYTES)
    }
}

impl Decoder {
    /// Read a file up to its frame header. What comes of it has the wanted width and height at least, or
    /// its own. Grey if asked for, unless that takes all its colours.
    pub fn open<'a>(&mut self, file: &'a [u8], wanted: (usize, usize), grey: bool) -> Read<Opened<'a>> {
        self.tables.forget();
        let mut segments = Segments::of(file);
        let frame = loop {
            match segments.next()? {
                (marker @ (0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf), payload) => {
                    break Frame::read(marker, payload)?;
                }
                (EOI | SOS, _) => return Err("the file has no frame header".into()),
                (marker, payload) => self.tables.read(marker, payload)?,
            }
        };
        check_frame(&frame, file.len())?;
        let scale = scale(&frame, wanted);
        Ok(Opened { file_bytes: file.len(), segments, frame, scale, grey })
    }

    /// Decode a file that was opened last.
    pub fn decode(&mut self, opened: Opened<'_>, into: &mut Pixels) -> Read<()> {
        let Opened { mut segments, frame, scale, grey, .. } = opened;
        self.scans(&mut segments, &frame, scale, grey)?;
        self.finish(&frame, scale, grey, into);
        Ok(())
    }

    fn scans(&mut self, segments: &mut Segments<'_>, frame: &Frame, scale: usize, grey: bool) -> Read<()> {
        let mut begun = false;
        for _ in 0..MOST_SCANS {
            let header = loop {
                match segments.next()? {
                    (SOS, payload) => break payload,
                    (EOI, _) if frame.progressive && begun => return self.check_whole(frame),
                    (EOI, _) => return Err("the file ends before its image does".into()),
                    (marker, payload) => self.tables.read(marker, payload)?,
                }
            };
            let scan = Scan::read(header, frame)?;
            if !begun {
                self.begin(frame, scale, grey);
                begun = true;
            }
            let used = self.entropy.read(segments.rest());
            segments.pass_over(used);
            self.scan(frame, &scan)?;
            if !frame.progressive && self.check_whole(frame).is_ok() {
                return Ok(());
            }
        }
        Err(format!("it has more than {MOST_SCANS} scans").into())
    }

    fn begin(&mut self, frame: &Frame, scale: usize, grey: bool) {
        self.colours = self.tables.colours(frame);
        let only_first = grey && self.colours == Colours::YCbCr;
        for (number, component) in frame.components.iter().enumerate() {
            let size = match number {
                1.. if only_first => 0,
                _ => size(frame, component.h, component.v, scale),
            };
            self.parts[number].begin(component, size, frame.mcus(), frame.progressive);
            let samples =
                |pixels: usize, factor: usize, most: usize| (pixels * factor * size).div_ceil(most * 8);
            self.parts[number].width = samples(frame.width, component.h, frame.h());
            self.parts[number].height = samples(frame.height, component.v, frame.v());
        }
    }

    fn scan(&mut self, frame: &Frame, scan: &Scan) -> Read<()> {
        for (number, ..) in &scan.components {
            let part = &mut self.parts[*number];
            if !part.begun {
                let quants = self.tables.quants[frame.components[*number].quants];
                part.quants = quants.ok_or("a quantisation table is missing")?;
                part.begun = true;
            }
        }
        if !frame.progressive {
            scan.components.iter().for_each(|(_, _, ac)| self.tables.ac[*ac].make_pairs());
        }
        let Decoder { tables, entropy, parts, .. } = self;
        if frame.progressive {
            let mut blocks = Progressive::new(scan);
            dispatch!(Level::new(), _ => walk::walk(frame, scan, tables, entropy, parts, &mut blocks))
        } else {
            let mut blocks = Sequential::default();
            dispatch!(Level::new(), _ => walk::walk(frame, scan, tables, entropy, parts, &mut blocks))
        }
    }

    pub fn held_bytes(&self) -> usize {
        let part = |part: &Part| part.samples.capacity() + part.coefficients.capacity() * 128;
        self.parts.iter().map(part).sum()
    }

    fn check_whole(&self, frame: &Frame) -> Read<()> {
        let whole = self.parts.iter().zip(&frame.components).all(|(part, _)| part.begun);
        if whole { Ok(()) } else { Err("a component has no data".into()) }
    }

    fn finish(&mut self, frame: &Frame, scale: usize, grey: bool, into: &mut Pixels) {
        let side = |pixels: usize| (pixels * scale).div_ceil(8);
        let one = self.colours == Colours::Grey || (grey && self.colours == Colours::YCbCr);
        into.begin(side(frame.width), side(frame.height), if one { 1 } else { 4 });
        for (upsample, part) in self.upsamples.iter_mut().zip(&mut self.parts).take(frame.components.len()) {
            if frame.progressive {
                dispatch!(Level::new(), _ => part.put_all());
            }
            let times = |most: usize, own: usize| (most * scale).checked_div(own * part.size).unwrap_or(1);
            upsample.begin(times(frame.h(), part.h), times(frame.v(), part.v), part.width);
        }
        let Decoder { parts, upsamples, colours, .. } = self;
        dispatch!(Level::new(), _ => colour::paint(*colours, parts, upsamples, into));
    }
}

/// The smallest of 1, 2, 4 and 8 eighths that is no smaller than wanted.
fn scale(frame: &Frame, (width, height): (usize, usize)) -> usize {
    let enough = |scale: &usize| {
        (frame.width * scale).div_ceil(8) >= width && (frame.height * scale).div_ceil(8) >= height
    };
    [1, 2, 4, 8].into_iter().find(enough).unwrap_or(8)
}

/// Samples per block and axis: more than the scale says where a component has fewer samples than pixels,
/// so that it need not be spread.
fn size(frame: &Frame, h: usize, v: usize, scale: usize) -> usize {
    let larger = |size: &usize| {
        (frame.h() * scale).is_multiple_of(h * size) && (frame.v() * scale).is_multiple_of(v * size)
    };
    [8, 4, 2, 1].into_iter().filter(|size| *size >= scale).find(larger).unwrap_or(scale)
}

/// Whether a file can hold what its frame claims: a block takes two bits at the very least, its first
/// coefficient and its end, or one in a scan of first coefficients.
fn check_frame(frame: &Frame, file_bytes: usize) -> Read<()> {
    check_size(frame.width, frame.height)?;
    let blocks = frame.components.iter().map(|component| frame.blocks(component)).map(|(x, y)| x * y);
    let blocks: usize = blocks.sum();
    let least_bits = if frame.progressive { blocks } else { blocks * 2 };
    if least_bits / 8 > file_bytes {
        let (width, height) = (frame.width, frame.height);
        return Err(format!("it claims {width} x {height} pixels in {file_bytes} bytes").into());
    }
    let padded: usize = frame.components.iter().map(|component| frame.padded_blocks(component)).sum();
    if frame.progressive && padded * size_of::<[i16; 64]>() > MOST_COEFFICIENT_BYTES {
        let (width, height) = (frame.width, frame.height);
        return Err(format!("{width} x {height} pixels are too many for a progressive JPEG").into());
    }
    Ok(())
}
