//! Whether data is in memory, and how fast it comes where it is not.

use std::os::unix::fs::FileExt;
use std::time::Instant;

use crate::files::{self, BLOCK_BYTES, Files};

/// So many places all over the files are looked at.
const LOOKS: u64 = 64;
/// So many reads tell how fast storage is.
const READS: u64 = 4;
const READ_BYTES: usize = 512 << 10;
/// Storage that brings a byte in a nanosecond keeps up with any model.
const FAST_BYTES_PER_NS: u128 = 1;

/// Whether most of the data is not in memory, and comes so fast that it need not be.
pub fn is_cold_and_fast(files: &Files) -> bool {
    is_cold(files) && is_fast(files)
}

/// A shard and a place in it, for any place in all of them together.
fn place(files: &Files, mut at: u64) -> Option<(usize, u64)> {
    (0..files.count()).find_map(|shard| {
        let size = files.size(shard);
        if at < size {
            return Some((shard, at));
        }
        at -= size;
        None
    })
}

fn places(files: &Files, count: u64) -> impl Iterator<Item = (usize, u64)> {
    let all: u64 = (0..files.count()).map(|shard| files.size(shard)).sum();
    (0..count).filter_map(move |number| place(files, all / count * number))
}

fn is_cold(files: &Files) -> bool {
    let missing =
        |(shard, offset): &(usize, u64)| files.get(*shard).is_ok_and(|file| !is_in_memory(&file, *offset));
    places(files, LOOKS).filter(missing).count() as u64 > LOOKS / 2
}

/// Whether a byte can be read without waiting for storage; also where nobody can tell.
#[cfg(target_os = "linux")]
fn is_in_memory(file: &std::fs::File, offset: u64) -> bool {
    use rustix::io::{Errno, ReadWriteFlags, preadv2};
    use std::io::IoSliceMut;
    let mut byte = [0];
    let read = preadv2(file, &mut [IoSliceMut::new(&mut byte)], offset, ReadWriteFlags::NOWAIT);
    read != Err(Errno::AGAIN)
}

#[cfg(not(target_os = "linux"))]
fn is_in_memory(_: &std::fs::File, _: u64) -> bool {
    true
}

/// Whether half of the reads are fast: whatever else the machine does may hold up others.
fn is_fast(files: &Files) -> bool {
    let mut block = files::block(READ_BYTES);
    let mut fast = |(shard, offset): &(usize, u64)| {
        let Ok(file) = files.past_cache(*shard) else { return false };
        let start = Instant::now();
        let read = file.read_at(&mut block, offset / BLOCK_BYTES as u64 * BLOCK_BYTES as u64);
        read.is_ok_and(|bytes| bytes as u128 >= start.elapsed().as_nanos() * FAST_BYTES_PER_NS)
    };
    let enough = (READS / 2) as usize;
    places(files, READS).filter(|place| fast(place)).take(enough).count() == enough
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files_of(folder: &std::path::Path, sizes: &[usize]) -> Files {
        let shards: Vec<_> = sizes
            .iter()
            .enumerate()
            .map(|(number, size)| {
                let path = folder.join(number.to_string());
                std::fs::write(&path, vec![7; *size]).unwrap();
                let (_, identity) = files::open(&path).unwrap();
                (path, identity)
            })
            .collect();
        Files::new(shards, 8)
    }

    #[test]
    fn places_lie_all_over_the_shards() {
        let folder = tempfile::tempdir().unwrap();
        let files = files_of(folder.path(), &[100, 0, 300]);
        assert_eq!(places(&files, 4).collect::<Vec<_>>(), [(0, 0), (2, 0), (2, 100), (2, 200)]);
        assert_eq!(places(&files_of(folder.path(), &[]), 4).count(), 0);
    }

    #[test]
    fn what_was_just_written_is_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!is_cold_and_fast(&files_of(folder.path(), &[3 << 20])));
    }
}
