//! Sweeps over real files.

use std::fs;
use std::path::Path;

use super::broom::READ_BYTES;
use super::*;
use crate::files::{self, Compression};
use crate::frame;
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

fn shares(sweep_bytes: usize, apart: bool) -> Shares {
    Shares { sweep_bytes, batch_bytes: 0, apart }
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
    for (sweep_bytes, apart) in [
        (60_000, false),
        (200_000, false),
        (1 << 20, false),
        (1 << 30, false),
        (700_000, true),
        (1 << 20, true),
        (1 << 30, true),
    ] {
        let swept = jobs(Swept::new(order.clone(), Arc::clone(&files), shares(sweep_bytes, apart)));
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
                assert!(ours.held.as_slice()[at..].starts_with(&frame), "record {}", place.number);
            }
        }
        if sweep_bytes < 1 << 20 && !apart {
            let missing = swept.iter().skip(16).filter(|job| held(job) < job.places.len()).count();
            assert!(missing <= 1, "{missing} jobs are not whole");
            assert!(swept.iter().map(held).sum::<usize>() > 5000);
        }
        if apart && sweep_bytes <= 1 << 20 {
            // all but the first few come past the page cache, where the file system has such
            assert!(swept.iter().map(held).sum::<usize>() > 4000, "{sweep_bytes}");
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
    for apart in [false, true] {
        for job in jobs(Swept::new(order.clone(), Arc::clone(&files), shares(400_000, apart))) {
            assert!(job.places.iter().all(|place| place.held_at.is_none() || place.shard != 1));
        }
    }
}

#[test]
fn no_more_is_held_than_two_sweeps_bring_and_nothing_in_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let (files, order) = shards(folder.path());
    for (sweep_bytes, apart) in [(200_000, false), (900_000, true)] {
        let mut source = Swept::new(order.clone(), Arc::clone(&files), shares(sweep_bytes, apart));
        let mut most = 0;
        while let Some(job) = source.next_job().unwrap() {
            job().unwrap();
            most = most.max(source.shared.lock().held_bytes);
        }
        assert!(0 < most && most <= 2 * sweep_bytes, "{most} bytes were held");
        assert_eq!(source.aside().held_bytes() - source.shared.pool.held(), 0);
    }
}

#[test]
fn whoever_waits_for_a_sweep_that_will_not_come_reads_for_himself() {
    let folder = tempfile::tempdir().unwrap();
    let (files, order) = shards(folder.path());
    let mut source = Swept::new(order, files, shares(200_000, false));
    let waiting: Vec<_> = std::iter::from_fn(|| source.next_job().unwrap()).collect();
    source.aside().stop();
    let made: Vec<_> = waiting.into_iter().map(|job| job().unwrap()).collect();
    assert_eq!(made.iter().map(|job| job.places.len()).sum::<usize>(), 6000);
}

#[test]
fn a_sweep_that_is_told_to_end_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (files, order) = shards(folder.path());
    let mut some: Vec<_> = jobs(order).into_iter().take(3).map(|job| (0, job)).collect();
    let pool = Pool::new(0);
    some.iter_mut().for_each(|(_, job)| apart::hold(job, &pool));
    for mut manner in
        [Manner::Together(Broom::new(Arc::clone(&files))), Manner::Apart(Readers::new(Arc::clone(&files)))]
    {
        assert!(!manner.sweep(&mut some, || true, || ()));
        assert!(manner.sweep(&mut some, || false, || ()));
    }
}

#[test]
fn sweeps_are_made_where_records_lie_close_and_memory_holds_many() {
    let folder = tempfile::tempdir().unwrap();
    let (_, order) = shards(folder.path());
    let numbering = &order.numbering;
    assert_eq!(
        Shares::of(64 << 20, usize::MAX, numbering, 6000, 64),
        Some(Shares { sweep_bytes: 24 << 20, batch_bytes: 16 << 20, apart: false })
    );
    assert_eq!(
        Shares::of(64 << 20, 8 << 20, numbering, 6000, 64),
        Some(Shares { sweep_bytes: 4 << 20, batch_bytes: 56 << 20, apart: false })
    );
    assert_eq!(Shares::of(64 << 20, 0, numbering, 6000, 64), None);
    assert_eq!(Shares::of(64 << 20, usize::MAX, numbering, 6000, 512), None);
    assert_eq!(Shares::of(64 << 20, usize::MAX, numbering, 20, 1), None);
    assert_eq!(Shares::of(10_000, usize::MAX, numbering, 6000, 64), None);
}
