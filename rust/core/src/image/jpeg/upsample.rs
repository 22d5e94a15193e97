//! Components with fewer samples than pixels, spread over all pixels with the filters of libjpeg.

use super::part::Part;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Way {
    #[default]
    None,
    /// Twice across, twice down or both: three parts of the nearer sample and one of the farther.
    Across,
    Down,
    Both,
    /// Each sample so many times across and down.
    Repeat(usize, usize),
}

/// How a part is spread, and the row that was made last.
#[derive(Debug, Default)]
pub struct Upsample {
    way: Way,
    sums: Vec<u16>,
    row: Vec<u8>,
}

impl Upsample {
    /// Each sample of a part whose rows have `width` stands for so many pixels across and down.
    pub fn begin(&mut self, across: usize, down: usize, width: usize) {
        self.way = match (across, down) {
            (1, 1) => Way::None,
            (2, 1) if width > 2 => Way::Across,
            (2, 2) if width > 2 => Way::Both,
            (1, 2) => Way::Down,
            (across, down) => Way::Repeat(across, down),
        };
        self.row.resize(if self.way == Way::None { 0 } else { width * across }, 0);
        self.sums.resize(if self.way == Way::Both { width } else { 0 }, 0);
    }

    /// Samples for a row of pixels, as many as those are or more.
    #[inline(always)]
    pub fn row<'a>(&'a mut self, part: &'a Part, y: usize) -> &'a [u8] {
        match self.way {
            Way::None => return part.row(y),
            Way::Across => across(part.row(y), &mut self.row),
            Way::Down => {
                let bias = 1 + (y % 2) as u16;
                let (near, far) = near_and_far(part, y);
                for ((to, near), far) in self.row.iter_mut().zip(near).zip(far) {
                    *to = ((u16::from(*near) * 3 + u16::from(*far) + bias) >> 2) as u8;
                }
            }
            Way::Both => {
                let (near, far) = near_and_far(part, y);
                for ((sum, near), far) in self.sums.iter_mut().zip(near).zip(far) {
                    *sum = u16::from(*near) * 3 + u16::from(*far);
                }
                across_sums(&self.sums, &mut self.row);
            }
            Way::Repeat(times, down) => {
                for (to, sample) in self.row.chunks_mut(times).zip(part.row(y / down)) {
                    to.fill(*sample);
                }
            }
        }
        &self.row
    }
}

/// The row that a row of pixels lies in, and its neighbour on the other side of the pixels' centres.
fn near_and_far(part: &Part, y: usize) -> (&[u8], &[u8]) {
    let near = y / 2;
    let far = if y.is_multiple_of(2) {
        near.saturating_sub(1)
    } else {
        (near + 1).min(part.height.saturating_sub(1))
    };
    (part.row(near), part.row(far))
}

#[inline(always)]
fn across(from: &[u8], to: &mut [u8]) {
    let (to, _) = to.as_chunks_mut::<2>();
    let mix = |near: u8, far: u8, bias: u16| ((u16::from(near) * 3 + u16::from(far) + bias) >> 2) as u8;
    let (Some(first), Some(last), [_, middle @ .., _]) = (from.first(), from.last(), &mut to[..]) else {
        return;
    };
    for (to, near) in middle.iter_mut().zip(from.windows(3)) {
        *to = [mix(near[1], near[0], 1), mix(near[1], near[2], 2)];
    }
    if let ([first_to, .., last_to], [_, second, ..], [.., before, _]) = (to, from, from) {
        *first_to = [*first, mix(*first, *second, 2)];
        *last_to = [mix(*last, *before, 1), *last];
    }
}

#[inline(always)]
fn across_sums(from: &[u16], to: &mut [u8]) {
    let (to, _) = to.as_chunks_mut::<2>();
    let mix = |near: u16, far: u16, bias: u16| ((near * 3 + far + bias) >> 4) as u8;
    let (Some(first), Some(last), [_, middle @ .., _]) = (from.first(), from.last(), &mut to[..]) else {
        return;
    };
    for (to, near) in middle.iter_mut().zip(from.windows(3)) {
        *to = [mix(near[1], near[0], 8), mix(near[1], near[2], 7)];
    }
    if let ([first_to, .., last_to], [_, second, ..], [.., before, _]) = (to, from, from) {
        *first_to = [mix(*first, *first, 8), mix(*first, *second, 7)];
        *last_to = [mix(*last, *before, 8), mix(*last, *last, 7)];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(rows: &[&[u8]]) -> Part {
        let width = rows[0].len();
        Part {
            size: 1,
            across: width,
            down: rows.len(),
            width,
            height: rows.len(),
            samples: rows.concat(),
            ..Part::default()
        }
    }

    fn spread(part: &Part, across: usize, down: usize) -> Vec<Vec<u8>> {
        let mut upsample = Upsample::default();
        upsample.begin(across, down, part.width);
        (0..part.height * down).map(|y| upsample.row(part, y).to_vec()).collect()
    }

    #[test]
    fn nearer_samples_count_thrice() {
        assert_eq!(spread(&part(&[&[0, 100, 200]]), 2, 1), [[0, 25, 75, 125, 175, 200]]);
        assert_eq!(spread(&part(&[&[0], &[100]]), 1, 2), [[0], [25], [75], [100]]);
        let both = spread(&part(&[&[0, 100, 200], &[40, 40, 40]]), 2, 2);
        assert_eq!(both[0], [0, 25, 75, 125, 175, 200]);
        assert_eq!(both[1], [10, 29, 66, 104, 141, 160]);
    }

    #[test]
    fn narrow_and_unusual_components_are_repeated() {
        assert_eq!(spread(&part(&[&[7, 9]]), 2, 1), [[7, 7, 9, 9]]);
        assert_eq!(spread(&part(&[&[7, 9]]), 4, 2), [[7, 7, 7, 7, 9, 9, 9, 9]; 2]);
    }
}
