//! Many records into one batch: read, check, decode. Neighbours on disk are read together.

use std::fmt;
use std::mem;
use std::path::Path;
use std::sync::Arc;

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

mod ahead;
mod large;
mod pace;
mod small;

use ahead::Asked;
use pace::Pace;

/// What one read takes at most, unless a single record is larger: stays in the processor's cache.
const READ_BYTES: u64 = 256 << 10;
/// A thread keeps no larger block than this from batch to batch: one large record is not all the time's memory.
const KEPT_BLOCK_BYTES: usize = 4 << 20;
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
    /// Where its frame begins in the bytes that came with the job.
    pub held_at: Option<usize>,
}

/// The records of one batch. Those of compressed shards come with their bytes, and so do those swept up ahead.
#[derive(Debug, Default)]
pub struct Job {
    pub places: Vec<Place>,
    pub held: Bytes,
    /// Bytes that other jobs have parts of too, instead of its own.
    pub lent: Option<Arc<dyn Lent>>,
    /// What is held can be read from the files as well.
    pub is_in_files: bool,
    pub damaged: Vec<Damaged>,
    /// The last part of its batch.
    pub ends_batch: bool,
    /// The position behind its last record.
    pub end: u64,
}

/// Bytes that several jobs hold on to.
pub trait Lent: fmt::Debug + Send + Sync {
    fn bytes(&self) -> &[u8];
}

impl Job {
    /// The bytes it came with.
    pub(crate) fn frames(&self) -> &[u8] {
        self.lent.as_ref().map_or(self.held.as_slice(), |lent| lent.bytes())
    }

    /// Have everything read from the files.
    fn let_go(&mut self) {
        (self.held, self.lent) = (Bytes::default(), None);
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
    pace: Pace,
    asked: Asked,
    /// Where small records from all over the files come together.
    together: scattered::Room,
    /// Where the last record's large value was: most likely where the next one's is.
    layout: Option<large::Layout>,
    familiar: Familiar,
}

impl Gather {
    /// Fetch and decode the records of one job, in its order.
    pub fn batch(&self, mut job: Job, space: &mut Workspace) -> Result<Batch> {
        space.decoder.keep_within(&self.room);
        let numbers = || self.pool.take(job.places.len().saturating_mul(8));
        let mut batch = Batch {
            rows: 0,
            columns: self.empty_columns(&job),
            numbers: numbers(),
            positions: numbers(),
            damaged: mem::take(&mut job.damaged),
            asked: job.places.len(),
            ends_batch: job.ends_batch,
            end: job.end,
        };
        let large = self.schema.as_deref().and_then(|schema| Some((schema, schema.large_raw()?)));
        let mut rest = &job.places[..];
        space.pace.batch_begins();
        space.asked.batch_begins();
        let windowed = self.fetch_bytes > 0;
        let mut ask = windowed || space.pace.is_cold();
        let mapped = (windowed || space.pace.is_warm()) && self.files.maps.are_there();
        while let Some((first, _)) = rest.split_first() {
            if !ask && space.pace.began_slowly() {
                ask = true;
                self.warm_up();
            }
            if ask {
                self.ask_ahead(&job.places, job.places.len() - rest.len(), &mut space.asked);
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
                _ => self.add_run(first, run, job.frames(), &mut batch, space)?,
            }
            rest = after;
        }
        space.files.clear();
        if space.block.capacity() > KEPT_BLOCK_BYTES {
            space.block = Vec::new();
        }
        let slow = space.pace.batch_ended();
        space.asked.batch_ended(slow);
        if slow {
            self.warm_up();
        }
        Ok(batch)
    }

    /// Storage is slow: have all of the data brought in, where that helps.
    fn warm_up(&self) {
        self.warmer.iter().for_each(Warmer::begin);
    }

    fn add_run(
        &self,
        first: &Place,
        run: &[Place],
        held: &[u8],
        batch: &mut Batch,
        space: &mut Workspace,
    ) -> Result<()> {
        let Workspace { block, files, decoder, familiar, pace, .. } = space;
        let frames = match first.held_at {
            Some(at) => held.get(at..).unwrap_or_default(),
            None => self.read(run, block, files, pace)?,
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
        bound_bytes(self.schema.as_deref(), job.places.len(), job.data_bytes()).saturating_add(job.held.len())
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
        let (mut rows, mut data_bytes) = (0, 0_usize);
        for place in job.places {
            let own = usize::try_from(place.extent.data_bytes()).unwrap_or(usize::MAX);
            (rows, data_bytes) = (rows + 1, data_bytes.saturating_add(own));
            if rows > 1 && bound_bytes(self.schema.as_deref(), rows, data_bytes) > limit_bytes / 2 {
                pieces.push(Job::default());
                (rows, data_bytes) = (1, own);
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
        pace: &mut Pace,
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
        pace.timed(1, bytes, || files::read_at(file, path, into, first.extent.offset))?;
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
                stage: format!(
                    "read an image of {width} x {height} pixels in feature {feature:?} of the record at byte {} of {}",
                    place.extent.offset,
                    self.path(place).display()
                ),
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

/// What a batch of so many records of `data_bytes` together can take at most.
pub(crate) fn bound_bytes(schema: Option<&Schema>, rows: usize, data_bytes: usize) -> usize {
    let columns = match schema {
        Some(schema) => schema.bound_bytes(rows, data_bytes),
        None => data_bytes.saturating_add(rows.saturating_add(1).saturating_mul(8)),
    };
    columns.saturating_add(rows.saturating_mul(16))
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
