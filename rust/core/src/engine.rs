//! Batches made ahead of the consumer on native threads, handed over in order.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::depth::Depth;
use crate::error::{Error, Result};
use crate::gather::{Batch, Gather, Job, Workspace};
use crate::signal::Signal;

/// Where the jobs come from, one after the other. Called by one thread at a time; what may run on
/// many threads at once is left to `resolve`.
pub trait Source: Send {
    /// The next batch's records, or `None` after the last one.
    fn next_job(&mut self) -> Result<Option<Unresolved>>;

    /// What a job brings along at most that is in memory before anybody has asked whether there is room for it.
    fn brought_bytes(&self) -> usize {
        0
    }

    /// What others may ask of it, also while it looks for its next job.
    fn aside(&self) -> Arc<dyn Aside> {
        Arc::new(Nothing)
    }
}

/// What can be said to a source, and asked of it, at any time and without waiting.
pub trait Aside: Send + Sync {
    /// Let go of everybody who waits for a job, and look for no more: none is wanted.
    fn stop(&self) {}

    /// What is held for jobs that nobody has taken yet.
    fn held_bytes(&self) -> usize {
        0
    }
}

/// A source that holds nothing and waits for nobody.
struct Nothing;

impl Aside for Nothing {}

/// A job, or the promise to compute it outside the lock.
pub type Unresolved = Box<dyn FnOnce() -> Result<Job> + Send>;

/// What has become of one job: a batch, or several pieces of it if all would not fit at once.
#[derive(Default)]
struct Results {
    pieces: VecDeque<(usize, Result<Batch>)>,
    complete: bool,
}

struct State {
    /// With the thread whose turn it is to find the next job, which may take long; otherwise here.
    source: Option<Box<dyn Source>>,
    /// Jobs given to threads so far, and those whose results were all handed over.
    started: u64,
    taken: u64,
    ready: BTreeMap<u64, Results>,
    depth: Depth,
    /// Jobs that were given memory so far, in order, and how much is with jobs and their results.
    admitted: u64,
    held_bytes: usize,
    /// The number of the job at which the source ended or failed.
    ended_at: Option<u64>,
    stop: bool,
}

struct Shared {
    gather: Gather,
    /// What all batches may hold together, and that with what decoding images takes besides.
    limit_bytes: usize,
    whole_bytes: usize,
    aside: Arc<dyn Aside>,
    brought_bytes: usize,
    state: Mutex<State>,
    /// There may be a job to take.
    work: Signal,
    /// It may be another job's turn to have memory.
    turn: Signal,
    /// There may be something for the consumer.
    results: Signal,
}

impl State {
    /// The first piece that nobody has taken, if it is ready.
    fn take(&mut self) -> Option<(usize, Result<Batch>)> {
        let results = self.ready.get_mut(&self.taken)?;
        let piece = results.pieces.pop_front()?;
        if results.complete && results.pieces.is_empty() {
            self.ready.remove(&self.taken);
            self.taken += 1;
        }
        self.held_bytes = self.held_bytes.saturating_sub(piece.0);
        Some(piece)
    }

    fn put(&mut self, number: u64, held: usize, result: Result<Batch>, complete: bool) {
        let results = self.ready.entry(number).or_default();
        results.pieces.push_back((held, result));
        results.complete = complete;
    }

    /// As much is made ahead as may be.
    fn is_full(&self) -> bool {
        self.started >= self.taken + self.depth.now()
    }

