//! From the coefficients of a block to its samples: 8 per axis, or 4, 2 or 1 of a smaller image.
//!
//! With 8, the samples are to the last bit those of libjpeg's accurate integer transform (the one that
//! TensorFlow uses). With fewer, the low frequencies alone are transformed: the same picture without what
//! a smaller one cannot show.
//!
//! Each pass is a plain loop over independent lanes, which the compiler turns into vector instructions.

use std::array::from_fn;

/// Fixed-point digits of the constants, and of what the first pass keeps beyond whole numbers.
const DIGITS: u32 = 13;
const KEPT: u32 = 2;
const FIRST_PASS: u32 = DIGITS - KEPT;
/// Two transforms are too large by a factor of 8 together.
const SECOND_PASS: u32 = DIGITS + KEPT + 3;

const fn fixed(number: f64) -> i32 {
    (number * 8192.0 + 0.5) as i32
}

const fn times(a: i32, b: i32) -> i32 {
    a.wrapping_mul(b)
}

const fn plus(a: i32, b: i32) -> i32 {
    a.wrapping_add(b)
}

const fn minus(a: i32, b: i32) -> i32 {
    a.wrapping_sub(b)
}

/// The transform of Loeffler, Ligtenberg and Moschytz, as in libjpeg's `jidctint.c`.
#[inline(always)]
fn eight<const SHIFT: u32>(c: [i32; 8]) -> [i32; 8] {
    let common = times(plus(c[2], c[6]), fixed(0.541196100));
    let e2 = minus(common, times(c[6], fixed(1.847759065)));
    let e3 = plus(common, times(c[2], fixed(0.765366865)));
    let e0 = plus(plus(c[0], c[4]) << DIGITS, 1 << (SHIFT - 1));
    let e1 = plus(minus(c[0], c[4]) << DIGITS, 1 << (SHIFT - 1));
    let even = [plus(e0, e3), plus(e1, e2), minus(e1, e2), minus(e0, e3)];

    let z5 = times(plus(plus(c[7], c[3]), plus(c[5], c[1])), fixed(1.175875602));
    let z1 = times(plus(c[7], c[1]), fixed(0.899976223));
    let z2 = times(plus(c[5], c[3]), fixed(2.562915447));
    let z3 = minus(z5, times(plus(c[7], c[3]), fixed(1.961570560)));
    let z4 = minus(z5, times(plus(c[5], c[1]), fixed(0.390180644)));
    let odd = [
        plus(minus(times(c[1], fixed(1.501321110)), z1), z4),
        plus(minus(times(c[3], fixed(3.072711026)), z2), z3),
        plus(minus(times(c[5], fixed(2.053119869)), z2), z4),
        plus(minus(times(c[7], fixed(0.298631336)), z1), z3),
    ];
    from_fn(|n| if n < 4 { plus(even[n], odd[n]) >> SHIFT } else { minus(even[7 - n], odd[7 - n]) >> SHIFT })
}

#[inline(always)]
fn four<const SHIFT: u32>(c: [i32; 4]) -> [i32; 4] {
    let e0 = plus(plus(c[0], c[2]) << DIGITS, 1 << (SHIFT - 1));
    let e1 = plus(minus(c[0], c[2]) << DIGITS, 1 << (SHIFT - 1));
    // √2 cos(π/8) and √2 sin(π/8)
    let o0 = plus(times(c[1], fixed(1.306562965)), times(c[3], fixed(0.541196100)));
    let o1 = minus(times(c[1], fixed(0.541196100)), times(c[3], fixed(1.306562965)));
    [plus(e0, o0) >> SHIFT, plus(e1, o1) >> SHIFT, minus(e1, o1) >> SHIFT, minus(e0, o0) >> SHIFT]
}

#[inline(always)]
fn sample(value: i32) -> u8 {
    value.wrapping_add(128).clamp(0, 255) as u8
}

/// `quants` in the order of rows, as the coefficients are. `IN`: so many rows and columns of them are not 0.
#[inline(always)]
pub fn eight_by_eight<const IN: usize>(
    block: &[i16; 64],
    quants: &[i32; 64],
    plane: &mut [u8],
    stride: usize,
) {
    let restored = restored(block, quants);
    let mut columns = [[0; 8]; 8];
    for lane in 0..8 {
        let column = from_fn(|row| if row < IN { restored[row * 8 + lane] } else { 0 });
        let done = eight::<FIRST_PASS>(column);
        for (row, value) in done.into_iter().enumerate() {
            columns[row][lane] = value;
        }
    }
    let across = turned(&columns);
    let mut rows = [[0; 8]; 8];
    for lane in 0..8 {
        let row = from_fn(|column| if column < IN { across[column][lane] } else { 0 });
        let done = eight::<SECOND_PASS>(row);
        for (column, value) in done.into_iter().enumerate() {
            rows[column][lane] = value;
        }
    }
    put(&turned(&rows), plane, stride);
}

/// The coefficients as they were before they were made small: a loop of its own, as one with the transform
/// is not turned into vector instructions.
#[inline(always)]
fn restored(block: &[i16; 64], quants: &[i32; 64]) -> [i32; 64] {
    from_fn(|at| times(i32::from(block[at]), quants[at]))
}

