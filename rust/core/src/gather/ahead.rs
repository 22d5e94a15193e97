//! Records asked for ahead of being read, so that storage fetches many of them at once.

use std::collections::HashSet;

use super::pace::COLD_BATCHES;
use super::{Gather, Place};
use crate::files;
use crate::index::Extent;

/// How many records the system is asked for ahead of being read.
const IN_FLIGHT: usize = 512;
/// So many grains that were asked for are remembered: those of a window or two.
const MOST_ASKED: usize = 16 << 10;

/// What was asked for: once is enough for all batches of a window.
#[derive(Debug, Default)]
pub(super) struct Asked {
    grains: HashSet<(usize, u64)>,
    /// How many batches they were remembered for.
    batches: u32,
    /// How far the present batch got.
    records: usize,
}

impl Asked {
    pub fn batch_begins(&mut self) {
        self.records = 0;
    }

    /// A batch is made, and may have had to wait for storage.
    pub fn batch_ended(&mut self, slow: bool) {
        self.batches = self.batches.saturating_add(1);
        if slow && self.batches > COLD_BATCHES {
            // what was fetched may be gone again
            self.grains.clear();
            self.batches = 0;
        }
    }

    /// From where to where a record's grains were not asked for before.
    fn missing(&mut self, place: &Place, grain: u64) -> (u64, u64) {
        let Extent { offset, end } = place.extent;
        if grain == 0 {
            return (offset, end);
        }
        if self.grains.len() > MOST_ASKED {
            self.grains.clear();
        }
        let (mut from, to) = (offset / grain * grain, end.next_multiple_of(grain));
        while from < to && !self.grains.insert((place.shard, from)) {
            from += grain;
        }
        let mut behind = from + grain;
        while behind < to && self.grains.insert((place.shard, behind)) {
            behind += grain;
        }
        (from, behind.min(to))
    }
}

impl Gather {
    /// Have the records behind number `at` of a job fetched while others are decoded.
    pub(super) fn ask_ahead(&self, places: &[Place], at: usize, asked: &mut Asked) {
        let (from, to) = (asked.records.max(at), places.len().min(at + IN_FLIGHT));
        for place in places.get(from..to).unwrap_or_default().iter().filter(|place| place.held_at.is_none()) {
            let (start, end) = asked.missing(place, self.fetch_bytes);
            if start < end
                && let Ok(file) = self.files.get(place.shard)
            {
                files::fetch_ahead(&file, start, end - start);
            }
        }
        asked.records = to.max(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(offset: u64, end: u64) -> Place {
        Place { number: 0, position: 0, shard: 0, extent: Extent { offset, end }, held_at: None }
    }

    #[test]
    fn every_grain_is_asked_for_once() {
        let mut asked = Asked::default();
        assert_eq!(asked.missing(&place(30, 40), 100), (0, 100));
        assert_eq!(asked.missing(&place(50, 90), 100), (100, 100));
        assert_eq!(asked.missing(&place(80, 250), 100), (100, 300));
        assert_eq!(asked.missing(&place(450, 460), 100), (400, 500));
        assert_eq!(asked.missing(&place(310, 420), 100), (300, 400));
        assert_eq!(asked.missing(&place(310, 420), 0), (310, 420));
    }

    #[test]
    fn what_may_be_gone_is_asked_for_again() {
        let mut asked = Asked::default();
        asked.missing(&place(0, 10), 100);
        (0..COLD_BATCHES).for_each(|_| asked.batch_ended(true));
        assert_eq!(asked.missing(&place(0, 10), 100), (100, 100));
        asked.batch_ended(true);
        assert_eq!(asked.missing(&place(0, 10), 100), (0, 100));
    }
}
