//! The segments of a JPEG file: what kind of image it is, and the tables to read it with.

use super::huffman::Table;
use crate::image::Read;

pub const SOI: u8 = 0xd8;
pub const EOI: u8 = 0xd9;
pub const SOS: u8 = 0xda;

/// Where the `n`-th coefficient of a scan belongs, by rows; one past the block from the 64th on.
#[rustfmt::skip]
pub const PLACES: [u8; 256] = {
    let order = [
         0,  1,  8, 16,  9,  2,  3, 10, 17, 24, 32, 25, 18, 11,  4,  5,
        12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13,  6,  7, 14, 21, 28,
        35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
        58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
    ];
    let mut places = [64; 256];
    let mut at = 0;
    while at < 64 {
        places[at] = order[at];
        at += 1;
    }
    places
};

/// Walks from segment to segment.
pub struct Segments<'a> {
    file: &'a [u8],
    at: usize,
}

impl<'a> Segments<'a> {
    pub fn of(file: &'a [u8]) -> Self {
        Segments { file, at: 0 }
    }

    /// The next marker and what its segment holds. Whatever stands between segments is passed over.
    pub fn next(&mut self) -> Read<(u8, &'a [u8])> {
        let marker = loop {
            let rest = self.rest();
            let mark = memchr::memchr(0xff, rest).ok_or("the file ends before its image does")?;
            self.at += mark + 1;
            match rest.get(mark + 1) {
                None => return Err("the file ends before its image does".into()),
                // stuffing, fill bytes and markers that stand alone
                Some(0 | 0x01 | 0xd0..=0xd8) => self.at += 1,
                Some(0xff) => {}
                Some(marker) => {
                    self.at += 1;
                    break *marker;
                }
            }
        };
        if marker == EOI {
            return Ok((marker, &[]));
        }
        let length = self.rest().first_chunk().map(|length| usize::from(u16::from_be_bytes(*length)));
        let length = length.filter(|length| *length >= 2);
        let payload = length.and_then(|length| self.rest().get(2..length));
        let payload = payload.ok_or("a segment is longer than the file")?;
        self.at += 2 + payload.len();
        Ok((marker, payload))
    }

