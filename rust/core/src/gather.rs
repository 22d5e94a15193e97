//! Many records into one batch: read, check, decode. Neighbours on disk are read together.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::buffer::{Bytes, Pool};
use crate::column::Column;
use crate::decode::{Decoder, Fault};
use crate::error::{Error, Result};
use crate::files::{self, AtHand, Files};
use crate::frame::{self, Familiar, HEADER};
use crate::image::Room;
use crate::index::{Extent, Reason};
use crate::scattered;
use crate::schema::Schema;
use crate::warm::Warmer;

mod large;
mod small;

/// What one read takes at most, unless a single record is larger: stays in the processor's cache.
const READ_BYTES: u64 = 256 << 10;
/// Records that the system is asked for ahead of being read, when storage is slower than memory.
const IN_FLIGHT: usize = 512;
/// Asked for ahead, records come fast from any storage: only after so many batches is one read without asking,
/// which tells whether the page cache holds them by now.
const COLD_BATCHES: u32 = 64;
/// So many grains that were asked for are remembered: those of a window or two.
const MOST_ASKED: usize = 16 << 10;
/// No read out of the page cache takes as long as this, nor do so many bytes of it take a nanosecond.
const SLOW_READ: Duration = Duration::from_micros(20);
const SLOW_BYTES_PER_NS: u64 = 2;

/// So many reads of a batch tell whether storage is slow.
const TELLING: u32 = 16;

/// So many batches have to come as fast as from the page cache before small records are fetched many at a time.
const TRUSTED_BATCHES: u32 = 2;
/// Records that lie together in larger numbers are read together.
const FEW: usize = 3;

/// A record to fetch.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// The record's number among all, and its position in the order that is read.
    pub number: u64,
    pub position: u64,
    pub shard: usize,
    pub extent: Extent,
    /// Where its frame begins in the job's own bytes, for shards that cannot be read by position.
    pub held_at: Option<usize>,
}

/// The records of one batch. Those of compressed shards come with their bytes, and so do those swept up ahead.
#[derive(Debug, Default)]
pub struct Job {
    pub places: Vec<Place>,
    pub held: Vec<u8>,
    /// What is held can be read from the files as well.
    pub is_in_files: bool,
    pub damaged: Vec<Damaged>,
    /// The last part of its batch.
    pub ends_batch: bool,
    /// The position behind its last record.
    pub end: u64,
}

impl Job {
    /// Have everything read from the files.
    fn let_go(&mut self) {
        self.held = Vec::new();
        self.places.iter_mut().for_each(|place| place.held_at = None);
    }

