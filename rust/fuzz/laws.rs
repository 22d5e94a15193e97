//! What must hold for any bytes whatever, one law per parser. The fuzzers look for bytes that break
//! them; the tests hold them over the inputs that were ever of interest.
#![allow(dead_code)]

use std::cell::RefCell;
use std::io::Write;
use std::path::{Path, PathBuf};

use anybatch_core::buffer::Pool;
use anybatch_core::column::Column;
use anybatch_core::decode::Decoder;
use anybatch_core::error::Error;
use anybatch_core::example::Level;
use anybatch_core::files::Compression;
use anybatch_core::frame;
use anybatch_core::image::{self, Shape};
use anybatch_core::index::Index;
use anybatch_core::scan::{Check, Scan};
use anybatch_core::schema::{Dtype, Fallback, Field, Form, Schema};
use anybatch_core::sidecar;
use anybatch_core::survey::{Seen, Survey};

/// Records and damage together are the whole file, in order and without overlap.
pub fn framing(bytes: &[u8]) {
    let everything = scanned(bytes, Compression::None, Check::Everything);
    let where_free = scanned(bytes, Compression::None, Check::WhereFree);
    assert_eq!(everything.is_ok(), where_free.is_ok());
    if let Ok(index) = everything {
        tiles(&index, bytes.len() as u64);
        for number in (0..index.records()).filter(|number| !index.bad.iter().any(|bad| bad.number == *number))
        {
            let extent = index.extent(number).expect("an extent");
            let framed = &bytes[extent.offset as usize..extent.end as usize];
            assert!(frame::checked_length(framed[..12].try_into().expect("a header")).is_some());
            assert!(frame::checked_data(&framed[12..]).is_ok());
        }
    }
}

/// The bytes are a plan: records of given sizes with wounds. What was not wounded is found, and the
/// index survives being written and read.
pub fn index(bytes: &[u8]) {
    let mut file = Vec::new();
    let mut plan = bytes.iter();
    while let (Some(size), Some(fill)) = (plan.next(), plan.next()) {
        let data = vec![*fill; usize::from(*size) * 3];
        file.extend(frame::header(data.len() as u64));
        file.extend(&data);
        file.extend(frame::footer(&data));
        if let (true, Some(place)) = (fill % 7 == 0, plan.next()) {
            let at = file.len() - 1 - usize::from(*place) % file.len();
            file[at] ^= fill | 1;
        }
    }
    let Ok(index) = scanned(&file, Compression::None, Check::WhereFree) else { return };
    tiles(&index, file.len() as u64);
    assert_eq!(sidecar::from_bytes(&sidecar::to_bytes(&index)).as_ref(), Some(&index));
}

/// Any bytes with a right checksum behind them are an index that answers every question, or none.
pub fn sidecar(bytes: &[u8]) {
    let _ = sidecar::from_bytes(bytes);
    let mut sealed = bytes.to_vec();
    sealed.extend(crc_of(bytes).to_le_bytes());
    if let Some(index) = sidecar::from_bytes(&sealed) {
        let last = index.records();
        for number in (0..last.min(300)).chain(last.saturating_sub(300)..last.saturating_add(2)) {
            let _ = index.extent(number);
        }
        let _ = index.damaged();
    }
}

fn crc_of(bytes: &[u8]) -> u32 {
    // the masked CRC with its mask taken off
    anybatch_core::crc::masked(bytes).wrapping_sub(0xa282_ead8).rotate_left(15)
}

/// A record gives one row of every column, or leaves all of them as they were.
pub fn example(bytes: &[u8]) {
    decoded(bytes, Level::Context);
}

pub fn sequence_example(bytes: &[u8]) {
    decoded(bytes, Level::Lists);
}

fn decoded(bytes: &[u8], level: Level) {
    let records: Vec<_> = bytes.split(|byte| *byte == 0xfe).take(8).collect();
    records.iter().for_each(|record| surveyed(record));
    // a record with few features is plain only for who asks for few
    let fields = every_kind(level);
    for fields in [fields.clone(), fields[..1].to_vec(), fields[4..5].to_vec(), fields[5..6].to_vec()] {
        remembering(&records, &Schema::new(fields).expect("a schema"));
    }
}

