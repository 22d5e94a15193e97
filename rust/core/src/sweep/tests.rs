//! Sweeps over real files.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::apart::Readers;
use super::broom::{Broom, Due, READ_BYTES};
use super::sections::SECTIONS;
use super::*;
use crate::buffer::Pool;
use crate::files::{self, Compression};
use crate::frame;
use crate::gather::Job;
use crate::order::Order;
use crate::scan::{Check, Scan};
use crate::source::{Numbering, Split};

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

fn apart(sweep_bytes: usize) -> Shares {
    Shares { manner: Manner::Apart { sweep_bytes }, batch_bytes: 0 }
}

/// A twentieth of what is held joins at every section, about as much as there is room for.
fn in_rounds(held_bytes: usize) -> Shares {
    Shares { manner: Manner::InRounds { held_bytes, joining_bytes: held_bytes / 20 }, batch_bytes: 0 }
}

/// All jobs of a source, each of them looked at and let go.
fn each(mut source: Box<dyn Source>, mut look: impl FnMut(usize, Job)) {
    for number in 0.. {
        let Some(job) = source.next_job().unwrap() else { break };
        look(number, job().unwrap());
    }
}

fn jobs(order: Ordered) -> Vec<Job> {
    let mut jobs = Vec::new();
    each(Box::new(order), |_, job| jobs.push(job));
    jobs
}

fn held(job: &Job) -> usize {
    job.places.iter().filter(|place| place.held_at.is_some()).count()
}

/// Whatever is held of a job is what its files have; how many records that is.
fn check(ours: &Job, theirs: &Job) -> usize {
    let numbers = |job: &Job| job.places.iter().map(|place| place.number).collect::<Vec<_>>();
    assert_eq!((numbers(ours), ours.end, ours.ends_batch), (numbers(theirs), theirs.end, theirs.ends_batch));
    for place in &ours.places {
        let Some(at) = place.held_at else { continue };
        assert!(ours.frames()[at..].starts_with(&framed(place.number)), "record {}", place.number);
    }
    held(ours)
}

#[test]
fn every_job_is_as_it_would_be_with_the_bytes_of_its_records() {
    let folder = tempfile::tempdir().unwrap();
    let (files, order) = shards(folder.path());
    let plain = jobs(order.clone());
    // so many records at least come past the page cache, where the file system has such
    for (shares, least) in [
        (in_rounds(50_000), 0),
        (in_rounds(400_000), 5500),
        (in_rounds(3 << 20), 5000),
        (in_rounds(1 << 30), 0),
        (apart(700_000), 4000),
        (apart(1 << 20), 4000),
        (apart(1 << 30), 0),
    ] {
        let (mut seen, mut brought) = (0, 0);
        each(swept(order.clone(), Arc::clone(&files), shares), |number, job| {
            brought += check(&job, &plain[number]);
            seen += 1;
        });
        assert_eq!(seen, plain.len());
        assert!(brought >= least, "{brought} with {shares:?}");
    }
}

#[test]
fn a_stream_goes_on_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    let (files, order) = shards(folder.path());
    let plain = jobs(order.clone());
    for start in [1, 30, plain.len() - 1] {
        let mut rest = order.clone();
        (0..start).for_each(|_| drop(rest.next_job()));
        each(swept(rest, Arc::clone(&files), in_rounds(400_000)), |number, job| {
            check(&job, &plain[start + number]);
        });
    }
}

#[test]
fn nothing_is_held_of_a_file_that_was_cut() {
    let folder = tempfile::tempdir().unwrap();
    let (files, order) = shards(folder.path());
    let cut = folder.path().join("1.tfrecord");
    let size = fs::metadata(&cut).unwrap().len();
    fs::File::options().write(true).open(cut).unwrap().set_len(size / 2).unwrap();
    for shares in [apart(400_000), in_rounds(400_000)] {
        each(swept(order.clone(), Arc::clone(&files), shares), |_, job| {
            assert!(job.places.iter().all(|place| place.held_at.is_none() || place.shard != 1));
        });
    }
}

