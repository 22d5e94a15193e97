//! A shard as a stream of bytes that can be looked at by position: a plain file anywhere, a
//! compressed one only from where it was last forgotten onwards.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use flate2::{Decompress, FlushDecompress, Status};

use crate::error::{Error, Result};
use crate::files::{self, Compression, Identity};

/// No record may claim more: protobuf's own limit for one message.
const LARGEST_PLAIN: u64 = i32::MAX as u64;
/// A compressed record has to be held in memory while it is checked.
const LARGEST_COMPRESSED: u64 = 256 << 20;
/// What deflate can make of one byte at the very best.
const DEFLATE_RATIO: u64 = 1032;
const BLOCK: usize = 1 << 20;

pub trait Window: Send {
    /// Up to `want` bytes at `offset`, fewer only at the end of the stream. If the file has to be
    /// asked, `ahead` more bytes are fetched with them.
    fn view(&mut self, offset: u64, want: usize, ahead: usize) -> Result<&[u8]>;
    /// Nothing before `offset` will be looked at again.
    fn forget(&mut self, before: u64);
    /// Where the stream ends, as soon as that is known.
    fn end(&self) -> Option<u64>;
    /// How much of the file has been passed, for progress.
    fn file_position(&self, offset: u64) -> u64;
    /// The most bytes a record at `offset` can truly have.
    fn largest_record(&self, offset: u64) -> u64;
    /// Whether the stream ended because it could not be decompressed further.
    fn broken(&self) -> bool {
        false
    }
    /// Reads will be few and far between: no readahead.
    fn expect_hops(&mut self) {}
}

pub fn open(path: &Path, compression: Compression) -> Result<(Box<dyn Window>, Identity)> {
    let (file, identity) = files::open(path)?;
    let window: Box<dyn Window> = match compression {
        Compression::None => Box::new(Plain::new(path, file, identity.size)),
        _ => Box::new(Inflated::new(path, file, identity.size, compression)),
    };
    Ok((window, identity))
}

struct Plain {
    path: PathBuf,
    file: File,
    size: u64,
    start: u64,
    block: Vec<u8>,
    hops: bool,
}

impl Plain {
    fn new(path: &Path, file: File, size: u64) -> Self {
        Plain { path: path.to_path_buf(), file, size, start: 0, block: Vec::new(), hops: false }
    }

    fn held(&self, offset: u64, want: usize) -> Option<std::ops::Range<usize>> {
        let from = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        let to = from.checked_add(want)?;
        (to <= self.block.len()).then_some(from..to)
    }
}

impl Window for Plain {
    fn view(&mut self, offset: u64, want: usize, ahead: usize) -> Result<&[u8]> {
        let left = self.size.saturating_sub(offset);
        let want = want.min(usize::try_from(left).unwrap_or(usize::MAX));
        if self.held(offset, want).is_none() {
            let fetch = want.saturating_add(ahead).min(usize::try_from(left).unwrap_or(usize::MAX));
            self.block.resize(fetch, 0);
            self.start = offset;
            let read = files::read_at(&self.file, &self.path, &mut self.block, offset);
            if read.is_err() {
                // what was not read is no data, however often it is asked for
                self.block.clear();
            }
            read?;
        }
        let held = self.held(offset, want).unwrap_or(0..0);
        Ok(&self.block[held])
    }

    fn forget(&mut self, _before: u64) {}

    fn end(&self) -> Option<u64> {
        Some(self.size)
    }

    fn file_position(&self, offset: u64) -> u64 {
        offset.min(self.size)
    }

    fn largest_record(&self, offset: u64) -> u64 {
        self.size.saturating_sub(offset).saturating_sub(crate::frame::OVERHEAD).min(LARGEST_PLAIN)
    }

    fn expect_hops(&mut self) {
        if std::mem::replace(&mut self.hops, true) {
            return;
        }
        // advice only: where it is refused, reading works all the same
        let _ = rustix::fs::fadvise(&self.file, 0, None, rustix::fs::Advice::Random);
    }
}

/// A compressed stream, member after member, so that pasted shards are read to the end.
struct Inflated {
    path: PathBuf,
    input: BufReader<File>,
    compression: Compression,
    inflate: Decompress,
    file_size: u64,
    file_read: u64,
    start: u64,
    held: Vec<u8>,
    /// What one call makes: kept, for a file may have a member every twenty bytes.
    made: Box<[u8]>,
    forgotten: usize,
    ended: bool,
    broken: bool,
}

fn decompressor(compression: Compression) -> Decompress {
    match compression {
        Compression::Gzip => Decompress::new_gzip(15),
        _ => Decompress::new(true),
    }
}

impl Inflated {
    fn new(path: &Path, file: File, size: u64, compression: Compression) -> Self {
        Inflated {
            path: path.to_path_buf(),
            input: BufReader::with_capacity(proportionate(size, 256 << 10), file),
            compression,
            inflate: decompressor(compression),
            file_size: size,
            file_read: 0,
            start: 0,
            held: Vec::new(),
            made: vec![0; proportionate(size, BLOCK)].into(),
            forgotten: 0,
            ended: false,
            broken: false,
        }
    }

