//! The memory that images may take while they are decoded: some for each thread, the rest for large ones.

use std::sync::{Condvar, Mutex, PoisonError};

use super::Shape;

/// What part of a limit is set aside for images that are unusually large. A chunk of a batch may take three
/// fourteenths of the whole limit out of the source's four sevenths: two of them still fit beside this.
const PART_FOR_LARGE: usize = 5;

#[derive(Debug)]
pub struct Room {
    limit_bytes: usize,
    threads: usize,
    /// What a thread may take at any time, and keep.
    usual_bytes: usize,
    large_bytes: usize,
    free: Mutex<usize>,
    returned: Condvar,
}

impl Default for Room {
    /// Room for everything.
    fn default() -> Self {
        Room::new(usize::MAX, 0, usize::MAX, 0)
    }
}

impl Room {
    /// The room that a limit leaves for images of such shapes on so many threads; none without any.
    pub fn within(limit_bytes: usize, threads: usize, shapes: impl Iterator<Item = Shape>) -> Self {
        match shapes.map(|shape| shape.usual_bytes()).max() {
            Some(usual) => Room::new(limit_bytes, threads, usual, limit_bytes / PART_FOR_LARGE),
            None => Room::new(limit_bytes, threads, 0, 0),
        }
    }

    fn new(limit_bytes: usize, threads: usize, usual_bytes: usize, large_bytes: usize) -> Self {
        let (free, returned) = (Mutex::new(large_bytes), Condvar::new());
        Room { limit_bytes, threads, usual_bytes, large_bytes, free, returned }
    }

    /// What the limit leaves for everything else.
    pub fn rest_bytes(&self) -> usize {
        let own = self.usual_bytes.saturating_mul(self.threads);
        self.limit_bytes.saturating_sub(own).saturating_sub(self.large_bytes)
    }

    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// The limit that would leave so much for everything else.
    pub fn limit_for_rest(&self, bytes: usize) -> usize {
        let needed = bytes.saturating_add(self.usual_bytes.saturating_mul(self.threads));
        if self.large_bytes == 0 { needed } else { needed.saturating_add(needed / (PART_FOR_LARGE - 1) + 1) }
    }

    /// The limit that would leave so much for a large image.
    pub fn limit_for_large(&self, bytes: usize) -> usize {
        bytes.saturating_mul(PART_FOR_LARGE)
    }

    /// Whether a thread may keep so many bytes for its next image.
    pub fn lets_keep(&self, bytes: usize) -> bool {
        bytes <= self.usual_bytes
    }

    /// Let a thread use so many bytes, as soon as other large images have given theirs back. `None`: there
    /// will never be so many.
    pub fn lend(&self, bytes: usize) -> Option<Lease<'_>> {
        if bytes <= self.usual_bytes {
            return Some(Lease { room: self, borrowed: 0 });
        }
        if bytes > self.large_bytes {
            return None;
        }
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        // nobody waits with a lease in hand, so this ends
        let waited = self.returned.wait_while(free, |free| *free < bytes);
        *waited.unwrap_or_else(PoisonError::into_inner) -= bytes;
        Some(Lease { room: self, borrowed: bytes })
    }
}

/// The right to use memory, until it is dropped.
#[derive(Debug)]
pub struct Lease<'a> {
    room: &'a Room,
    borrowed: usize,
}

impl Lease<'_> {
    /// Whether the memory has to be free again when this is dropped.
    pub fn is_borrowed(&self) -> bool {
        self.borrowed > 0
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        *self.room.free.lock().unwrap_or_else(PoisonError::into_inner) += self.borrowed;
        self.room.returned.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const SMALL: Shape = Shape { height: 8, width: 8, channels: 3 };

    #[test]
    fn what_is_set_aside_and_what_is_left_are_the_limit() {
        let room = Room::within(100 << 20, 2, [SMALL].into_iter());
        assert_eq!(room.rest_bytes() + 2 * SMALL.usual_bytes() + room.large_bytes, 100 << 20);
        let limit = room.limit_for_rest(90 << 20);
        let rest = |limit| Room::within(limit, 2, [SMALL].into_iter()).rest_bytes();
        assert!(rest(limit) >= 90 << 20 && rest(limit - 8) < 90 << 20);
        let limit = room.limit_for_large(30 << 20);
        assert!(Room::within(limit, 2, [SMALL].into_iter()).lend(30 << 20).is_some());
        assert!(Room::within(limit - 1, 2, [SMALL].into_iter()).lend(30 << 20).is_none());
    }

    #[test]
    fn without_images_the_limit_is_left_whole() {
        let room = Room::within(1000, 8, std::iter::empty());
        assert_eq!((room.rest_bytes(), room.limit_for_rest(2000)), (1000, 2000));
    }

    #[test]
    fn large_images_together_never_take_more_than_there_is_for_them() {
        let room = Room::within(50 << 20, 4, [SMALL].into_iter());
        let (used, peak) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (room, used, peak) = (&room, &used, &peak);
                scope.spawn(move || {
                    for n in 0..200 {
                        let bytes = ((thread + n) % 5 + 3) << 20;
                        let lease = room.lend(bytes).unwrap();
                        assert!(lease.is_borrowed());
                        let now = used.fetch_add(bytes, Ordering::SeqCst) + bytes;
                        peak.fetch_max(now, Ordering::SeqCst);
                        std::thread::yield_now();
                        used.fetch_sub(bytes, Ordering::SeqCst);
                    }
                });
            }
        });
        assert!(peak.into_inner() <= 10 << 20);
        assert!(!room.lend(1).unwrap().is_borrowed());
    }
}
