//! Records of many batches at a time, read in the order in which they lie.
//!
//! Where the page cache holds only a part of the data, exactly shuffled records cost a read each, and nearly
//! all that is read is thrown away. So the records of as many batches as memory allows are looked up ahead
//! and fetched in one sweep over the files, by large reads past the page cache. One sweep is under way while
//! the batches of the last one are made.
//!
//! A sweep promises nothing: whatever it could not fetch is read one by one, by whoever finds it missing.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use aligned_vec::{AVec, ConstAlign};

use crate::engine::{Source, Unresolved};
use crate::error::{Error, Result};
use crate::files::Files;
use crate::gather::{Job, Place};
use crate::source::{Numbering, Ordered};

/// What one read takes at most: large enough for the full speed of any disk.
const READ_BYTES: usize = 1 << 20;
/// So much is rather read in vain than one read more made.
const GAP_BYTES: u64 = 64 << 10;
/// Records that lie further apart than this, on average, are fetched faster one by one.
const SPACING_BYTES: u64 = 64 << 10;
/// Reads past the page cache begin and end where blocks do, on any disk.
const BLOCK_BYTES: usize = 4096;
/// Fewer jobs than this in one sweep are not worth it.
const LEAST_JOBS: u64 = 16;
/// This part of a sweep's jobs is read one by one at first, so that nobody waits for the first sweep.
const AT_ONCE: u64 = 8;

/// What a record takes besides its bytes while it is swept up.
const OVERHEAD_BYTES: usize = size_of::<Place>() + size_of::<Wanted>();

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

/// One record of a sweep, and whose it is.
#[derive(Clone, Copy)]
struct Wanted {
    shard: u32,
    job: u32,
    row: u32,
    offset: u64,
}

type Block = AVec<u8, ConstAlign<BLOCK_BYTES>>;

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
        let mut block = Block::with_capacity(BLOCK_BYTES, READ_BYTES);
        block.resize(READ_BYTES, 0);
        while self.shared.wait_for_room() {
            let Some(mut jobs) = self.next_jobs() else { return };
            if jobs.is_empty() {
                return;
            }
            self.sweep(&mut jobs, &mut block);
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

    fn sweep(&self, jobs: &mut [(usize, Job)], block: &mut Block) {
        let wanted = in_files_order(jobs);
        let mut rest = &wanted[..];
        let mut file: Option<(u32, File)> = None;
        while let Some(first) = rest.first() {
            if self.shared.lock().ended {
                return;
            }
            let start = first.offset / BLOCK_BYTES as u64 * BLOCK_BYTES as u64;
            let (stretch, behind) = rest.split_at(stretch_length(rest, start, jobs));
            rest = behind;
            if file.as_ref().is_none_or(|(shard, _)| *shard != first.shard) {
                file = self.files.past_cache(first.shard as usize).ok().map(|file| (first.shard, file));
            }
            let read = file.as_ref().and_then(|(_, file)| filled(file, start, stretch, jobs, block));
            for one in stretch {
                deliver(one, start, read.unwrap_or_default(), jobs);
            }
        }
    }
}