const TIMES: u64 = 3;

/// A record counts the same however often it was met, though a layout is used when it comes for the third time.
fn surveyed(record: &[u8]) {
    let [once, often] = [1, TIMES].map(|times| {
        let mut survey = Survey::default();
        (0..times).for_each(|_| survey.add(record));
        survey
    });
    assert_eq!((often.records, often.malformed), (TIMES, TIMES * once.malformed));
    for level in [Level::Context, Level::Lists] {
        let times = |(name, seen): (&str, &Seen)| {
            let mut seen = seen.clone();
            seen.present *= TIMES;
            seen.not_finite *= TIMES;
            seen.kinds = seen.kinds.map(|records| records * TIMES);
            (name.to_owned(), seen)
        };
        let expected: Vec<_> = once.features(level).into_iter().map(times).collect();
        let found: Vec<_> =
            often.features(level).into_iter().map(|(n, seen)| (n.to_owned(), seen.clone())).collect();
        assert_eq!(format!("{found:?}"), format!("{expected:?}"));
    }
}

/// What a decoder remembers of records that it has met changes nothing about those that follow.
fn remembering(records: &[&[u8]], schema: &Schema) {
    let pool = Pool::new(1 << 20);
    let empty =
        || -> Vec<Column> { schema.fields.iter().map(|field| Column::new(field, 4, 64, &pool)).collect() };
    let (mut columns, mut expected, mut rows) = (empty(), empty(), 0);
    let mut decoder = Decoder::default();
    // a layout is used when it comes for the third time
    for record in records.iter().cycle().take(records.len() * 3) {
        let before = sizes(&columns);
        let outcome = decoder.decode(schema, record, &mut columns, rows);
        assert_eq!(Decoder::default().decode(schema, record, &mut expected, rows), outcome);
        match outcome {
            Ok(()) => rows += 1,
            Err(_) => assert_eq!(sizes(&columns), before),
        }
    }
    for ((column, other), field) in columns.iter().zip(&expected).zip(&schema.fields) {
        rectangular(column, field, rows);
        assert_eq!(column.values.as_slice(), other.values.as_slice());
        let items = |column: &Column| column.items.as_ref().map(|items| items.as_slice().to_vec());
        assert_eq!(items(column), items(other));
    }
}

fn every_kind(level: Level) -> Vec<Field> {
    let field = |key: &str, form, dtype, count, default, required| Field {
        key: key.into(),
        level,
        form,
        dtype,
        count,
        default,
        required,
    };
    vec![
        field("f", Form::Dense, Dtype::Float32, 2, Fallback::Numbers(vec![1; 8]), false),
        field("d", Form::Dense, Dtype::Float64, 1, Fallback::Numbers(vec![0; 8]), false),
        field("i", Form::Dense, Dtype::Int64, 1, Fallback::Numbers(vec![0; 8]), false),
        field("u", Form::Ragged, Dtype::Uint8, 0, Fallback::None, false),
        field("r", Form::Ragged, Dtype::Int64, 0, Fallback::None, false),
        field("s", Form::Dense, Dtype::Bytes, 1, Fallback::Strings(vec![b"no".to_vec()]), false),
        field("b", Form::Ragged, Dtype::Bytes, 0, Fallback::None, false),
        field("r", Form::Ragged, Dtype::Bool, 0, Fallback::None, false),
    ]
}

fn sizes(columns: &[Column]) -> Vec<[usize; 4]> {
    let len = |bytes: &Option<anybatch_core::buffer::Bytes>| bytes.as_ref().map_or(0, |bytes| bytes.len());
    let all =
        |column: &Column| [column.values.len(), len(&column.steps), len(&column.items), len(&column.strings)];
    columns.iter().map(all).collect()
}

/// Every level of offsets ends where the next one does.
fn rectangular(column: &Column, field: &Field, rows: usize) {
    let follow =
        |offsets: &Option<anybatch_core::buffer::Bytes>, entries: usize, otherwise: usize| match offsets {
            None => otherwise,
            Some(offsets) => {
                assert_eq!(offsets.len(), (entries + 1) * 8);
                let all: Vec<_> = (0..=entries).map(|at| offsets.i64_at(at)).collect();
                assert!(all[0] == 0 && all.is_sorted());
                all[entries] as usize
            }
        };
    let items = follow(&column.steps, rows, rows);
    let values = follow(&column.items, items, items * field.count);
    let bytes = follow(&column.strings, values, values * field.dtype.width());
    assert_eq!(column.values.len(), bytes);
}