    /// Everything behind the last segment.
    pub fn rest(&self) -> &'a [u8] {
        self.file.get(self.at..).unwrap_or_default()
    }

    pub fn pass_over(&mut self, bytes: usize) {
        self.at += bytes;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Component {
    pub id: u8,
    /// How many blocks of an MCU lie across and down.
    pub h: usize,
    pub v: usize,
    pub quants: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub progressive: bool,
    pub width: usize,
    pub height: usize,
    pub components: Vec<Component>,
}

impl Frame {
    pub fn read(marker: u8, payload: &[u8]) -> Read<Self> {
        let progressive = match marker {
            0xc0 | 0xc1 => false,
            0xc2 => true,
            0xc3 | 0xc7 | 0xcb | 0xcf => return Err("a lossless JPEG is not read".into()),
            0xc9 | 0xca | 0xcd | 0xce => return Err("a JPEG with arithmetic codes is not read".into()),
            _ => return Err("a hierarchical JPEG is not read".into()),
        };
        let ([bits, h0, h1, w0, w1, count], components) =
            payload.split_first_chunk().ok_or("the frame is cut short")?;
        let [height, width] =
            [[h0, h1], [w0, w1]].map(|[high, low]| usize::from(*high) * 256 + usize::from(*low));
        if *bits != 8 {
            return Err(format!("a JPEG of {bits} bits per sample is not read").into());
        }
        if width == 0 || height == 0 {
            return Err(format!("the frame is {width} x {height} pixels").into());
        }
        if !matches!(count, 1 | 3 | 4) || components.len() < usize::from(*count) * 3 {
            return Err(format!("the frame has {count} components in {} bytes", components.len()).into());
        }
        let components = components.as_chunks::<3>().0.iter().take(usize::from(*count)).map(component);
        let frame = Frame { progressive, width, height, components: components.collect::<Read<_>>()? };
        let uneven = |component: &Component| {
            !frame.h().is_multiple_of(component.h) || !frame.v().is_multiple_of(component.v)
        };
        if frame.components.iter().any(uneven) {
            return Err("the components' sampling factors do not divide each other".into());
        }
        Ok(frame)
    }

    /// The largest factors: how many blocks of the finest component an MCU has across and down.
    pub fn h(&self) -> usize {
        self.components.iter().map(|component| component.h).max().unwrap_or(1)
    }

    pub fn v(&self) -> usize {
        self.components.iter().map(|component| component.v).max().unwrap_or(1)
    }

    /// MCUs across and down.
    pub fn mcus(&self) -> (usize, usize) {
        (self.width.div_ceil(8 * self.h()), self.height.div_ceil(8 * self.v()))
    }

    /// Blocks across and down that hold samples of the image.
    pub fn blocks(&self, component: &Component) -> (usize, usize) {
        let across = (self.width * component.h).div_ceil(self.h());
        let down = (self.height * component.v).div_ceil(self.v());
        (across.div_ceil(8), down.div_ceil(8))
    }

    /// Blocks of whole MCUs.
    pub fn padded_blocks(&self, component: &Component) -> usize {
        let (across, down) = self.mcus();
        across * component.h * down * component.v
    }
}

fn component([id, factors, quants]: &[u8; 3]) -> Read<Component> {
    let (h, v) = (usize::from(factors >> 4), usize::from(factors & 15));
    if !(1..=4).contains(&h) || !(1..=4).contains(&v) || *quants > 3 {
        return Err(format!("a component has the sampling factors {h} and {v}").into());
    }
    Ok(Component { id: *id, h, v, quants: usize::from(*quants) })
}

/// One scan: which components it holds, with which Huffman tables, and which part of their coefficients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// Number of the component, of its DC table and of its AC table.
    pub components: Vec<(usize, usize, usize)>,
    pub first: usize,
    pub last: usize,
    /// The lowest bit that earlier scans gave, if any, and the lowest that this one gives.
    pub refines: bool,
    pub low: u32,
}

impl Scan {
    pub fn read(payload: &[u8], frame: &Frame) -> Read<Self> {
        let (count, rest) = payload.split_first().ok_or("a scan header is cut short")?;
        let (chosen, rest) = rest
            .as_chunks::<2>()
            .0
            .split_at_checked(usize::from(*count))
            .ok_or("a scan header is cut short")?;
        let components = chosen.iter().map(|[id, tables]| {
            let number = frame.components.iter().position(|component| component.id == *id);
            let number = number.ok_or("a scan names a component that the frame has not")?;
            Ok((number, usize::from(tables >> 4 & 3), usize::from(tables & 3)))
        });
        let components = components.collect::<Read<Vec<_>>>()?;
        let twice = |at: usize| components[..at].iter().any(|(number, ..)| *number == components[at].0);
        if components.is_empty() || (1..components.len()).any(twice) {
            return Err("a scan names a component twice, or none".into());
        }
        let blocks =
            components.iter().map(|(number, ..)| frame.components[*number].h * frame.components[*number].v);
        if components.len() > 1 && blocks.sum::<usize>() > 10 {
            return Err("an MCU has more than 10 blocks".into());
        }
        if !frame.progressive {
            return Ok(Scan { components, first: 0, last: 63, refines: false, low: 0 });
        }
        let [first, last] = *rest.first().ok_or("a scan header is cut short")?;
        let bits = payload.last().copied().unwrap_or(0);
        let scan = Scan {
            components,
            first: usize::from(first),
            last: usize::from(last),
            refines: bits >> 4 != 0,
            low: u32::from(bits & 15),
        };
        let of_dc = scan.first == 0 && scan.last == 0;
        let of_ac = (1..=scan.last).contains(&scan.first) && scan.last < 64 && scan.components.len() == 1;
        let step = !scan.refines || u32::from(bits >> 4) == scan.low + 1;
        if !(of_dc || of_ac) || scan.low > 13 || !step {
            return Err("a scan of a progressive JPEG asks for an impossible part of the coefficients".into());
        }
        Ok(scan)
    }
}

