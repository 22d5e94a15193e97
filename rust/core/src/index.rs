//! What is known about one shard: where its records are, what is damaged, and which file that was.

use std::fmt;
use std::fs::File;
use std::path::Path;

use crate::error::{Error, Result};
use crate::files::{self, Compression, Identity};
use crate::frame::{Mismatch, OVERHEAD};
use crate::offsets::{self, Offsets};

mod extents;

/// A record with its framing, as byte positions in the shard's uncompressed stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    pub offset: u64,
    pub end: u64,
}

impl Extent {
    pub fn bytes(&self) -> u64 {
        self.end.saturating_sub(self.offset)
    }

    pub fn data_bytes(&self) -> u64 {
        self.bytes().saturating_sub(OVERHEAD)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    Header,
    CutHeader { left: u64 },
    Length { claimed: u64, left: u64 },
    Data { stored: u32, computed: u32 },
    Inflate,
    GaveUp,
}

impl From<Mismatch> for Reason {
    fn from(Mismatch { stored, computed }: Mismatch) -> Self {
        Reason::Data { stored, computed }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Header => write!(out, "no record header with a right checksum"),
            Reason::CutHeader { left } => write!(out, "cut short: {left} of a header's 12 bytes"),
            Reason::Length { claimed, left } => {
                write!(out, "the header claims {claimed} bytes of data where {left} can be")
            }
            Reason::Data { stored, computed } => {
                write!(out, "data checksum is {computed:#010x}, stored {stored:#010x}")
            }
            Reason::Inflate => {
                write!(out, "the compressed stream is damaged; nothing after this point can be read")
            }
            Reason::GaveUp => write!(out, "too many false record headers; the rest was not searched"),
        }
    }
}

/// A stretch of bytes that holds no whole record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    pub offset: u64,
    pub length: u64,
    pub reason: Reason,
}

/// A record that has its place, and its number, but whose data is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadRecord {
    pub number: u64,
    pub reason: Reason,
}

/// Which file an index belongs to: its size, its time, and a checksum of both of its ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint {
    pub size: u64,
    pub modified_s: i64,
    pub modified_ns: i64,
    pub ends: u32,
}

const END_BYTES: u64 = 4096;

impl Fingerprint {
    pub fn of(path: &Path, file: &File, identity: &Identity) -> Result<Self> {
        let size = identity.size;
        let head = size.min(END_BYTES);
        let tail = (size - head).min(END_BYTES);
        let mut ends = vec![0; usize::try_from(head + tail).unwrap_or(0)];
        let (first, last) = ends.split_at_mut(usize::try_from(head).unwrap_or(0));
        files::read_at(file, path, first, 0)?;
        files::read_at(file, path, last, size - tail)?;
        Ok(Fingerprint {
            size,
            modified_s: identity.modified_s,
            modified_ns: identity.modified_ns,
            ends: crc32c::crc32c(&ends),
        })
    }

    pub fn of_path(path: &Path) -> Result<Self> {
        let (file, identity) = files::open(path)?;
        Self::of(path, &file, &identity)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    pub fingerprint: Fingerprint,
    pub compression: Compression,
    /// Length of the uncompressed stream.
    pub stream_bytes: u64,
    /// Every record's data CRC was checked.
    pub verified: bool,
    pub offsets: Offsets,
    pub records_end: u64,
    pub gaps: Vec<Gap>,
    pub bad: Vec<BadRecord>,
}

impl Index {
    /// How many records have a number: whole ones, and damaged ones whose place is known.
    pub fn records(&self) -> u64 {
        self.offsets.len()
    }

    pub fn extent(&self, number: u64) -> Result<Extent> {
        self.placed(number, self.offsets.get(number), self.offsets.get(number + 1))
    }

    /// Where a record lies of which it is known where it starts, and where the next one does.
    #[inline]
    fn placed(&self, number: u64, offset: Option<u64>, next: Option<u64>) -> Result<Extent> {
        let missing =
            || Error::Misuse(format!("there is no record {number}: the shard has {}", self.records()));
        let offset = offset.ok_or_else(missing)?;
        let next = next.unwrap_or(self.records_end);
        let gap = self.gaps.get(self.gaps.partition_point(|gap| gap.offset <= offset));
        let end = gap.map_or(next, |gap| next.min(gap.offset));
        if end.saturating_sub(offset) < OVERHEAD || end > self.stream_bytes {
            return Err(Error::Misuse(format!("the index places record {number} at {offset}..{end}")));
        }
        Ok(Extent { offset, end })
    }

    /// Maximal stretches of whole records: `(start, end, records)`.
    pub fn good_runs(&self) -> Result<Vec<(u64, u64, u64)>> {
        let mut runs: Vec<(u64, u64, u64)> = Vec::new();
        let mut bad = self.bad.iter().map(|bad| bad.number).peekable();
        for (number, extent) in (0..).zip(self.extents(0)) {
            if bad.next_if_eq(&number).is_some() {
                continue;
            }
            let extent = extent?;
            match runs.last_mut() {
                Some(run) if run.1 == extent.offset => (run.1, run.2) = (extent.end, run.2 + 1),
                _ => runs.push((extent.offset, extent.end, 1)),
            }
        }
        Ok(runs)
    }

    /// Every damaged stretch in order of its place: `(offset, length, reason)`.
    pub fn damaged(&self) -> Result<Vec<(u64, u64, Reason)>> {
        let mut all: Vec<_> = self.gaps.iter().map(|gap| (gap.offset, gap.length, gap.reason)).collect();
        for bad in &self.bad {
            let extent = self.extent(bad.number)?;
            all.push((extent.offset, extent.bytes(), bad.reason));
        }
        all.sort_unstable_by_key(|(offset, ..)| *offset);
        Ok(all)
    }
}

/// Collects what a scan finds.
#[derive(Debug, Default)]
pub struct Builder {
    offsets: offsets::Builder,
    records_end: u64,
    gaps: Vec<Gap>,
    bad: Vec<BadRecord>,
    unchecked: bool,
}

impl Builder {
    pub fn records(&self) -> u64 {
        self.offsets.len()
    }

    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// Whether the data of the last record so far is damaged.
    pub fn newest_is_bad(&self) -> bool {
        self.bad.last().is_some_and(|bad| bad.number + 1 == self.records())
    }

    pub fn whole(&mut self, extent: Extent, checked: bool) {
        self.offsets.push(extent.offset);
        self.records_end = extent.end;
        self.unchecked |= !checked;
    }

    pub fn bad(&mut self, extent: Extent, reason: Reason) {
        self.bad.push(BadRecord { number: self.records(), reason });
        self.whole(extent, true);
    }

    pub fn gap(&mut self, offset: u64, end: u64, reason: Reason) {
        self.gaps.push(Gap { offset, length: end.saturating_sub(offset), reason });
    }

    pub fn finish(self, fingerprint: Fingerprint, compression: Compression, stream_bytes: u64) -> Index {
        Index {
            fingerprint,
            compression,
            stream_bytes,
            verified: !self.unchecked,
            offsets: self.offsets.finish(),
            records_end: self.records_end,
            gaps: self.gaps,
            bad: self.bad,
        }
    }
}
