//! One table turns core errors into Python exceptions.

use std::io;
use std::path::Path;

use anybatch_core::Error;
use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;

pub fn to_py(py: Python<'_>, error: Error) -> PyErr {
    match error {
        Error::Io { file, source } => os_error(&file, &source),
        Error::Corrupt { file, offset, length, reason } => {
            ours(py, "CorruptRecord", (text(&file), offset, length, reason))
        }
        Error::Feature { file, offset, feature, problem } => {
            ours(py, "FeatureError", (feature, text(&file), offset, problem))
        }
        Error::NotRecords { file, why } => ours(py, "NotRecords", (text(&file), why)),
        Error::Changed { file, problem } => ours(py, "ShardChanged", (text(&file), problem)),
        Error::DoesNotFit { stage, needed, limit } => ours(py, "DoesNotFit", (stage, needed, limit)),
        Error::Misuse(problem) => PyRuntimeError::new_err(problem),
    }
}

/// Python picks the subclass (`FileNotFoundError`, …) by the number.
fn os_error(file: &Path, source: &io::Error) -> PyErr {
    match source.raw_os_error() {
        Some(number) => {
            let full = source.to_string();
            let sentence = full.split(" (os error").next().unwrap_or(&full).to_owned();
            PyOSError::new_err((number, sentence, text(file)))
        }
        None => PyOSError::new_err(format!("{}: {source}", file.display())),
    }
}

fn text(file: &Path) -> String {
    file.display().to_string()
}

fn ours<'py>(py: Python<'py>, class: &str, args: impl PyCallArgs<'py>) -> PyErr {
    let raised = py.import("anybatch.errors").and_then(|errors| errors.getattr(class)?.call1(args));
    raised.map_or_else(|error| error, PyErr::from_value)
}
