//! The two ways to find the records of the next batch: by number through indexes, in any order, or
//! by walking the shards from end to end before there is an index.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::engine::{Aside, Source, Unresolved};
use crate::error::{Error, Result};
use crate::files::{Compression, Files};
use crate::gather::{self, Damaged, Job, OnCorrupt, Place};
use crate::index::{Extent, Gap, Index};
use crate::order::Order;
use crate::scan::{Check, Scan};
use crate::schema::Schema;

/// The shards' indexes as one numbering of all records.
#[derive(Debug)]
pub struct Numbering {
    indexes: Vec<Arc<Index>>,
    /// The number of each shard's first record, and behind the last, how many there are.
    firsts: Vec<u64>,
}

impl Numbering {
    pub fn new(indexes: Vec<Arc<Index>>) -> Result<Self> {
        if let Some(index) = indexes.iter().find(|index| index.compression != Compression::None) {
            let name = index.compression.name();
            return Err(Error::Misuse(format!("a {name} shard cannot be read by record number")));
        }
        let mut firsts = vec![0_u64];
        for index in &indexes {
            let before = firsts.last().copied().unwrap_or(0);
            firsts.push(before.saturating_add(index.records()));
        }
        Ok(Numbering { indexes, firsts })
    }

    pub fn records(&self) -> u64 {
        self.firsts.last().copied().unwrap_or(0)
    }

    /// What the files hold.
    pub fn file_bytes(&self) -> u64 {
        self.indexes.iter().map(|index| index.fingerprint.size).sum()
    }

    /// No record is larger than this.
    pub fn most_record_bytes(&self) -> u64 {
        self.indexes.iter().map(|index| index.offsets.most_between(index.records_end)).max().unwrap_or(0)
    }

    pub fn place(&self, number: u64, position: u64) -> Result<Place> {
        let shard = self.firsts.partition_point(|first| *first <= number).saturating_sub(1);
        let index =
            self.indexes.get(shard).ok_or_else(|| Error::Misuse(format!("there is no record {number}")))?;
        let extent = index.extent(number - self.firsts[shard])?;
        Ok(Place { number, position, shard, extent, held_at: None })
    }
}

/// How a batch is cut into parts: of two sizes at most, none tiny.
#[derive(Debug, Clone, Copy)]
pub struct Split {
    /// Records per batch.
    pub batch: u64,
    /// Records per part at most.
    pub most: u64,
}

impl Split {
    /// The size of each part of a batch of `size` records.
    fn parts(self, size: u64) -> impl Iterator<Item = u64> {
        let parts = size.div_ceil(self.most.max(1)).max(1);
        (0..parts).map(move |part| size / parts + u64::from(part < size % parts))
    }
}

/// Batches by position: each part is computed on its own, on whichever thread has time.
#[derive(Clone)]
pub struct Ordered {
    pub(crate) numbering: Arc<Numbering>,
    order: Arc<Order>,
    split: Split,
    drop_remainder: bool,
    at: u64,
    /// What is left of the present batch: the sizes of its parts.
    parts: VecDeque<u64>,
}

impl Ordered {
    pub fn new(numbering: Numbering, order: Order, split: Split, drop_remainder: bool, start: u64) -> Self {
        let (numbering, order) = (Arc::new(numbering), Arc::new(order));
        Ordered { numbering, order, split, drop_remainder, at: start, parts: VecDeque::new() }
    }

    /// The numbers and sizes of some of the records to come, evenly spread over the order.
    pub(crate) fn sample(&self, count: u64) -> Vec<(u64, u64)> {
        let left = self.order.len().saturating_sub(self.at);
        let every = (left / count.max(1)).max(1) as usize;
        let numbers = (self.at..self.order.len()).step_by(every).map(|at| self.order.record(at));
        let sized = |number| Some((number, self.numbering.place(number, 0).ok()?.extent.bytes()));
        numbers.filter_map(sized).collect()
    }

    fn next_part(&mut self) -> Option<(u64, bool)> {
        if self.parts.is_empty() {
            let size = self.order.len().saturating_sub(self.at).min(self.split.batch);
            if size == 0 || (self.drop_remainder && size < self.split.batch) {
                return None;
            }
            self.parts.extend(self.split.parts(size));
        }
        let size = self.parts.pop_front()?;
        Some((size, self.parts.is_empty()))
    }
}

impl Source for Ordered {
    fn next_job(&mut self) -> Result<Option<Unresolved>> {
        let Some((size, ends_batch)) = self.next_part() else { return Ok(None) };
        let (from, to) = (self.at, self.at + size);
        self.at = to;
        let (numbering, order) = (Arc::clone(&self.numbering), Arc::clone(&self.order));
        Ok(Some(Box::new(move || {
            let places = (from..to).map(|at| numbering.place(order.record(at), at));
            Ok(Job { places: places.collect::<Result<_>>()?, ends_batch, end: to, ..Job::default() })
        })))
    }
}