    fn has_next(&self) -> bool {
        self.ready.get(&self.taken).is_some_and(|results| !results.pieces.is_empty())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Less is held, or it is another job's turn: whoever waits for memory may look again.
    fn memory_returned(&self) {
        self.turn.call_all();
        if self.brought_bytes > 0 {
            self.work.call_one();
        }
    }

    /// Everybody may look again, whatever they wait for.
    fn call_all(&self) {
        self.work.call_all();
        self.turn.call_all();
        self.results.call_all();
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
    /// Make batches ahead on `threads` threads, at first up to `depth` and never above `most_depth`, holding no
    /// more than `limit_bytes`.
    pub fn start(
        gather: Gather,
        source: Box<dyn Source>,
        threads: usize,
        depth: u64,
        most_depth: Option<u64>,
        limit_bytes: usize,
    ) -> Result<Self> {
        let (aside, brought_bytes) = (source.aside(), source.brought_bytes());
        let state = State {
            source: Some(source),
            started: 0,
            taken: 0,
            ready: BTreeMap::new(),
            depth: Depth::from(depth, most_depth),
            admitted: 0,
            held_bytes: 0,
            ended_at: None,
            stop: false,
        };
        let shared = Arc::new(Shared {
            limit_bytes: limit_bytes.min(gather.room.rest_bytes()),
            whole_bytes: limit_bytes,
            gather,
            aside,
            brought_bytes,
            state: Mutex::new(state),
            work: Signal::default(),
            turn: Signal::default(),
            results: Signal::default(),
        });
        let mut engine = Engine { shared, threads: Vec::new() };
        for number in 0..threads.max(1) {
            let shared = Arc::clone(&engine.shared);
            let thread =
                thread::Builder::new().name(format!("anybatch-{number}")).spawn(move || work(&shared));
            match thread {
                Ok(thread) => engine.threads.push(thread),
                Err(error) if engine.threads.is_empty() => {
                    return Err(Error::Misuse(format!("no thread could be started: {error}")));
                }
                // those that are there do it all
                Err(_) => break,
            }
        }
        Ok(engine)
    }

    /// The next batch in order, waiting for it up to `patience`.
    pub fn next(&self, patience: Duration) -> Result<Next> {
        let waiting = |state: &mut State| !state.has_next() && !ended(state);
        let mut state = self.shared.lock();
        let was_ready = !waiting(&mut state);
        let held = state.held_bytes;
        state.depth.asked(was_ready, held, self.shared.limit_bytes);
        if !was_ready {
            // one more may be made ahead from now on
            self.shared.work.call_one();
        }
        let mut state = self.shared.results.wait_while_for(state, patience, waiting);
        let Some((_, result)) = state.take() else {
            return Ok(if ended(&state) { Next::End } else { Next::NotYet });
        };
        drop(state);
        self.shared.memory_returned();
        self.shared.work.call_one();
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
            held_bytes: state.held_bytes + self.shared.aside.held_bytes(),
            unused_bytes: self.shared.gather.pool.held(),
            batches_ready: state.ready.values().map(|results| results.pieces.len()).sum(),
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
        self.shared.aside.stop();
        self.shared.call_all();
        for thread in self.threads.drain(..) {
            // a thread that panicked has already reported that as its job's result
            let _ = thread.join();
        }
    }
}

fn work(shared: &Shared) {
    let mut space = Workspace::default();
    while let Some((number, job)) = take_job(shared) {
        let made = catch_unwind(AssertUnwindSafe(|| make(shared, number, job, &mut space)));
        let error = match made {
            Ok(Ok(())) => continue,
            Ok(Err(error)) => error,
            Err(_) => {
                space = Workspace::default();
                Error::Misuse("a decoding thread failed; please report this".into())
            }
        };
        pass(shared, number);
        shared.lock().put(number, 0, Err(error), true);
        shared.results.call_all();
    }
}

/// Make the batch of a job, in pieces if it would not fit in one. Each counts with its bound while it is
/// made, and with what it really holds from then on. What is left when nobody wants it any more is not made.
fn make(shared: &Shared, number: u64, job: Unresolved, space: &mut Workspace) -> Result<()> {
    let mut pieces = shared.gather.split(job()?, shared.limit_bytes).into_iter().peekable();
    while let Some(job) = pieces.next() {
        let last = pieces.peek().is_none();
        let Some(bound) = admit(shared, number, shared.gather.bound_bytes(&job), last)? else {
            return Ok(());
        };
        let result = catch_unwind(AssertUnwindSafe(|| shared.gather.batch(job, space)));
        let held = result.as_ref().ok().and_then(|made| made.as_ref().ok()).map_or(0, Batch::held);
        let mut state = shared.lock();
        state.held_bytes = (state.held_bytes + held).saturating_sub(bound);
        let batch = match result {
            Ok(batch) => batch?,
            Err(panic) => {
                drop(state);
                resume_unwind(panic)
            }
        };
        state.put(number, held, Ok(batch), last);
        let is_next = state.taken == number;
        drop(state);
        if is_next {
            shared.results.call_all();
        }
        shared.memory_returned();
    }
    Ok(())
}

/// Wait for a job's turn and for its memory; how much it was given, or `None` if it is not wanted any more. One
/// after the other, so that the batch that is needed first never waits for memory that later ones hold: those
/// wait for its last piece.
fn admit(shared: &Shared, number: u64, bound: usize, last: bool) -> Result<Option<usize>> {
    if bound > shared.limit_bytes {
        let (needed, limit) = (shared.gather.room.limit_for_rest(bound), shared.whole_bytes);
        return Err(Error::DoesNotFit { stage: "read".into(), needed, limit });
    }
    let waits = |state: &mut State| {
        !state.stop && (state.admitted != number || state.held_bytes + bound > shared.limit_bytes)
    };
    let mut state = shared.turn.wait_while(shared.lock(), waits);
    if state.stop {
        return Ok(None);
    }
    state.admitted = number + u64::from(last);
    state.held_bytes += bound;
    let unused = shared.limit_bytes - state.held_bytes.min(shared.limit_bytes);
    drop(state);
    shared.memory_returned();
    shared.gather.pool.shrink_to(unused);
    Ok(Some(bound))
}

/// A job that needs no memory lets the next one have its turn.
fn pass(shared: &Shared, number: u64) {
    let waits = |state: &mut State| !state.stop && state.admitted < number;
    let mut state = shared.turn.wait_while(shared.lock(), waits);
    state.admitted = state.admitted.max(number + 1);
    drop(state);
    shared.memory_returned();
}

/// Whether a job may be unpacked: there is room for what it brings along, and no other one waits for its own.
fn has_room(shared: &Shared, state: &State) -> bool {
    let fits = state.held_bytes.saturating_add(shared.brought_bytes) <= shared.limit_bytes;
    fits && state.admitted == state.started
}

/// The next job and its number, or `None` when there is nothing more to do. One thread at a time looks for it,
/// from before it knows the number until all know that the job is taken; the others wait for nothing else meanwhile.
fn take_job(shared: &Shared) -> Option<(u64, Unresolved)> {
    let idle = |state: &mut State| {
        if state.stop || state.ended_at.is_some() {
            return false;
        }
        let full = state.is_full();
        state.depth.met(full);
        full || state.source.is_none() || (shared.brought_bytes > 0 && !has_room(shared, state))
    };
    let mut state = shared.work.wait_while(shared.lock(), idle);
    if state.stop || state.ended_at.is_some() {
        return None;
    }
    let (mut source, number) = (state.source.take()?, state.started);
    drop(state);
    let job = catch_unwind(AssertUnwindSafe(|| source.next_job()))
        .unwrap_or_else(|_| Err(Error::Misuse("finding the next records failed; please report this".into())));
    let mut state = shared.lock();
    state.source = Some(source);
    match job {
        Ok(Some(job)) => {
            state.started += 1;
            let is_full = state.is_full();
            drop(state);
            if !is_full {
                // there is work for one more, who calls the next in turn
                shared.work.call_one();
            }
            return Some((number, job));
        }
        Ok(None) => state.ended_at = Some(number),
        Err(error) => {
            state.put(number, 0, Err(error), true);
            state.ended_at = Some(number + 1);
        }
    }
    drop(state);
    shared.call_all();
    None
}