/// How to make colours of the components.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Colours {
    #[default]
    Grey,
    YCbCr,
    Rgb,
    /// Inverted as Adobe's programs write it.
    Cmyk {
        inverted: bool,
    },
    Ycck {
        inverted: bool,
    },
}

/// What the segments said so far.
#[derive(Debug, Default)]
pub struct Tables {
    pub dc: [Table; 4],
    pub ac: [Table; 4],
    /// Quantisation, by rows.
    pub quants: [Option<[i32; 64]>; 4],
    /// MCUs between restart markers; 0 if there are none.
    pub restart: usize,
    jfif: bool,
    adobe: Option<u8>,
}

impl Tables {
    /// The next image starts from nothing.
    pub fn forget(&mut self) {
        self.dc.iter_mut().chain(&mut self.ac).for_each(Table::forget);
        (self.quants, self.restart, self.jfif, self.adobe) = ([None; 4], 0, false, None);
    }

    /// Take in a segment that is neither a frame nor a scan.
    pub fn read(&mut self, marker: u8, payload: &[u8]) -> Read<()> {
        match marker {
            0xc4 => self.huffman(payload)?,
            0xdb => self.quantisation(payload)?,
            0xdd => {
                let interval = payload.first_chunk().ok_or("a restart interval is cut short")?;
                self.restart = usize::from(u16::from_be_bytes(*interval));
            }
            0xe0 if payload.starts_with(b"JFIF\0") => self.jfif = true,
            0xee if payload.starts_with(b"Adobe") => self.adobe = payload.get(11).copied(),
            _ => {}
        }
        Ok(())
    }

    fn huffman(&mut self, mut payload: &[u8]) -> Read<()> {
        while let Some((class, rest)) = payload.split_first() {
            let symbols: usize = rest.iter().take(16).map(|count| usize::from(*count)).sum();
            let (definition, rest) =
                rest.split_at_checked(16 + symbols).ok_or("a Huffman table is cut short")?;
            match class {
                0..=3 => self.dc[usize::from(*class)].define(definition)?,
                0x10..=0x13 => self.ac[usize::from(class & 3)].define(definition)?,
                _ => return Err("a Huffman table has an impossible number".into()),
            }
            payload = rest;
        }
        Ok(())
    }

    fn quantisation(&mut self, mut payload: &[u8]) -> Read<()> {
        while let Some((kind, rest)) = payload.split_first() {
            let width = 1 + usize::from(kind >> 4 & 1);
            let (numbers, rest) =
                rest.split_at_checked(64 * width).ok_or("a quantisation table is cut short")?;
            let quants = self
                .quants
                .get_mut(usize::from(kind & 15))
                .ok_or("a quantisation table has an impossible number")?;
            let quants = quants.insert([0; 64]);
            for (number, place) in numbers.chunks(width).zip(PLACES) {
                quants[usize::from(place & 63)] =
                    number.iter().fold(0, |whole, byte| whole << 8 | i32::from(*byte));
            }
            payload = rest;
        }
        Ok(())
    }

    /// libjpeg's rules: markers first, then the components' names.
    pub fn colours(&self, frame: &Frame) -> Colours {
        let ids: Vec<u8> = frame.components.iter().map(|component| component.id).collect();
        let inverted = self.adobe.is_some();
        match (&ids[..], self.adobe) {
            ([_], _) => Colours::Grey,
            ([_, _, _], _) if self.jfif => Colours::YCbCr,
            ([_, _, _], Some(0)) | ([b'R', b'G', b'B'], None) => Colours::Rgb,
            ([_, _, _], _) => Colours::YCbCr,
            (_, Some(0) | None) => Colours::Cmyk { inverted },
            _ => Colours::Ycck { inverted },
        }
    }
}