/// A file is an image of any shape, whatever was decoded before it, or none.
pub fn image(bytes: &[u8]) {
    thread_local!(static USED: RefCell<image::Decoder> = RefCell::default());
    for (height, width, channels) in [(5, 3, 3), (24, 40, 1), (1, 90, 4)] {
        let shape = Shape { height, width, channels };
        let fill = |decoder: &mut image::Decoder, blank: u8| {
            let mut out = vec![blank; shape.bytes()];
            decoder.decode(bytes, shape, &mut out).map(|()| out)
        };
        let fresh = fill(&mut image::Decoder::default(), 0);
        assert_eq!(USED.with_borrow_mut(|used| fill(used, 1)), fresh);
    }
}

/// Compressed bytes of any kind are walked to their end; packed records come out again.
pub fn inflate(bytes: &[u8]) {
    for compression in [Compression::Gzip, Compression::Zlib] {
        if let Ok(index) = scanned(bytes, compression, Check::WhereFree) {
            tiles(&index, index.stream_bytes);
        }
        let (wound, data) = bytes.split_at(bytes.len().min(3));
        let records = [&frame::header(data.len() as u64)[..], data, &frame::footer(data)].concat();
        let mut packed = pack(&records, compression);
        let index = scanned(&packed, compression, Check::WhereFree).expect("a sound shard");
        assert_eq!((index.records(), index.gaps.len(), index.bad.len()), (1, 0, 0));
        if let [at, more, flip] = *wound {
            let at = (usize::from(at) + 256 * usize::from(more)) % packed.len();
            packed[at] ^= flip;
            if let Ok(index) = scanned(&packed, compression, Check::WhereFree) {
                tiles(&index, index.stream_bytes);
            }
        }
    }
}

fn pack(bytes: &[u8], compression: Compression) -> Vec<u8> {
    let level = flate2::Compression::fast();
    if compression == Compression::Gzip {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), level);
        out.write_all(bytes).and_then(|()| out.finish()).expect("memory")
    } else {
        let mut out = flate2::write::ZlibEncoder::new(Vec::new(), level);
        out.write_all(bytes).and_then(|()| out.finish()).expect("memory")
    }
}

fn tiles(index: &Index, bytes: u64) {
    let mut pieces: Vec<(u64, u64)> = (0..index.records())
        .map(|n| index.extent(n).expect("an extent"))
        .map(|e| (e.offset, e.end))
        .collect();
    pieces.extend(index.gaps.iter().map(|gap| (gap.offset, gap.offset + gap.length)));
    pieces.sort_unstable();
    let mut at = 0;
    for (start, end) in pieces {
        assert_eq!(start, at, "{index:?}");
        at = end;
    }
    assert_eq!(at, bytes, "{index:?}");
}

fn scanned(bytes: &[u8], compression: Compression, check: Check) -> Result<Index, Error> {
    let path = scratch_file();
    std::fs::write(&path, bytes).expect("room in the temporary folder");
    let mut scan = Scan::new(&path, compression, check)?;
    while scan.advance(1 << 20)? {}
    let scanned = scan.finish();
    assert!(matches!(scanned, Ok(_) | Err(Error::NotRecords { .. })), "{scanned:?}");
    scanned
}

/// One file per thread, in memory where there is such a folder.
fn scratch_file() -> PathBuf {
    struct Scratch(PathBuf);
    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }
    thread_local!(static FILE: RefCell<Option<Scratch>> = const { RefCell::new(None) });
    FILE.with_borrow_mut(|file| {
        let scratch = file.get_or_insert_with(|| {
            let memory = Path::new("/dev/shm");
            let folder = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
            let thread = format!("{:?}", std::thread::current().id()).replace(['(', ')'], "-");
            Scratch(folder.join(format!("anybatch-fuzz-{}-{thread}", std::process::id())))
        });
        scratch.0.clone()
    })
}
