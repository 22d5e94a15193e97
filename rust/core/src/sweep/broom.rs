//! One section of a round: the records wanted of it, read in the order in which they lie, past the page cache.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use crate::files::{self, BLOCK_BYTES, Block, Files};
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

/// Sweeps over the files again and again, with one block that reads go to.
pub(super) struct Broom {
    files: Arc<Files>,
    numbering: Arc<Numbering>,
    block: Block,
}

impl Broom {
    pub fn new(files: Arc<Files>, numbering: Arc<Numbering>) -> Self {
        Broom { files, numbering, block: files::block(READ_BYTES) }
    }

    /// Read records that are due, in order of their numbers, and deliver those that came whole. `false` if it was
    /// told to end before.
    pub fn sweep(
        &mut self,
        due: &[Due],
        ended: impl Fn() -> bool,
        mut deliver: impl FnMut(Due, &[u8]),
    ) -> bool {
        let numbering = Arc::clone(&self.numbering);
        let mut rest = due.iter().filter_map(|due| lying(*due, &numbering)).peekable();
        let mut stretch = Vec::new();
        let mut file: Option<(usize, File)> = None;
        while let Some(first) = rest.next() {
            if ended() {
                return false;
            }
            let (shard, start) = (first.shard, first.extent.offset / BLOCK_BYTES as u64 * BLOCK_BYTES as u64);
            let mut end = first.extent.end;
            stretch.clear();
            stretch.push(first);
            while let Some(one) = rest.next_if(|one| one.shard == shard && adjoins(one.extent, start, end)) {
                end = one.extent.end.max(end);
                stretch.push(one);
            }
            if file.as_ref().is_none_or(|(opened, _)| *opened != shard) {
                file = self.files.past_cache(shard).ok().map(|file| (shard, file));
            }
            let read = file.as_ref().and_then(|(_, file)| filled(file, start, end, &mut self.block));
            for one in &stretch {
                if let Some(frame) = read.and_then(|read| frame_of(one.extent, start, read)) {
                    deliver(one.due, frame);
                }
            }
        }
        true
    }
}

fn lying(due: Due, numbering: &Numbering) -> Option<Lying> {
    let place = numbering.place(due.number, 0).ok()?;
    Some(Lying { due, shard: place.shard, extent: place.extent })
}

/// Whether a record comes by the same read as those from `start` to `end`.
fn adjoins(extent: Extent, start: u64, end: u64) -> bool {
    extent.offset <= end.saturating_add(GAP_BYTES) && extent.end.max(end) - start <= READ_BYTES as u64
}

/// What a file has from `start` to `end`, or as much of that as one read takes.
fn filled<'a>(file: &File, start: u64, end: u64, block: &'a mut Block) -> Option<&'a [u8]> {
    let bytes = usize::try_from(end - start).ok()?.next_multiple_of(BLOCK_BYTES).min(READ_BYTES);
    let read = file.read_at(&mut block[..bytes], start).ok()?;
    Some(&block[..read])
}

/// A record's bytes in what was read from `start` on, if all of them are there.
fn frame_of(extent: Extent, start: u64, read: &[u8]) -> Option<&[u8]> {
    let from = (extent.offset - start) as usize;
    read.get(from..from + extent.bytes() as usize)
}
