//! One walk over a shard from its first byte to its last: every record, and every damaged stretch.
//!
//! Small records are read in order, and since their bytes are then at hand, checked. Large ones
//! are hopped over from header to header without touching their data, unless a full check is asked
//! for. The same walk feeds reading in file order before there is an index.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::error::{Error, Result};
use crate::files::{Compression, Identity};
use crate::frame::{self, HEADER, OVERHEAD};
use crate::index::{Builder, Extent, Fingerprint, Gap, Index, Reason};
use crate::salvage::{self, Effort};
use crate::survey::Survey;
use crate::window::{self, Window};

const BLOCK: usize = 1 << 20;
/// What is looked at together: small enough to stay in the processor's cache.
const STRETCH: usize = 128 << 10;
/// Mean record size above which hopping beats reading: a few pages saved per record pay for a call.
const HOP_ABOVE: u64 = 32 << 10;
/// A file without one record in its first bytes is none of ours.
const PATIENCE: u64 = 256 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// Data that has to be read anyway.
    WhereFree,
    Everything,
}

pub struct Scan {
    path: PathBuf,
    compression: Compression,
    identity: Identity,
    fingerprint: Fingerprint,
    window: Box<dyn Window>,
    check: Check,
    at: u64,
    pace: Pace,
    /// The newest record whose data was not looked at. It is given out only when the next header
    /// proves right: otherwise its own length may be the lie.
    held: Option<Extent>,
    /// Records that were found and not yet given out.
    found: VecDeque<Extent>,
    builder: Builder,
    effort: Effort,
    done: bool,
}

/// What the records so far say about those to come.
#[derive(Debug)]
struct Pace {
    mean_bytes: Option<u64>,
    hopping: bool,
    /// A record that claims more than this, and more than there is, is taken to lie, not to be cut.
    believable: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Pace { mean_bytes: None, hopping: false, believable: 1 << 20 }
    }
}

impl Pace {
    fn note(&mut self, bytes: u64) {
        let mean = self.mean_bytes.map_or(bytes, |mean| (mean * 7 + bytes) / 8);
        self.mean_bytes = Some(mean);
        self.hopping = mean > HOP_ABOVE;
        self.believable = self.believable.max(bytes.saturating_mul(4));
    }
}

impl Scan {
    pub fn new(path: &Path, compression: Compression, check: Check) -> Result<Self> {
        let fingerprint = Fingerprint::of_path(path)?;
        let (window, identity) = window::open(path, compression)?;
        Ok(Scan {
            path: path.to_path_buf(),
            compression,
            identity,
            fingerprint,
            window,
            check,
            at: 0,
            pace: Pace::default(),
            held: None,
            found: VecDeque::new(),
            builder: Builder::default(),
            effort: Effort::for_file(identity.size),
            done: false,
        })
    }

    /// Look no further than needed once this is set: what is found from then on is worth nothing.
    pub fn stop_when(&mut self, stop: Arc<AtomicBool>) {
        self.effort.stop_when(stop);
    }

    pub fn file_bytes(&self) -> u64 {
        self.fingerprint.size
    }

    pub fn file_position(&self) -> u64 {
        if self.done { self.file_bytes() } else { self.window.file_position(self.at) }
    }

    pub fn done(&self) -> bool {
        self.done
    }

    /// The damaged stretches met so far.
    pub fn gaps(&self) -> &[Gap] {
        self.builder.gaps()
    }

    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Walk on over about `budget_bytes` of the file; `false` at its end.
    pub fn advance(&mut self, budget_bytes: u64) -> Result<bool> {
        let until = self.file_position().saturating_add(budget_bytes);
        while self.file_position() < until {
            self.found.clear();
            if self.next_record()?.is_none() {
                return Ok(false);
            }
        }
        self.found.clear();
        Ok(true)
    }

    /// Walk on as `advance` does and look into every sound record on the way. Asks for `Check::Everything`.
    pub fn survey(&mut self, budget_bytes: u64, survey: &mut Survey) -> Result<bool> {
        let until = self.file_position().saturating_add(budget_bytes);
        while self.file_position() < until {
            let Some(first) = self.next_record()? else { return Ok(false) };
            if !self.builder.newest_is_bad() {
                self.survey_stretch(first, survey)?;
            }
        }
        Ok(true)
    }

    /// Look into a sound record and into those found with it, which are sound and lie right behind it.
    fn survey_stretch(&mut self, first: Extent, survey: &mut Survey) -> Result<()> {
        let end = self.found.back().map_or(first.end, |last| last.end);
        let want = usize::try_from(end - first.offset).unwrap_or(usize::MAX);
        let mut rest = self.window.view(first.offset, want, 0)?;
        for extent in std::iter::once(first).chain(self.found.drain(..)) {
            let (Ok(size), Some(data)) = (usize::try_from(extent.data_bytes()), rest.get(HEADER..)) else {
                break;
            };
            survey.add_first(data, size.min(data.len()));
            rest = data.get(size + frame::FOOTER..).unwrap_or_default();
        }
        Ok(())
    }

