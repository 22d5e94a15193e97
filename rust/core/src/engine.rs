//! Batches made ahead of the consumer on native threads, handed over in order.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::gather::{Batch, Gather, Job, Workspace};

/// Where the jobs come from, one after the other. Called by one thread at a time; what may run on
/// many threads at once is left to `resolve`.
pub trait Source: Send {
    /// The next batch's records, or `None` after the last one.
    fn next_job(&mut self) -> Result<Option<Unresolved>>;
}

/// A job, or the promise to compute it outside the lock.
pub type Unresolved = Box<dyn FnOnce() -> Result<Job> + Send>;

struct State {
    source: Box<dyn Source>,
    /// Jobs given to threads so far, and results handed over so far.
    started: u64,
    taken: u64,
    ready: BTreeMap<u64, (usize, Result<Batch>)>,
    /// Jobs that were given memory so far, in order, and how much is with jobs and their results.
    admitted: u64,
    held_bytes: usize,
    /// The number of the job at which the source ended or failed.
    ended_at: Option<u64>,
    stop: bool,
}

struct Shared {
    gather: Gather,
    depth: u64,
    limit_bytes: usize,
    state: Mutex<State>,
    work: Condvar,
    results: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What asking for a batch may give within a given time.
#[derive(Debug)]
pub enum Next {
    Batch(Batch),
    End,
    NotYet,
}

pub struct Engine {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Engine {
    /// Make up to `depth` batches ahead on `threads` threads, holding no more than `limit_bytes`.
    pub fn start(
        gather: Gather,
        source: Box<dyn Source>,
        threads: usize,
        depth: u64,
        limit_bytes: usize,
    ) -> Result<Self> {
        let state = State {
            source,
            started: 0,
            taken: 0,
            ready: BTreeMap::new(),
            admitted: 0,
            held_bytes: 0,
            ended_at: None,
            stop: false,
        };
        let shared = Arc::new(Shared {
            gather,
            depth: depth.max(1),
            limit_bytes,
            state: Mutex::new(state),
            work: Condvar::new(),
            results: Condvar::new(),
        });
        let mut engine = Engine { shared, threads: Vec::new() };
        for number in 0..threads.max(1) {
            let shared = Arc::clone(&engine.shared);
            let thread =
                thread::Builder::new().name(format!("anybatch-{number}")).spawn(move || work(&shared));
            engine
                .threads
                .push(thread.map_err(|error| Error::Misuse(format!("no thread could be started: {error}")))?);
        }
        Ok(engine)
    }

    /// The next batch in order, waiting for it up to `patience`.
    pub fn next(&self, patience: Duration) -> Result<Next> {
        let mut state = self.shared.lock();
        let expected = state.taken;
        if !state.ready.contains_key(&expected) && !ended(&state) {
            let waiting = |state: &mut State| !state.ready.contains_key(&expected) && !ended(state);
            let waited = self.shared.results.wait_timeout_while(state, patience, waiting);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let Some((held, result)) = state.ready.remove(&expected) else {
            return Ok(if ended(&state) { Next::End } else { Next::NotYet });
        };
        state.taken += 1;
        state.held_bytes = state.held_bytes.saturating_sub(held);
        drop(state);
        self.shared.work.notify_all();
        result.map(Next::Batch)
    }
}

/// What an engine holds and has done so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stats {
    pub held_bytes: usize,
    pub unused_bytes: usize,
    pub batches_ready: usize,
    pub batches_taken: u64,
}

impl Engine {
    pub fn stats(&self) -> Stats {
        let state = self.shared.lock();
        Stats {
            held_bytes: state.held_bytes,
            unused_bytes: self.shared.gather.pool.held(),
            batches_ready: state.ready.len(),
            batches_taken: state.taken,
        }
    }
}

/// Nothing will come any more.
fn ended(state: &State) -> bool {
    state.ended_at.is_some_and(|end| state.taken >= end)
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            // a thread that panicked has already reported that as its job's result
            let _ = thread.join();
        }
    }
}

fn work(shared: &Shared) {
    let mut space = Workspace::default();
    while let Some((number, job)) = take_job(shared) {
        let mut bound = 0;
        let made = catch_unwind(AssertUnwindSafe(|| {
            let job = job().inspect_err(|_| pass(shared, number))?;
            bound = admit(shared, number, shared.gather.bound_bytes(&job))?;
            shared.gather.batch(job, &mut space)
        }));
        let result = made.unwrap_or_else(|_| {
            space = Workspace::default();
            pass(shared, number);
            Err(Error::Misuse("a decoding thread failed; please report this".into()))
        });
        let held = result.as_ref().map_or(0, Batch::held);
        let mut state = shared.lock();
        state.held_bytes = (state.held_bytes + held).saturating_sub(bound);
        state.ready.insert(number, (held, result));
        drop(state);
        shared.results.notify_all();
        shared.work.notify_all();
    }
}

/// Wait for a job's turn and for its memory; how much it was given. One after the other, so that the
/// batch that is needed first never waits for memory that later ones hold.
fn admit(shared: &Shared, number: u64, bound: usize) -> Result<usize> {
    if bound > shared.limit_bytes {
        pass(shared, number);
        let limit = shared.limit_bytes;
        return Err(Error::DoesNotFit { stage: "read".into(), needed: bound, limit });
    }
    let waits = |state: &mut State| {
        !state.stop && (state.admitted != number || state.held_bytes + bound > shared.limit_bytes)
    };
    let mut state = shared.work.wait_while(shared.lock(), waits).unwrap_or_else(PoisonError::into_inner);
    state.admitted = number + 1;
    state.held_bytes += bound;
    let unused = shared.limit_bytes - state.held_bytes.min(shared.limit_bytes);
    drop(state);
    shared.work.notify_all();
    shared.gather.pool.shrink_to(unused);
    Ok(bound)
}

/// A job that needs no memory lets the next one have its turn.
fn pass(shared: &Shared, number: u64) {
    let waits = |state: &mut State| !state.stop && state.admitted < number;
    let mut state = shared.work.wait_while(shared.lock(), waits).unwrap_or_else(PoisonError::into_inner);
    state.admitted = state.admitted.max(number + 1);
    drop(state);
    shared.work.notify_all();
}

fn take_job(shared: &Shared) -> Option<(u64, Unresolved)> {
    let idle = |state: &mut State| {
        !state.stop && state.ended_at.is_none() && state.started >= state.taken + shared.depth
    };
    let mut state = shared.work.wait_while(shared.lock(), idle).unwrap_or_else(PoisonError::into_inner);
    if state.stop || state.ended_at.is_some() {
        return None;
    }
    let number = state.started;
    let job = catch_unwind(AssertUnwindSafe(|| state.source.next_job()))
        .unwrap_or_else(|_| Err(Error::Misuse("finding the next records failed; please report this".into())));
    match job {
        Ok(Some(job)) => {
            state.started += 1;
            return Some((number, job));
        }
        Ok(None) => state.ended_at = Some(number),
        Err(error) => {
            state.ready.insert(number, (0, Err(error)));
            state.ended_at = Some(number + 1);
        }
    }
    drop(state);
    shared.work.notify_all();
    shared.results.notify_all();
    None
}
