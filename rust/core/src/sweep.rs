//! Records of many batches at a time, read in the order in which they lie.
//!
//! Where the page cache holds only a part of the data, exactly shuffled records cost a read each, and nearly
//! all that is read is thrown away. So the records of as many batches as memory allows are looked up ahead
//! and fetched in one sweep over the files, by large reads past the page cache. One sweep is under way while
//! the batches of the last one are made. Where records are read apart, the next sweep begins as soon as all reads
//! of this one are under way, so that storage never waits.
//!
//! A sweep promises nothing: whatever it could not fetch is read one by one, by whoever finds it missing.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use crate::buffer::Pool;
use crate::engine::{Aside, Source, Unresolved};
use crate::error::Result;
use crate::files::Files;
use crate::gather::Job;
use crate::source::Ordered;

mod apart;
mod broom;
mod shares;
#[cfg(test)]
mod tests;

use apart::Readers;
use broom::{Broom, OVERHEAD_BYTES};
pub use shares::Shares;

/// This part of a sweep's jobs is read one by one at first, so that nobody waits for the first sweep. Where each
/// record is read by itself anyway, the first sweep is so small instead.
const AT_ONCE: usize = 8;

/// The jobs of an order, most of them with their records' bytes.
pub struct Swept {
    order: Ordered,
    number: u64,
    one_by_one: u64,
    work: Option<(Collector, Vec<Manner>)>,
    threads: Vec<JoinHandle<()>>,
    shared: Arc<Shared>,
}

impl Swept {
    /// The same jobs as `order` has.
    pub fn new(order: Ordered, files: Arc<Files>, shares: Shares) -> Self {
        let pool = Pool::new(if shares.apart { shares.sweep_bytes } else { 0 });
        let shared = Arc::new(Shared { state: Mutex::default(), changed: Condvar::new(), pool });
        let manners = match shares.apart {
            true => vec![Manner::Apart(Readers::new(Arc::clone(&files))), Manner::Apart(Readers::new(files))],
            false => vec![Manner::Together(Broom::new(files))],
        };
        let work = Collector {
            order: order.clone(),
            apart: shares.apart,
            sweep_bytes: shares.sweep_bytes,
            next_bytes: if shares.apart { shares.sweep_bytes / AT_ONCE } else { shares.sweep_bytes },
            number: 0,
            left_over: None,
            shared: Arc::clone(&shared),
        };
        Swept { order, number: 0, one_by_one: 0, work: Some((work, manners)), threads: Vec::new(), shared }
    }

    /// Begin with the first sweep, behind the jobs that are read one by one.
    fn begin(&mut self, mut work: Collector, manners: Vec<Manner>) -> Result<()> {
        self.one_by_one = if work.apart { 0 } else { work.skip_some()? };
        let work = Arc::new(Mutex::new(work));
        for manner in manners {
            let (work, shared) = (Arc::clone(&work), Arc::clone(&self.shared));
            let thread = thread::Builder::new().name("anybatch-sweep".into());
            match thread.spawn(move || run(&work, manner, shared)) {
                Ok(thread) => self.threads.push(thread),
                // those that are there do it all
                Err(_) => break,
            }
        }
        if self.threads.is_empty() {
            self.shared.end();
        }
        Ok(())
    }
}