    /// The next record that has a number, or `None` at the end of the shard.
    pub fn next_record(&mut self) -> Result<Option<Extent>> {
        loop {
            if let Some(extent) = self.found.pop_front() {
                return Ok(Some(extent));
            }
            if self.done {
                return Ok(None);
            }
            self.window.forget(self.held.map_or(self.at, |held| held.offset));
            if self.held.is_none() && self.expects_small()? {
                self.sound_stretch()?;
            }
            if self.found.is_empty() {
                let found = self.step()?;
                self.found.extend(found);
            }
        }
    }

    /// Whether the next record is likely small. Of the first one only the header is read to tell.
    fn expects_small(&mut self) -> Result<bool> {
        if self.pace.mean_bytes.is_some() {
            return Ok(!self.pace.hopping);
        }
        let first = salvage::header_at(self.window.as_mut(), self.at, 0)?;
        Ok(first.is_none_or(|length| length <= HOP_ABOVE))
    }

    /// Small sound records by the block: the usual case, without a detour per record.
    fn sound_stretch(&mut self) -> Result<()> {
        let largest = self.window.largest_record(self.at);
        let mut rest = self.window.view(self.at, STRETCH, BLOCK)?;
        while let Some((length, after)) = whole_record(rest, largest) {
            let extent = Extent { offset: self.at, end: self.at + OVERHEAD + length };
            self.builder.whole(extent, true);
            self.found.push_back(extent);
            self.pace.note(extent.bytes());
            self.at = extent.end;
            rest = after;
            if self.pace.hopping {
                break;
            }
        }
        Ok(())
    }

    /// The data of a record that was just given out, for streams that cannot be read twice.
    pub fn data(&mut self, extent: Extent) -> Result<&[u8]> {
        let want = usize::try_from(extent.bytes()).unwrap_or(usize::MAX);
        self.window.view(extent.offset, want, BLOCK)
    }

    pub fn finish(self) -> Result<Index> {
        if !self.done {
            return Err(Error::Misuse("the scan has not reached the end of the shard".into()));
        }
        let something = self.window.broken() || self.window.end() != Some(0);
        if self.builder.records() == 0 && something {
            return Err(self.not_records());
        }
        let now = Fingerprint::of_path(&self.path)?;
        if now != self.fingerprint {
            return Err(Error::changed(&self.path, "was written to while it was indexed"));
        }
        let stream_bytes = self.window.end().unwrap_or(self.at);
        Ok(self.builder.finish(self.fingerprint, self.compression, stream_bytes))
    }

    fn ahead(&self) -> usize {
        if self.pace.hopping || self.pace.mean_bytes.is_none() { 0 } else { BLOCK }
    }

    fn step(&mut self) -> Result<Option<Extent>> {
        let ahead = self.ahead();
        if let Some(length) = salvage::header_at(self.window.as_mut(), self.at, ahead)? {
            return self.record(length);
        }
        if let Some(held) = self.held.take() {
            return self.settle(held);
        }
        if self.window.view(self.at, 1, 0)?.is_empty() {
            self.end_of_stream();
            return Ok(None);
        }
        self.bad_header()?;
        Ok(None)
    }

    fn record(&mut self, length: u64) -> Result<Option<Extent>> {
        let extent = Extent { offset: self.at, end: self.at + OVERHEAD + length };
        self.pace.note(extent.bytes());
        if self.pace.hopping && self.check == Check::WhereFree && self.compression == Compression::None {
            self.window.expect_hops();
            self.at = extent.end;
            let given = self.held.replace(extent);
            return Ok(given.inspect(|given| self.builder.whole(*given, false)));
        }
        if let Some(held) = self.held.take() {
            // its successor's header is right, so it is what it claims to be
            self.builder.whole(held, false);
            return Ok(Some(held));
        }
        self.checked(extent)
    }

    fn checked(&mut self, extent: Extent) -> Result<Option<Extent>> {
        let ahead = self.ahead();
        match salvage::data_at(self.window.as_mut(), extent.offset, extent.data_bytes(), ahead)? {
            Some(Ok(())) => self.builder.whole(extent, true),
            Some(Err(mismatch)) => {
                if let Some(next) =
                    salvage::inside(self.window.as_mut(), extent.offset, extent.end, &mut self.effort)?
                {
                    let left = next - extent.offset;
                    self.builder.gap(
                        extent.offset,
                        next,
                        Reason::Length { claimed: extent.data_bytes(), left },
                    );
                    self.at = next;
                    return Ok(None);
                }
                self.builder.bad(extent, mismatch.into());
            }
            None => {
                self.bad_header()?;
                return Ok(None);
            }
        }
        self.at = extent.end;
        Ok(Some(extent))
    }

