//! Whatever happens to a shard, it is noticed, and every record it did not touch comes back.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anybatch_core::buffer::Pool;
use anybatch_core::engine::{Engine, Next};
use anybatch_core::example::Level;
use anybatch_core::files::{self, Compression, Files};
use anybatch_core::frame;
use anybatch_core::gather::{Damaged, Gather, OnCorrupt};
use anybatch_core::index::Index;
use anybatch_core::scan::{Check, Scan};
use anybatch_core::sizes::Sizes;
use anybatch_core::source::{Split, Uncut, Walk, Walked};
use anybatch_core::survey::Survey;
use anybatch_core::{Error, Result};
use proptest::prelude::*;

fn framed(data: &[u8]) -> Vec<u8> {
    [&frame::header(data.len() as u64)[..], data, &frame::footer(data)].concat()
}

fn shard(records: &[Vec<u8>]) -> Vec<u8> {
    records.iter().flat_map(|record| framed(record)).collect()
}

/// Records of unlike sizes, the third of them holding frames of its own.
fn small_records() -> Vec<Vec<u8>> {
    let nested = [framed(b"not"), framed(b"ours")].concat();
    let sizes = [0, 1, 7, 40, 3, 64, 12];
    let mut records: Vec<Vec<u8>> = sizes
        .iter()
        .enumerate()
        .map(|(n, size)| (0..*size).map(|at| (at * 31 + n * 7) as u8).collect())
        .collect();
    records.insert(2, [b"before".to_vec(), nested, b"after".to_vec()].concat());
    records
}

/// Records large enough to be hopped over.
fn large_records() -> Vec<Vec<u8>> {
    (0..4).map(|n| (0..60_000 + n * 1000).map(|at| (at * 31 + n * 7 + at / 251) as u8).collect()).collect()
}

fn write(folder: &Path, bytes: &[u8]) -> PathBuf {
    let path = folder.join("shard.tfrecord");
    std::fs::write(&path, bytes).unwrap();
    path
}

/// Everything that can be read, with the ledger.
fn read(path: &Path, compression: Compression) -> Result<(Vec<Vec<u8>>, Vec<Damaged>)> {
    let (_, identity) = files::open(path)?;
    let files = Arc::new(Files::new([(path.to_path_buf(), identity)], 4));
    let shards = vec![Walked { path: path.to_path_buf(), compression, known: None }];
    let uncut = Uncut::within(8 << 20, None);
    let walk =
        Walk::new(shards, Arc::clone(&files), Split { batch: 3, most: 2 }, uncut, false, OnCorrupt::Skip);
    let gather = Gather {
        files,
        schema: None,
        on_corrupt: OnCorrupt::Skip,
        pool: Pool::new(1 << 20),
        fetch_bytes: 0,
        warmer: None,
        room: Arc::default(),
    };
    let engine = Engine::start(gather, Box::new(walk), 1, 2, None, 1 << 30)?;
    let (mut records, mut damaged) = (Vec::new(), Vec::new());
    loop {
        match engine.next(Duration::from_secs(60))? {
            Next::Batch(batch) => {
                damaged.extend(batch.damaged);
                for column in &batch.columns {
                    let offsets = column.strings.as_ref().unwrap();
                    let place = |at| offsets.i64_at(at) as usize;
                    let rows = (0..batch.rows)
                        .map(|row| column.values.as_slice()[place(row)..place(row + 1)].to_vec());
                    records.extend(rows);
                }
            }
            Next::End => return Ok((records, damaged)),
            Next::NotYet => panic!("reading hangs"),
        }
    }
}

fn starts(records: &[Vec<u8>]) -> Vec<u64> {
    let mut at = 0;
    let place = |record: &Vec<u8>| {
        let start = at;
        at += record.len() as u64 + frame::OVERHEAD;
        start
    };
    records.iter().map(place).collect()
}

fn without(records: &[Vec<u8>], lost: usize) -> Vec<Vec<u8>> {
    let mut rest = records.to_vec();
    rest.remove(lost);
    rest
}

