//! Where sweeping pays, and how the memory of a stream is divided then.

use super::broom::OVERHEAD_BYTES;
use crate::source::Numbering;

/// Records that lie further apart than this, on average, are not worth reading all between them. Those that are
/// larger are worth a read of their own.
const SPACING_BYTES: u64 = 64 << 10;
/// Fewer jobs than this in one sweep over everything are not worth it.
const LEAST_JOBS: u64 = 16;
/// Large records need no more than this at a time to keep storage busy, or two jobs.
const APART_BYTES: u64 = 32 << 20;

/// Fewer of them at a time are not worth it.
const LEAST_APART: u64 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// What one sweep may bring; there are two at a time.
    pub sweep_bytes: usize,
    /// What is left for batches.
    pub batch_bytes: usize,
    /// Each record is read by itself.
    pub apart: bool,
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
        let record_bytes = file_bytes / numbering.records().max(1) + OVERHEAD_BYTES as u64;
        let brought = |sweep_bytes: usize| (sweep_bytes as u64 / record_bytes).min(left);
        if record_bytes >= SPACING_BYTES {
            let enough = APART_BYTES.max(at_a_time.saturating_mul(2 * record_bytes));
            let enough = usize::try_from(enough).unwrap_or(usize::MAX);
            let sweep_bytes = (limit_bytes / 8).min(swept_bytes / 3).min(enough);
            let pays = brought(sweep_bytes) >= at_a_time.max(LEAST_APART);
            // memory is kept for the next sweep, so there may be that of three
            let batch_bytes = limit_bytes - 3 * sweep_bytes;
            pays.then_some(Shares { sweep_bytes, batch_bytes, apart: true })
        } else {
            let sweep_bytes = (limit_bytes / 8 * 3).min(swept_bytes / 2);
            let records = brought(sweep_bytes);
            let pays = records.saturating_mul(SPACING_BYTES) >= file_bytes
                && records >= at_a_time.saturating_mul(LEAST_JOBS);
            let batch_bytes = limit_bytes - 2 * sweep_bytes;
            pays.then_some(Shares { sweep_bytes, batch_bytes, apart: false })
        }
    }
}
