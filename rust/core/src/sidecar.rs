//! An index as a small file beside its shard: written whole or not at all, believed only if its own
//! checksum and the shard's fingerprint are right.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::files::Compression;
use crate::index::{BadRecord, Fingerprint, Gap, Index, Reason};
use crate::offsets::{BLOCK, Line, Offsets};

const MAGIC: &[u8; 8] = b"ABINDEX1";

/// The index in `sidecar`, if it is whole and belongs to the shard as it is now.
pub fn load(shard: &Path, compression: Compression, sidecar: &Path) -> Result<Option<Index>> {
    let Ok(bytes) = fs::read(sidecar) else {
        return Ok(None);
    };
    let Some(index) = from_bytes(&bytes) else {
        return Ok(None);
    };
    let fresh = index.compression == compression && index.fingerprint == Fingerprint::of_path(shard)?;
    Ok(fresh.then_some(index))
}

/// Write the index beside its final place, then move it there.
pub fn save(index: &Index, sidecar: &Path) -> Result<()> {
    let beside = temporary_beside(sidecar);
    let written = write_whole(&beside, &to_bytes(index)).and_then(|()| fs::rename(&beside, sidecar));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written.map_err(|source| Error::io(sidecar, source))
}

fn temporary_beside(path: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let unique = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}-{unique}.tmp", std::process::id()));
    path.with_file_name(name)
}

fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

pub fn to_bytes(index: &Index) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    let print = &index.fingerprint;
    let mut number = |value: u64| out.extend(value.to_le_bytes());
    number(print.size);
    number(print.modified_s.cast_unsigned());
    number(print.modified_ns.cast_unsigned());
    number(u64::from(print.ends));
    number(match index.compression {
        Compression::None => 0,
        Compression::Gzip => 1,
        Compression::Zlib => 2,
    });
    number(u64::from(index.verified));
    number(index.stream_bytes);
    number(index.records_end);
    number(index.offsets.len);
    number(index.offsets.words.len() as u64);
    number(index.gaps.len() as u64);
    number(index.bad.len() as u64);
    for line in &index.offsets.lines {
        number(line.base);
        number(line.step);
        // a block's bits start below 2^58: no shard has more records than that
        number(line.bits_at << 6 | u64::from(line.width.min(63)));
    }
    index.offsets.words.iter().for_each(|word| number(*word));
    for gap in &index.gaps {
        number(gap.offset);
        number(gap.length);
        coded(gap.reason).into_iter().for_each(&mut number);
    }
    for bad in &index.bad {
        number(bad.number);
        coded(bad.reason).into_iter().for_each(&mut number);
    }
    let crc = crc32c::crc32c(&out);
    out.extend(crc.to_le_bytes());
    out
}

/// Read by checked access alone; `None` for anything that is not exactly an index.
pub fn from_bytes(bytes: &[u8]) -> Option<Index> {
    let (body, crc) = bytes.split_last_chunk::<4>()?;
    if crc32c::crc32c(body) != u32::from_le_bytes(*crc) {
        return None;
    }
    let mut read = Numbers { rest: body.strip_prefix(MAGIC)? };
    let fingerprint = Fingerprint {
        size: read.next()?,
        modified_s: read.next()?.cast_signed(),
        modified_ns: read.next()?.cast_signed(),
        ends: u32::try_from(read.next()?).ok()?,
    };
    let compression = match read.next()? {
        0 => Compression::None,
        1 => Compression::Gzip,
        2 => Compression::Zlib,
        _ => return None,
    };
    let verified = read.next()? == 1;
    let (stream_bytes, records_end) = (read.next()?, read.next()?);
    let (len, words, gaps, bad) = (read.next()?, read.next()?, read.next()?, read.next()?);
    let lines = read.list(len.div_ceil(BLOCK as u64), 3, Numbers::line)?;
    let words = read.list(words, 1, Numbers::next)?;
    let gaps = read.list(gaps, 5, Numbers::gap)?;
    let bad = read.list(bad, 4, Numbers::bad)?;
    let offsets = Offsets { len, lines, words };
    let index = Index { fingerprint, compression, stream_bytes, verified, offsets, records_end, gaps, bad };
    (read.rest.is_empty() && consistent(&index)).then_some(index)
}