/// One changed byte: exactly the record it lies in is lost, at the right place.
fn one_byte(records: &[Vec<u8>], positions: impl Iterator<Item = usize>, flips: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    let (sound, starts) = (shard(records), starts(records));
    for at in positions {
        let hit = starts.partition_point(|start| *start <= at as u64) - 1;
        for flip in flips {
            let mut bytes = sound.clone();
            bytes[at] ^= flip;
            let path = write(folder.path(), &bytes);
            let (read, damaged) = read(&path, Compression::None).unwrap();
            assert_eq!(read, without(records, hit), "byte {at} ^ {flip:#x}");
            let places: Vec<_> = damaged.iter().map(|damaged| (damaged.offset, damaged.length)).collect();
            let whole = records[hit].len() as u64 + frame::OVERHEAD;
            assert_eq!(places, [(starts[hit], whole)], "byte {at} ^ {flip:#x}: {damaged:?}");
        }
    }
}

#[test]
fn a_changed_byte_anywhere_costs_one_small_record() {
    let records = small_records();
    let bytes = shard(&records).len();
    one_byte(&records, 0..bytes, &[0x01, 0x80, 0xff, 0x5a]);
}

#[test]
fn a_changed_byte_costs_one_large_record() {
    let records = large_records();
    let around = starts(&records).into_iter().flat_map(|start| start as usize..start as usize + 14);
    let ends = starts(&records).into_iter().skip(1).flat_map(|end| end as usize - 6..end as usize);
    one_byte(&records, around.chain(ends).chain((0..shard(&records).len()).step_by(9973)), &[0x01, 0xff]);
}

/// A record cut exactly where frames inside it end cannot be told from one that lies about its length.
fn ambiguous(records: &[Vec<u8>], cut: usize) -> bool {
    let frames = starts(records)[2] as usize + frame::HEADER + "before".len();
    [framed(b"not").len(), framed(b"not").len() + framed(b"ours").len()].contains(&cut.saturating_sub(frames))
}

#[test]
fn a_shard_cut_at_any_length_gives_what_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let records = small_records();
    let (sound, starts) = (shard(&records), starts(&records));
    for cut in (starts[1] as usize..sound.len()).filter(|cut| !ambiguous(&records, *cut)) {
        let path = write(folder.path(), &sound[..cut]);
        let (read, damaged) = read(&path, Compression::None).unwrap();
        let whole = starts.partition_point(|start| *start <= cut as u64) - 1;
        assert_eq!(read, records[..whole], "cut at {cut}");
        let left = cut as u64 - starts[whole];
        let places: Vec<_> = damaged.iter().map(|damaged| (damaged.offset, damaged.length)).collect();
        let expected = if left == 0 { vec![] } else { vec![(starts[whole], left)] };
        assert_eq!(places, expected, "cut at {cut}: {damaged:?}");
    }
}

/// Records that `from..to` of the shard does not touch.
fn untouched(records: &[Vec<u8>], from: usize, to: usize) -> Vec<Vec<u8>> {
    let starts = starts(records);
    let apart = |n: &usize| {
        let (start, end) = (starts[*n] as usize, starts[*n] as usize + records[*n].len() + 16);
        end <= from || start >= to
    };
    (0..records.len()).filter(apart).map(|n| records[n].clone()).collect()
}

fn is_subsequence(of: &[Vec<u8>], part: &[Vec<u8>]) -> bool {
    let mut of = of.iter();
    part.iter().all(|record| of.any(|other| other == record))
}

#[test]
fn overwritten_blocks_cost_what_they_touch() {
    let folder = tempfile::tempdir().unwrap();
    // no frames within frames here: behind a destroyed header they cannot be told from records
    let records: Vec<_> = without(&small_records(), 2);
    let sound = shard(&records);
    for (fill, size) in [(0, 30), (0xff, 17), (0, 90), (0xaa, 3)] {
        for from in 0..sound.len() - size {
            let mut bytes = sound.clone();
            bytes[from..from + size].fill(fill);
            let path = write(folder.path(), &bytes);
            let (read, damaged) = read(&path, Compression::None).unwrap();
            assert!(is_subsequence(&read, &untouched(&records, from, from + size)), "{from} {size} {fill}");
            assert!(is_subsequence(&records, &read), "{from} {size} {fill}");
            assert!(bytes == sound || !damaged.is_empty(), "{from} {size} {fill}");
        }
    }
}

