//! Many small stretches of files, brought together by one call, where the page cache holds them.
//!
//! A positioned read of a few hundred bytes takes a microsecond, nearly all of it the way in and out of the
//! kernel and through its tables. So files are mapped, and the kernel is asked to copy hundreds of stretches
//! of the mappings into a file in memory, which one call does in a third of the time.
//!
//! The mappings themselves are never looked into: a file that somebody truncates would end the process with
//! SIGBUS. Inside a call the same is an error, and whoever gets one reads by position and finds out why.

use std::fs::File;
use std::io::IoSlice;
use std::sync::OnceLock;

use memmap2::{Advice, Mmap};

/// What one call brings together: stays in the processor's cache.
pub const ROOM_BYTES: usize = 256 << 10;
/// Linux takes 1,024 stretches in one call.
pub const MOST_STRETCHES: usize = 512;
/// More data than this is not mapped. What is mapped and read shows among a process's resident memory, though
/// it is the page cache's, and page tables for it take a five-hundredth.
const MOST_BYTES: u64 = 4 << 30;
const MOST_FILES: usize = 1024;

/// A mapping of every file, made when it is first needed; of none where there is too much.
#[derive(Debug, Default)]
pub struct Maps {
    files: Vec<OnceLock<Option<Mmap>>>,
}

impl Maps {
    pub fn new(file_bytes: impl ExactSizeIterator<Item = u64>) -> Self {
        let files = file_bytes.len();
        let few = files <= MOST_FILES && file_bytes.fold(0, u64::saturating_add) <= MOST_BYTES;
        let wanted = few && cfg!(target_os = "linux") && address_space_is_free();
        Maps { files: (0..if wanted { files } else { 0 }).map(|_| OnceLock::new()).collect() }
    }

    pub fn are_there(&self) -> bool {
        !self.files.is_empty()
    }

    /// Where a stretch of the file with a number lies. `None` if it is not mapped, or not that long.
    fn stretch(&self, number: usize, file: &File, offset: u64, bytes: usize) -> Option<IoSlice<'_>> {
        let map = self.files.get(number)?.get_or_init(|| mapped(file)).as_ref()?;
        let start = usize::try_from(offset).ok()?;
        map.get(start..start.checked_add(bytes)?).map(IoSlice::new)
    }
}

/// Somebody who limits address space would pay for a mapping with it.
fn address_space_is_free() -> bool {
    rustix::process::getrlimit(rustix::process::Resource::As).current.is_none()
}

#[allow(unsafe_code)]
fn mapped(file: &File) -> Option<Mmap> {
    // SAFETY: the bytes may change or vanish at any time, so nobody may read them. Nobody does: they leave this
    // module nowhere but to a call in which the kernel reads, and finds out.
    let map = unsafe { Mmap::map(file) }.ok()?;
    // neighbours of what is missing would be fetched in vain
    map.advise(Advice::Random).ok()?;
    Some(map)
}

/// What is to be brought together. It can be added to, and not be looked into.
#[derive(Debug)]
pub struct Stretches<'a> {
    maps: &'a Maps,
    all: Vec<IoSlice<'a>>,
    bytes: usize,
}

impl<'a> Stretches<'a> {
    pub fn of(maps: &'a Maps, count: usize) -> Self {
        Stretches { maps, all: Vec::with_capacity(count), bytes: 0 }
    }

    /// Add some bytes of the file with a number; `None` if they are not mapped.
    pub fn add(&mut self, number: usize, file: &File, offset: u64, bytes: usize) -> Option<()> {
        self.all.push(self.maps.stretch(number, file, offset, bytes)?);
        self.bytes += bytes;
        Some(())
    }
}

/// Where stretches are brought together: a file in memory, and a view of it. One per thread.
#[derive(Debug, Default)]
pub struct Room(OnceLock<Option<(File, Mmap)>>);

impl Room {
    /// The bytes of all stretches, one behind the other; `None` if they cannot be had this way.
    pub fn brought_together(&mut self, stretches: &Stretches<'_>) -> Option<&[u8]> {
        let (file, view) = self.0.get_or_init(made).as_ref()?;
        let room = view.get(..stretches.bytes)?;
        stretches.all.iter().for_each(|stretch| ask_for(stretch));
        (rustix::io::pwritev(file, &stretches.all, 0) == Ok(stretches.bytes)).then_some(room)
    }
}

/// Have the processor fetch bytes that are copied in a moment: it waits for many at once, a copy for one by one.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
fn ask_for(stretch: &[u8]) {
    use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};

    const LINE: usize = 64;
    for line in stretch.chunks(LINE) {
        // SAFETY: a hint. It reads nothing a program could see, and of an address that is gone nothing at all.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().cast()) };
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn ask_for(_: &[u8]) {}

#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn made() -> Option<(File, Mmap)> {
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

    let file = File::from(memfd_create("anybatch", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).ok()?);
    file.set_len(ROOM_BYTES as u64).ok()?;
    // whoever finds it under /proc cannot cut it either
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::SEAL).ok()?;
    // SAFETY: nobody else has this file, it is never shorter, and it is written to in `brought_together` alone,
    // which borrows the view for as long as what it returns is used.
    let view = unsafe { Mmap::map(&file) }.ok()?;
    Some((file, view))
}

#[cfg(not(target_os = "linux"))]
fn made() -> Option<(File, Mmap)> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    fn written(bytes: &[u8]) -> File {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(bytes, 0).unwrap();
        file
    }

    /// Bring stretches of one file together.
    fn together(file: &File, maps: &Maps, wanted: &[(u64, usize)]) -> Option<Vec<u8>> {
        let mut stretches = Stretches::of(maps, wanted.len());
        for (offset, bytes) in wanted {
            stretches.add(0, file, *offset, *bytes)?;
        }
        Room::default().brought_together(&stretches).map(<[u8]>::to_vec)
    }

    #[test]
    fn stretches_come_one_behind_the_other() {
        let bytes: Vec<u8> = (0..100_000_u32).map(|at| (at % 251) as u8).collect();
        let (file, maps) = (written(&bytes), Maps::new([100_000].into_iter()));
        let wanted: Vec<_> = (0..500_u64).map(|at| (at * 7919 % 99_000, at as usize)).collect();
        let expected = wanted.iter().flat_map(|(offset, length)| &bytes[*offset as usize..][..*length]);
        assert_eq!(together(&file, &maps, &wanted), Some(expected.copied().collect()));
    }

    #[test]
    fn a_file_that_was_cut_is_an_answer_and_not_a_signal() {
        let (file, maps) = (written(&[7; 100_000]), Maps::new([100_000].into_iter()));
        assert!(together(&file, &maps, &[(90_000, 100)]).is_some());
        file.set_len(10).unwrap();
        assert_eq!(together(&file, &maps, &[(90_000, 100)]), None);
        assert_eq!(together(&file, &maps, &[(0, 5), (50_000, 100)]), None);
    }

    #[test]
    fn what_does_not_fit_or_lies_outside_is_refused() {
        let (file, maps) = (written(&[7; 1000]), Maps::new([1000].into_iter()));
        assert_eq!(together(&file, &maps, &[(990, 11)]), None);
        assert_eq!(together(&file, &maps, &[(u64::MAX, 11)]), None);
        assert_eq!(together(&file, &maps, &[(0, 1000); 300]), None);
        assert!(!Maps::new([MOST_BYTES + 1].into_iter()).are_there());
        assert!(!Maps::new([1; MOST_FILES + 1].into_iter()).are_there());
    }
}