impl Source for Swept {
    fn next_job(&mut self) -> Result<Option<Unresolved>> {
        if let Some((work, manners)) = self.work.take() {
            self.begin(work, manners)?;
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

    fn aside(&self) -> Arc<dyn Aside> {
        Arc::clone(&self.shared) as _
    }
}

impl Aside for Shared {
    fn stop(&self) {
        self.end();
    }

    fn held_bytes(&self) -> usize {
        self.lock().held_bytes + self.pool.held()
    }
}

impl Drop for Swept {
    fn drop(&mut self) {
        self.shared.end();
        for thread in self.threads.drain(..) {
            // whatever became of it: its jobs are read one by one
            let _ = thread.join();
        }
    }
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// Where the bytes of jobs come from, and go back to.
    pool: Arc<Pool>,
}

#[derive(Default)]
struct State {
    ready: BTreeMap<u64, (usize, Job)>,
    /// What is read or being read, and not taken.
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

    /// Wait until no more is held than one sweep brings; `false` when it is over.
    fn wait_for_room(&self, sweep_bytes: usize) -> bool {
        let waits = |state: &mut State| !state.ended && state.held_bytes > sweep_bytes;
        let state = self.changed.wait_while(self.lock(), waits).unwrap_or_else(PoisonError::into_inner);
        !state.ended
    }

    fn put(&self, first: u64, jobs: Vec<(usize, Job)>) {
        self.lock().ready.extend((first..).zip(jobs));
        self.changed.notify_all();
    }

    fn is_ended(&self) -> bool {
        self.lock().ended
    }

    fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_all();
    }
}

/// How the records of a sweep are read.
enum Manner {
    /// Those that lie close by large reads of all that is between them.
    Together(Broom),
    /// Large ones by reads of their own, many at a time.
    Apart(Readers),
}

impl Manner {
    /// Read all that jobs have room for, and tell when nothing is left to begin with. `false`: told to end before.
    fn sweep(
        &mut self,
        jobs: &mut [(usize, Job)],
        ended: impl Fn() -> bool + Sync,
        all_begun: impl FnOnce(),
    ) -> bool {
        match self {
            Manner::Together(broom) => broom.sweep(jobs, ended),
            Manner::Apart(readers) => readers.sweep(jobs, ended, all_begun),
        }
    }
}

/// Make sweeps as long as there are jobs, one after the other, or taking turns with others who do the same.
fn run(work: &Mutex<Collector>, mut manner: Manner, shared: Arc<Shared>) {
    // also when this fails: whoever waits then reads for himself
    let mut end = End { shared: Arc::clone(&shared), too_early: true };
    loop {
        let mut turn = work.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((first, mut jobs)) = turn.next_jobs() else { return };
        if jobs.is_empty() {
            break;
        }
        if !manner.sweep(&mut jobs, || shared.is_ended(), || drop(turn)) {
            return;
        }
        shared.put(first, jobs);
    }
    // the last sweep may be another's, and still to come
    end.too_early = false;
}

/// Says what is read next.
struct Collector {
    order: Ordered,
    apart: bool,
    sweep_bytes: usize,
    /// What the next sweep may bring: the first ones are small, so that nobody waits long for them.
    next_bytes: usize,
    number: u64,
    /// A job that did not fit into the last sweep any more.
    left_over: Option<Job>,
    shared: Arc<Shared>,
}

impl Collector {
    /// Pass over the jobs that are read one by one; how many those are.
    fn skip_some(&mut self) -> Result<u64> {
        let mut bytes = 0;
        while bytes < self.sweep_bytes / AT_ONCE {
            let Some(job) = self.next_job()? else { break };
            bytes += self.bytes_of(&job);
            self.number += 1;
        }
        Ok(self.number)
    }

    /// As many jobs as one sweep may bring, with room for their bytes, and the number of the first; none at the
    /// end, `None` when it is over before.
    fn next_jobs(&mut self) -> Option<(u64, Vec<(usize, Job)>)> {
        if !self.shared.wait_for_room(self.sweep_bytes) {
            return None;
        }
        let mut jobs = Vec::new();
        let (mut bytes, most) = (0, self.next_bytes);
        self.next_bytes = (2 * most).min(self.sweep_bytes);
        while bytes < most {
            let Some(mut job) = self.next_job().ok()? else { break };
            let mut own = self.bytes_of(&job);
            // alone too large for this: read one by one
            let too_large = own > self.sweep_bytes;
            if too_large {
                own = job.places.len() * OVERHEAD_BYTES;
            }
            if bytes + own > most && !jobs.is_empty() {
                self.left_over = Some(job);
                break;
            }
            if !too_large {
                self.hold(&mut job);
            }
            bytes += own;
            self.shared.lock().held_bytes += own;
            jobs.push((own, job));
        }
        let first = self.number;
        self.number += jobs.len() as u64;
        Some((first, jobs))
    }

    fn bytes_of(&self, job: &Job) -> usize {
        if self.apart { apart::bytes_of(job) } else { broom::bytes_of(job) }
    }

    fn hold(&self, job: &mut Job) {
        if self.apart { apart::hold(job, &self.shared.pool) } else { broom::hold(job, &self.shared.pool) }
    }

    fn next_job(&mut self) -> Result<Option<Job>> {
        if self.left_over.is_some() {
            return Ok(self.left_over.take());
        }
        self.order.next_job()?.map(|job| job()).transpose()
    }
}

struct End {
    shared: Arc<Shared>,
    too_early: bool,
}

impl Drop for End {
    fn drop(&mut self) {
        if self.too_early {
            self.shared.end();
        }
    }
}
