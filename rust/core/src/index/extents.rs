//! Where records lie, one after the other: every offset is unpacked once, as the end of one and the start of
//! the next.

use super::{Extent, Index};
use crate::error::Result;

pub struct Extents<'a> {
    index: &'a Index,
    number: u64,
    offset: Option<u64>,
}

impl Index {
    /// The records from a number on.
    pub fn extents(&self, from: u64) -> Extents<'_> {
        Extents { index: self, number: from, offset: self.offsets.get(from) }
    }
}

impl Iterator for Extents<'_> {
    type Item = Result<Extent>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.number >= self.index.records() {
            return None;
        }
        let next = self.index.offsets.get(self.number + 1);
        let extent = self.index.placed(self.number, self.offset, next);
        (self.number, self.offset) = (self.number + 1, next);
        Some(extent)
    }
}
