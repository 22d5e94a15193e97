//! Rows of components into rows of pixels, with the arithmetic of libjpeg.

use super::frame::Colours;
use super::part::Part;
use super::upsample::Upsample;
use crate::image::Pixels;

const HALF: i32 = 1 << 15;

/// Fixed-point numbers of 16 digits.
const fn fixed(number: f64) -> i32 {
    (number * 65536.0 + 0.5) as i32
}

/// Fill all rows: a byte per pixel if they are grey, else red, green, blue and 255.
#[inline(always)]
pub fn paint(colours: Colours, parts: &[Part; 4], [a, b, c, d]: &mut [Upsample; 4], pixels: &mut Pixels) {
    for y in 0..pixels.height {
        let a = a.row(&parts[0], y);
        if pixels.channels == 1 {
            pixels.row_mut(y).iter_mut().zip(a).for_each(|(to, grey)| *to = *grey);
            continue;
        }
        let three =
            a.iter().zip(b.row(&parts[1], y)).zip(c.row(&parts[2], y)).map(|((a, b), c)| [*a, *b, *c]);
        let four = three.clone().zip(d.row(&parts[3], y));
        match colours {
            Colours::YCbCr => fill(pixels, y, three.map(rgb)),
            Colours::Rgb | Colours::Grey => fill(pixels, y, three),
            Colours::Cmyk { inverted } => fill(pixels, y, four.map(|(cmy, k)| on_paper(cmy, *k, inverted))),
            Colours::Ycck { inverted } => {
                fill(
                    pixels,
                    y,
                    four.map(|(ycc, k)| on_paper(rgb(ycc).map(|value| 255 - value), *k, inverted)),
                );
            }
        }
    }
}

#[inline(always)]
fn fill(pixels: &mut Pixels, y: usize, colours: impl Iterator<Item = [u8; 3]>) {
    let to = pixels.row_mut(y).as_chunks_mut::<4>().0;
    to.iter_mut().zip(colours).for_each(|(to, [r, g, b])| *to = [r, g, b, 255]);
}

#[inline(always)]
fn rgb([y, cb, cr]: [u8; 3]) -> [u8; 3] {
    let (y, cb, cr) = (i32::from(y), i32::from(cb) - 128, i32::from(cr) - 128);
    [
        y + ((fixed(1.40200) * cr + HALF) >> 16),
        y + ((-fixed(0.34414) * cb - fixed(0.71414) * cr + HALF) >> 16),
        y + ((fixed(1.77200) * cb + HALF) >> 16),
    ]
    .map(|value| value.clamp(0, 255) as u8)
}

/// As TensorFlow converts it.
#[inline(always)]
fn on_paper(cmy: [u8; 3], k: u8, inverted: bool) -> [u8; 3] {
    let light = |ink: u8| u16::from(if inverted { ink } else { 255 - ink });
    cmy.map(|ink| (light(ink) * light(k) / 255) as u8)
}
