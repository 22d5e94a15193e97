//! Jobs that join a round together, and what was read of their records.

use std::sync::Arc;

use super::ready::Lease;
use super::sections::Sections;
use crate::buffer::Bytes;
use crate::gather::{Job, Lent};

/// What a record takes besides its bytes from when its job joins.
pub(super) const OVERHEAD_BYTES: usize = size_of::<usize>() + size_of::<Wanted>();
/// Instead of where a record lies: it was not brought.
const NOWHERE: usize = usize::MAX;

/// A record yet to be read: how far behind the first one of its section, and whose it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub ahead: u32,
    pub row: u32,
}

#[derive(Debug)]
pub(super) struct Group {
    first_job: u64,
    /// The first row of every job, and behind them the number of all rows.
    rows: Vec<usize>,
    /// Where each row's record lies among what is held.
    at: Vec<usize>,
    /// What is still to be read, section by section, and how many bytes that is.
    wanted: Vec<(Vec<Wanted>, usize)>,
    passed: usize,
    held: Bytes,
    lease: Lease,
}

impl Group {
    pub fn new(first_job: u64, sections: usize, lease: Lease) -> Self {
        let wanted = vec![(Vec::new(), 0); sections];
        let (rows, at, held) = (vec![0], Vec::new(), Bytes::default());
        Group { first_job, rows, at, wanted, passed: 0, held, lease }
    }

    pub fn first_job(&self) -> u64 {
        self.first_job
    }

    pub fn jobs(&self) -> usize {
        self.rows.len() - 1
    }

    /// Take one more job in, whose records' overhead is paid for.
    pub fn join(&mut self, job: &Job, sections: &Sections) {
        for place in &job.places {
            let section = sections.of_record(place.number);
            let (ahead, row) = (place.number - sections.first(section), self.at.len());
            self.at.push(NOWHERE);
            if let (Ok(ahead), Ok(row)) = (ahead.try_into(), row.try_into()) {
                let (wanted, bytes) = &mut self.wanted[section];
                wanted.push(Wanted { ahead, row });
                *bytes += place.extent.bytes() as usize;
            }
        }
        self.rows.push(self.at.len());
        self.lease.add(job.places.len() * OVERHEAD_BYTES);
    }

    /// Have all records of one more job read one by one.
    pub fn pass_over(&mut self) {
        self.rows.push(self.at.len());
    }

    /// All jobs are in: make room for what their records bring. It takes memory only as far as it is filled.
    pub fn close(&mut self) {
        let bytes = self.wanted.iter().map(|(_, bytes)| bytes).sum();
        match Bytes::from_system(bytes) {
            Some(held) => self.held = held,
            // there is none: all are read one by one
            None => self.wanted.iter_mut().for_each(|wanted| *wanted = Default::default()),
        }
        self.wanted.iter_mut().for_each(|(wanted, _)| wanted.shrink_to_fit());
        self.at.shrink_to_fit();
    }

    /// What is to be read in a section, and how many bytes that is.
    pub fn wanted(&self, section: usize) -> (&[Wanted], usize) {
        let (wanted, bytes) = &self.wanted[section];
        (wanted, *bytes)
    }

    /// Keep what was read of a record, for which there is room.
    pub fn keep(&mut self, row: u32, frame: &[u8]) {
        self.at[row as usize] = self.held.len();
        self.held.extend(frame);
        self.lease.add(frame.len());
    }

    /// A section is behind it.
    pub fn pass(&mut self, section: usize) {
        self.wanted[section] = Default::default();
        self.passed += 1;
    }

    /// It has been round once.
    pub fn is_complete(&self) -> bool {
        self.passed == self.wanted.len()
    }

    /// From now on it is up to others how long this is held.
    pub fn hand_over(&mut self) {
        self.lease.hand_over();
    }

    /// Whether a job is one of this group.
    pub fn has(&self, number: u64) -> bool {
        number.checked_sub(self.first_job).is_some_and(|job| job < self.jobs() as u64)
    }

    /// Give a job of this group its records' bytes.
    pub fn give(self: Arc<Self>, number: u64, job: &mut Job) {
        let of_group = (number - self.first_job) as usize;
        let rows = &self.at[self.rows[of_group]..self.rows[of_group + 1]];
        for (place, at) in job.places.iter_mut().zip(rows) {
            place.held_at = (*at != NOWHERE).then_some(*at);
        }
        job.is_in_files = true;
        job.lent = Some(self);
    }
}

impl Lent for Group {
    fn bytes(&self) -> &[u8] {
        self.held.as_slice()
    }
}
