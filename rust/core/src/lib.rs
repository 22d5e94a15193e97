//! Reads TFRecord shards as they are: checked, indexed, salvaged and decoded straight into columns.
//!
//! The crate has never heard of Python. Unsafe code stands in `scattered` alone, which maps files that
//! nobody reads through the mapping. Everything it parses (frames, sidecars, protobuf, deflate streams)
//! is taken to be hostile: lengths are compared with what is really there before anything is allocated,
//! and every failure is a value.
#![deny(unsafe_code)]

pub mod access;
pub mod blocks;
pub mod buffer;
pub mod column;
pub mod crc;
pub mod decode;
mod depth;
pub mod encode;
pub mod engine;
pub mod error;
pub mod example;
pub mod files;
pub mod frame;
pub mod gather;
pub mod image;
pub mod index;
pub mod offsets;
pub mod order;
pub mod permute;
pub mod salvage;
pub mod scan;
mod scattered;
pub mod schema;
pub mod sidecar;
mod signal;
pub mod sizes;
pub mod source;
pub mod storage;
pub mod survey;
pub mod sweep;
mod template;
pub mod warm;
pub mod window;
pub mod wire;
pub mod write;

pub use error::{Error, Result};
