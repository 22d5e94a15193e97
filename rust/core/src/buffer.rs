//! 64-byte-aligned bytes that frameworks can take without a copy, used again once they are let go.

use std::sync::{Arc, Mutex, PoisonError};

use aligned_vec::{AVec, ConstAlign};

pub const ALIGNMENT: usize = 64;
type Aligned = AVec<u8, ConstAlign<ALIGNMENT>>;

/// Growable aligned bytes; given back to their pool when dropped.
#[derive(Debug)]
pub struct Bytes {
    /// As long as it was ever written: memory that is used again need not be cleared again.
    data: Aligned,
    len: usize,
    pool: Option<Arc<Pool>>,
}

impl Default for Bytes {
    fn default() -> Self {
        Bytes::with_capacity(0)
    }
}

impl Bytes {
    pub fn with_capacity(capacity: usize) -> Self {
        Bytes { data: AVec::with_capacity(ALIGNMENT, capacity), len: 0, pool: None }
    }

    pub fn as_slice(&self) -> &[u8] {
        &self.data[..self.len]
    }

    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.data[..self.len]
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn extend(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        if let Some(place) = self.data.get_mut(self.len..end) {
            place.copy_from_slice(bytes);
        } else {
            self.data.truncate(self.len);
            self.data.extend_from_slice(bytes);
        }
        self.len = end;
    }

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
    pub fn memory(&mut self, start: usize, len: usize) -> &mut [u8] {
        let end = start.saturating_add(len);
        if self.data.len() < end {
            self.data.resize(end, 0);
        }
        &mut self.data[start..end]
    }

    /// Take memory that was written before into use, as far as it was.
    pub fn grow_to(&mut self, len: usize) {
        self.len = self.len.max(len.min(self.data.len()));
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.take() {
            pool.take_back(std::mem::replace(&mut self.data, AVec::new(ALIGNMENT)));
        }
    }
}

/// Buffers that were let go, kept for the next batch: fresh pages cost more than decoding does.
#[derive(Debug)]
pub struct Pool {
    free: Mutex<Vec<Aligned>>,
    keep_bytes: usize,
}

impl Pool {
    /// A pool that holds on to `keep_bytes` of unused memory at most.
    pub fn new(keep_bytes: usize) -> Arc<Self> {
        Arc::new(Pool { free: Mutex::default(), keep_bytes })
    }

    /// An empty buffer with room for `capacity` bytes.
    pub fn take(self: &Arc<Self>, capacity: usize) -> Bytes {
        let data = self.fitting(capacity).unwrap_or_else(|| AVec::with_capacity(ALIGNMENT, capacity));
        Bytes { data, len: 0, pool: Some(Arc::clone(self)) }
    }

    fn fitting(&self, capacity: usize) -> Option<Aligned> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        // much larger ones are left for those who need them
        let fits =
            |data: &Aligned| (capacity..=capacity.saturating_mul(4).max(4096)).contains(&data.capacity());
        let at = free.iter().rposition(fits)?;
        Some(free.swap_remove(at))
    }

    fn take_back(&self, data: Aligned) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.push(data);
        let mut held: usize = free.iter().map(|data| data.capacity()).sum();
        while held > self.keep_bytes && !free.is_empty() {
            held -= free.remove(0).capacity();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_grow() {
        let mut bytes = Bytes::with_capacity(3);
        for round in 0..1000 {
            bytes.push_i64(round);
        }
        assert_eq!(bytes.as_slice().as_ptr().addr() % ALIGNMENT, 0);
        assert_eq!((bytes.len(), bytes.i64_at(999), bytes.i64_at(1000)), (8000, 999, 0));
    }

    #[test]
    fn a_buffer_let_go_is_used_again() {
        let pool = Pool::new(1 << 20);
        let first = pool.take(10_000);
        let place = first.as_slice().as_ptr();
        drop(first);
        assert_eq!(pool.take(9_000).as_slice().as_ptr(), place);
    }

    #[test]
    fn a_pool_keeps_no_more_than_it_may() {
        let pool = Pool::new(10_000);
        drop((0..10).map(|_| pool.take(4_000)).collect::<Vec<_>>());
        let held: usize = pool.free.lock().unwrap().iter().map(|data| data.capacity()).sum();
        assert!(held <= 10_000);
    }
}
