//! Shards as open files: read by position, noticed when they change underneath.
//!
//! A mapped file that somebody truncates ends the process with SIGBUS; a positioned read gives an
//! error instead. The copy it costs lands in the cache that decoding reads from next.

use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read};
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use aligned_vec::{AVec, ConstAlign};
use rustix::fs::OFlags;

use crate::error::{Error, Result};
use crate::frame;
use crate::scattered::Maps;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compression {
    None,
    Gzip,
    Zlib,
}

impl Compression {
    /// By the name TensorFlow gives it.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "" => Some(Compression::None),
            "GZIP" => Some(Compression::Gzip),
            "ZLIB" => Some(Compression::Zlib),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Compression::None => "",
            Compression::Gzip => "GZIP",
            Compression::Zlib => "ZLIB",
        }
    }

    /// What a file's first bytes say. A right record header comes first: a plain shard whose first
    /// length happens to look like a magic number is still a plain shard.
    pub fn detect(path: &Path) -> Result<Self> {
        let mut head = Vec::with_capacity(frame::HEADER);
        let (file, _) = open(path)?;
        file.take(frame::HEADER as u64).read_to_end(&mut head).map_err(|source| Error::io(path, source))?;
        Ok(Self::of_head(&head))
    }

    fn of_head(head: &[u8]) -> Self {
        if let Ok(header) = head.try_into()
            && frame::checked_length(&header).is_some()
        {
            return Compression::None;
        }
        match *head {
            [0x1f, 0x8b, 8, ..] => Compression::Gzip,
            // deflate with a window of 32 KiB at most, and the two bytes' own check
            [method, flags, ..]
                if method & 0x0f == 8
                    && method >> 4 <= 7
                    && flags & 0x20 == 0
                    && u16::from_be_bytes([method, flags]) % 31 == 0 =>
            {
                Compression::Zlib
            }
            _ => Compression::None,
        }
    }
}

/// Tells a file from another one, and from itself after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    pub device: u64,
    pub inode: u64,
    pub size: u64,
    pub modified_s: i64,
    pub modified_ns: i64,
}

impl From<&Metadata> for Identity {
    fn from(meta: &Metadata) -> Self {
        Identity {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            modified_s: meta.mtime(),
            modified_ns: meta.mtime_nsec(),
        }
    }
}

pub fn open(path: &Path) -> Result<(File, Identity)> {
    // whoever opens a named pipe to see that it is none of ours must not wait for its other end
    let without_waiting = OFlags::NONBLOCK;
    let opened = opened(path, without_waiting | QUIETLY).or_else(|error| match error.kind() {
        // only a file's owner may read it without a trace
        ErrorKind::PermissionDenied => opened(path, without_waiting),
        _ => Err(error),
    });
    let (file, meta) = opened.map_err(|source| Error::io(path, source))?;
    if !meta.is_file() {
        return Err(Error::NotRecords { file: path.to_path_buf(), why: "it is not a regular file".into() });
    }
    let identity = Identity::from(&meta);
    Ok((file, identity))
}

/// Noting the time of every read of a small record costs a twentieth of that read.
#[cfg(target_os = "linux")]
const QUIETLY: OFlags = OFlags::NOATIME;
#[cfg(not(target_os = "linux"))]
const QUIETLY: OFlags = OFlags::empty();

#[cfg(target_os = "linux")]
const PAST_CACHE: OFlags = OFlags::DIRECT;
#[cfg(not(target_os = "linux"))]
const PAST_CACHE: OFlags = OFlags::empty();

fn opened(path: &Path, flags: OFlags) -> std::io::Result<(File, Metadata)> {
    let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let meta = file.metadata()?;
    Ok((file, meta))
}

/// Reads past the page cache begin and end where blocks do, on any disk.
pub const BLOCK_BYTES: usize = 4096;

/// Memory that such reads can go to.
pub type Block = AVec<u8, ConstAlign<BLOCK_BYTES>>;

pub fn block(bytes: usize) -> Block {
    let mut block = Block::with_capacity(BLOCK_BYTES, bytes);
    block.resize(bytes, 0);
    block
}

/// Fill `into` from `offset`; a file that ends before is one that was cut meanwhile.
pub fn read_at(file: &File, path: &Path, into: &mut [u8], offset: u64) -> Result<()> {
    file.read_exact_at(into, offset).map_err(|source| match source.kind() {
        ErrorKind::UnexpectedEof => Error::changed(
            path,
            format!("was cut short while it was read: {} bytes at byte {offset} are gone", into.len()),
        ),
        _ => Error::io(path, source),
    })
}

