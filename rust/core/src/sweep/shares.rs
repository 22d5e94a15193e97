//! Where sweeping pays, and how the memory of a stream is divided then.

use super::group::OVERHEAD_BYTES;
use super::sections::SECTIONS;
use crate::source::Numbering;

/// Records that lie further apart than this, on average, are not worth reading all between them. Those that are
/// larger are worth a read of their own.
const SPACING_BYTES: u64 = 64 << 10;
/// Fewer jobs than this on their way in a round over everything are not worth it.
const LEAST_JOBS: u64 = 16;
/// Large records need no more than this at a time to keep storage busy, or two jobs.
const APART_BYTES: u64 = 32 << 20;

/// Fewer of them at a time are not worth it.
const LEAST_APART: u64 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    pub manner: Manner,
    /// What is left for batches.
    pub batch_bytes: usize,
}

/// How records are read ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Small ones by large reads of all that is between them: all that is held, and how much of it joins at every
    /// section of a round.
    InRounds { held_bytes: usize, joining_bytes: usize },
    /// Each by itself: what one sweep may bring, two of which are made at a time.
    Apart { sweep_bytes: usize },
}

impl Shares {
    /// The shares where sweeping pays, for so many records to come, some at a time; `None` where it does not.
    /// Sweeps take no more than `swept_bytes` together, and three quarters of the limit.
    pub fn of(
        limit_bytes: usize,
        swept_bytes: usize,
        numbering: &Numbering,
        left: u64,
        at_a_time: u64,
    ) -> Option<Self> {
        let file_bytes = numbering.file_bytes();
        let record_bytes = file_bytes / numbering.records().max(1);
        if record_bytes >= SPACING_BYTES {
            let enough = APART_BYTES.max(at_a_time.saturating_mul(2 * record_bytes));
            let enough = usize::try_from(enough).unwrap_or(usize::MAX);
            let sweep_bytes = (limit_bytes / 8).min(swept_bytes / 3).min(enough);
            let pays = (sweep_bytes as u64 / record_bytes).min(left) >= at_a_time.max(LEAST_APART);
            // memory is kept for the next sweep, so there may be that of three
            let batch_bytes = limit_bytes - 3 * sweep_bytes;
            pays.then_some(Shares { manner: Manner::Apart { sweep_bytes }, batch_bytes })
        } else {
            let held_bytes = (limit_bytes / 4 * 3).min(swept_bytes);
            let joining = joining(held_bytes as u64, record_bytes);
            let on_their_way = (joining * SECTIONS as u64).min(left);
            let pays = on_their_way.saturating_mul(SPACING_BYTES) >= file_bytes
                && on_their_way >= at_a_time.saturating_mul(LEAST_JOBS);
            let joining_bytes = (joining * (record_bytes + OVERHEAD_BYTES as u64)) as usize;
            let manner = Manner::InRounds { held_bytes, joining_bytes };
            pays.then_some(Shares { manner, batch_bytes: limit_bytes - held_bytes })
        }
    }

    pub fn is_apart(&self) -> bool {
        matches!(self.manner, Manner::Apart { .. })
    }
}

/// How many records can join at every section: those that joined `n` sections ago hold `n` parts of their bytes,
/// and beside them there are those of one group that is complete and of the section that is being read.
fn joining(held_bytes: u64, record_bytes: u64) -> u64 {
    let sections = SECTIONS as u64;
    held_bytes / ((sections + 3) * record_bytes / 2 + sections * OVERHEAD_BYTES as u64)
}
