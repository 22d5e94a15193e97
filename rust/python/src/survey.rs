//! What the features of many records look like.

use std::sync::{Mutex, PoisonError};

use anybatch_core::example::Level;
use anybatch_core::survey::{self, Range, Seen};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::buffer::Buffer;
use crate::sizes::{SizesFields, fields_of};

#[pyclass(frozen, module = "anybatch._native")]
pub struct Survey {
    pub core: Mutex<survey::Survey>,
}

#[pymethods]
impl Survey {
    #[new]
    fn new() -> Self {
        Survey { core: Mutex::default() }
    }

    /// Look at the records of a batch that was read as bytes.
    fn add(&self, py: Python<'_>, values: PyRef<'_, Buffer>, offsets: PyRef<'_, Buffer>) -> PyResult<()> {
        let (values, offsets) = (&values.bytes, &offsets.bytes);
        let place = |at| usize::try_from(offsets.i64_at(at)).unwrap_or(usize::MAX);
        let records = (offsets.len() / 8).saturating_sub(1);
        let all = (0..records).map(|at| values.as_slice().get(place(at)..place(at + 1)));
        let all: Option<Vec<_>> = all.collect();
        let all = all.ok_or_else(|| PyValueError::new_err("the offsets lie outside the values"))?;
        py.detach(|| {
            let mut core = self.core.lock().unwrap_or_else(PoisonError::into_inner);
            all.into_iter().for_each(|record| core.add(record));
        });
        Ok(())
    }

    #[getter]
    fn records(&self) -> u64 {
        self.core.lock().unwrap_or_else(PoisonError::into_inner).records
    }

    #[getter]
    fn malformed(&self) -> u64 {
        self.core.lock().unwrap_or_else(PoisonError::into_inner).malformed
    }

    /// The sizes of all records looked at.
    fn sizes(&self) -> SizesFields {
        fields_of(&self.core.lock().unwrap_or_else(PoisonError::into_inner).sizes)
    }

    /// (level, name, facts) for every feature, sorted by name.
    fn features<'py>(&self, py: Python<'py>) -> PyResult<Vec<(&'static str, String, Bound<'py, PyDict>)>> {
        let core = self.core.lock().unwrap_or_else(PoisonError::into_inner);
        let levels = [("context", Level::Context), ("list", Level::Lists)];
        let all = levels.into_iter().flat_map(|(word, level)| {
            core.features(level).into_iter().map(move |(name, seen)| (word, name, seen))
        });
        all.map(|(word, name, seen)| Ok((word, name.to_owned(), facts(py, seen)?))).collect()
    }
}

fn facts<'py>(py: Python<'py>, seen: &Seen) -> PyResult<Bound<'py, PyDict>> {
    fn pair<T: Copy>(range: Option<Range<T>>) -> Option<(T, T)> {
        range.map(|Range { low, high }| (low, high))
    }
    let facts = PyDict::new(py);
    facts.set_item("present", seen.present)?;
    facts.set_item("kinds", seen.kinds)?;
    facts.set_item("counts", pair(seen.counts))?;
    facts.set_item("steps", pair(seen.steps))?;
    facts.set_item("sizes", pair(seen.sizes))?;
    facts.set_item("floats", pair(seen.floats))?;
    facts.set_item("ints", pair(seen.ints))?;
    facts.set_item("not_finite", seen.not_finite)?;
    Ok(facts)
}
