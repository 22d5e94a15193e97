//! Batches of decoded records, made on native threads.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use anybatch_core::access::{Access, Jumps, Pass};
use anybatch_core::buffer::{Bytes, Pool};
use anybatch_core::engine::{Engine, Next, Source};
use anybatch_core::files::{self, Files, Identity};
use anybatch_core::gather::{self, Gather, OnCorrupt};
use anybatch_core::image::Room;
use anybatch_core::index::Fingerprint;
use anybatch_core::order::Order;
use anybatch_core::source::{Learnt, Numbering, Ordered, Split, Uncut, Walk, Walked};
use anybatch_core::storage;
use anybatch_core::sweep::swept;
use anybatch_core::warm::Warmer;
use anybatch_core::{Error, Result};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::buffer::Buffer;
use crate::errors::to_py;
use crate::index::{Index, compression};
use crate::schema::Schema;

/// How long to wait before asking whether the user pressed Ctrl-C.
const PATIENCE: Duration = Duration::from_millis(100);
const MOST_OPEN_FILES: usize = 256;
const KEEP_BYTES: usize = 64 << 20;

type PyColumn = (Py<Buffer>, Vec<Py<Buffer>>);

#[pyclass(frozen, module = "anybatch._native")]
pub struct Batch {
    #[pyo3(get)]
    rows: usize,
    #[pyo3(get)]
    columns: Vec<PyColumn>,
    /// Each row's record number and position in the order that is read, as int64.
    #[pyo3(get)]
    numbers: Py<Buffer>,
    #[pyo3(get)]
    positions: Py<Buffer>,
    /// How many records it was to have, and whether it is the last part of its batch.
    #[pyo3(get)]
    asked: usize,
    #[pyo3(get)]
    ends_batch: bool,
    #[pyo3(get)]
    end: u64,
    #[pyo3(get)]
    damaged: Vec<(usize, u64, u64, String)>,
}

impl Batch {
    fn new(py: Python<'_>, batch: gather::Batch) -> PyResult<Self> {
        let buffer = |bytes| Py::new(py, Buffer::from(bytes));
        let column = |column: anybatch_core::column::Column| {
            let (values, offsets) = column.into_buffers();
            Ok((buffer(values)?, offsets.into_iter().map(buffer).collect::<PyResult<_>>()?))
        };
        Ok(Batch {
            rows: batch.rows,
            asked: batch.asked,
            ends_batch: batch.ends_batch,
            end: batch.end,
            columns: batch.columns.into_iter().map(column).collect::<PyResult<_>>()?,
            numbers: buffer(batch.numbers)?,
            positions: buffer(batch.positions)?,
            damaged: batch
                .damaged
                .into_iter()
                .map(|at| (at.shard, at.offset, at.length, at.reason))
                .collect(),
        })
    }
}

/// One operation on the order of records: a name and its numbers.
type Operation = (String, Vec<u64>);

/// The order of `records` records after some operations, position by position.
#[pyclass(frozen, module = "anybatch._native", name = "Order")]
pub struct PyOrder {
    core: Order,
}

#[pymethods]
impl PyOrder {
    #[new]
    fn new(py: Python<'_>, records: u64, operations: Vec<Operation>) -> PyResult<Self> {
        Ok(PyOrder { core: order_of(records, &operations).map_err(|error| to_py(py, error))? })
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.core.len()).unwrap_or(usize::MAX)
    }

    /// The record numbers at the positions `start..stop`, as int64.
    fn records(&self, py: Python<'_>, start: u64, stop: u64) -> Buffer {
        let positions = start..stop.min(self.core.len());
        let mut numbers = Bytes::with_capacity(bytes_for(&positions, 8));
        py.detach(|| positions.for_each(|at| numbers.push_i64(self.core.record(at).cast_signed())));
        numbers.into()
    }
}

/// The bytes that so many for each of a range take, to begin with: if they are too many to count, none.
pub fn bytes_for(range: &Range<u64>, each: usize) -> usize {
    let count = usize::try_from(range.end.saturating_sub(range.start)).ok();
    count.and_then(|count| count.checked_mul(each)).unwrap_or(0)
}

