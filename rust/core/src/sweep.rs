//! Records of many batches at a time, read in the order in which they lie.
//!
//! Where the page cache holds only a part of the data, exactly shuffled records cost a read each, and nearly
//! all that is read is thrown away. So the records of as many batches as memory allows are looked up ahead
//! and fetched in one sweep over the files, by large reads past the page cache. One sweep is under way while
//! the batches of the last one are made.
//!
//! A sweep promises nothing: whatever it could not fetch is read one by one, by whoever finds it missing.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use crate::engine::{Source, Unresolved};
use crate::error::{Error, Result};
use crate::files::Files;
use crate::gather::Job;
use crate::source::{Numbering, Ordered};

mod broom;
#[cfg(test)]
mod tests;

use broom::{Broom, OVERHEAD_BYTES, bytes_of, hold};

/// Records that lie further apart than this, on average, are fetched faster one by one.
const SPACING_BYTES: u64 = 64 << 10;
/// Fewer jobs than this in one sweep are not worth it.
const LEAST_JOBS: u64 = 16;
/// This part of a sweep's jobs is read one by one at first, so that nobody waits for the first sweep.
const AT_ONCE: u64 = 8;

/// How the memory of a stream is divided where records are swept up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// What one sweep may bring; there are two at a time.
    pub sweep_bytes: usize,
    /// What is left for batches.
    pub batch_bytes: usize,
}

impl Shares {
    /// The shares where sweeping pays, for so many records to come, some at a time; `None` where it does not.
    /// Both sweeps together take no more than `swept_bytes`, and three quarters of the limit.
    pub fn of(
        limit_bytes: usize,
        swept_bytes: usize,
        numbering: &Numbering,
        left: u64,
        at_a_time: u64,
    ) -> Option<Self> {
        let sweep_bytes = (limit_bytes / 8 * 3).min(swept_bytes / 2);
        let file_bytes = numbering.file_bytes();
        let record_bytes = file_bytes / numbering.records().max(1) + OVERHEAD_BYTES as u64;
        let in_one = (sweep_bytes as u64 / record_bytes).min(left);
        let dense = in_one.saturating_mul(SPACING_BYTES) >= file_bytes;
        let many = in_one >= at_a_time.saturating_mul(LEAST_JOBS);
        (dense && many).then_some(Shares { sweep_bytes, batch_bytes: limit_bytes - 2 * sweep_bytes })
    }
}

/// The jobs of an order, most of them with their records' bytes.
pub struct Swept {
    order: Ordered,
    number: u64,
    one_by_one: u64,
    work: Option<Collector>,
    thread: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
}

impl Swept {
    /// The same jobs as `order` has.
    pub fn new(order: Ordered, files: Arc<Files>, sweep_bytes: usize) -> Self {
        let shared = Arc::new(Shared::default());
        let work = Collector {
            order: order.clone(),
            files,
            sweep_bytes,
            number: 0,
            left_over: None,
            shared: Arc::clone(&shared),
        };
        Swept { order, number: 0, one_by_one: 0, work: Some(work), thread: None, shared }
    }

    /// Begin with the first sweep, behind the jobs that are read one by one.
    fn begin(&mut self, mut work: Collector) -> Result<()> {
        self.one_by_one = work.skip_some()?;
        let thread = thread::Builder::new().name("anybatch-sweep".into()).spawn(move || work.run());
        let failed = |error| Error::Misuse(format!("no thread could be started: {error}"));
        self.thread = Some(thread.map_err(failed)?);
        Ok(())
    }
}

impl Source for Swept {
    fn next_job(&mut self) -> Result<Option<Unresolved>> {
        if let Some(work) = self.work.take() {
            self.begin(work)?;
        }
        let Some(plain) = self.order.next_job()? else { return Ok(None) };
        let number = self.number;
        self.number += 1;
        if number < self.one_by_one {
            return Ok(Some(plain));
        }
        let shared = Arc::clone(&self.shared);
        Ok(Some(Box::new(move || shared.job(number).map_or_else(plain, Ok))))
    }

