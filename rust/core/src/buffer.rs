//! 64-byte-aligned bytes that frameworks can take without a copy, used again once they are let go.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use aligned_vec::{AVec, ConstAlign};
use memmap2::MmapMut;

pub const ALIGNMENT: usize = 64;
/// From this size on memory comes straight from the system: it costs nothing until it is touched, and
/// goes back at once when it is dropped, which an allocator's does not. It begins where a page does.
pub const FROM_SYSTEM: usize = 256 << 10;

#[derive(Debug)]
enum Memory {
    Small(AVec<u8, ConstAlign<ALIGNMENT>>),
    Mapped(MmapMut),
}

impl Memory {
    fn of(capacity: usize) -> Self {
        if capacity >= FROM_SYSTEM
            && let Ok(mapped) = MmapMut::map_anon(capacity)
        {
            return Memory::Mapped(mapped);
        }
        let mut small = AVec::with_capacity(ALIGNMENT, capacity);
        small.resize(capacity, 0);
        Memory::Small(small)
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Memory::Small(bytes) => bytes,
            Memory::Mapped(bytes) => bytes,
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Memory::Small(bytes) => bytes,
            Memory::Mapped(bytes) => bytes,
        }
    }
}

/// Growable aligned bytes; given back to their pool when dropped.
#[derive(Debug)]
pub struct Bytes {
    memory: Memory,
    len: usize,
    /// The most that was ever in use: what of the memory is really there.
    touched: usize,
    pool: Option<Arc<Pool>>,
}

impl Default for Bytes {
    fn default() -> Self {
        Bytes::with_capacity(0)
    }
}

impl Bytes {
    pub fn with_capacity(capacity: usize) -> Self {
        Bytes { memory: Memory::of(capacity), len: 0, touched: 0, pool: None }
    }

    /// Memory straight from the system, which takes none until it is filled; `None` if there is none to be had.
    pub fn from_system(capacity: usize) -> Option<Self> {
        let mapped = MmapMut::map_anon(capacity.max(1)).ok()?;
        Some(Bytes { memory: Memory::Mapped(mapped), len: 0, touched: 0, pool: None })
    }

    pub fn as_slice(&self) -> &[u8] {
        &self.memory.bytes()[..self.len]
    }

    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.memory.bytes_mut()[..self.len]
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn capacity(&self) -> usize {
        self.memory.bytes().len()
    }

    /// How much memory this holds on to.
    pub fn held(&self) -> usize {
        match self.memory {
            Memory::Small(_) => self.capacity(),
            Memory::Mapped(_) => self.touched,
        }
    }

    #[inline]
    pub fn extend(&mut self, bytes: &[u8]) {
        self.appended(bytes.len()).copy_from_slice(bytes);
    }

    /// Append room for `len` bytes, to be filled.
    #[inline]
    pub fn appended(&mut self, len: usize) -> &mut [u8] {
        let start = self.len;
        self.len = start.saturating_add(len);
        self.memory(start, len)
    }

    #[inline]
    pub fn push_i64(&mut self, value: i64) {
        self.extend(&value.to_le_bytes());
    }

    /// The `at`-th number of bytes that hold int64 numbers; 0 past the end.
    pub fn i64_at(&self, at: usize) -> i64 {
        let bytes = self.as_slice().get(at * 8..at * 8 + 8).unwrap_or(&[0; 8]);
        i64::from_le_bytes(bytes.try_into().unwrap_or([0; 8]))
    }

    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Memory from `start` on, be it in use or not, to read a file into.
    #[inline]
    pub fn memory(&mut self, start: usize, len: usize) -> &mut [u8] {
        let end = start.saturating_add(len);
        if end > self.capacity() {
            self.grow(end);
        }
        self.touched = self.touched.max(end);
        &mut self.memory.bytes_mut()[start..end]
    }

    #[cold]
    fn grow(&mut self, needed: usize) {
        let mut larger = Memory::of(needed.max(self.capacity().saturating_mul(2)).max(ALIGNMENT));
        larger.bytes_mut()[..self.touched].copy_from_slice(&self.memory.bytes()[..self.touched]);
        self.memory = larger;
    }

