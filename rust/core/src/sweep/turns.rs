//! Large records of many batches at a time, in sweeps that take turns.
//!
//! One sweep is under way while the batches of the last one are made, and the next begins as soon as all reads
//! of this one are under way, so that storage never waits.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use crate::buffer::Pool;
use crate::engine::{Aside, Source, Unresolved};
use crate::error::Result;
use crate::files::Files;
use crate::gather::{Job, Place};
use crate::source::Ordered;

use super::apart::{self, Readers};

/// The first sweep is so much smaller than the others, so that nobody waits long for it.
const AT_ONCE: usize = 8;

/// The jobs of an order, most of them with their records' bytes.
pub(super) struct InTurns {
    order: Ordered,
    number: u64,
    work: Option<(Collector, [Readers; 2])>,
    threads: Vec<JoinHandle<()>>,
    shared: Arc<Shared>,
}

impl InTurns {
    /// The same jobs as `order` has, in sweeps that bring so many bytes.
    pub fn new(order: Ordered, files: Arc<Files>, sweep_bytes: usize) -> Self {
        let pool = Pool::new(sweep_bytes);
        let shared = Arc::new(Shared { state: Mutex::default(), changed: Condvar::new(), pool });
        let readers = [Readers::new(Arc::clone(&files)), Readers::new(files)];
        let work = Collector {
            order: order.clone(),
            sweep_bytes,
            next_bytes: sweep_bytes / AT_ONCE,
            number: 0,
            left_over: None,
            shared: Arc::clone(&shared),
        };
        InTurns { order, number: 0, work: Some((work, readers)), threads: Vec::new(), shared }
    }

    /// Begin with the first sweep.
    fn begin(&mut self, work: Collector, readers: [Readers; 2]) {
        let work = Arc::new(Mutex::new(work));
        for readers in readers {
            let (work, shared) = (Arc::clone(&work), Arc::clone(&self.shared));
            let thread = thread::Builder::new().name("anybatch-sweep".into());
            match thread.spawn(move || run(&work, &readers, shared)) {
                Ok(thread) => self.threads.push(thread),
                // those that are there do it all
                Err(_) => break,
            }
        }
        if self.threads.is_empty() {
            self.shared.end();
        }
    }
}

impl Source for InTurns {
    fn next_job(&mut self) -> Result<Option<Unresolved>> {
        if let Some((work, readers)) = self.work.take() {
            self.begin(work, readers);
        }
        let Some(plain) = self.order.next_job()? else { return Ok(None) };
        let number = self.number;
        self.number += 1;
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

impl Drop for InTurns {
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

/// Make sweeps as long as there are jobs, taking turns with others who do the same.
fn run(work: &Mutex<Collector>, readers: &Readers, shared: Arc<Shared>) {
    // also when this fails: whoever waits then reads for himself
    let mut end = End { shared: Arc::clone(&shared), too_early: true };
    loop {
        let mut turn = work.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((first, mut jobs)) = turn.next_jobs() else { return };
        if jobs.is_empty() {
            break;
        }
        if !readers.sweep(&mut jobs, || shared.is_ended(), || drop(turn)) {
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
    sweep_bytes: usize,
    /// What the next sweep may bring: the first ones are small, so that nobody waits long for them.
    next_bytes: usize,
    number: u64,
    /// A job that did not fit into the last sweep any more.
    left_over: Option<Job>,
    shared: Arc<Shared>,
}

impl Collector {
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
            let mut own = apart::bytes_of(&job);
            // alone too large for this: read one by one
            let too_large = own > self.sweep_bytes;
            if too_large {
                own = job.places.len() * size_of::<Place>();
            }
            if bytes + own > most && !jobs.is_empty() {
                self.left_over = Some(job);
                break;
            }
            if !too_large {
                apart::hold(&mut job, &self.shared.pool);
            }
            bytes += own;
            self.shared.lock().held_bytes += own;
            jobs.push((own, job));
        }
        let first = self.number;
        self.number += jobs.len() as u64;
        Some((first, jobs))
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
