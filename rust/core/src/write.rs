//! Records into a new file. Naming, moving into place and cleaning up are the caller's.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::write::{GzEncoder, ZlibEncoder};

use crate::error::{Error, Result};
use crate::files::Compression;
use crate::frame;

enum Sink {
    Plain(BufWriter<File>),
    Gzip(GzEncoder<BufWriter<File>>),
    Zlib(ZlibEncoder<BufWriter<File>>),
}

impl Sink {
    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Sink::Plain(out) => out,
            Sink::Gzip(out) => out,
            Sink::Zlib(out) => out,
        }
    }

    /// Everything on the disk, not only with the system.
    fn finish(self) -> io::Result<()> {
        let out = match self {
            Sink::Plain(out) => out,
            Sink::Gzip(out) => out.finish()?,
            Sink::Zlib(out) => out.finish()?,
        };
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
    }
}

pub struct Writer {
    path: PathBuf,
    sink: Sink,
    records: u64,
}

impl Writer {
    /// Start a file that must not exist yet.
    pub fn create(path: &Path, compression: Compression) -> Result<Self> {
        let file = File::create_new(path).map_err(|source| Error::io(path, source))?;
        let out = BufWriter::with_capacity(1 << 20, file);
        let level = flate2::Compression::default();
        let sink = match compression {
            Compression::None => Sink::Plain(out),
            Compression::Gzip => Sink::Gzip(GzEncoder::new(out, level)),
            Compression::Zlib => Sink::Zlib(ZlibEncoder::new(out, level)),
        };
        Ok(Writer { path: path.to_path_buf(), sink, records: 0 })
    }

    pub fn records(&self) -> u64 {
        self.records
    }

    pub fn write(&mut self, data: &[u8]) -> Result<()> {
        self.framed(data).map_err(|source| Error::io(&self.path, source))?;
        self.records += 1;
        Ok(())
    }

    fn framed(&mut self, data: &[u8]) -> io::Result<()> {
        let out = self.sink.writer();
        out.write_all(&frame::header(data.len() as u64))?;
        out.write_all(data)?;
        out.write_all(&frame::footer(data))
    }

    pub fn finish(self) -> Result<()> {
        let path = self.path;
        self.sink.finish().map_err(|source| Error::io(&path, source))
    }
}