    /// All of it will be filled: that is less work, for devices too, with few large pages.
    pub fn ask_for_large_pages(&self) {
        #[cfg(target_os = "linux")]
        if let Memory::Mapped(mapped) = &self.memory {
            // advice only: refused, it changes nothing
            let _ = mapped.advise(memmap2::Advice::HugePage);
        }
    }

    /// Take memory that was written before into use, as far as it was.
    pub fn grow_to(&mut self, len: usize) {
        self.len = self.len.max(len.min(self.touched));
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.take() {
            let memory = std::mem::replace(&mut self.memory, Memory::of(0));
            pool.take_back(Bytes { memory, len: 0, touched: self.touched, pool: None });
        }
    }
}

/// Buffers that were let go, kept for the next batch: fresh pages cost more than decoding does.
#[derive(Debug)]
pub struct Pool {
    free: Mutex<Vec<Bytes>>,
    keep_bytes: usize,
}

impl Pool {
    /// A pool that holds on to `keep_bytes` of unused memory at most.
    pub fn new(keep_bytes: usize) -> Arc<Self> {
        Arc::new(Pool { free: Mutex::default(), keep_bytes })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Bytes>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An empty buffer with room for `capacity` bytes.
    pub fn take(self: &Arc<Self>, capacity: usize) -> Bytes {
        let mut bytes = self.fitting(capacity).unwrap_or_else(|| Bytes::with_capacity(capacity));
        bytes.pool = Some(Arc::clone(self));
        bytes
    }

    fn fitting(&self, capacity: usize) -> Option<Bytes> {
        let mut free = self.lock();
        // much larger ones are left for those who need them
        let fits = capacity..=capacity.saturating_mul(4).max(4096);
        let at = free.iter().rposition(|bytes| fits.contains(&bytes.capacity()))?;
        Some(free.swap_remove(at))
    }

    /// Keep memory for later, or let it go if somebody is at the pool: after a fork that may be a thread of
    /// the parent, which never leaves.
    fn take_back(&self, bytes: Bytes) {
        let mut free = match self.free.try_lock() {
            Ok(free) => free,
            Err(TryLockError::Poisoned(free)) => free.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        free.push(bytes);
        let mut held: usize = free.iter().map(Bytes::held).sum();
        while held > self.keep_bytes && !free.is_empty() {
            held -= free.remove(0).held();
        }
    }

    /// Unused memory held for later.
    pub fn held(&self) -> usize {
        self.lock().iter().map(Bytes::held).sum()
    }

    /// Give unused memory back to the system until no more than `bytes` are held.
    pub fn shrink_to(&self, bytes: usize) {
        let mut free = self.lock();
        let mut held: usize = free.iter().map(Bytes::held).sum();
        while held > bytes && !free.is_empty() {
            held -= free.remove(0).held();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_grow() {
        let mut bytes = Bytes::with_capacity(3);
        for round in 0..100_000 {
            bytes.push_i64(round);
            if round % 1000 == 0 {
                assert_eq!(bytes.as_slice().as_ptr().addr() % ALIGNMENT, 0);
            }
        }
        assert!((0..100_000).all(|at| bytes.i64_at(at) == at as i64));
        assert_eq!((bytes.len(), bytes.i64_at(100_000)), (800_000, 0));
    }

    #[test]
    fn a_buffer_let_go_is_used_again() {
        let pool = Pool::new(1 << 20);
        for size in [10_000, 400_000] {
            let first = pool.take(size);
            let place = first.as_slice().as_ptr();
            drop(first);
            assert_eq!(pool.take(size - 1000).as_slice().as_ptr(), place);
        }
    }

    #[test]
    fn a_buffer_is_let_go_without_waiting_for_its_pool() {
        let pool = Pool::new(1 << 20);
        let bytes = pool.take(100);
        let busy = pool.lock();
        drop(bytes);
        assert!(busy.is_empty());
    }

    #[test]
    fn a_pool_keeps_no_more_than_it_may() {
        let pool = Pool::new(10_000);
        drop((0..10).map(|_| pool.take(4_000)).collect::<Vec<_>>());
        assert!((1..=10_000).contains(&pool.held()));
        pool.shrink_to(0);
        assert_eq!(pool.held(), 0);
    }
}