/// One shard of a walk.
pub struct Walked {
    pub path: PathBuf,
    pub compression: Compression,
    pub known: Option<Arc<Index>>,
}

enum Walking {
    Known(Arc<Index>, u64),
    Scanning(Box<Scanning>),
}

/// A scan, how many of its gaps were told of, and the record that did not fit into the last job any more.
struct Scanning {
    scan: Scan,
    gaps: usize,
    left_over: Option<Extent>,
}

/// What came of looking for one more record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Added {
    One,
    /// The job is large enough without it.
    Full,
    /// The shards are at their end.
    End,
}

/// What a job of a walk may take that cannot be cut afterwards: one that holds bytes of compressed shards.
pub struct Uncut {
    pub schema: Option<Arc<Schema>>,
    /// Bytes of compressed shards that it unpacks, or little more.
    pub most_held: usize,
    /// What it can take in all, unless one record alone takes more.
    pub most_bytes: usize,
}

impl Uncut {
    /// What a walk's jobs may take of a limit.
    pub fn within(limit_bytes: usize, schema: Option<Arc<Schema>>) -> Self {
        Uncut { schema, most_held: limit_bytes / 8, most_bytes: limit_bytes / 2 }
    }

    /// Whether a job can take one more record; `held` are the bytes that it would hold then.
    fn fits(&self, rows: usize, data_bytes: usize, held: usize) -> bool {
        held == 0
            || rows == 0
            || gather::bound_bytes(self.schema.as_deref(), rows + 1, data_bytes).saturating_add(held)
                <= self.most_bytes
    }
}

/// Tells a walk that nothing of it is wanted any more.
#[derive(Debug, Default)]
struct Halt(Arc<AtomicBool>);

impl Aside for Halt {
    fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What a walk learnt, shard by shard, for whoever wants to keep it.
pub type Learnt = Arc<Mutex<Vec<(usize, Arc<Index>)>>>;

/// All shards in order, from end to end. Needs no index, and makes one on its way.
pub struct Walk {
    pub shards: Vec<Walked>,
    pub files: Arc<Files>,
    pub split: Split,
    pub uncut: Uncut,
    pub drop_remainder: bool,
    pub on_corrupt: OnCorrupt,
    pub learnt: Learnt,
    parts: VecDeque<u64>,
    shard: usize,
    number: u64,
    walking: Option<Walking>,
    /// The records' bytes in the present job.
    data_bytes: usize,
    stop: Arc<AtomicBool>,
}

impl Walk {
    pub fn new(
        shards: Vec<Walked>,
        files: Arc<Files>,
        split: Split,
        uncut: Uncut,
        drop_remainder: bool,
        on_corrupt: OnCorrupt,
    ) -> Self {
        let (learnt, parts) = (Learnt::default(), VecDeque::new());
        Walk {
            shards,
            files,
            split,
            uncut,
            drop_remainder,
            on_corrupt,
            learnt,
            parts,
            shard: 0,
            number: 0,
            walking: None,
            data_bytes: 0,
            stop: Arc::default(),
        }
    }

    /// Add one more record.
    fn add(&mut self, job: &mut Job) -> Result<Added> {
        while let Some(walked) = self.shards.get(self.shard) {
            let walking = match self.walking.take() {
                Some(walking) => walking,
                None => self.open(walked)?,
            };
            match walking {
                Walking::Known(index, at) if at < index.records() => {
                    let extent = index.extent(at)?;
                    let added = self.push(job, extent, &[]);
                    self.walking = Some(Walking::Known(index, at + u64::from(added == Added::One)));
                    return Ok(added);
                }
                Walking::Known(..) => self.shard += 1,
                Walking::Scanning(scanning) => {
                    if let Some(added) = self.scan_on(scanning, job)? {
                        return Ok(added);
                    }
                }
            }
        }
        Ok(Added::End)
    }

