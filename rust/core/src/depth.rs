//! How many batches are made ahead, found while running.

/// Batches that must be found ready before one less is made ahead.
const PATIENCE: u64 = 64;
/// It grows to so many times what it was at first,
const GROWTH: u64 = 4;
/// and only while this part of the limit is free of batches: many large ones leave the processor's cache.
const ROOMY: usize = 8;

/// More while both sides wait in turn, fewer once nobody misses them.
#[derive(Debug)]
pub(crate) struct Depth {
    now: u64,
    least: u64,
    most: u64,
    /// A thread had nothing to do because all of it was in use, since the consumer last waited.
    was_full: bool,
    /// How many batches in a row the consumer found ready.
    found_ready: u64,
}

impl Depth {
    /// So many at first, and never more than `most`, where somebody has set that bound.
    pub fn from(start: u64, most: Option<u64>) -> Self {
        let most = most.unwrap_or(start.saturating_mul(GROWTH)).max(1);
        let least = start.clamp(1, most);
        Depth { now: least, least, most, was_full: false, found_ready: 0 }
    }

    pub fn now(&self) -> u64 {
        self.now
    }

    /// A thread asked for work, and there was none because so much was made ahead already.
    pub fn met(&mut self, full: bool) {
        self.was_full |= full;
    }

    /// The consumer asked for a batch, while so many bytes were held.
    pub fn asked(&mut self, was_ready: bool, held_bytes: usize, limit_bytes: usize) {
        self.found_ready = if was_ready { self.found_ready + 1 } else { 0 };
        if !was_ready && self.was_full {
            let grown = self.now + u64::from(held_bytes < limit_bytes / ROOMY);
            self.now = grown.min(self.most);
            self.was_full = false;
        } else if self.found_ready >= PATIENCE {
            self.now = (self.now - 1).max(self.least);
            self.found_ready = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both_wait(depth: &mut Depth, held_bytes: usize) {
        depth.met(true);
        depth.asked(false, held_bytes, 800);
    }

    #[test]
    fn it_grows_while_both_sides_wait_and_never_without_end() {
        let mut depth = Depth::from(3, None);
        (0..100).for_each(|_| both_wait(&mut depth, 50));
        assert_eq!(depth.now(), 12);
        let mut bounded = Depth::from(3, Some(2));
        (0..100).for_each(|_| both_wait(&mut bounded, 50));
        assert_eq!(bounded.now(), 2);
    }

    #[test]
    fn it_stays_while_only_one_side_waits_or_memory_is_short() {
        let mut depth = Depth::from(3, None);
        (0..100).for_each(|_| depth.asked(false, 50, 800));
        (0..100).for_each(|_| both_wait(&mut depth, 100));
        assert_eq!(depth.now(), 3);
    }

    #[test]
    fn it_shrinks_once_batches_lie_ready() {
        let mut depth = Depth::from(2, None);
        (0..5).for_each(|_| both_wait(&mut depth, 50));
        assert_eq!(depth.now(), 7);
        (0..10 * PATIENCE).for_each(|_| depth.asked(true, 50, 800));
        assert_eq!(depth.now(), 2);
    }
}