/// Ask the system to fetch a stretch that will be read soon. Advice only: refused, it changes nothing.
pub fn fetch_ahead(file: &File, offset: u64, bytes: u64) {
    let _ = rustix::fs::fadvise(file, offset, NonZeroU64::new(bytes), rustix::fs::Advice::WillNeed);
}

/// How often a shard's path is asked whether it still leads to the file that is open.
const RECHECK: Duration = Duration::from_millis(100);

#[derive(Debug)]
struct Handle {
    file: Arc<File>,
    checked: Instant,
}

#[derive(Debug)]
struct Slot {
    path: PathBuf,
    identity: Identity,
    handle: Mutex<Option<Handle>>,
}

/// The shards of one data set, with a bounded number of them open at a time.
#[derive(Debug)]
pub struct Files {
    slots: Vec<Slot>,
    open: AtomicUsize,
    limit: usize,
    hand: AtomicUsize,
    jumping: bool,
    pub(crate) maps: Maps,
}

impl Files {
    /// Open no more than `limit` files at once, however many there are.
    pub fn new(shards: impl IntoIterator<Item = (PathBuf, Identity)>, limit: usize) -> Self {
        let slot = |(path, identity)| Slot { path, identity, handle: Mutex::new(None) };
        let slots: Vec<_> = shards.into_iter().map(slot).collect();
        let maps = Maps::new(slots.iter().map(|slot| slot.identity.size));
        let (open, hand) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Files { slots, open, limit: limit.max(1), hand, jumping: false, maps }
    }

    /// The same for reads all over the place: the system then fetches what it is asked for, and nothing behind it.
    pub fn for_jumping(self) -> Self {
        Files { jumping: true, ..self }
    }

    pub fn count(&self) -> usize {
        self.slots.len()
    }

    /// How large a shard was when it was indexed.
    pub fn size(&self, shard: usize) -> u64 {
        self.slots.get(shard).map_or(0, |slot| slot.identity.size)
    }

    pub fn path(&self, shard: usize) -> &Path {
        self.slots.get(shard).map_or(Path::new(""), |slot| &slot.path)
    }

    /// The open file of a shard. An error if it is no longer the file it was when it was indexed.
    pub fn get(&self, shard: usize) -> Result<Arc<File>> {
        let slot =
            self.slots.get(shard).ok_or_else(|| Error::Misuse(format!("there is no shard {shard}")))?;
        let mut handle = slot.handle.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = handle.as_mut() {
            if held.checked.elapsed() > RECHECK {
                still_there(slot)?;
                held.checked = Instant::now();
            }
            return Ok(Arc::clone(&held.file));
        }
        let (file, identity) = open(&slot.path)?;
        same_file(slot, identity)?;
        if self.jumping {
            let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random);
        }
        let file = Arc::new(file);
        *handle = Some(Handle { file: Arc::clone(&file), checked: Instant::now() });
        drop(handle);
        if self.open.fetch_add(1, Ordering::Relaxed) >= self.limit {
            self.close_another(shard);
        }
        Ok(file)
    }

    /// A shard opened anew for large reads past the page cache, where its file system has such.
    pub fn past_cache(&self, shard: usize) -> Result<File> {
        let slot =
            self.slots.get(shard).ok_or_else(|| Error::Misuse(format!("there is no shard {shard}")))?;
        let (file, meta) = opened(&slot.path, OFlags::NONBLOCK | PAST_CACHE)
            .or_else(|_| opened(&slot.path, OFlags::NONBLOCK))
            .map_err(|source| Error::io(&slot.path, source))?;
        same_file(slot, Identity::from(&meta))?;
        Ok(file)
    }

    /// An error if the shard is not what it was when it was opened.
    pub fn unchanged(&self, shard: usize) -> Result<()> {
        self.slots.get(shard).map_or(Ok(()), still_there)
    }

    fn close_another(&self, than: usize) {
        for _ in 0..self.slots.len() {
            let at = self.hand.fetch_add(1, Ordering::Relaxed) % self.slots.len();
            // a slot in use by another thread is passed over rather than waited for
            if at != than
                && let Ok(mut handle) = self.slots[at].handle.try_lock()
                && handle.take().is_some()
            {
                self.open.fetch_sub(1, Ordering::Relaxed);
                return;
            }
        }
    }
}