/// Every place lies within the shard and in order.
fn consistent(index: &Index) -> bool {
    let of_its_file = index.compression != Compression::None || index.stream_bytes == index.fingerprint.size;
    let ends_within = index.records_end <= index.stream_bytes;
    let counted_up = index.bad.is_sorted_by(|one, other| one.number < other.number);
    let in_order = index.gaps.is_sorted_by_key(|gap| gap.offset);
    let within = |gap: &Gap| gap.offset.checked_add(gap.length).is_some_and(|end| end <= index.stream_bytes);
    let numbered = |bad: &BadRecord| bad.number < index.records() && index.extent(bad.number).is_ok();
    let firsts = index.offsets.lines.is_sorted_by_key(|line| line.base);
    let last = index.records().checked_sub(1).is_none_or(|last| index.extent(last).is_ok());
    of_its_file
        && ends_within
        && counted_up
        && in_order
        && firsts
        && last
        && index.gaps.iter().all(within)
        && index.bad.iter().all(numbered)
}

fn coded(reason: Reason) -> [u64; 3] {
    match reason {
        Reason::Header => [0, 0, 0],
        Reason::CutHeader { left } => [1, left, 0],
        Reason::Length { claimed, left } => [2, claimed, left],
        Reason::Data { stored, computed } => [3, stored.into(), computed.into()],
        Reason::Inflate => [4, 0, 0],
        Reason::GaveUp => [5, 0, 0],
    }
}

struct Numbers<'a> {
    rest: &'a [u8],
}

impl Numbers<'_> {
    fn next(&mut self) -> Option<u64> {
        let (number, rest) = self.rest.split_first_chunk::<8>()?;
        self.rest = rest;
        Some(u64::from_le_bytes(*number))
    }

    /// `count` things of `numbers` numbers each: as many as there are bytes for, or none.
    fn list<T>(
        &mut self,
        count: u64,
        numbers: usize,
        mut one: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let count = usize::try_from(count).ok()?;
        if count.checked_mul(numbers)?.checked_mul(8)? > self.rest.len() {
            return None;
        }
        (0..count).map(|_| one(self)).collect()
    }

    fn line(&mut self) -> Option<Line> {
        let (base, step, packed) = (self.next()?, self.next()?, self.next()?);
        Some(Line { base, step, bits_at: packed >> 6, width: (packed & 63) as u32 })
    }

    fn gap(&mut self) -> Option<Gap> {
        Some(Gap { offset: self.next()?, length: self.next()?, reason: self.reason()? })
    }

    fn bad(&mut self) -> Option<BadRecord> {
        Some(BadRecord { number: self.next()?, reason: self.reason()? })
    }

    fn reason(&mut self) -> Option<Reason> {
        let (code, first, second) = (self.next()?, self.next()?, self.next()?);
        Some(match code {
            0 => Reason::Header,
            1 => Reason::CutHeader { left: first },
            2 => Reason::Length { claimed: first, left: second },
            3 => Reason::Data { stored: u32::try_from(first).ok()?, computed: u32::try_from(second).ok()? },
            4 => Reason::Inflate,
            5 => Reason::GaveUp,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{Builder, Extent};

    /// Three records of 84 bytes, two of them damaged, in a file of just these.
    fn index(compression: Compression) -> Index {
        let mut builder = Builder::default();
        let place = |number: u64| Extent { offset: number * 100, end: number * 100 + 100 };
        builder.whole(place(0), true);
        builder.bad(place(1), Reason::Header);
        builder.bad(place(2), Reason::Header);
        let fingerprint = Fingerprint { size: 300, modified_s: 0, modified_ns: 0, ends: 0 };
        builder.finish(fingerprint, compression, 300)
    }

    fn comes_back(change: impl Fn(&mut Index), compression: Compression) -> bool {
        let mut index = index(compression);
        change(&mut index);
        from_bytes(&to_bytes(&index)).is_some_and(|read| read == index)
    }

    #[test]
    fn an_index_that_says_more_than_its_file_can_hold_is_not_believed() {
        for compression in [Compression::None, Compression::Gzip] {
            assert!(comes_back(|_| (), compression));
            assert!(!comes_back(|index| index.records_end = 301, compression));
            assert!(!comes_back(|index| index.bad.swap(0, 1), compression));
            assert!(!comes_back(|index| index.bad[1].number = 1, compression));
        }
        let longer = |index: &mut Index| (index.stream_bytes, index.records_end) = (1 << 40, 1 << 40);
        assert!(!comes_back(longer, Compression::None));
        assert!(comes_back(longer, Compression::Gzip));
    }
}
