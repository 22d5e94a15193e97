//! The two ways to find the records of the next batch: by number through indexes, in any order, or
//! by walking the shards from end to end before there is an index.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use crate::engine::{Source, Unresolved};
use crate::error::{Error, Result};
use crate::files::{Compression, Files};
use crate::gather::{Damaged, Job, OnCorrupt, Place};
use crate::index::{Extent, Gap, Index};
use crate::order::Order;
use crate::scan::{Check, Scan};

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

    pub fn place(&self, number: u64, position: u64) -> Result<Place> {
        let shard = self.firsts.partition_point(|first| *first <= number).saturating_sub(1);
        let index =
            self.indexes.get(shard).ok_or_else(|| Error::Misuse(format!("there is no record {number}")))?;
        let extent = index.extent(number - self.firsts[shard])?;
        Ok(Place { number, position, shard, extent, held_at: None })
    }
}

/// Batches by position: each is computed on its own, on whichever thread has time.
pub struct Ordered {
    pub numbering: Arc<Numbering>,
    pub order: Arc<Order>,
    pub batch: u64,
    pub drop_remainder: bool,
    pub at: u64,
}

impl Source for Ordered {
    fn next_job(&mut self) -> Result<Option<Unresolved>> {
        let (from, to) = (self.at, self.order.len().min(self.at.saturating_add(self.batch)));
        if from >= to || (self.drop_remainder && to - from < self.batch) {
            return Ok(None);
        }
        self.at = to;
        let (numbering, order) = (Arc::clone(&self.numbering), Arc::clone(&self.order));
        Ok(Some(Box::new(move || {
            let places = (from..to).map(|at| numbering.place(order.record(at), at));
            Ok(Job { places: places.collect::<Result<_>>()?, ..Job::default() })
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
    Scanning(Box<Scan>, usize),
}

/// What a walk learnt, shard by shard, for whoever wants to keep it.
pub type Learnt = Arc<Mutex<Vec<(usize, Arc<Index>)>>>;

/// All shards in order, from end to end. Needs no index, and makes one on its way.
pub struct Walk {
    pub shards: Vec<Walked>,
    pub files: Arc<Files>,
    pub batch: usize,
    pub drop_remainder: bool,
    pub on_corrupt: OnCorrupt,
    pub learnt: Learnt,
    shard: usize,
    number: u64,
    walking: Option<Walking>,
}

impl Walk {
    pub fn new(
        shards: Vec<Walked>,
        files: Arc<Files>,
        batch: usize,
        drop_remainder: bool,
        on_corrupt: OnCorrupt,
    ) -> Self {
        let learnt = Learnt::default();
        Walk { shards, files, batch, drop_remainder, on_corrupt, learnt, shard: 0, number: 0, walking: None }
    }

    /// Add one more record; `false` when the shards are at their end.
    fn add(&mut self, job: &mut Job) -> Result<bool> {
        while let Some(walked) = self.shards.get(self.shard) {
            let walking = match self.walking.take() {
                Some(walking) => walking,
                None => open(walked)?,
            };
            match walking {
                Walking::Known(index, at) if at < index.records() => {
                    let extent = index.extent(at)?;
                    self.push(job, extent, None);
                    self.walking = Some(Walking::Known(index, at + 1));
                    return Ok(true);
                }
                Walking::Known(..) => self.shard += 1,
                Walking::Scanning(scan, gaps) => {
                    if self.scan_on(scan, gaps, job)? {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    fn scan_on(&mut self, mut scan: Box<Scan>, mut gaps: usize, job: &mut Job) -> Result<bool> {
        let found = scan.next_record()?;
        for gap in &scan.gaps()[gaps..] {
            self.met(gap, job)?;
        }
        gaps = scan.gaps().len();
        let Some(extent) = found else {
            let index = Arc::new(scan.finish()?);
            self.learnt.lock().unwrap_or_else(PoisonError::into_inner).push((self.shard, index));
            self.shard += 1;
            return Ok(false);
        };
        let held_at = match self.shards[self.shard].compression {
            Compression::None => None,
            _ => {
                let at = job.held.len();
                job.held.extend_from_slice(scan.data(extent)?);
                Some(at)
            }
        };
        self.push(job, extent, held_at);
        self.walking = Some(Walking::Scanning(scan, gaps));
        Ok(true)
    }

    fn push(&mut self, job: &mut Job, extent: Extent, held_at: Option<usize>) {
        let number = self.number;
        self.number += 1;
        job.places.push(Place { number, position: number, shard: self.shard, extent, held_at });
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

fn open(walked: &Walked) -> Result<Walking> {
    Ok(match &walked.known {
        Some(index) if walked.compression == Compression::None => Walking::Known(Arc::clone(index), 0),
        _ => Walking::Scanning(Box::new(Scan::new(&walked.path, walked.compression, Check::WhereFree)?), 0),
    })
}

impl Source for Walk {
    fn next_job(&mut self) -> Result<Option<Unresolved>> {
        let mut job = Job::default();
        while job.places.len() < self.batch && self.add(&mut job)? {}
        if self.drop_remainder && job.places.len() < self.batch {
            job.places.clear();
        }
        if job.places.is_empty() && job.damaged.is_empty() {
            return Ok(None);
        }
        Ok(Some(Box::new(move || Ok(job))))
    }
}
