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
    /// A frame may be on the disk in part: nothing that follows it would be found.
    torn: bool,
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
        Ok(Writer { path: path.to_path_buf(), sink, records: 0, torn: false })
    }

    pub fn records(&self) -> u64 {
        self.records
    }

    /// After an error the file is torn, and nothing more is written.
    pub fn write(&mut self, data: &[u8]) -> Result<()> {
        self.check_whole()?;
        self.torn = true;
        self.framed(data).map_err(|source| Error::io(&self.path, source))?;
        self.torn = false;
        self.records += 1;
        Ok(())
    }

    fn framed(&mut self, data: &[u8]) -> io::Result<()> {
        let out = self.sink.writer();
        out.write_all(&frame::header(data.len() as u64))?;
        out.write_all(data)?;
        out.write_all(&frame::footer(data))
    }

    fn check_whole(&self) -> Result<()> {
        if !self.torn {
            return Ok(());
        }
        let file = self.path.display();
        Err(Error::Misuse(format!("{file}: a record could not be written; the file has to be written anew")))
    }

    /// An error, too, if a record could not be written.
    pub fn finish(self) -> Result<()> {
        self.check_whole()?;
        let path = self.path;
        self.sink.finish().map_err(|source| Error::io(&path, source))
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// A writer onto a disk that is full.
    fn onto_a_full_disk() -> Writer {
        let path = PathBuf::from("/dev/full");
        let file = File::options().write(true).open(&path).unwrap();
        Writer { path, sink: Sink::Plain(BufWriter::with_capacity(64, file)), records: 0, torn: false }
    }

    #[test]
    fn a_writer_that_failed_writes_no_more_and_does_not_finish() {
        let mut writer = onto_a_full_disk();
        writer.write(b"fits").unwrap();
        assert!(matches!(writer.write(&[0; 100]), Err(Error::Io { .. })));
        assert!(matches!(writer.write(b"fits"), Err(Error::Misuse(_))));
        assert_eq!(writer.records(), 1);
        // there would be room again
        writer.sink = Sink::Plain(BufWriter::new(tempfile::tempfile().unwrap()));
        assert!(matches!(writer.finish(), Err(Error::Misuse(_))));
    }
}
