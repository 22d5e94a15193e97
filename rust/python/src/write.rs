//! Examples and new record files.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anybatch_core::encode::{self, Values};
use anybatch_core::write;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::buffer::Buffer;
use crate::errors::to_py;
use crate::index::compression;

/// A serialized `tf.train.Example` of (name, kind, values): "float" and "int64" take little-endian
/// bytes, "bytes" a list of bytes; "nothing" ignores them.
#[pyfunction]
pub fn encode_example<'py>(
    py: Python<'py>,
    features: Vec<(String, String, Bound<'py, PyAny>)>,
) -> PyResult<Bound<'py, PyBytes>> {
    let typed = |(name, kind, values): &(String, String, Bound<'py, PyAny>)| {
        Ok((name.clone(), of_kind(kind, values)?))
    };
    let features = features.iter().map(typed).collect::<PyResult<Vec<_>>>()?;
    let pairs = features.iter().map(|(name, values)| (&name[..], values));
    Ok(PyBytes::new(py, &encode::example(pairs)))
}

fn of_kind(kind: &str, values: &Bound<'_, PyAny>) -> PyResult<Values> {
    Ok(match kind {
        "nothing" => Values::Nothing,
        "float" => Values::Floats(values.extract::<PyBackedBytes>()?.to_vec()),
        "int64" => {
            let bytes = values.extract::<PyBackedBytes>()?;
            Values::Ints(bytes.as_chunks::<8>().0.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect())
        }
        "bytes" => {
            let strings = values.extract::<Vec<PyBackedBytes>>()?;
            Values::Strings(strings.iter().map(|bytes| bytes.to_vec()).collect())
        }
        _ => return Err(PyValueError::new_err(format!("unknown kind {kind:?}"))),
    })
}

/// A new record file, which must not exist yet. Call `finish` to have it on the disk.
#[pyclass(frozen, module = "anybatch._native")]
pub struct Writer {
    core: Mutex<Option<write::Writer>>,
}

impl Writer {
    fn lock(&self) -> MutexGuard<'_, Option<write::Writer>> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn finished() -> PyErr {
    PyRuntimeError::new_err("the writer is finished")
}

#[pymethods]
impl Writer {
    #[new]
    fn new(py: Python<'_>, path: PathBuf, compression_name: &str) -> PyResult<Self> {
        let compression = compression(compression_name)?;
        let core = write::Writer::create(&path, compression).map_err(|error| to_py(py, error))?;
        Ok(Writer { core: Mutex::new(Some(core)) })
    }

    #[getter]
    fn records(&self) -> u64 {
        self.lock().as_ref().map_or(0, write::Writer::records)
    }

    fn write(&self, py: Python<'_>, record: &[u8]) -> PyResult<()> {
        let written = self.lock().as_mut().map(|core| core.write(record));
        written.ok_or_else(finished)?.map_err(|error| to_py(py, error))
    }

    /// Write all records of a batch that was read as bytes.
    fn write_batch(
        &self,
        py: Python<'_>,
        values: PyRef<'_, Buffer>,
        offsets: PyRef<'_, Buffer>,
    ) -> PyResult<()> {
        let (values, offsets) = (&values.bytes, &offsets.bytes);
        let place = |at| usize::try_from(offsets.i64_at(at)).unwrap_or(usize::MAX);
        let records = (0..(offsets.len() / 8).saturating_sub(1))
            .map(|at| values.as_slice().get(place(at)..place(at + 1)));
        if records.clone().any(|record| record.is_none()) {
            return Err(PyValueError::new_err("the offsets lie outside the values"));
        }
        let written = py.detach(|| {
            let mut core = self.lock();
            let core = core.as_mut()?;
            Some(records.flatten().try_for_each(|record| core.write(record)))
        });
        written.ok_or_else(finished)?.map_err(|error| to_py(py, error))
    }

    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        let core = self.lock().take().ok_or_else(finished)?;
        py.detach(|| core.finish()).map_err(|error| to_py(py, error))
    }
}