/// A few open files of one thread: asking for one costs no lock and no clock.
#[derive(Debug)]
struct Few<F>(Vec<(usize, F)>);

impl<F> Default for Few<F> {
    fn default() -> Self {
        Few(Vec::new())
    }
}

impl<F> Few<F> {
    /// The file of a shard, opened unless it is there; no more than `most` are kept.
    fn get(&mut self, shard: usize, most: usize, open: impl FnOnce() -> Result<F>) -> Result<&F> {
        let at = match self.0.iter().position(|(held, _)| *held == shard) {
            Some(at) => at,
            None => {
                if self.0.len() == most {
                    self.0.clear();
                }
                self.0.push((shard, open()?));
                self.0.len() - 1
            }
        };
        Ok(&self.0[at].1)
    }
}

/// Files at hand for one thread's present batch.
#[derive(Debug, Default)]
pub struct AtHand(Few<Arc<File>>);

/// As many as are found faster than the shared ones are.
const AT_HAND: usize = 32;

impl AtHand {
    pub fn get(&mut self, files: &Files, shard: usize) -> Result<&File> {
        self.0.get(shard, AT_HAND, || files.get(shard)).map(Arc::as_ref)
    }

    /// Let go of all, so that the next batch asks whether they are still what they were.
    pub fn clear(&mut self) {
        self.0.0.clear();
    }
}

/// Files open past the page cache for one thread.
#[derive(Debug, Default)]
pub struct PastCache(Few<File>);

/// There may be many threads, and files that others have open.
const MOST_PAST_CACHE: usize = 16;

impl PastCache {
    pub fn get(&mut self, files: &Files, shard: usize) -> Result<&File> {
        self.0.get(shard, MOST_PAST_CACHE, || files.past_cache(shard))
    }
}

fn still_there(slot: &Slot) -> Result<()> {
    let meta = std::fs::metadata(&slot.path).map_err(|source| match source.kind() {
        ErrorKind::NotFound => Error::changed(&slot.path, "was removed while it was open"),
        _ => Error::io(&slot.path, source),
    })?;
    same_file(slot, Identity::from(&meta))
}

fn same_file(slot: &Slot, now: Identity) -> Result<()> {
    let was = slot.identity;
    if now == was {
        return Ok(());
    }
    let problem = if now.size != was.size {
        format!("changed while it was open: {} bytes before, {} now", was.size, now.size)
    } else if (now.device, now.inode) != (was.device, was.inode) {
        "was replaced while it was open".into()
    } else {
        "was written to while it was open".into()
    };
    Err(Error::changed(&slot.path, problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files_of(folder: &Path, count: usize, limit: usize) -> Files {
        let shards: Vec<_> = (0..count)
            .map(|n| {
                let path = folder.join(n.to_string());
                std::fs::write(&path, n.to_string()).unwrap();
                let (_, identity) = open(&path).unwrap();
                (path, identity)
            })
            .collect();
        Files::new(shards, limit)
    }

    #[test]
    fn no_more_files_are_open_than_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let files = files_of(folder.path(), 50, 7);
        for round in 0..200 {
            let mut byte = [0];
            read_at(&files.get(round % 50).unwrap(), files.path(round % 50), &mut byte, 0).unwrap();
        }
        let open = files.slots.iter().filter(|slot| slot.handle.lock().unwrap().is_some()).count();
        assert!(open <= 7, "{open} files are open");
    }

    #[test]
    fn a_file_that_changed_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let files = files_of(folder.path(), 2, 1);
        files.get(0).unwrap();
        files.get(1).unwrap();
        std::fs::write(folder.path().join("0"), "something longer").unwrap();
        assert!(matches!(files.get(0), Err(Error::Changed { .. })));
        assert!(matches!(files.unchanged(0), Err(Error::Changed { .. })));
        assert!(files.unchanged(1).is_ok());
    }

    #[test]
    fn a_plain_shard_is_not_taken_for_a_compressed_one() {
        let mut lengths = vec![0x1f_u64 | 0x8b << 8 | 8 << 16, 0x78 | 0x9c << 8];
        for length in lengths.drain(..) {
            assert_eq!(Compression::of_head(&frame::header(length)), Compression::None);
        }
        assert_eq!(Compression::of_head(&[0x1f, 0x8b, 8, 0]), Compression::Gzip);
        assert_eq!(Compression::of_head(&[0x78, 0x9c, 1, 2, 3]), Compression::Zlib);
        assert_eq!(Compression::of_head(b""), Compression::None);
    }
}