struct End(Arc<Shared>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// What a job holds on to when its bytes are there.
fn bytes_of(job: &Job) -> usize {
    let frames: u64 = job.places.iter().map(|place| place.extent.bytes()).sum();
    usize::try_from(frames).unwrap_or(usize::MAX).saturating_add(job.places.len() * OVERHEAD_BYTES)
}

/// Give every record of a job its place among the job's own bytes.
fn hold(job: &mut Job) {
    let mut at = 0_usize;
    for place in &mut job.places {
        place.held_at = Some(at);
        at += place.extent.bytes() as usize;
    }
    job.held = vec![0; at];
    job.is_in_files = true;
}

fn in_files_order(jobs: &[(usize, Job)]) -> Vec<Wanted> {
    let held = |(_, job): &&(usize, Job)| !job.held.is_empty();
    let mut wanted: Vec<_> = Vec::with_capacity(jobs.iter().map(|(_, job)| job.places.len()).sum());
    for (number, (_, job)) in jobs.iter().enumerate().filter(|(_, job)| held(job)) {
        wanted.extend(job.places.iter().enumerate().map(|(row, place)| Wanted {
            shard: place.shard as u32,
            job: number as u32,
            row: row as u32,
            offset: place.extent.offset,
        }));
    }
    wanted.sort_unstable_by_key(|one| (one.shard, one.offset));
    wanted
}

/// How many records come by one read from `start` on; at least one.
fn stretch_length(wanted: &[Wanted], start: u64, jobs: &[(usize, Job)]) -> usize {
    let shard = wanted.first().map(|one| one.shard);
    let mut end = wanted.first().map_or(0, |one| end_of(one, jobs));
    let adjoins = |one: &&Wanted| {
        let near = Some(one.shard) == shard && one.offset <= end.saturating_add(GAP_BYTES);
        end = end_of(one, jobs).max(end);
        near && end - start <= READ_BYTES as u64
    };
    1 + wanted[1..].iter().take_while(adjoins).count()
}

fn end_of(one: &Wanted, jobs: &[(usize, Job)]) -> u64 {
    jobs[one.job as usize].1.places[one.row as usize].extent.end
}

/// What a file has from `start` to the end of a stretch, or as much of that as one read takes.
fn filled<'a>(
    file: &File,
    start: u64,
    stretch: &[Wanted],
    jobs: &[(usize, Job)],
    block: &'a mut Block,
) -> Option<&'a [u8]> {
    let end = stretch.iter().map(|one| end_of(one, jobs)).max()?;
    let bytes = usize::try_from(end - start).ok()?.next_multiple_of(BLOCK_BYTES).min(READ_BYTES);
    let read = file.read_at(&mut block[..bytes], start).ok()?;
    Some(&block[..read])
}