fn order_of(records: u64, operations: &[Operation]) -> Result<Order> {
    let mut order = Order::of(records);
    for (name, numbers) in operations {
        order = match (&name[..], &numbers[..]) {
            ("shuffle", [seed, epoch]) => order.shuffled(*seed, *epoch),
            ("window", [seed, epoch, size, per_window]) => order.windowed(*seed, *epoch, *size, *per_window),
            ("skip", [count]) => order.skip(*count),
            ("take", [count]) => order.take(*count),
            ("shard", [count, index]) => order.shard(*count, *index)?,
            ("deal", [batch, count, index]) => order.dealt(*batch, *count, *index)?,
            ("remaining", counts) => order.remaining(counts),
            _ => return Err(Error::Misuse(format!("unknown operation {name:?} of {numbers:?}"))),
        };
    }
    Ok(order)
}

#[pyclass(frozen, module = "anybatch._native")]
pub struct Reader {
    engine: Option<Engine>,
    learnt: Option<Learnt>,
    process: u32,
}

#[pymethods]
impl Reader {
    /// `order=None` walks the shards from end to end, with or without indexes; otherwise every shard
    /// needs its index and the order is made of the operations given.
    #[new]
    #[pyo3(signature = (shards, schema, *, batch, most, drop_remainder, on_corrupt, order, start, threads, depth, limit_bytes, most_depth=None, cached_bytes=None, swept_bytes=None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        shards: Vec<(PathBuf, String, Option<Py<Index>>)>,
        schema: Option<Py<Schema>>,
        batch: u64,
        most: u64,
        drop_remainder: bool,
        on_corrupt: &str,
        order: Option<Vec<Operation>>,
        start: u64,
        threads: usize,
        depth: u64,
        limit_bytes: usize,
        most_depth: Option<u64>,
        cached_bytes: Option<u64>,
        swept_bytes: Option<usize>,
    ) -> PyResult<Self> {
        let on_corrupt = match on_corrupt {
            "raise" => OnCorrupt::Raise,
            "skip" => OnCorrupt::Skip,
            other => {
                return Err(PyValueError::new_err(format!(
                    "on_corrupt is \"raise\" or \"skip\", not {other:?}"
                )));
            }
        };
        let shards = shards.into_iter().map(walked).collect::<PyResult<Vec<_>>>()?;
        let schema = schema.map(|schema| Arc::clone(&schema.get().core));
        let split = Split { batch: batch.max(1), most: most.max(1) };
        let started = py.detach(move || {
            let in_order = order.as_ref().is_none_or(Vec::is_empty);
            let files = opened(&shards)?;
            let files = Arc::new(if in_order { files } else { files.for_jumping() });
            let mut access = Access::default();
            let room_within = |limit_bytes| {
                Room::within(limit_bytes, threads, schema.iter().flat_map(|schema| schema.image_shapes()))
            };
            let (source, learnt): (Box<dyn Source>, _) = match order {
                Some(operations) => {
                    let numbering = numbered(&shards)?;
                    let order = order_of(numbering.records(), &operations)?;
                    let pass = Pass {
                        jumps: jumps(&operations),
                        numbering: &numbering,
                        schema: schema.as_deref(),
                        left: order.len().saturating_sub(start),
                        at_a_time: split.batch.min(split.most),
                        cached_bytes,
                        is_cold_and_fast: &|| storage::is_cold_and_fast(&files),
                        limit_bytes,
                        swept_bytes: swept_bytes.unwrap_or(limit_bytes),
                    };
                    access = pass.access();
                    let ordered = Ordered::new(numbering, order, split, drop_remainder, start);
                    (swept_up(ordered, access, &files), None)
                }
                None => {
                    let files = Arc::clone(&files);
                    let uncut = Uncut::within(room_within(limit_bytes).rest_bytes(), schema.clone());
                    let walk = Walk::new(shards, files, split, uncut, drop_remainder, on_corrupt);
                    let learnt = Some(Arc::clone(&walk.learnt));
                    (Box::new(walk), learnt)
                }
            };
            let limit_bytes = access.swept.map_or(limit_bytes, |shares| shares.batch_bytes);
            let warmer = access.warmed.then(|| Warmer::new(Arc::clone(&files)));
            let pool = Pool::new(KEEP_BYTES.min(limit_bytes / 4));
            let room = Arc::new(room_within(limit_bytes));
            let gather =
                Gather { files, schema, on_corrupt, pool, fetch_bytes: access.fetch_bytes, warmer, room };
            Ok((Engine::start(gather, source, threads, depth, most_depth, limit_bytes)?, learnt))
        });
        let (engine, learnt) = started.map_err(|error| to_py(py, error))?;
        Ok(Reader { engine: Some(engine), learnt, process: std::process::id() })
    }

    /// The next batch, or `None` after the last one.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        let Some(engine) = self.own(&self.engine) else {
            return Err(PyRuntimeError::new_err(
                "this iterator belongs to another process; iterate the stream anew",
            ));
        };
        loop {
            match py.detach(|| engine.next(PATIENCE)).map_err(|error| to_py(py, error))? {
                Next::Batch(batch) => return Batch::new(py, batch).map(Some),
                Next::End => return Ok(None),
                Next::NotYet => py.check_signals()?,
            }
        }
    }

    /// Bytes held by batches being made or ready, bytes kept for later, batches ready and taken.
    fn stats(&self, py: Python<'_>) -> (usize, usize, usize, u64) {
        let own = self.own(&self.engine);
        let stats = py.detach(|| own.map(Engine::stats)).unwrap_or_default();
        (stats.held_bytes, stats.unused_bytes, stats.batches_ready, stats.batches_taken)
    }

    /// Indexes of shards that were walked to their end since the last call.
    fn learnt(&self, py: Python<'_>) -> Vec<(usize, Index)> {
        let Some(learnt) = self.own(&self.learnt) else { return Vec::new() };
        let new = py.detach(|| std::mem::take(&mut *learnt.lock().unwrap_or_else(PoisonError::into_inner)));
        new.into_iter().map(|(shard, core)| (shard, Index { core })).collect()
    }
}

