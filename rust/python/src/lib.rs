//! `anybatch._native`: whole batches cross this border, never single records of a hot path.

use pyo3::prelude::*;

mod buffer;
mod errors;
mod index;
mod reader;
mod schema;
mod sizes;
mod survey;
mod write;

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::buffer::{Buffer, masked_crc32c};
    #[pymodule_export]
    use super::index::{Index, Scan, detect_compression};
    #[pymodule_export]
    use super::reader::{Batch, PyOrder, Reader};
    #[pymodule_export]
    use super::schema::Schema;
    #[pymodule_export]
    use super::survey::Survey;
    #[pymodule_export]
    use super::write::{Writer, encode_example};
}
