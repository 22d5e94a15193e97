//! What can go wrong, as data. The sentences for users are written by the language binding.

use std::io;
use std::path::{Path, PathBuf};

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{}: {source}", file.display())]
    Io { file: PathBuf, source: io::Error },
    #[error("{}: damaged at byte {offset} ({length} bytes): {reason}", file.display())]
    Corrupt { file: PathBuf, offset: u64, length: u64, reason: String },
    #[error("{}: feature {feature:?} of the record at byte {offset}: {problem}", file.display())]
    Feature { file: PathBuf, offset: u64, feature: String, problem: String },
    #[error("{}: not a TFRecord file: {why}", file.display())]
    NotRecords { file: PathBuf, why: String },
    #[error("{}: {problem}", file.display())]
    Changed { file: PathBuf, problem: String },
    #[error("{stage} needs {needed} bytes and may use {limit}")]
    DoesNotFit { stage: String, needed: usize, limit: usize },
    #[error("{0}")]
    Misuse(String),
}

impl Error {
    pub fn io(file: &Path, source: io::Error) -> Self {
        Error::Io { file: file.to_path_buf(), source }
    }

    pub fn changed(file: &Path, problem: impl Into<String>) -> Self {
        Error::Changed { file: file.to_path_buf(), problem: problem.into() }
    }
}
