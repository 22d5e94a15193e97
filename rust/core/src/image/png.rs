//! PNG files of every kind: palettes, any depth, transparency, interlaced.

use std::io::Cursor;

use ::png::{ColorType, DecodingError, Limits, Reader, Transformations};

use super::{Pixels, Read, Unreadable, check_size};

/// What deflate can make of one byte at the very best.
const DEFLATE_RATIO: usize = 1032;
/// What the decoder may take beyond pixels: rows, and chunks that are not the image.
const LIMITS: Limits = Limits { bytes: 16 << 20 };

pub fn is_png(file: &[u8]) -> bool {
    file.starts_with(b"\x89PNG\r\n\x1a\n")
}

pub struct Opened<'a> {
    width: usize,
    height: usize,
    /// Bytes per pixel at most: a palette or one transparent colour may mean an alpha.
    channels: usize,
    row_bytes: usize,
    decoder: ::png::Decoder<Cursor<&'a [u8]>>,
}

impl<'a> Opened<'a> {
    pub fn read(file: &'a [u8]) -> Read<Self> {
        let mut decoder = ::png::Decoder::new_with_limits(Cursor::new(file), LIMITS);
        decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16);
        decoder.set_ignore_text_chunk(true);
        decoder.set_ignore_iccp_chunk(true);
        let header = decoder.read_header_info().map_err(why)?;
        let (width, height) = (header.width as usize, header.height as usize);
        check_size(width, height)?;
        let row_bytes = header.raw_row_length();
        if row_bytes.saturating_mul(height) / DEFLATE_RATIO > file.len() {
            return Err(format!("it claims {width} x {height} pixels in {} bytes", file.len()).into());
        }
        let channels = match header.color_type {
            ColorType::Grayscale | ColorType::GrayscaleAlpha => 2,
            ColorType::Rgb | ColorType::Rgba | ColorType::Indexed => 4,
        };
        Ok(Opened { width, height, channels, row_bytes, decoder })
    }

    /// Width, height, and the bytes that decoding takes.
    pub fn needs(&self) -> (usize, usize, usize) {
        let rows = self.row_bytes.saturating_mul(3).saturating_add(256 << 10);
        (self.width, self.height, (self.width * self.height * self.channels).saturating_add(rows))
    }

    /// Decode at the file's own size and with its own channels.
    pub fn decode(self, into: &mut Pixels) -> Read<()> {
        let mut reader = self.decoder.read_info().map_err(why)?;
        let channels = match reader.output_color_type().0 {
            ColorType::Indexed => return Err("its palette is missing".into()),
            colours => colours.samples(),
        };
        let bytes = into.begin(self.width, self.height, channels);
        match reader.output_buffer_size() {
            Some(needed) if needed == bytes.len() => whole(&mut reader, bytes),
            _ => Err("its rows have another length than its header says".into()),
        }
    }
}

fn whole(reader: &mut Reader<Cursor<&[u8]>>, bytes: &mut [u8]) -> Read<()> {
    reader.next_frame(bytes).map_err(why)?;
    Ok(())
}

fn why(error: DecodingError) -> Unreadable {
    error.to_string().into()
}
