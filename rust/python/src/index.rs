//! Indexes of shards, and the scan that makes them.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anybatch_core::buffer::Bytes;
use anybatch_core::files::Compression;
use anybatch_core::scan::{self, Check};
use anybatch_core::sizes::Sizes;
use anybatch_core::{index, sidecar};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::buffer::Buffer;
use crate::errors::to_py;
use crate::reader::bytes_for;
use crate::sizes::{SizesFields, fields_of};
use crate::survey::Survey;

pub fn compression(name: &str) -> PyResult<Compression> {
    let unknown =
        || PyValueError::new_err(format!("compression is \"\", \"GZIP\" or \"ZLIB\", not {name:?}"));
    Compression::named(name).ok_or_else(unknown)
}

/// What a file's first bytes say about its compression.
#[pyfunction]
pub fn detect_compression(py: Python<'_>, path: PathBuf) -> PyResult<&'static str> {
    py.detach(|| Compression::detect(&path)).map(Compression::name).map_err(|error| to_py(py, error))
}

#[pyclass(frozen, module = "anybatch._native")]
pub struct Index {
    pub core: Arc<index::Index>,
}

#[pymethods]
impl Index {
    #[staticmethod]
    fn load(
        py: Python<'_>,
        path: PathBuf,
        compression_name: &str,
        sidecar: PathBuf,
    ) -> PyResult<Option<Self>> {
        let compression = compression(compression_name)?;
        let loaded = py.detach(|| sidecar::load(&path, compression, &sidecar));
        let index = loaded.map_err(|error| to_py(py, error))?;
        Ok(index.map(|core| Index { core: Arc::new(core) }))
    }

    fn save(&self, py: Python<'_>, sidecar: PathBuf) -> PyResult<()> {
        py.detach(|| sidecar::save(&self.core, &sidecar)).map_err(|error| to_py(py, error))
    }

    #[getter]
    fn records(&self) -> u64 {
        self.core.records()
    }

    #[getter]
    fn damaged(&self, py: Python<'_>) -> PyResult<Vec<(u64, u64, String)>> {
        let damaged = self.core.damaged().map_err(|error| to_py(py, error))?;
        Ok(damaged.into_iter().map(|(offset, length, reason)| (offset, length, reason.to_string())).collect())
    }

    /// How many of the numbered records are known to be damaged.
    #[getter]
    fn bad_records(&self) -> usize {
        self.core.bad.len()
    }

    #[getter]
    fn verified(&self) -> bool {
        self.core.verified
    }

    #[getter]
    fn compression(&self) -> &'static str {
        self.core.compression.name()
    }

    #[getter]
    fn file_bytes(&self) -> u64 {
        self.core.fingerprint.size
    }

    #[getter]
    fn stream_bytes(&self) -> u64 {
        self.core.stream_bytes
    }

    /// Pairs of int64 (offset, end) of the records `start..stop`.
    fn extents(&self, py: Python<'_>, start: u64, stop: u64) -> PyResult<Buffer> {
        let numbers = start..stop.min(self.core.records());
        let mut pairs = Bytes::with_capacity(bytes_for(&numbers, 16));
        for (_, extent) in numbers.zip(self.core.extents(start)) {
            let extent = extent.map_err(|error| to_py(py, error))?;
            pairs.push_i64(extent.offset.cast_signed());
            pairs.push_i64(extent.end.cast_signed());
        }
        Ok(pairs.into())
    }

    /// The sizes of all records not known to be damaged.
    fn sizes(&self, py: Python<'_>) -> PyResult<SizesFields> {
        py.detach(|| Sizes::of(&self.core)).map(|sizes| fields_of(&sizes)).map_err(|error| to_py(py, error))
    }

    /// Maximal stretches of whole records: (start, end, records).
    fn good_runs(&self, py: Python<'_>) -> PyResult<Vec<(u64, u64, u64)>> {
        py.detach(|| self.core.good_runs()).map_err(|error| to_py(py, error))
    }
}

/// A walk over one shard, a slice at a time, so that Python can show progress and be interrupted.
#[pyclass(frozen, module = "anybatch._native")]
pub struct Scan {
    core: Mutex<Option<scan::Scan>>,
    file_bytes: u64,
}

fn used_up() -> PyErr {
    PyRuntimeError::new_err("the scan is finished")
}

#[pymethods]
impl Scan {
    #[new]
    #[pyo3(signature = (path, compression_name, *, check_data = false))]
    fn new(py: Python<'_>, path: PathBuf, compression_name: &str, check_data: bool) -> PyResult<Self> {
        let compression = compression(compression_name)?;
        let check = if check_data { Check::Everything } else { Check::WhereFree };
        let core =
            py.detach(|| scan::Scan::new(&path, compression, check)).map_err(|error| to_py(py, error))?;
        Ok(Scan { file_bytes: core.file_bytes(), core: Mutex::new(Some(core)) })
    }

    #[getter]
    fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    #[getter]
    fn bytes_done(&self) -> u64 {
        let core = self.core.lock().unwrap_or_else(PoisonError::into_inner);
        core.as_ref().map_or(self.file_bytes, scan::Scan::file_position)
    }

    /// Walk on over about `budget_bytes`; `False` at the end.
    fn advance(&self, py: Python<'_>, budget_bytes: u64) -> PyResult<bool> {
        let advanced = py.detach(|| {
            let mut core = self.core.lock().unwrap_or_else(PoisonError::into_inner);
            core.as_mut().map(|scan| scan.advance(budget_bytes))
        });
        advanced.ok_or_else(used_up)?.map_err(|error| to_py(py, error))
    }

    /// The same, looking into every record on the way.
    fn survey(&self, py: Python<'_>, budget_bytes: u64, survey: PyRef<'_, Survey>) -> PyResult<bool> {
        let survey = &survey.core;
        let advanced = py.detach(|| {
            let mut core = self.core.lock().unwrap_or_else(PoisonError::into_inner);
            let mut survey = survey.lock().unwrap_or_else(PoisonError::into_inner);
            core.as_mut().map(|scan| scan.survey(budget_bytes, &mut survey))
        });
        advanced.ok_or_else(used_up)?.map_err(|error| to_py(py, error))
    }

    fn finish(&self, py: Python<'_>) -> PyResult<Index> {
        let core = self.core.lock().unwrap_or_else(PoisonError::into_inner).take().ok_or_else(used_up)?;
        let index = py.detach(|| core.finish()).map_err(|error| to_py(py, error))?;
        Ok(Index { core: Arc::new(index) })
    }
}
