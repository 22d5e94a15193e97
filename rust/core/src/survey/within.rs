//! Whether packed numbers lie within what was seen before, told in the way that suits the range.

use super::Range;
use super::bounds::Bounds;
use super::edges::Edges;

#[derive(Debug)]
pub(super) enum Within {
    Few(Box<Bounds>),
    Any(Edges),
}

impl Within {
    /// Have what is there hold numbers against this range from now on; nothing where they had better be decoded.
    pub fn keep(there: &mut Option<Self>, range: Range<i64>) {
        match there {
            Some(within) if within.range() == range => {}
            // in place: a number that rises from record to record moves it every time
            Some(Within::Few(bounds)) if Bounds::suit(range) => bounds.move_to(range),
            _ => *there = Within::of(range),
        }
    }

    fn of(range: Range<i64>) -> Option<Self> {
        if Bounds::suit(range) {
            return Some(Within::Few(Box::new(Bounds::of(range))));
        }
        Edges::suit(range).then(|| Within::Any(Edges::of(range)))
    }

    fn range(&self) -> Range<i64> {
        match self {
            Within::Few(bounds) => bounds.range(),
            Within::Any(edges) => edges.range(),
        }
    }

    /// How many numbers `size` bytes hold if all of them lie within; `None` also where that was not told.
    #[inline]
    pub fn count(&self, bytes: &[u8], from: usize, size: usize) -> Option<u64> {
        match self {
            Within::Few(bounds) => bounds.count(&bytes[from..], size),
            Within::Any(edges) => edges.count(bytes, from, size),
        }
    }
}