    /// Add the next record of a scan; `None` at the end of its shard.
    fn scan_on(&mut self, mut scanning: Box<Scanning>, job: &mut Job) -> Result<Option<Added>> {
        let Scanning { scan, gaps, left_over } = &mut *scanning;
        let found = match left_over.take() {
            Some(extent) => Some(extent),
            None => scan.next_record()?,
        };
        if self.stop.load(Ordering::Relaxed) {
            // what a scan finds that was told to stop is not all there is
            return Ok(Some(Added::End));
        }
        for gap in &scan.gaps()[*gaps..] {
            self.met(gap, job)?;
        }
        *gaps = scan.gaps().len();
        let Some(extent) = found else {
            let index = Arc::new(scanning.scan.finish()?);
            self.learnt.lock().unwrap_or_else(PoisonError::into_inner).push((self.shard, index));
            self.shard += 1;
            return Ok(None);
        };
        let added = match self.shards[self.shard].compression {
            Compression::None => self.push(job, extent, &[]),
            _ => self.push(job, extent, scan.data(extent)?),
        };
        *left_over = (added == Added::Full).then_some(extent);
        self.walking = Some(Walking::Scanning(scanning));
        Ok(Some(added))
    }

    /// Add a record to a job, with its bytes if it cannot be read by position, unless it would be too much.
    fn push(&mut self, job: &mut Job, extent: Extent, bytes: &[u8]) -> Added {
        let own = usize::try_from(extent.data_bytes()).unwrap_or(usize::MAX);
        let data_bytes = self.data_bytes.saturating_add(own);
        if !self.uncut.fits(job.places.len(), data_bytes, job.held.len() + bytes.len()) {
            return Added::Full;
        }
        let held_at = (!bytes.is_empty()).then(|| job.held.len());
        job.held.extend(bytes);
        self.data_bytes = data_bytes;
        let number = self.number;
        self.number += 1;
        job.places.push(Place { number, position: number, shard: self.shard, extent, held_at });
        Added::One
    }

    fn open(&self, walked: &Walked) -> Result<Walking> {
        if let (Some(index), Compression::None) = (&walked.known, walked.compression) {
            return Ok(Walking::Known(Arc::clone(index), 0));
        }
        let mut scan = Scan::new(&walked.path, walked.compression, Check::WhereFree)?;
        scan.stop_when(Arc::clone(&self.stop));
        Ok(Walking::Scanning(Box::new(Scanning { scan, gaps: 0, left_over: None })))
    }

    fn met(&self, gap: &Gap, job: &mut Job) -> Result<()> {
        let (offset, length, reason) = (gap.offset, gap.length, gap.reason.to_string());
        if self.on_corrupt == OnCorrupt::Raise {
            return Err(Error::Corrupt {
                file: self.shards[self.shard].path.clone(),
                offset,
                length,
                reason,
            });
        }
        job.damaged.push(Damaged { shard: self.shard, offset, length, reason });
        Ok(())
    }
}

impl Source for Walk {
    fn next_job(&mut self) -> Result<Option<Unresolved>> {
        let begins_batch = self.parts.is_empty();
        if begins_batch {
            // a walk does not know its end: a last batch that is shorter has parts of the usual size
            self.parts.extend(self.split.parts(self.split.batch));
        }
        let size = self.parts.pop_front().unwrap_or(1);
        let mut job = Job { ends_batch: self.parts.is_empty(), ..Job::default() };
        self.data_bytes = 0;
        let mut added = Added::One;
        while added == Added::One
            && (job.places.len() as u64) < size
            && job.held.len() < self.uncut.most_held
            && !self.stop.load(Ordering::Relaxed)
        {
            added = self.add(&mut job)?;
        }
        let missing = size - job.places.len() as u64;
        if added != Added::End && missing > 0 {
            self.parts.push_front(missing);
            job.ends_batch = false;
        } else if missing > 0 {
            self.parts.clear();
            job.ends_batch = true;
            if self.drop_remainder {
                job.places.clear();
            }
        }
        job.end = self.number;
        // a batch that turns out to be at its end is ended by a part with nothing in it
        if job.places.is_empty() && job.damaged.is_empty() && begins_batch {
            return Ok(None);
        }
        Ok(Some(Box::new(move || Ok(job))))
    }

    fn brought_bytes(&self) -> usize {
        let packed = self.shards.iter().any(|shard| shard.compression != Compression::None);
        if packed { self.uncut.most_held } else { 0 }
    }

    fn aside(&self) -> Arc<dyn Aside> {
        Arc::new(Halt(Arc::clone(&self.stop)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_two_sizes_at_most_and_none_is_tiny() {
        for size in 1..200 {
            for most in 1..70 {
                let parts: Vec<_> = Split { batch: 512, most }.parts(size).collect();
                assert_eq!(parts.iter().sum::<u64>(), size);
                assert_eq!(parts.len() as u64, size.div_ceil(most));
                assert!(parts.iter().max().unwrap() - parts.iter().min().unwrap() <= 1);
            }
        }
        assert_eq!(Split { batch: 100, most: 64 }.parts(100).collect::<Vec<_>>(), [50, 50]);
    }
}