    fn data_bytes(&self) -> usize {
        let bytes: u64 = self.places.iter().map(|place| place.extent.data_bytes()).sum();
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damaged {
    pub shard: usize,
    pub offset: u64,
    pub length: u64,
    pub reason: String,
}

#[derive(Debug)]
pub struct Batch {
    pub rows: usize,
    pub columns: Vec<Column>,
    /// Each row's record number and position, as int64.
    pub numbers: Bytes,
    pub positions: Bytes,
    pub damaged: Vec<Damaged>,
    /// How many records it was to have, and whether it is the last part of its batch.
    pub asked: usize,
    pub ends_batch: bool,
    /// The position behind its last record, be that damaged or not.
    pub end: u64,
}

impl Batch {
    /// How much memory this holds on to.
    pub fn held(&self) -> usize {
        self.columns.iter().map(Column::held).sum::<usize>() + self.numbers.held() + self.positions.held()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnCorrupt {
    Raise,
    Skip,
}

/// Everything that is the same for all batches of a run.
#[derive(Debug)]
pub struct Gather {
    pub files: Arc<Files>,
    /// `None`: each record's bytes as they are.
    pub schema: Option<Arc<Schema>>,
    pub on_corrupt: OnCorrupt,
    pub pool: Arc<Pool>,
    /// What is fetched ahead from slow storage is rounded to so many bytes: more than one record where
    /// neighbours are soon needed too, as in a windowed shuffle.
    pub fetch_bytes: u64,
    /// Who brings in all of the data when storage is slow, where all will be needed and stay.
    pub warmer: Option<Warmer>,
    /// Where images are decoded.
    pub room: Arc<Room>,
}

/// What a thread keeps from batch to batch.
#[derive(Debug, Default)]
pub struct Workspace {
    decoder: Decoder,
    block: Vec<u8>,
    files: AtHand,
    /// A batch had to wait for storage: so many more have their records fetched ahead.
    cold_batches: u32,
    /// Those of the present batch.
    reads: Reads,
    /// How many batches in a row had not to wait, and were not fetched ahead.
    warm_batches: u32,
    /// Grains that were asked for: once is enough for all batches of a window.
    asked: HashSet<(usize, u64)>,
    /// How many batches they were remembered for.
    since_asked: u32,
    /// Where small records from all over the files come together.
    together: scattered::Room,
    /// Where the last record's large value was: most likely where the next one's is.
    layout: Option<large::Layout>,
    familiar: Familiar,
}

impl Workspace {
    /// Draw conclusions from whether the last batch had to wait for storage.
    fn note(&mut self, slow: bool) {
        let asked = self.cold_batches > 0;
        self.cold_batches = if slow { COLD_BATCHES } else { self.cold_batches.saturating_sub(1) };
        self.warm_batches = if slow || asked { 0 } else { self.warm_batches.saturating_add(1) };
        self.since_asked = self.since_asked.saturating_add(1);
        if slow && self.since_asked > COLD_BATCHES {
            // what was fetched may be gone again
            self.asked.clear();
            self.since_asked = 0;
        }
    }
}

/// How long the reads of a batch took together.
#[derive(Debug, Default)]
struct Reads {
    count: u32,
    bytes: u64,
    spent: Duration,
}

impl Reads {
    /// The result of something that reads so many bytes by so many reads.
    fn timed<T>(&mut self, count: usize, bytes: usize, read: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = read();
        self.spent += start.elapsed();
        self.count = self.count.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        self.bytes = self.bytes.saturating_add(bytes as u64);
        result
    }

    fn were_slow(&self) -> bool {
        let bytes = Duration::from_nanos(self.bytes / SLOW_BYTES_PER_NS);
        self.spent > SLOW_READ * self.count + bytes
    }
}

impl Gather {
    /// Fetch and decode the records of one job, in its order.
    pub fn batch(&self, job: Job, space: &mut Workspace) -> Result<Batch> {
        space.decoder.keep_within(&self.room);
        let numbers = || self.pool.take(job.places.len().saturating_mul(8));
        let mut batch = Batch {
            rows: 0,
            columns: self.empty_columns(&job),
            numbers: numbers(),
            positions: numbers(),
            damaged: job.damaged,
            asked: job.places.len(),
            ends_batch: job.ends_batch,
            end: job.end,
        };
        let large = self.schema.as_deref().and_then(|schema| Some((schema, schema.large_raw()?)));
        let mut rest = &job.places[..];
        let mut ahead = 0;
        space.reads = Reads::default();
        let windowed = self.fetch_bytes > 0;
        let mut ask = windowed || space.cold_batches > 0;
        let mapped = (windowed || space.warm_batches >= TRUSTED_BATCHES) && self.files.maps.are_there();
        while let Some((first, _)) = rest.split_first() {
            if !ask && space.reads.count >= TELLING && space.reads.were_slow() {
                ask = true;
                self.slow();
            }
            if ask {
                let at = job.places.len() - rest.len();
                ahead = self.fetch_ahead(&job.places, ahead.max(at), at + IN_FLIGHT, &mut space.asked);
            }
            let adjoining = run_length(rest);
            let (group, after) =
                rest.split_at(if mapped && adjoining <= FEW { small::group_length(rest) } else { 0 });
            if !group.is_empty() && self.add_scattered(group, &mut batch, space)? {
                rest = after;
                continue;
            }
            let (run, after) = rest.split_at(adjoining);
            match (large, run) {
                (Some((schema, field)), [place]) if place.held_at.is_none() => {
                    self.add_large(schema, field, place, &mut batch, space)?;
                }
                _ => self.add_run(first, run, &job.held, &mut batch, space)?,
            }
            rest = after;
        }
        space.files.clear();
        let slow = space.reads.were_slow();
        space.note(slow);
        if slow {
            self.slow();
        }
        Ok(batch)
    }

    fn slow(&self) {
        self.warmer.iter().for_each(Warmer::begin);
    }

    /// Have the records `from..to` of a job fetched while others are decoded; how far that got.
    fn fetch_ahead(
        &self,
        places: &[Place],
        from: usize,
        to: usize,
        asked: &mut HashSet<(usize, u64)>,
    ) -> usize {
        let to = to.min(places.len());
        let missing = places.get(from..to).unwrap_or_default().iter().filter(|place| place.held_at.is_none());
        for place in missing {
            let (from, to) = self.to_ask(place, asked);
            if from < to
                && let Ok(file) = self.files.get(place.shard)
            {
                files::fetch_ahead(&file, from, to - from);
            }
        }
        to.max(from)
    }

    /// From where to where a record's grains were not asked for before.
    fn to_ask(&self, place: &Place, asked: &mut HashSet<(usize, u64)>) -> (u64, u64) {
        let Extent { offset: mut from, end: mut to } = place.extent;
        let grain = self.fetch_bytes;
        if grain == 0 {
            return (from, to);
        }
        if asked.len() > MOST_ASKED {
            asked.clear();
        }
        (from, to) = (from / grain * grain, to.next_multiple_of(grain));
        while from < to && !asked.insert((place.shard, from)) {
            from += grain;
        }
        let mut behind = from + grain;
        while behind < to && asked.insert((place.shard, behind)) {
            behind += grain;
        }
        (from, behind.min(to))
    }

    fn add_run(
        &self,
        first: &Place,
        run: &[Place],
        held: &[u8],
        batch: &mut Batch,
        space: &mut Workspace,
    ) -> Result<()> {
        let Workspace { block, files, decoder, familiar, reads, .. } = space;
        let frames = match first.held_at {
            Some(at) => held.get(at..).unwrap_or_default(),
            None => self.read(run, block, files, reads)?,
        };
        for place in run {
            let from = usize::try_from(place.extent.offset - first.extent.offset).unwrap_or(usize::MAX);
            let to = from.saturating_add(usize::try_from(place.extent.bytes()).unwrap_or(usize::MAX));
            self.add_frame(place, frames.get(from..to).unwrap_or_default(), batch, decoder, familiar)?;
        }
        Ok(())
    }

    /// Check one frame and decode what is in it.
    fn add_frame(
        &self,
        place: &Place,
        frame: &[u8],
        batch: &mut Batch,
        decoder: &mut Decoder,
        familiar: &mut Familiar,
    ) -> Result<()> {
        match checked(frame, familiar) {
            Ok(data) => {
                let outcome = self.decode(data, batch, decoder);
                self.settle(place, outcome, batch)
            }
            Err(reason) => self.damaged(place, reason.to_string(), batch),
        }
    }

    fn empty_columns(&self, job: &Job) -> Vec<Column> {
        let (rows, data_bytes) = (job.places.len(), job.data_bytes());
        match &self.schema {
            Some(schema) => {
                let column = |field| Column::new(field, rows, data_bytes, &self.pool);
                schema.fields.iter().map(column).collect()
            }
            None => vec![Column::of_records(rows, data_bytes, &self.pool)],
        }
    }

    /// What a job can take at most, before anything of it is read.
    pub fn bound_bytes(&self, job: &Job) -> usize {
        let (rows, data_bytes) = (job.places.len(), job.data_bytes());
        let columns = match &self.schema {
            Some(schema) => schema.bound_bytes(rows, data_bytes),
            None => data_bytes.saturating_add(rows.saturating_mul(8)),
        };
        columns.saturating_add(rows.saturating_mul(16)).saturating_add(job.held.len())
    }

    /// A job as it is, or, if it could take more than `limit_bytes`, as several that take half of that.
    pub fn split(&self, mut job: Job, limit_bytes: usize) -> Vec<Job> {
        if self.bound_bytes(&job) <= limit_bytes {
            return vec![job];
        }
        if job.is_in_files {
            job.let_go();
        } else if !job.held.is_empty() {
            return vec![job];
        }
        let mut pieces = vec![Job { damaged: job.damaged, ..Job::default() }];
        let mut bound = 0_usize;
        for place in job.places {
            bound = bound.saturating_add(self.bound_bytes(&Job { places: vec![place], ..Job::default() }));
            if bound > limit_bytes / 2 && pieces.last().is_some_and(|piece| !piece.places.is_empty()) {
                pieces.push(Job::default());
                bound = 0;
            }
            if let Some(piece) = pieces.last_mut() {
                piece.places.push(place);
                piece.end = place.position + 1;
            }
        }
        if let Some(last) = pieces.last_mut() {
            (last.ends_batch, last.end) = (job.ends_batch, job.end);
        }
        pieces
    }

    fn read<'a>(
        &self,
        run: &[Place],
        block: &'a mut Vec<u8>,
        at_hand: &mut AtHand,
        reads: &mut Reads,
    ) -> Result<&'a [u8]> {
        let (Some(first), Some(last)) = (run.first(), run.last()) else {
            return Ok(&[]);
        };
        let bytes = usize::try_from(last.extent.end - first.extent.offset).unwrap_or(usize::MAX);
        if block.len() < bytes {
            block.resize(bytes, 0);
        }
        let file = at_hand.get(&self.files, first.shard)?;
        let path = self.files.path(first.shard);
        let into = &mut block[..bytes];
        reads.timed(1, bytes, || files::read_at(file, path, into, first.extent.offset))?;
        Ok(&block[..bytes])
    }

    fn decode(
        &self,
        data: &[u8],
        batch: &mut Batch,
        decoder: &mut Decoder,
    ) -> std::result::Result<(), Fault> {
        match &self.schema {
            Some(schema) => decoder.decode(schema, data, &mut batch.columns, batch.rows),
            None => {
                batch.columns.iter_mut().for_each(|column| column.push_string(data));
                Ok(())
            }
        }
    }

    fn settle(
        &self,
        place: &Place,
        outcome: std::result::Result<(), Fault>,
        batch: &mut Batch,
    ) -> Result<()> {
        match outcome {
            Ok(()) => {
                batch.rows += 1;
                batch.numbers.push_i64(place.number.cast_signed());
                batch.positions.push_i64(place.position.cast_signed());
                Ok(())
            }
            Err(Fault::Malformed(why)) => self.damaged(
                place,
                format!("checksums are right but it is no tf.train.Example: {why}"),
                batch,
            ),
            Err(Fault::Image { feature, why }) => self.damaged(
                place,
                format!("checksums are right but feature {feature:?} is no readable image: {why}"),
                batch,
            ),
            Err(Fault::TooLarge { feature, width, height, needed_bytes }) => Err(Error::DoesNotFit {
                stage: format!("read an image of {width} x {height} pixels in feature {feature:?}"),
                needed: self.room.limit_for_large(needed_bytes),
                limit: self.room.limit_bytes(),
            }),
            Err(Fault::Moved) => Err(Error::Misuse("a value was expected where none was read".into())),
            Err(Fault::Feature { feature, problem }) => Err(Error::Feature {
                file: self.path(place).into(),
                offset: place.extent.offset,
                feature,
                problem,
            }),
        }
    }

    fn path(&self, place: &Place) -> &Path {
        self.files.path(place.shard)
    }

    fn damaged(&self, place: &Place, reason: String, batch: &mut Batch) -> Result<()> {
        // a shard that changed meanwhile is not damaged: nothing the index says of it holds any more
        self.files.unchanged(place.shard)?;
        let (offset, length) = (place.extent.offset, place.extent.bytes());
        if self.on_corrupt == OnCorrupt::Raise {
            return Err(Error::Corrupt { file: self.path(place).into(), offset, length, reason });
        }
        batch.damaged.push(Damaged { shard: place.shard, offset, length, reason });
        Ok(())
    }
}

/// How many of the places ahead lie one behind the other and fit into one read.
fn run_length(places: &[Place]) -> usize {
    let Some(first) = places.first() else {
        return 0;
    };
    if first.held_at.is_some() {
        return 1;
    }
    let mut end = first.extent.end;
    let adjoins = |place: &&Place| {
        let extends = place.shard == first.shard
            && place.held_at.is_none()
            && place.extent.offset == end
            && place.extent.end - first.extent.offset <= READ_BYTES;
        end = place.extent.end;
        extends
    };
    1 + places[1..].iter().take_while(adjoins).count()
}

/// The data of a frame whose two checksums are right.
fn checked<'a>(bytes: &'a [u8], familiar: &mut Familiar) -> std::result::Result<&'a [u8], Reason> {
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER>() else {
        return Err(Reason::CutHeader { left: bytes.len() as u64 });
    };
    let left = rest.len().saturating_sub(frame::FOOTER) as u64;
    match familiar.checked_length(header) {
        None => Err(Reason::Header),
        Some(length) if length != left => Err(Reason::Length { claimed: length, left }),
        Some(_) => frame::checked_data(rest).map_err(Reason::from),
    }
}