/// Put a record's bytes where its job has room for them; where they are missing, it is still to be read.
fn deliver(one: &Wanted, start: u64, read: &[u8], jobs: &mut [(usize, Job)]) {
    let job = &mut jobs[one.job as usize].1;
    let place = &mut job.places[one.row as usize];
    let from = (place.extent.offset - start) as usize;
    let frame = read.get(from..from + place.extent.bytes() as usize);
    match (frame, place.held_at) {
        (Some(frame), Some(at)) => job.held[at..at + frame.len()].copy_from_slice(frame),
        _ => place.held_at = None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::files::{self, Compression};
    use crate::frame;
    use crate::order::Order;
    use crate::scan::{Check, Scan};
    use crate::source::Split;

    fn record(number: u64) -> Vec<u8> {
        // one among many is larger than any read
        let bytes = if number == 77 { READ_BYTES + 5 } else { (number * 37 % 900) as usize };
        (0..bytes).map(|at| (at as u64 * 31 + number) as u8).collect()
    }

    fn framed(number: u64) -> Vec<u8> {
        let data = record(number);
        [&frame::header(data.len() as u64)[..], &data, &frame::footer(&data)].concat()
    }

    /// Three shards of 2,000 records: their files, and jobs of 64 in random order.
    fn shards(folder: &Path) -> (Arc<Files>, Ordered) {
        let mut found = Vec::new();
        for shard in 0..3 {
            let path = folder.join(format!("{shard}.tfrecord"));
            let frames: Vec<_> = (0..2000).map(|number| framed(shard * 2000 + number)).collect();
            fs::write(&path, frames.concat()).unwrap();
            let mut scan = Scan::new(&path, Compression::None, Check::WhereFree).unwrap();
            while scan.next_record().unwrap().is_some() {}
            let (_, identity) = files::open(&path).unwrap();
            found.push((path, identity, Arc::new(scan.finish().unwrap())));
        }
        let numbering = Numbering::new(found.iter().map(|(.., index)| Arc::clone(index)).collect()).unwrap();
        let order = Order::of(numbering.records()).shuffled(7, 0);
        let split = Split { batch: 64, most: 64 };
        let files = Files::new(found.into_iter().map(|(path, identity, _)| (path, identity)), 8);
        (Arc::new(files), Ordered::new(numbering, order, split, false, 0))
    }

    fn jobs(mut source: impl Source) -> Vec<Job> {
        std::iter::from_fn(|| source.next_job().unwrap()).map(|job| job().unwrap()).collect()
    }

    fn held(job: &Job) -> usize {
        job.places.iter().filter(|place| place.held_at.is_some()).count()
    }

    #[test]
    fn every_job_is_as_it_would_be_with_the_bytes_of_its_records() {
        let folder = tempfile::tempdir().unwrap();
        let (files, order) = shards(folder.path());
        for sweep_bytes in [60_000, 200_000, 1 << 20, 1 << 30] {
            let swept = jobs(Swept::new(order.clone(), Arc::clone(&files), sweep_bytes));
            let plain = jobs(order.clone());
            assert_eq!(swept.len(), plain.len());
            for (ours, theirs) in swept.iter().zip(&plain) {
                let numbers = |job: &Job| job.places.iter().map(|place| place.number).collect::<Vec<_>>();
                assert_eq!(
                    (numbers(ours), ours.end, ours.ends_batch),
                    (numbers(theirs), theirs.end, theirs.ends_batch)
                );
                for place in &ours.places {
                    let Some(at) = place.held_at else { continue };
                    let frame = framed(place.number);
                    assert!(ours.held[at..].starts_with(&frame), "record {}", place.number);
                }
            }
            if sweep_bytes < 1 << 20 {
                let missing = swept.iter().skip(16).filter(|job| held(job) < job.places.len()).count();
                assert!(missing <= 1, "{missing} jobs are not whole");
                assert!(swept.iter().map(held).sum::<usize>() > 5000);
            }
        }
    }

    #[test]
    fn nothing_is_held_of_a_file_that_was_cut() {
        let folder = tempfile::tempdir().unwrap();
        let (files, order) = shards(folder.path());
        let cut = folder.path().join("1.tfrecord");
        let size = fs::metadata(&cut).unwrap().len();
        fs::File::options().write(true).open(cut).unwrap().set_len(size / 2).unwrap();
        for job in jobs(Swept::new(order, files, 200_000)) {
            assert!(job.places.iter().all(|place| place.held_at.is_none() || place.shard != 1));
        }
    }

    #[test]
    fn no_more_is_held_than_two_sweeps_bring_and_nothing_in_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let (files, order) = shards(folder.path());
        let mut source = Swept::new(order, files, 200_000);
        let mut most = 0;
        while let Some(job) = source.next_job().unwrap() {
            job().unwrap();
            most = most.max(source.held_bytes());
        }
        assert!(0 < most && most <= 400_000, "{most} bytes were held");
        assert_eq!(source.held_bytes(), 0);
    }

    #[test]
    fn whoever_waits_for_a_sweep_that_will_not_come_reads_for_himself() {
        let folder = tempfile::tempdir().unwrap();
        let (files, order) = shards(folder.path());
        let mut source = Swept::new(order, files, 200_000);
        let waiting: Vec<_> = std::iter::from_fn(|| source.next_job().unwrap()).collect();
        source.stop();
        let made: Vec<_> = waiting.into_iter().map(|job| job().unwrap()).collect();
        assert_eq!(made.iter().map(|job| job.places.len()).sum::<usize>(), 6000);
    }

    #[test]
    fn sweeps_are_made_where_records_lie_close_and_memory_holds_many() {
        let folder = tempfile::tempdir().unwrap();
        let (_, order) = shards(folder.path());
        let numbering = &order.numbering;
        assert_eq!(
            Shares::of(64 << 20, usize::MAX, numbering, 6000, 64),
            Some(Shares { sweep_bytes: 24 << 20, batch_bytes: 16 << 20 })
        );
        assert_eq!(
            Shares::of(64 << 20, 8 << 20, numbering, 6000, 64),
            Some(Shares { sweep_bytes: 4 << 20, batch_bytes: 56 << 20 })
        );
        assert_eq!(Shares::of(64 << 20, 0, numbering, 6000, 64), None);
        assert_eq!(Shares::of(64 << 20, usize::MAX, numbering, 6000, 512), None);
        assert_eq!(Shares::of(64 << 20, usize::MAX, numbering, 20, 1), None);
        assert_eq!(Shares::of(10_000, usize::MAX, numbering, 6000, 64), None);
    }
}
