//! Where every record starts, in a byte or two per record, with any one found at once.
//!
//! Offsets are kept in blocks of 128 as a straight line (first offset, smallest step) plus what each
//! lies above it, in as many bits as the block needs. Records of one size cost no bits at all.

use std::iter;

pub const BLOCK: usize = 128;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    pub base: u64,
    pub step: u64,
    /// Position of the block's first bit.
    pub bits_at: u64,
    pub width: u32,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offsets {
    pub(crate) len: u64,
    pub(crate) lines: Vec<Line>,
    pub(crate) words: Vec<u64>,
}

impl Offsets {
    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The offset of record `at`, if there is one.
    pub fn get(&self, at: u64) -> Option<u64> {
        if at >= self.len {
            return None;
        }
        let line = self.lines.get(usize::try_from(at / BLOCK as u64).ok()?)?;
        let within = at % BLOCK as u64;
        let above = bits(&self.words, line.bits_at.checked_add(within * u64::from(line.width))?, line.width)?;
        line.base.checked_add(within.checked_mul(line.step)?)?.checked_add(above)
    }

    /// No two neighbours lie further apart than this, nor the last one and `end`. An upper bound, found fast.
    pub fn most_between(&self, end: u64) -> u64 {
        let within =
            self.lines.iter().map(|line| line.step.saturating_add(u64::MAX >> (64 - line.width.max(1))));
        let behind = self.lines.iter().skip(1).map(|line| line.base).chain([end]);
        let across = self.lines.iter().zip(behind).zip(0..).map(|((line, next), block)| {
            let last = (self.len - 1).min(block * BLOCK as u64 + BLOCK as u64 - 1);
            next.saturating_sub(self.get(last).unwrap_or(line.base))
        });
        within.chain(across).max().unwrap_or(0)
    }

    pub fn bytes(&self) -> usize {
        self.lines.len() * size_of::<Line>() + self.words.len() * 8
    }
}

fn bits(words: &[u64], at: u64, width: u32) -> Option<u64> {
    if width == 0 {
        return Some(0);
    }
    let (word, shift) = (usize::try_from(at / 64).ok()?, (at % 64) as u32);
    let low = words.get(word)? >> shift;
    let have = 64 - shift;
    let value = if width > have { low | words.get(word + 1)?.checked_shl(have)? } else { low };
    Some(if width == 64 { value } else { value & ((1 << width) - 1) })
}

/// Builds [`Offsets`] from offsets in ascending order.
#[derive(Debug, Default)]
pub struct Builder {
    done: Offsets,
    pending: Vec<u64>,
    bits_used: u64,
}

impl Builder {
    pub fn push(&mut self, offset: u64) {
        self.pending.push(offset);
        if self.pending.len() == BLOCK {
            self.flush();
        }
    }

    pub fn len(&self) -> u64 {
        self.done.len + self.pending.len() as u64
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn finish(mut self) -> Offsets {
        self.flush();
        self.done
    }

    fn flush(&mut self) {
        let Some(&base) = self.pending.first() else {
            return;
        };
        let step = self.pending.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or(0);
        let above = |(within, offset): (u64, &u64)| offset - base - within * step;
        let highest = iter::zip(0.., &self.pending).map(above).max().unwrap_or(0);
        let width = u64::BITS - highest.leading_zeros();
        self.done.lines.push(Line { base, step, bits_at: self.bits_used, width });
        for value in iter::zip(0.., &self.pending).map(above) {
            append_bits(&mut self.done.words, &mut self.bits_used, value, width);
        }
        self.done.len += self.pending.len() as u64;
        self.pending.clear();
    }
}

fn append_bits(words: &mut Vec<u64>, used: &mut u64, value: u64, width: u32) {
    if width == 0 {
        return;
    }
    let shift = (*used % 64) as u32;
    if shift == 0 {
        words.push(value);
    } else if let Some(last) = words.last_mut() {
        *last |= value << shift;
        if width > 64 - shift {
            words.push(value >> (64 - shift));
        }
    }
    *used += u64::from(width);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn built(offsets: &[u64]) -> Offsets {
        let mut builder = Builder::default();
        offsets.iter().for_each(|offset| builder.push(*offset));
        builder.finish()
    }

    fn ascending(steps: Vec<u64>) -> Vec<u64> {
        steps
            .iter()
            .scan(0, |at, step| {
                *at += step;
                Some(*at)
            })
            .collect()
    }

    proptest! {
        #[test]
        fn every_offset_comes_back(steps in prop::collection::vec(0..1u64 << 40, 0..700)) {
            let offsets = ascending(steps);
            let packed = built(&offsets);
            let back: Vec<_> = (0..offsets.len() as u64).map(|at| packed.get(at).unwrap()).collect();
            prop_assert_eq!(back, &offsets[..]);
            prop_assert_eq!(packed.get(offsets.len() as u64), None);
        }

        #[test]
        fn no_neighbours_lie_further_apart_than_is_said(steps in prop::collection::vec(0..1u64 << 40, 1..700)) {
            let offsets = ascending(steps);
            let end = offsets[offsets.len() - 1] + 5;
            let apart = offsets.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0).max(5);
            prop_assert!(built(&offsets).most_between(end) >= apart);
        }
    }

    #[test]
    fn records_of_one_size_are_as_large_as_they_are() {
        let offsets: Vec<_> = (0..1000).map(|at| at * 450).collect();
        assert_eq!(built(&offsets).most_between(450_000), 451);
        assert_eq!(built(&[]).most_between(0), 0);
    }

    #[test]
    fn records_of_one_size_cost_a_quarter_of_a_byte() {
        let offsets: Vec<_> = (0..128_000).map(|at| at * 450).collect();
        assert!(built(&offsets).bytes() * 4 <= offsets.len() + 4000);
    }
}
