//! How the records of a pass come from storage, decided before it begins.

use crate::schema::Schema;
use crate::source::Numbering;
use crate::sweep::Shares;

/// What is fetched at a time where neighbours are soon needed.
const GRAIN_BYTES: u64 = 256 << 10;
/// Data stays in the page cache if it takes no more than this part of what that could hold.
const COMFORT: u64 = 2;
/// Whoever reads less than this part of the records does not need their neighbours.
const WORTH_IT: u64 = 8;

/// Where an order leads next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Jumps {
    Nowhere,
    WithinWindows,
    Anywhere,
}

/// What is known of a pass.
pub struct Pass<'a> {
    pub jumps: Jumps,
    pub numbering: &'a Numbering,
    pub schema: Option<&'a Schema>,
    /// How many records are still to come, and how many of them at a time.
    pub left: u64,
    pub at_a_time: u64,
    /// What the page cache can hold, as far as anybody knows.
    pub cached_bytes: Option<u64>,
    /// Tells whether data is not in memory and comes so fast from storage that it need not be.
    pub is_cold_and_fast: &'a dyn Fn() -> bool,
    /// What the stream may hold, and how much of it for records that are swept up ahead.
    pub limit_bytes: usize,
    pub swept_bytes: usize,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Access {
    /// What is fetched ahead is rounded to so many bytes.
    pub fetch_bytes: u64,
    /// All of the data is brought into the page cache, once storage turns out to be slow.
    pub warmed: bool,
    /// Records are swept up for many batches at a time.
    pub swept: Option<Shares>,
}

impl Pass<'_> {
    pub fn access(&self) -> Access {
        let plain = Access::default();
        match (self.jumps, self.cached_bytes) {
            (Jumps::WithinWindows, _) => Access { fetch_bytes: GRAIN_BYTES, ..plain },
            (Jumps::Anywhere, Some(cached)) if self.numbering.file_bytes() > cached => {
                Access { swept: self.shares(), ..plain }
            }
            (Jumps::Anywhere, Some(cached)) => {
                match self.shares().filter(|shares| shares.is_apart() && self.comes_past_cache()) {
                    Some(shares) => Access { swept: Some(shares), ..plain },
                    None => Access { warmed: self.will_stay_in(cached), ..plain },
                }
            }
            _ => plain,
        }
    }

    /// Whether records are better read past the page cache although that has room for them: filling it with
    /// large ones takes longer than reading them.
    fn comes_past_cache(&self) -> bool {
        self.left >= self.numbering.records() / WORTH_IT && (self.is_cold_and_fast)()
    }

    /// Whether most of the data is needed, and there will be room for it in the page cache.
    fn will_stay_in(&self, cached_bytes: u64) -> bool {
        self.left >= self.numbering.records() / WORTH_IT
            && self.numbering.file_bytes() <= cached_bytes / COMFORT
    }

    /// How memory is divided for sweeps, if those pay and no record is too large for what they leave.
    fn shares(&self) -> Option<Shares> {
        let shares =
            Shares::of(self.limit_bytes, self.swept_bytes, self.numbering, self.left, self.at_a_time)?;
        let largest = usize::try_from(self.numbering.most_record_bytes()).ok()?;
        let decoded = self.schema.map_or(largest, |schema| schema.bound_bytes(1, largest));
        let images = self.schema.is_some_and(|schema| schema.image_shapes().next().is_some());
        (!images && decoded.saturating_mul(2) <= shares.batch_bytes).then_some(shares)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::files::Compression;
    use crate::index::{Builder, Extent, Fingerprint};

    const RECORDS: u64 = 100_000;
    const RECORD_BYTES: u64 = 400;

    fn numbering(record_bytes: u64) -> Numbering {
        let mut index = Builder::default();
        for number in 0..RECORDS {
            index.whole(Extent { offset: number * record_bytes, end: (number + 1) * record_bytes }, true);
        }
        let size = RECORDS * record_bytes;
        let print = Fingerprint { size, modified_s: 0, modified_ns: 0, ends: 0 };
        Numbering::new(vec![Arc::new(index.finish(print, Compression::None, size))]).unwrap()
    }

    fn access(jumps: Jumps, left: u64, cached_bytes: Option<u64>, limit_bytes: usize) -> Access {
        Pass { jumps, left, cached_bytes, limit_bytes, ..pass(&numbering(RECORD_BYTES)) }.access()
    }

    /// All of the data in random order, with more than enough memory.
    fn pass(numbering: &Numbering) -> Pass<'_> {
        Pass {
            jumps: Jumps::Anywhere,
            numbering,
            schema: None,
            left: RECORDS,
            at_a_time: 512,
            cached_bytes: Some(1 << 40),
            is_cold_and_fast: &|| true,
            limit_bytes: 1 << 30,
            swept_bytes: 1 << 30,
        }
    }

    #[test]
    fn data_is_brought_in_where_it_stays_and_most_of_it_is_needed() {
        assert_eq!(access(Jumps::WithinWindows, RECORDS, None, 1 << 28).fetch_bytes, GRAIN_BYTES);
        assert!(access(Jumps::Anywhere, RECORDS, Some(1 << 30), 1 << 28).warmed);
        for (jumps, left, cached) in [
            (Jumps::Nowhere, RECORDS, Some(1 << 30)),
            (Jumps::Anywhere, 1000, Some(1 << 30)),
            (Jumps::Anywhere, RECORDS, Some(50 << 20)),
            (Jumps::Anywhere, RECORDS, None),
        ] {
            assert_eq!(access(jumps, left, cached, 1 << 28), Access::default());
        }
    }

    #[test]
    fn records_are_swept_up_where_the_page_cache_is_smaller_than_the_data() {
        assert!(access(Jumps::Anywhere, RECORDS, Some(20 << 20), 1 << 26).swept.is_some());
        // too few to come, or too little memory for many batches
        assert_eq!(access(Jumps::Anywhere, 500, Some(20 << 20), 1 << 26), Access::default());
        assert_eq!(access(Jumps::Anywhere, RECORDS, Some(20 << 20), 1 << 20), Access::default());
    }
    #[test]
    fn large_records_are_read_past_the_page_cache_where_storage_is_fast() {
        let large = numbering(150_000);
        let all = pass(&large).access();
        assert!(all.swept.is_some_and(|shares| shares.is_apart()) && !all.warmed);
        let slow = Pass { is_cold_and_fast: &|| false, ..pass(&large) };
        assert_eq!(slow.access(), Access { warmed: true, ..Access::default() });
        let few = Pass { left: 1000, ..pass(&large) };
        assert_eq!(few.access(), Access::default());
        let beyond = Pass { cached_bytes: Some(1 << 30), is_cold_and_fast: &|| false, ..pass(&large) };
        assert!(beyond.access().swept.is_some_and(|shares| shares.is_apart()));
    }
}
