//! Aligned bytes that NumPy takes through the buffer protocol, without a copy.

use std::ffi::c_int;

use anybatch_core::buffer::Bytes;
use anybatch_core::crc;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

#[pyclass(module = "anybatch._native")]
pub struct Buffer {
    pub bytes: Bytes,
}

#[pymethods]
impl Buffer {
    fn __len__(&self) -> usize {
        self.bytes.len()
    }

    /// SAFETY: the bytes neither move nor shrink while this object lives: nothing in Rust changes a
    /// `Bytes` once it is inside a `Buffer`, and a view keeps its `Buffer` alive. Whoever holds
    /// views from several threads shares them as any writable buffer in Python is shared.
    #[allow(unsafe_code)]
    unsafe fn __getbuffer__(
        mut slf: PyRefMut<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let bytes = slf.bytes.as_mut_slice();
        let len = ffi::Py_ssize_t::try_from(bytes.len()).map_err(|_| PyBufferError::new_err("too large"))?;
        let start = bytes.as_mut_ptr().cast();
        // SAFETY: `view` comes from the interpreter; `start` and `len` describe memory owned by `slf`,
        // of which `PyBuffer_FillInfo` takes a reference that the view holds
        let filled = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, len, 0, flags) };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}

impl From<Bytes> for Buffer {
    fn from(bytes: Bytes) -> Self {
        Buffer { bytes }
    }
}

/// Masked CRC-32C of any contiguous buffer, as it stands in a TFRecord file.
#[pyfunction]
pub fn masked_crc32c(py: Python<'_>, data: PyBuffer<u8>) -> PyResult<u32> {
    if !data.is_c_contiguous() {
        return Err(PyBufferError::new_err("the buffer is not contiguous"));
    }
    let (start, len) = (data.buf_ptr() as usize, data.len_bytes());
    // SAFETY: `data` keeps the memory in place until this function returns; a checksum of bytes
    // that somebody writes to meanwhile is merely a checksum of neither state
    #[allow(unsafe_code)]
    let bytes = unsafe { std::slice::from_raw_parts(start as *const u8, len) };
    Ok(py.detach(|| crc::masked(bytes)))
}