    /// Decompress some more. What comes out before an error is good, also of the call that fails.
    fn fetch(&mut self) -> Result<()> {
        self.drop_forgotten();
        let input = self.input.fill_buf().map_err(|source| Error::io(&self.path, source))?;
        let (exhausted, read, made) = (input.is_empty(), self.inflate.total_in(), self.inflate.total_out());
        let outcome = self.inflate.decompress(input, &mut self.made, FlushDecompress::None);
        let (read, made) = (self.inflate.total_in() - read, self.inflate.total_out() - made);
        self.input.consume(usize::try_from(read).unwrap_or(0));
        self.file_read += read;
        self.held.extend_from_slice(&self.made[..usize::try_from(made).unwrap_or(0)]);
        match outcome {
            Ok(Status::StreamEnd) => self.next_member(),
            Ok(_) if exhausted && made == 0 => {
                self.break_off();
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(_) => {
                self.break_off();
                Ok(())
            }
        }
    }

    /// Deflate has no place to take up again.
    fn break_off(&mut self) {
        (self.ended, self.broken) = (true, true);
    }

    fn next_member(&mut self) -> Result<()> {
        let rest = self.input.fill_buf().map_err(|source| Error::io(&self.path, source))?;
        self.ended = rest.is_empty();
        self.inflate = decompressor(self.compression);
        Ok(())
    }

    fn drop_forgotten(&mut self) {
        if self.forgotten >= BLOCK.max(self.held.len() / 2) {
            self.held.drain(..self.forgotten);
            self.start += self.forgotten as u64;
            self.forgotten = 0;
            self.held.shrink_to(8 * BLOCK);
        }
    }
}

/// No more memory at a time than a small file can be worth.
fn proportionate(file_bytes: u64, most: usize) -> usize {
    usize::try_from(file_bytes.saturating_mul(4)).unwrap_or(most).clamp(4096, most)
}

impl Window for Inflated {
    fn view(&mut self, offset: u64, want: usize, _ahead: usize) -> Result<&[u8]> {
        let misuse = || Error::Misuse(format!("byte {offset} of a compressed shard was passed already"));
        loop {
            let from =
                usize::try_from(offset.checked_sub(self.start).ok_or_else(misuse)?).unwrap_or(usize::MAX);
            if from.saturating_add(want) <= self.held.len() || self.ended {
                let from = from.min(self.held.len());
                let to = from.saturating_add(want).min(self.held.len());
                return Ok(&self.held[from..to]);
            }
            self.fetch()?;
        }
    }

    fn forget(&mut self, before: u64) {
        let passed = usize::try_from(before.saturating_sub(self.start)).unwrap_or(usize::MAX);
        self.forgotten = passed.min(self.held.len()).max(self.forgotten);
    }

    fn end(&self) -> Option<u64> {
        self.ended.then(|| self.start + self.held.len() as u64)
    }

    fn file_position(&self, _offset: u64) -> u64 {
        self.file_read.min(self.file_size)
    }

    fn largest_record(&self, offset: u64) -> u64 {
        let possible = match self.end() {
            Some(end) => end.saturating_sub(offset),
            None => self.file_size.saturating_mul(DEFLATE_RATIO),
        };
        possible.min(LARGEST_COMPRESSED)
    }

    fn broken(&self) -> bool {
        self.broken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn bytes_that_could_not_be_read_are_not_there_the_next_time_either() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shard");
        std::fs::write(&path, [7; 100]).unwrap();
        let mut window = Plain::new(&path, File::open(&path).unwrap(), 200);
        assert_eq!(window.view(0, 50, 0).unwrap(), [7; 50]);
        for _ in 0..2 {
            assert!(window.view(60, 100, 0).is_err());
        }
        assert_eq!(window.view(60, 40, 0).unwrap(), [7; 40]);
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    #[test]
    fn members_without_bytes_take_no_memory_and_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shard");
        let bytes: Vec<u8> = (0..3 * BLOCK).map(|at| (at * 31 + at / 257) as u8).collect();
        let shard = [gzip(&[]).repeat(500), gzip(&bytes), gzip(&[]).repeat(500), gzip(b"end")].concat();
        std::fs::write(&path, &shard).unwrap();
        let file = File::open(&path).unwrap();
        let mut window = Inflated::new(&path, file, shard.len() as u64, Compression::Gzip);
        for _ in 0..500 {
            window.fetch().unwrap();
            assert_eq!(window.held.capacity(), 0);
        }
        assert!(window.view(0, bytes.len() + 100, 0).unwrap() == [&bytes[..], b"end"].concat());
        assert!(window.end() == Some(bytes.len() as u64 + 3) && !window.broken());
    }
}
