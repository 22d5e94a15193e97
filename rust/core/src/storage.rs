//! Whether data is in memory, and how fast it comes where it is not.

use std::io::IoSliceMut;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use aligned_vec::{AVec, ConstAlign};

use crate::files::{BLOCK_BYTES, Files};

/// So many places all over the files are looked at.
const LOOKS: u64 = 64;
/// So many reads tell how fast storage is.
const READS: usize = 4;
const READ_BYTES: usize = 1 << 20;
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
        |(shard, offset): &(usize, u64)| files.get(*shard).is_ok_and(|file| !files_in_memory(&file, *offset));
    places(files, LOOKS).filter(missing).count() as u64 > LOOKS / 2
}

/// Whether a byte can be read without waiting for storage; also where nobody can tell.
#[cfg(target_os = "linux")]
fn files_in_memory(file: &std::fs::File, offset: u64) -> bool {
    use rustix::io::{Errno, ReadWriteFlags, preadv2};
    let mut byte = [0];
    let read = preadv2(file, &mut [IoSliceMut::new(&mut byte)], offset, ReadWriteFlags::NOWAIT);
    read != Err(Errno::AGAIN)
}

#[cfg(not(target_os = "linux"))]
fn files_in_memory(_: &std::fs::File, _: u64) -> bool {
    true
}

fn is_fast(files: &Files) -> bool {
    let mut block = AVec::<u8, ConstAlign<BLOCK_BYTES>>::with_capacity(BLOCK_BYTES, READ_BYTES);
    block.resize(READ_BYTES, 0);
    let (mut spent, mut bytes) = (Duration::ZERO, 0);
    for (shard, offset) in places(files, READS as u64) {
        let Ok(file) = files.past_cache(shard) else { return false };
        let start = Instant::now();
        let Ok(read) = file.read_at(&mut block, offset / BLOCK_BYTES as u64 * BLOCK_BYTES as u64) else {
            return false;
        };
        spent += start.elapsed();
        bytes += read as u128;
    }
    bytes >= spent.as_nanos() * FAST_BYTES_PER_NS
}