#[inline(always)]
pub fn four_by_four(block: &[i16; 64], quants: &[i32; 64], plane: &mut [u8], stride: usize) {
    let mut columns = [[0; 4]; 4];
    for lane in 0..4 {
        let column = from_fn(|row| times(i32::from(block[row * 8 + lane]), quants[row * 8 + lane]));
        let done = four::<FIRST_PASS>(column);
        for (row, value) in done.into_iter().enumerate() {
            columns[row][lane] = value;
        }
    }
    let across = turned(&columns);
    let mut rows = [[0; 4]; 4];
    for lane in 0..4 {
        let done = four::<SECOND_PASS>(from_fn(|column| across[column][lane]));
        for (column, value) in done.into_iter().enumerate() {
            rows[column][lane] = value;
        }
    }
    put(&turned(&rows), plane, stride);
}

pub fn two_by_two(block: &[i16; 64], quants: &[i32; 64], plane: &mut [u8], stride: usize) {
    let [a, b, c, d] = [0, 1, 8, 9].map(|at| times(i32::from(block[at]), quants[at]));
    let (a, c) = (plus(a, 4), c);
    let top = [plus(plus(a, c), plus(b, d)), minus(plus(a, c), plus(b, d))];
    let bottom = [plus(minus(a, c), minus(b, d)), minus(minus(a, c), minus(b, d))];
    put(&[top, bottom].map(|row| row.map(|value| value >> 3)), plane, stride);
}

/// A block of one colour: of whatever size, its samples are the same.
#[inline(always)]
pub fn flat<const SIZE: usize>(block: &[i16; 64], quants: &[i32; 64], plane: &mut [u8], stride: usize) {
    let value = sample(plus(times(i32::from(block[0]), quants[0]), 4) >> 3);
    for row in plane.chunks_mut(stride).take(SIZE) {
        if let Some(row) = row.first_chunk_mut::<SIZE>() {
            *row = [value; SIZE];
        }
    }
}

#[inline(always)]
fn turned<const N: usize>(rows: &[[i32; N]; N]) -> [[i32; N]; N] {
    let mut turned = [[0; N]; N];
    for (y, row) in rows.iter().enumerate() {
        for (x, value) in row.iter().enumerate() {
            turned[x][y] = *value;
        }
    }
    turned
}

#[inline(always)]
fn put<const N: usize>(rows: &[[i32; N]; N], plane: &mut [u8], stride: usize) {
    for (values, row) in rows.iter().zip(plane.chunks_mut(stride)) {
        if let Some(row) = row.first_chunk_mut::<N>() {
            *row = values.map(sample);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::PI;

    const SMALL: [i32; 64] = [1; 64];

    /// The transform as the standard writes it, of the lowest `n` frequencies.
    fn exact(block: &[i16; 64], n: usize) -> Vec<f64> {
        let scale = |u: usize| if u == 0 { 1.0 } else { 2_f64.sqrt() };
        let wave = |x: usize, u: usize| scale(u) * (((2 * x + 1) * u) as f64 * PI / (2 * n) as f64).cos();
        let sum = |x, y| {
            let each = (0..n * n).map(|at| (at % n, at / n));
            each.map(|(u, v)| f64::from(block[v * 8 + u]) * wave(x, u) * wave(y, v)).sum::<f64>() / 8.0
                + 128.0
        };
        (0..n * n).map(|at| sum(at % n, at / n).clamp(0.0, 255.0)).collect()
    }

    fn blocks() -> Vec<[i16; 64]> {
        let mut state = 1_u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) as i16
        };
        let large = |random: &mut dyn FnMut() -> i16, reach: usize| {
            from_fn(|at| {
                if at % 8 < reach && at / 8 < reach { random() % (400 / (1 + at as i16)).max(9) } else { 0 }
            })
        };
        (0..200).map(|n| large(&mut random, [8, 8, 4, 1][n % 4])).collect()
    }

    fn close(n: usize, transform: impl Fn(&[i16; 64], &mut [u8])) {
        for block in blocks() {
            let mut plane = vec![0; 80];
            transform(&block, &mut plane);
            for (at, wanted) in exact(&block, n).into_iter().enumerate() {
                let got = f64::from(plane[at / n * 10 + at % n]);
                assert!((got - wanted).abs() < 0.6, "{got} for {wanted} at {at} of {block:?}");
            }
        }
    }

    #[test]
    fn every_size_is_the_transform_of_its_frequencies() {
        close(8, |block, plane| eight_by_eight::<8>(block, &SMALL, plane, 10));
        close(4, |block, plane| four_by_four(block, &SMALL, plane, 10));
        close(2, |block, plane| two_by_two(block, &SMALL, plane, 10));
        close(1, |block, plane| flat::<1>(block, &SMALL, plane, 10));
    }

    #[test]
    fn short_ways_give_the_same() {
        for (n, block) in blocks().into_iter().enumerate() {
            let (mut long, mut short) = ([0; 64], [0; 64]);
            eight_by_eight::<8>(&block, &SMALL, &mut long, 8);
            match n % 4 {
                2 => eight_by_eight::<4>(&block, &SMALL, &mut short, 8),
                3 => flat::<8>(&block, &SMALL, &mut short, 8),
                _ => short = long,
            }
            assert_eq!(long, short);
        }
    }

    #[test]
    fn any_coefficients_give_samples() {
        let (block, quants) = ([i16::MIN; 64], [65535; 64]);
        let mut plane = [0; 64];
        eight_by_eight::<8>(&block, &quants, &mut plane, 8);
        four_by_four(&block, &quants, &mut plane, 8);
        two_by_two(&block, &quants, &mut plane, 8);
        flat::<8>(&block, &quants, &mut plane, 8);
        // a plane that is too small takes what fits
        eight_by_eight::<8>(&block, &quants, &mut plane[..20], 8);
    }
}