#[test]
fn removed_and_inserted_bytes_cost_what_they_touch() {
    let folder = tempfile::tempdir().unwrap();
    for records in [without(&small_records(), 2), large_records()] {
        let sound = shard(&records);
        let step = (sound.len() / 300).max(1);
        for from in (0..sound.len() - 5).step_by(step) {
            let mut shorter = sound.clone();
            shorter.drain(from..from + 5);
            let mut longer = sound.clone();
            longer.splice(from..from, [1, 2, 3]);
            for (bytes, touched) in [(shorter, 5), (longer, 0)] {
                let path = write(folder.path(), &bytes);
                let (read, damaged) = read(&path, Compression::None).unwrap();
                assert!(is_subsequence(&read, &untouched(&records, from, from + touched)), "at {from}");
                assert!(is_subsequence(&records, &read), "at {from}");
                assert!(!damaged.is_empty(), "at {from}");
            }
        }
    }
}

#[test]
fn two_shards_pasted_together_are_read_as_one() {
    let folder = tempfile::tempdir().unwrap();
    let records = small_records();
    let sound = shard(&records);
    for cut in (0..=sound.len()).filter(|cut| !ambiguous(&records, *cut)) {
        let path = write(folder.path(), &[&sound[..cut], &sound[..]].concat());
        let (read, _) = read(&path, Compression::None).unwrap();
        let whole =
            starts(&records).iter().zip(&records).filter(|(s, r)| **s as usize + r.len() + 16 <= cut).count();
        assert_eq!(read, [&records[..whole], &records[..]].concat(), "first cut at {cut}");
    }
}

#[test]
fn zeros_before_between_and_behind_are_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let records = small_records();
    let sound = shard(&records);
    for start in starts(&records).into_iter().map(|start| start as usize).chain([sound.len()]) {
        for zeros in [1, 12, 4096, 200_000] {
            let bytes = [&sound[..start], &vec![0; zeros], &sound[start..]].concat();
            let path = write(folder.path(), &bytes);
            let (read, damaged) = read(&path, Compression::None).unwrap();
            assert_eq!(read, records, "{zeros} zeros at {start}");
            assert_eq!(damaged.len(), 1);
            assert_eq!((damaged[0].offset, damaged[0].length), (start as u64, zeros as u64));
        }
    }
}

#[test]
fn a_length_field_that_lies_costs_its_own_record_only() {
    let folder = tempfile::tempdir().unwrap();
    let records = small_records();
    let (sound, starts) = (shard(&records), starts(&records));
    for (n, start) in starts.iter().enumerate() {
        let true_length = records[n].len() as u64;
        let to_next = starts.get(n + 2).map(|next| next - start - frame::OVERHEAD);
        let lies = [0, 1, true_length + 1, true_length.wrapping_sub(1), 1 << 40, u64::MAX, true_length + 16];
        for lie in lies.into_iter().chain(to_next).filter(|lie| *lie != true_length) {
            let mut bytes = sound.clone();
            bytes[*start as usize..*start as usize + 12].copy_from_slice(&frame::header(lie));
            let path = write(folder.path(), &bytes);
            let (read, damaged) = read(&path, Compression::None).unwrap();
            // a record that holds frames and whose end is a lie: they cannot be told from records
            let expected = without(&records, n);
            let found = if n == 2 {
                read.into_iter().filter(|one| one != b"not" && one != b"ours").collect()
            } else {
                read
            };
            assert_eq!(found, expected, "record {n} claims {lie}");
            assert!(!damaged.is_empty());
        }
    }
}

#[test]
fn compressed_shards_are_read_and_their_damage_noticed() {
    use flate2::write::{GzEncoder, ZlibEncoder};
    let folder = tempfile::tempdir().unwrap();
    let records = small_records();
    let mut damaged_inside = shard(&records);
    damaged_inside[30] ^= 1;
    let gzip = |bytes: &[u8]| {
        let mut out = GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    };
    let zlib = |bytes: &[u8]| {
        let mut out = ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    };
    type Packer<'a> = (Compression, &'a dyn Fn(&[u8]) -> Vec<u8>);
    let packers: [Packer; 2] = [(Compression::Gzip, &gzip), (Compression::Zlib, &zlib)];
    for (compression, pack) in packers {
        let whole = pack(&shard(&records));
        let path = write(folder.path(), &whole);
        assert_eq!(Compression::detect(&path).unwrap(), compression);
        assert_eq!(read(&path, compression).unwrap(), (records.clone(), vec![]));
        let path = write(folder.path(), &[&whole[..], &whole[..]].concat());
        assert_eq!(read(&path, compression).unwrap().0, [&records[..], &records[..]].concat());
        let path = write(folder.path(), &pack(&damaged_inside));
        assert_eq!(read(&path, compression).unwrap().0, without(&records, 1));
        for cut in whole.len() / 2..whole.len() {
            let path = write(folder.path(), &whole[..cut]);
            match read(&path, compression) {
                Ok((read, damaged)) => {
                    assert!(records.starts_with(&read), "cut at {cut}");
                    assert!(!damaged.is_empty(), "cut at {cut}");
                }
                Err(error) => assert!(matches!(error, Error::NotRecords { .. }), "cut at {cut}: {error}"),
            }
        }
    }
}