    /// What follows a record that was hopped over is no record: look at the record itself.
    fn settle(&mut self, held: Extent) -> Result<Option<Extent>> {
        self.at = held.offset;
        let given = self.checked(held)?;
        Ok(given)
    }

    fn bad_header(&mut self) -> Result<()> {
        let at = self.at;
        let to = if self.builder.records() == 0 { PATIENCE } else { u64::MAX };
        let reason = self.why_bad(at)?;
        let next = match (reason, self.window.end()) {
            (Reason::Length { claimed, .. }, Some(end)) if claimed <= self.pace.believable => {
                salvage::inside(self.window.as_mut(), at, end, &mut self.effort)?
            }
            _ => salvage::after_bad_header(self.window.as_mut(), at, to, &mut self.effort)?,
        };
        if let Some(next) = next {
            self.builder.gap(at, next, reason);
            self.at = next;
            return Ok(());
        }
        let end = self.find_end()?;
        let reason = if self.effort.exhausted() {
            Reason::GaveUp
        } else if self.window.broken() {
            Reason::Inflate
        } else {
            reason
        };
        self.builder.gap(at, end, reason);
        self.at = end;
        self.done = true;
        Ok(())
    }

    fn why_bad(&mut self, at: u64) -> Result<Reason> {
        let largest = self.window.largest_record(at);
        let bytes = self.window.view(at, HEADER, 0)?;
        let Ok(header) = bytes.try_into() else {
            return Ok(Reason::CutHeader { left: bytes.len() as u64 });
        };
        let claimed = frame::checked_length(&header);
        let left = self.window.end().map_or(largest, |end| end.saturating_sub(at + HEADER as u64));
        Ok(claimed.map_or(Reason::Header, |claimed| Reason::Length { claimed, left }))
    }

    fn end_of_stream(&mut self) {
        if self.window.broken() {
            self.builder.gap(self.at, self.at, Reason::Inflate);
        }
        self.done = true;
    }

    fn find_end(&mut self) -> Result<u64> {
        let mut at = self.at;
        while self.window.end().is_none() && !self.effort.stopped() {
            at += self.window.view(at, BLOCK, 0)?.len() as u64;
            self.window.forget(at);
        }
        Ok(self.window.end().unwrap_or(at))
    }

    fn not_records(&self) -> Error {
        let why = std::fs::File::open(&self.path)
            .and_then(|file| {
                let mut head = Vec::new();
                std::io::Read::read_to_end(&mut std::io::Read::take(file, 16), &mut head)?;
                Ok(head)
            })
            .map_or_else(|error| error.to_string(), |head| looks_like(&head));
        Error::NotRecords { file: self.path.clone(), why }
    }
}

/// The data's length of the record that `bytes` start with, and what follows it.
fn whole_record(bytes: &[u8], largest: u64) -> Option<(u64, &[u8])> {
    let (header, rest) = bytes.split_first_chunk::<HEADER>()?;
    let length = frame::checked_length(header).filter(|length| *length <= largest)?;
    let (data_and_footer, after) = rest.split_at_checked(usize::try_from(length).ok()? + frame::FOOTER)?;
    frame::checked_data(data_and_footer).ok()?;
    Some((length, after))
}

/// What a file that holds no record seems to be.
fn looks_like(head: &[u8]) -> String {
    const KNOWN: &[(&[u8], &str)] = &[
        (b"\x1f\x8b", "it is gzip, but what it holds is not TFRecord"),
        (b"PK\x03\x04", "it looks like a ZIP or .npz archive"),
        (b"PAR1", "it looks like Parquet"),
        (b"\x89HDF", "it looks like HDF5"),
        (b"\x93NUMPY", "it looks like a NumPy array"),
        (b"\x89PNG", "it looks like a PNG image"),
        (b"\xff\xd8\xff", "it looks like a JPEG image"),
        (b"\x28\xb5\x2f\xfd", "it looks like a zstd stream"),
        (b"BZh", "it looks like a bzip2 stream"),
        (b"ARROW1", "it looks like an Arrow file"),
    ];
    if let Some((_, what)) = KNOWN.iter().find(|(magic, _)| head.starts_with(magic)) {
        return (*what).into();
    }
    let printable = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    if !head.is_empty() && head.iter().all(printable) {
        return format!("it looks like text: it starts with {:?}", String::from_utf8_lossy(head));
    }
    "no record in it has a right checksum".into()
}