#[test]
fn no_more_is_held_than_may_be_and_nothing_in_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let (files, order) = shards(folder.path());
    for (shares, most_bytes) in [(in_rounds(400_000), 400_000), (apart(900_000), 3 * 900_000)] {
        // as fast as can be, and all too slowly
        for pause in [Duration::ZERO, Duration::from_millis(2)] {
            let source = swept(order.clone(), Arc::clone(&files), shares);
            let (aside, mut most) = (source.aside(), 0);
            each(source, |_, job| {
                thread::sleep(pause);
                most = most.max(aside.held_bytes());
                drop(job);
            });
            assert!(most_bytes / 4 < most && most <= most_bytes, "{most} bytes were held");
            assert!(shares.is_apart() || aside.held_bytes() == 0);
        }
    }
}

#[test]
fn whoever_waits_for_a_sweep_that_will_not_come_reads_for_himself() {
    let folder = tempfile::tempdir().unwrap();
    let (files, order) = shards(folder.path());
    for shares in [in_rounds(400_000), apart(200_000)] {
        let mut source = swept(order.clone(), Arc::clone(&files), shares);
        let waiting: Vec<_> = std::iter::from_fn(|| source.next_job().unwrap()).collect();
        source.aside().stop();
        let made: Vec<_> = waiting.into_iter().map(|job| job().unwrap()).collect();
        assert_eq!(made.iter().map(|job| job.places.len()).sum::<usize>(), 6000);
    }
}

#[test]
fn a_sweep_that_is_told_to_end_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (files, order) = shards(folder.path());
    let numbering = Arc::clone(&order.numbering);
    let due: Vec<_> = (0..90).map(|row| Due { number: 60 * u64::from(row), group: 0, row }).collect();
    let mut broom = Broom::new(Arc::clone(&files), numbering);
    let mut brought = 0;
    broom.sweep(&due, || true, |_, _| brought += 1, || ());
    assert_eq!(brought, 0);
    assert_eq!(broom.sweep(&due, || false, |_, _| brought += 1, || 7), 7);
    assert_eq!(brought, due.len());
    let mut some: Vec<_> = jobs(order).into_iter().take(3).map(|job| (0, job)).collect();
    let pool = Pool::new(0);
    some.iter_mut().for_each(|(_, job)| apart::hold(job, &pool));
    let readers = Readers::new(files);
    assert!(!readers.sweep(&mut some, || true, || ()));
    assert!(readers.sweep(&mut some, || false, || ()));
}

#[test]
fn sweeps_are_made_where_records_lie_close_and_memory_holds_many() {
    let folder = tempfile::tempdir().unwrap();
    let (_, order) = shards(folder.path());
    let numbering = &order.numbering;
    for (limit_bytes, swept_bytes, held) in
        [(64 << 20, usize::MAX, 48 << 20), (64 << 20, 8 << 20, 8 << 20), (4 << 20, usize::MAX, 3 << 20)]
    {
        let shares = Shares::of(limit_bytes, swept_bytes, numbering, 6000, 64).unwrap();
        let Manner::InRounds { held_bytes, joining_bytes } = shares.manner else { panic!("{shares:?}") };
        assert_eq!((held_bytes, shares.batch_bytes), (held, limit_bytes - held));
        // nearly twice of what is held is on its way
        let on_their_way = joining_bytes * SECTIONS;
        assert!((held * 8 / 5..held * 2).contains(&on_their_way), "{on_their_way} of {held}");
    }
    assert_eq!(Shares::of(64 << 20, 0, numbering, 6000, 64), None);
    assert_eq!(Shares::of(64 << 20, usize::MAX, numbering, 6000, 512), None);
    assert_eq!(Shares::of(64 << 20, usize::MAX, numbering, 20, 1), None);
    assert_eq!(Shares::of(10_000, usize::MAX, numbering, 6000, 64), None);
}