/// Examples that hold one number each: which one tells them apart.
fn examples(count: u8) -> Vec<Vec<u8>> {
    let entry = |number| [0x0a, 10, 0x0a, 1, b'n', 0x12, 5, 0x1a, 3, 0x0a, 1, number];
    (0..count).map(|number| [&[0x0a, 12], &entry(number)[..]].concat()).collect()
}

/// A survey of a shard, walked over so many bytes at a time, and its index.
fn surveyed(path: &Path, budget_bytes: u64) -> (Survey, Index) {
    let mut scan = Scan::new(path, Compression::None, Check::Everything).unwrap();
    let mut survey = Survey::default();
    while scan.survey(budget_bytes, &mut survey).unwrap() {}
    (survey, scan.finish().unwrap())
}

#[test]
fn a_survey_on_the_way_is_that_of_every_sound_record() {
    let folder = tempfile::tempdir().unwrap();
    let (records, sizes) = (examples(90), framed(&examples(1)[0]).len());
    for hit in [None, Some(0), Some(44), Some(89)] {
        let mut bytes = shard(&records);
        if let Some(hit) = hit {
            // in the data: the record is known, and bad
            bytes[hit * sizes + frame::HEADER + 5] ^= 1;
        }
        let path = write(folder.path(), &bytes);
        let mut expected = Survey::default();
        let sound = records.iter().enumerate().filter(|(at, _)| Some(*at) != hit);
        sound.for_each(|(_, record)| expected.add(record));
        for budget_bytes in [1, 100, 1 << 20] {
            let (found, index) = surveyed(&path, budget_bytes);
            assert_eq!((found.records, found.malformed), (expected.records, 0));
            assert_eq!(found.features(Level::Context), expected.features(Level::Context));
            assert_eq!(found.sizes, Sizes::of(&index).unwrap());
        }
    }
}

#[test]
fn a_file_of_nothing_but_plausible_headers_ends_in_bounded_time() {
    let folder = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = (0..400_000_u64).rev().flat_map(|n| frame::header(n * 11)).collect();
    let path = write(folder.path(), &bytes);
    let (records, damaged) = read(&path, Compression::None).unwrap();
    assert_eq!((records.len(), damaged.iter().map(|damaged| damaged.length).sum()), (0, bytes.len() as u64));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_bytes_at_all_are_read_or_refused(bytes: Vec<u8>, repeat in 1..20usize) {
        let folder = tempfile::tempdir().unwrap();
        let path = write(folder.path(), &bytes.repeat(repeat));
        for compression in [Compression::None, Compression::Gzip, Compression::Zlib] {
            match read(&path, compression) {
                Ok((records, damaged)) => prop_assert!(bytes.is_empty() || !records.is_empty() || !damaged.is_empty()),
                Err(error) => prop_assert!(matches!(error, Error::NotRecords { .. }), "{error}"),
            }
        }
    }

    #[test]
    fn several_wounds_cost_only_what_they_touch(
        sizes in prop::collection::vec(0..300usize, 2..30),
        wounds in prop::collection::vec((any::<prop::sample::Index>(), 1..=255u8), 1..4),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let records: Vec<Vec<u8>> =
            sizes.iter().enumerate().map(|(n, size)| (0..*size).map(|at| (at * 131 + n * 17) as u8).collect()).collect();
        let mut bytes = shard(&records);
        let mut hit = vec![false; records.len()];
        let starts = starts(&records);
        for (place, flip) in &wounds {
            let at = place.index(bytes.len());
            bytes[at] ^= flip;
            hit[starts.partition_point(|start| *start <= at as u64) - 1] = true;
        }
        let path = write(folder.path(), &bytes);
        if hit.iter().all(|hit| *hit) {
            return Ok(());
        }
        let (read, _) = read(&path, Compression::None).unwrap();
        let spared: Vec<_> = records.iter().zip(&hit).filter(|(_, hit)| !**hit).map(|(r, _)| r.clone()).collect();
        prop_assert!(is_subsequence(&read, &spared));
        prop_assert!(is_subsequence(&records, &read));
    }
}
