//! Large records, each by a read of its own past the page cache, many of them under way at a time.

use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::buffer::{FROM_SYSTEM, Pool};
use crate::files::{BLOCK_BYTES, Files, PastCache};
use crate::gather::{Job, Place};
use crate::index::Extent;

const BLOCK: u64 = BLOCK_BYTES as u64;

pub(super) struct Readers {
    files: Arc<Files>,
}

impl Readers {
    /// As many reads at a time keep a fast disk busy, and are no burden to a slow one.
    const COUNT: usize = 16;

    pub fn new(files: Arc<Files>) -> Self {
        Readers { files }
    }

    /// Bring the bytes of all records for which jobs have room. `false` if it was told to end before: then some
    /// of them are missing, and the jobs are worth nothing. When the last reads are under way, it says so.
    pub fn sweep(
        &self,
        jobs: &mut [(usize, Job)],
        ended: impl Fn() -> bool + Sync,
        all_begun: impl FnOnce(),
    ) -> bool {
        let wanted = jobs.iter_mut().filter(|(_, job)| !job.held.is_empty());
        let slots = Mutex::new(wanted.flat_map(|(_, job)| slots(job)));
        let next = || slots.lock().unwrap_or_else(PoisonError::into_inner).next();
        let read = || {
            let mut opened = PastCache::default();
            while !ended()
                && let Some((place, slot)) = next()
            {
                if !self.fill(place, slot, &mut opened) {
                    place.held_at = None;
                }
            }
        };
        thread::scope(|scope| {
            for _ in 1..Self::COUNT {
                let thread = thread::Builder::new().name("anybatch-read".into());
                // where there are no more threads, those that are there do it all
                let _ = thread.spawn_scoped(scope, read);
            }
            read();
            all_begun();
        });
        !ended()
    }

    /// Read a record's blocks into its slot; `false` if it is still to be read.
    fn fill(&self, place: &Place, slot: &mut [u8], opened: &mut PastCache) -> bool {
        let Extent { offset, end } = place.extent;
        let from = blocks(place.extent).0;
        let read = opened.get(&self.files, place.shard).ok().and_then(|file| file.read_at(slot, from).ok());
        offset < end && read.is_some_and(|read| read as u64 >= end - from)
    }
}

/// From where to where the blocks of a record go.
fn blocks(Extent { offset, end }: Extent) -> (u64, u64) {
    (offset / BLOCK * BLOCK, end.div_ceil(BLOCK).saturating_mul(BLOCK))
}

fn slot_bytes(place: &Place) -> usize {
    let (from, to) = blocks(place.extent);
    usize::try_from(to - from).unwrap_or(usize::MAX)
}

/// What a job holds on to when its bytes are there.
pub(super) fn bytes_of(job: &Job) -> usize {
    let slots = job.places.iter().map(slot_bytes).fold(0, usize::saturating_add);
    job.places.len() * size_of::<Place>() + rounded(slots)
}

/// A little more, and nearly always the same: so that the memory of one job will do for the next, and need not be
/// cleared again by the system.
fn rounded(bytes: usize) -> usize {
    bytes.checked_next_multiple_of((bytes / 16).next_power_of_two()).unwrap_or(bytes)
}

/// Give every record of a job its place among the job's own bytes: whole blocks, as they come from storage.
pub(super) fn hold(job: &mut Job, pool: &Arc<Pool>) {
    let mut at = 0;
    for place in &mut job.places {
        place.held_at = Some(at + (place.extent.offset % BLOCK) as usize);
        at += slot_bytes(place);
    }
    // reads past the page cache are refused where memory does not begin with a page
    job.held = pool.take(rounded(at).max(FROM_SYSTEM));
    job.held.ask_for_large_pages();
    job.held.appended(at);
    job.is_in_files = true;
}

fn slots(job: &mut Job) -> impl Iterator<Item = (&mut Place, &mut [u8])> {
    let mut rest = job.held.as_mut_slice();
    job.places.iter_mut().map(move |place| {
        let (slot, behind) = std::mem::take(&mut rest).split_at_mut(slot_bytes(place));
        rest = behind;
        (place, slot)
    })
}
