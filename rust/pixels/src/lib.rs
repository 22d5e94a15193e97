//! Pixels of 8-bit channels from one size to another, by TensorFlow's antialiased triangle.
//!
//! Nothing here is generic: the resizer's loops, of which there is one for every number of bits and every generation
//! of processors, are compiled in this crate and not again in each that uses it.

use fast_image_resize::images::{TypedImage, TypedImageRef};
use fast_image_resize::pixels::{U8, U8x2, U8x3, U8x4};
use fast_image_resize::{FilterType, PixelTrait, ResizeAlg, ResizeOptions, Resizer};

/// Pixels across and down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub width: usize,
    pub height: usize,
}

#[derive(Debug, Default)]
pub struct Scaler(Resizer);

impl Scaler {
    /// Fill `to` with what `from` shows; both have as many channels, one to four. Says why if bytes are missing.
    pub fn scale(
        &mut self,
        channels: usize,
        (from, of): (&[u8], Size),
        (to, wanted): (&mut [u8], Size),
    ) -> Result<(), String> {
        match channels {
            1 => self.scale_as::<U8>((from, of), (to, wanted)),
            2 => self.scale_as::<U8x2>((from, of), (to, wanted)),
            3 => self.scale_as::<U8x3>((from, of), (to, wanted)),
            4 => self.scale_as::<U8x4>((from, of), (to, wanted)),
            _ => Err(format!("{channels} channels are not one to four")),
        }
    }

    /// Scale pixels of one type: asking for it at run time would compile all fourteen that the resizer knows.
    fn scale_as<P: PixelTrait>(
        &mut self,
        (from, of): (&[u8], Size),
        (to, wanted): (&mut [u8], Size),
    ) -> Result<(), String> {
        let from = TypedImageRef::<P>::from_buffer(side(of.width), side(of.height), from).map_err(said)?;
        let mut to =
            TypedImage::<P>::from_buffer(side(wanted.width), side(wanted.height), to).map_err(said)?;
        let triangle = ResizeAlg::Convolution(FilterType::Bilinear);
        // colours are what they are, however transparent: as TensorFlow has it
        let options = ResizeOptions::new().resize_alg(triangle).use_alpha(false);
        self.0.resize_typed(&from, &mut to, &options).map_err(said)
    }

    pub fn held_bytes(&self) -> usize {
        self.0.size_of_internal_buffers()
    }

    pub fn give_back(&mut self) {
        self.0.reset_internal_buffers();
    }
}

fn side(pixels: usize) -> u32 {
    u32::try_from(pixels).unwrap_or(u32::MAX)
}

fn said(why: impl std::fmt::Display) -> String {
    why.to_string()
}