    fn stop(&mut self) {
        self.shared.end();
    }

    fn held_bytes(&self) -> usize {
        self.shared.lock().held_bytes
    }
}

impl Drop for Swept {
    fn drop(&mut self) {
        self.shared.end();
        if let Some(thread) = self.thread.take() {
            // whatever became of it: its jobs are read one by one
            let _ = thread.join();
        }
    }
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    ready: BTreeMap<u64, (usize, Job)>,
    /// The first job of the last sweep.
    newest: u64,
    held_bytes: usize,
    /// Nothing more will be swept up.
    ended: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A job that was swept up, waited for; `None` if it will not be.
    fn job(&self, number: u64) -> Option<Job> {
        let waits = |state: &mut State| !state.ended && !state.ready.contains_key(&number);
        let mut state = self.changed.wait_while(self.lock(), waits).unwrap_or_else(PoisonError::into_inner);
        let (bytes, job) = state.ready.remove(&number)?;
        state.held_bytes -= bytes;
        drop(state);
        self.changed.notify_all();
        Some(job)
    }

    /// Wait until all but the last sweep's jobs are taken; `false` when it is over.
    fn wait_for_room(&self) -> bool {
        let waits = |state: &mut State| {
            !state.ended && state.ready.first_key_value().is_some_and(|(number, _)| *number < state.newest)
        };
        let state = self.changed.wait_while(self.lock(), waits).unwrap_or_else(PoisonError::into_inner);
        !state.ended
    }

    fn put(&self, first: u64, jobs: Vec<(usize, Job)>) {
        let mut state = self.lock();
        state.newest = first;
        state.ready.extend((first..).zip(jobs));
        drop(state);
        self.changed.notify_all();
    }

    fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_all();
    }
}

/// Makes one sweep after the other.
struct Collector {
    order: Ordered,
    files: Arc<Files>,
    sweep_bytes: usize,
    number: u64,
    /// A job that did not fit into the last sweep any more.
    left_over: Option<Job>,
    shared: Arc<Shared>,
}

impl Collector {
    /// Pass over the jobs that are read one by one; how many those are.
    fn skip_some(&mut self) -> Result<u64> {
        let mut bytes = 0;
        while bytes < self.sweep_bytes / AT_ONCE as usize {
            let Some(job) = self.next_job()? else { break };
            bytes += bytes_of(&job);
            self.number += 1;
        }
        Ok(self.number)
    }

    fn run(mut self) {
        // also when this fails: whoever waits then reads for himself
        let _end = End(Arc::clone(&self.shared));
        let mut broom = Broom::new(Arc::clone(&self.files));
        while self.shared.wait_for_room() {
            let Some(mut jobs) = self.next_jobs() else { return };
            if jobs.is_empty() {
                return;
            }
            if !broom.sweep(&mut jobs, || self.shared.lock().ended) {
                return;
            }
            let first = self.number;
            self.number += jobs.len() as u64;
            self.shared.put(first, jobs);
        }
    }

    /// As many jobs as one sweep may bring, with room for their bytes.
    fn next_jobs(&mut self) -> Option<Vec<(usize, Job)>> {
        let mut jobs = Vec::new();
        let mut bytes = 0;
        while bytes < self.sweep_bytes {
            let Some(mut job) = self.next_job().ok()? else { break };
            let own = bytes_of(&job);
            if own > self.sweep_bytes {
                // alone too large for this: read one by one
                jobs.push((0, job));
                continue;
            }
            if bytes + own > self.sweep_bytes {
                self.left_over = Some(job);
                break;
            }
            hold(&mut job);
            bytes += own;
            self.shared.lock().held_bytes += own;
            jobs.push((own, job));
        }
        Some(jobs)
    }

    fn next_job(&mut self) -> Result<Option<Job>> {
        if self.left_over.is_some() {
            return Ok(self.left_over.take());
        }
        self.order.next_job()?.map(|job| job()).transpose()
    }
}

struct End(Arc<Shared>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.end();
    }
}
