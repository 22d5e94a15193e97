//! One sweep: the records of some jobs, read in the order in which they lie, past the page cache.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use crate::buffer::Pool;
use crate::files::{self, BLOCK_BYTES, Block, Files};
use crate::gather::{Job, Place};

/// What one read takes at most: large enough for the full speed of any disk.
pub(super) const READ_BYTES: usize = 1 << 20;
/// So much is rather read in vain than one read more made.
const GAP_BYTES: u64 = 64 << 10;
/// What a record takes besides its bytes while it is swept up.
pub(super) const OVERHEAD_BYTES: usize = size_of::<Place>() + size_of::<Wanted>();

/// Sweeps over the files again and again, with one block that reads go to.
pub(super) struct Broom {
    files: Arc<Files>,
    block: Block,
}

impl Broom {
    pub fn new(files: Arc<Files>) -> Self {
        Broom { files, block: files::block(READ_BYTES) }
    }

    /// Bring the bytes of all records for which jobs have room. `false` if it was told to end before: then some
    /// of them are missing, and the jobs are worth nothing.
    pub fn sweep(&mut self, jobs: &mut [(usize, Job)], ended: impl Fn() -> bool) -> bool {
        let wanted = in_files_order(jobs);
        let mut rest = &wanted[..];
        let mut file: Option<(u32, File)> = None;
        while let Some(first) = rest.first() {
            if ended() {
                return false;
            }
            let start = first.offset / BLOCK_BYTES as u64 * BLOCK_BYTES as u64;
            let (stretch, behind) = rest.split_at(stretch_length(rest, start, jobs));
            rest = behind;
            if file.as_ref().is_none_or(|(shard, _)| *shard != first.shard) {
                file = self.files.past_cache(first.shard as usize).ok().map(|file| (first.shard, file));
            }
            let read =
                file.as_ref().and_then(|(_, file)| filled(file, start, stretch, jobs, &mut self.block));
            for one in stretch {
                deliver(one, start, read.unwrap_or_default(), jobs);
            }
        }
        true
    }
}

/// One record of a sweep, and whose it is.
#[derive(Clone, Copy)]
struct Wanted {
    shard: u32,
    job: u32,
    row: u32,
    offset: u64,
}

/// What a job holds on to when its bytes are there.
pub(super) fn bytes_of(job: &Job) -> usize {
    let frames: u64 = job.places.iter().map(|place| place.extent.bytes()).sum();
    usize::try_from(frames).unwrap_or(usize::MAX).saturating_add(job.places.len() * OVERHEAD_BYTES)
}

/// Give every record of a job its place among the job's own bytes.
pub(super) fn hold(job: &mut Job, pool: &Arc<Pool>) {
    let mut at = 0_usize;
    for place in &mut job.places {
        place.held_at = Some(at);
        at += place.extent.bytes() as usize;
    }
    job.held = pool.take(at);
    job.held.appended(at);
    job.is_in_files = true;
}

fn in_files_order(jobs: &[(usize, Job)]) -> Vec<Wanted> {
    let held = |(_, job): &&(usize, Job)| !job.held.is_empty();
    let mut wanted: Vec<_> = Vec::with_capacity(jobs.iter().map(|(_, job)| job.places.len()).sum());
    for (number, (_, job)) in jobs.iter().enumerate().filter(|(_, job)| held(job)) {
        wanted.extend(job.places.iter().enumerate().map(|(row, place)| Wanted {
            shard: place.shard as u32,
            job: number as u32,
            row: row as u32,
            offset: place.extent.offset,
        }));
    }
    wanted.sort_unstable_by_key(|one| (one.shard, one.offset));
    wanted
}

/// How many records come by one read from `start` on; at least one.
fn stretch_length(wanted: &[Wanted], start: u64, jobs: &[(usize, Job)]) -> usize {
    let shard = wanted.first().map(|one| one.shard);
    let mut end = wanted.first().map_or(0, |one| end_of(one, jobs));
    let adjoins = |one: &&Wanted| {
        let near = Some(one.shard) == shard && one.offset <= end.saturating_add(GAP_BYTES);
        end = end_of(one, jobs).max(end);
        near && end - start <= READ_BYTES as u64
    };
    1 + wanted[1..].iter().take_while(adjoins).count()
}

fn end_of(one: &Wanted, jobs: &[(usize, Job)]) -> u64 {
    jobs[one.job as usize].1.places[one.row as usize].extent.end
}

/// What a file has from `start` to the end of a stretch, or as much of that as one read takes.
fn filled<'a>(
    file: &File,
    start: u64,
    stretch: &[Wanted],
    jobs: &[(usize, Job)],
    block: &'a mut Block,
) -> Option<&'a [u8]> {
    let end = stretch.iter().map(|one| end_of(one, jobs)).max()?;
    let bytes = usize::try_from(end - start).ok()?.next_multiple_of(BLOCK_BYTES).min(READ_BYTES);
    let read = file.read_at(&mut block[..bytes], start).ok()?;
    Some(&block[..read])
}

/// Put a record's bytes where its job has room for them; where they are missing, it is still to be read.
fn deliver(one: &Wanted, start: u64, read: &[u8], jobs: &mut [(usize, Job)]) {
    let job = &mut jobs[one.job as usize].1;
    let place = &mut job.places[one.row as usize];
    let from = (place.extent.offset - start) as usize;
    let frame = read.get(from..from + place.extent.bytes() as usize);
    match (frame, place.held_at) {
        (Some(frame), Some(at)) => job.held.as_mut_slice()[at..at + frame.len()].copy_from_slice(frame),
        _ => place.held_at = None,
    }
}
