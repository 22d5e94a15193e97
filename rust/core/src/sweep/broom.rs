//! One section of a round: the records wanted of it, read in the order in which they lie, past the page cache.

use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::files::{self, BLOCK_BYTES, Block, Files, PastCache};
use crate::index::Extent;
use crate::source::Numbering;

/// What one read takes at most: large enough for the full speed of any disk.
pub(super) const READ_BYTES: usize = 1 << 20;
/// So much is rather read in vain than one read more made.
const GAP_BYTES: u64 = 64 << 10;

/// A record that is wanted, and whose it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Due {
    pub number: u64,
    pub group: u32,
    pub row: u32,
}

/// The same with the place where it lies.
struct Lying {
    due: Due,
    shard: usize,
    extent: Extent,
}

/// Records that come by one read, which begins at `start`, and what they are in.
struct Stretch {
    shard: usize,
    start: u64,
    end: u64,
    records: Vec<Lying>,
}

/// Sweeps over the files again and again, with a few blocks that reads go to.
pub(super) struct Broom {
    files: Arc<Files>,
    numbering: Arc<Numbering>,
    blocks: Vec<Block>,
}

impl Broom {
    /// While one copies what it read, others read: an exact shuffle of 1.8 GB that took 12 s with one reader takes
    /// 10 s.
    const READERS: usize = 3;

    pub fn new(files: Arc<Files>, numbering: Arc<Numbering>) -> Self {
        let blocks = (0..Self::READERS).map(|_| files::block(READ_BYTES)).collect();
        Broom { files, numbering, blocks }
    }

    /// Read records that are due, in order of their numbers, and deliver those that came whole, unless it is told
    /// to end before. Something else is done meanwhile.
    pub fn sweep<T>(
        &mut self,
        due: &[Due],
        ended: impl Fn() -> bool + Sync,
        deliver: impl FnMut(Due, &[u8]) + Send,
        meanwhile: impl FnOnce() -> T,
    ) -> T {
        let (files, numbering) = (&self.files, &self.numbering);
        let stretches = Mutex::new(stretches(due, numbering));
        let next = || stretches.lock().unwrap_or_else(PoisonError::into_inner).next();
        let deliver = Mutex::new(deliver);
        let read = |block: &mut Block| {
            let mut opened = PastCache::default();
            while !ended()
                && let Some(stretch) = next()
            {
                let Some(read) = filled(&stretch, files, &mut opened, block) else { continue };
                let mut deliver = deliver.lock().unwrap_or_else(PoisonError::into_inner);
                for one in &stretch.records {
                    if let Some(frame) = frame_of(one.extent, stretch.start, read) {
                        deliver(one.due, frame);
                    }
                }
            }
        };
        let Some((own, others)) = self.blocks.split_first_mut() else { return meanwhile() };
        thread::scope(|scope| {
            for block in others {
                let thread = thread::Builder::new().name("anybatch-read".into());
                // where there are no more threads, those that are there do it all
                let _ = thread.spawn_scoped(scope, || read(block));
            }
            let made = meanwhile();
            read(own);
            made
        })
    }
}

/// The reads that bring all records that are due.
fn stretches(due: &[Due], numbering: &Numbering) -> impl Iterator<Item = Stretch> {
    let mut rest = due.iter().filter_map(|due| lying(*due, numbering)).peekable();
    std::iter::from_fn(move || {
        let first = rest.next()?;
        let (shard, start) = (first.shard, first.extent.offset / BLOCK_BYTES as u64 * BLOCK_BYTES as u64);
        let (mut end, mut records) = (first.extent.end, vec![first]);
        while let Some(one) = rest.next_if(|one| one.shard == shard && adjoins(one.extent, start, end)) {
            end = one.extent.end.max(end);
            records.push(one);
        }
        Some(Stretch { shard, start, end, records })
    })
}

fn lying(due: Due, numbering: &Numbering) -> Option<Lying> {
    let place = numbering.place(due.number, 0).ok()?;
    Some(Lying { due, shard: place.shard, extent: place.extent })
}

/// Whether a record comes by the same read as those from `start` to `end`.
fn adjoins(extent: Extent, start: u64, end: u64) -> bool {
    extent.offset <= end.saturating_add(GAP_BYTES) && extent.end.max(end) - start <= READ_BYTES as u64
}

/// What a file has of a stretch, or as much of that as one read takes.
fn filled<'a>(
    stretch: &Stretch,
    files: &Files,
    opened: &mut PastCache,
    block: &'a mut Block,
) -> Option<&'a [u8]> {
    let bytes = usize::try_from(stretch.end - stretch.start).ok()?;
    let bytes = bytes.next_multiple_of(BLOCK_BYTES).min(READ_BYTES);
    let read = opened.get(files, stretch.shard).ok()?.read_at(&mut block[..bytes], stretch.start).ok()?;
    Some(&block[..read])
}

/// A record's bytes in what was read from `start` on, if all of them are there.
fn frame_of(extent: Extent, start: u64, read: &[u8]) -> Option<&[u8]> {
    let from = (extent.offset - start) as usize;
    read.get(from..from + extent.bytes() as usize)
}
