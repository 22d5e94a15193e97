//! Whether records come out of memory or from storage, told by how long the reads of them take.

use std::time::{Duration, Instant};

/// No read out of the page cache takes as long as this, nor do so many bytes of it take a nanosecond.
const SLOW_READ: Duration = Duration::from_micros(20);
const SLOW_BYTES_PER_NS: u64 = 2;
/// So many reads of a batch tell whether storage is slow.
const TELLING: u32 = 16;
/// Asked for ahead, records come fast from any storage: only after so many batches is one read without asking,
/// which tells whether the page cache holds them by now.
pub(super) const COLD_BATCHES: u32 = 64;
/// So many batches have to come as fast as from the page cache before that is relied on.
const TRUSTED_BATCHES: u32 = 2;

#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Reads of the present batch, their bytes, and the time they took.
    reads: u32,
    bytes: u64,
    spent: Duration,
    /// A batch had to wait for storage: so many more have their records asked for ahead.
    cold_batches: u32,
    /// How many batches in a row had not to wait, and were not asked for ahead.
    warm_batches: u32,
}

impl Pace {
    /// The result of something that reads so many bytes by so many reads.
    pub fn timed<T>(&mut self, reads: usize, bytes: usize, read: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = read();
        self.spent += start.elapsed();
        self.reads = self.reads.saturating_add(u32::try_from(reads).unwrap_or(u32::MAX));
        self.bytes = self.bytes.saturating_add(bytes as u64);
        result
    }

    /// Records had better be asked for ahead.
    pub fn is_cold(&self) -> bool {
        self.cold_batches > 0
    }

    /// Records are in memory, as far as can be told.
    pub fn is_warm(&self) -> bool {
        self.warm_batches >= TRUSTED_BATCHES
    }

    /// The present batch has read enough to tell that storage is slow.
    pub fn began_slowly(&self) -> bool {
        self.reads >= TELLING && self.is_slow()
    }

    /// Count the reads of one more batch; the one before may have failed in the middle.
    pub fn batch_begins(&mut self) {
        (self.reads, self.bytes, self.spent) = (0, 0, Duration::ZERO);
    }

    /// A batch is made: draw conclusions, and tell whether it had to wait for storage.
    pub fn batch_ended(&mut self) -> bool {
        let (slow, asked) = (self.is_slow(), self.is_cold());
        self.cold_batches = if slow { COLD_BATCHES } else { self.cold_batches.saturating_sub(1) };
        self.warm_batches = if slow || asked { 0 } else { self.warm_batches.saturating_add(1) };
        slow
    }

    #[cfg(test)]
    pub fn warm() -> Self {
        Pace { warm_batches: TRUSTED_BATCHES, ..Pace::default() }
    }

    fn is_slow(&self) -> bool {
        self.spent > SLOW_READ * self.reads + Duration::from_nanos(self.bytes / SLOW_BYTES_PER_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_batch_is_believed_at_once_and_fast_ones_after_a_while() {
        let mut pace = Pace::warm();
        pace.timed(1, 400, || std::thread::sleep(Duration::from_millis(2)));
        assert!(pace.batch_ended());
        // nothing is read from here on, so that no pause of the machine is taken for storage
        pace.batch_begins();
        for _ in 0..COLD_BATCHES {
            assert!(pace.is_cold() && !pace.is_warm());
            assert!(!pace.batch_ended());
        }
        assert!(!pace.is_cold() && !pace.is_warm());
        (0..TRUSTED_BATCHES).for_each(|_| assert!(!pace.batch_ended()));
        assert!(pace.is_warm());
    }

    #[test]
    fn few_reads_tell_nothing_before_the_batch_ends() {
        let mut pace = Pace::default();
        pace.timed(1, 400, || std::thread::sleep(Duration::from_millis(2)));
        assert!(!pace.began_slowly());
        pace.timed(TELLING as usize, 400, || std::thread::sleep(Duration::from_millis(2)));
        assert!(pace.began_slowly());
    }
}