impl Reader {
    /// What belongs to this process: after a fork a thread that is no more may have held any lock.
    fn own<'a, T>(&self, part: &'a Option<T>) -> Option<&'a T> {
        part.as_ref().filter(|_| self.process == std::process::id())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            // after a fork the threads live in the parent only, and may have held any lock
            std::mem::forget(self.engine.take());
        }
    }
}

fn walked((path, name, known): (PathBuf, String, Option<Py<Index>>)) -> PyResult<Walked> {
    let known = known.map(|index| Arc::clone(&index.get().core));
    Ok(Walked { path, compression: compression(&name)?, known })
}

fn opened(shards: &[Walked]) -> Result<Files> {
    let identified = |shard: &Walked| {
        let meta = std::fs::metadata(&shard.path).map_err(|source| Error::io(&shard.path, source))?;
        let identity = Identity::from(&meta);
        if shard.known.as_ref().is_some_and(|index| !belongs(&index.fingerprint, &identity)) {
            return Err(Error::changed(&shard.path, "was written to after it was indexed"));
        }
        Ok((shard.path.clone(), identity))
    };
    Ok(Files::new(shards.iter().map(identified).collect::<Result<Vec<_>>>()?, MOST_OPEN_FILES))
}

fn belongs(print: &Fingerprint, now: &files::Identity) -> bool {
    (print.size, print.modified_s, print.modified_ns) == (now.size, now.modified_s, now.modified_ns)
}

fn numbered(shards: &[Walked]) -> Result<Numbering> {
    let missing = |shard: &Walked| Error::Misuse(format!("{} has no index", shard.path.display()));
    let indexes = shards.iter().map(|shard| shard.known.clone().ok_or_else(|| missing(shard)));
    Numbering::new(indexes.collect::<Result<_>>()?)
}

fn jumps(operations: &[Operation]) -> Jumps {
    let any = |wanted: &str| operations.iter().any(|(name, _)| name == wanted);
    match (any("window"), any("shuffle")) {
        (true, _) => Jumps::WithinWindows,
        (false, true) => Jumps::Anywhere,
        (false, false) => Jumps::Nowhere,
    }
}

fn swept_up(ordered: Ordered, access: Access, files: &Arc<Files>) -> Box<dyn Source> {
    match access.swept {
        Some(shares) => swept(ordered, Arc::clone(files), shares),
        None => Box::new(ordered),
    }
}
