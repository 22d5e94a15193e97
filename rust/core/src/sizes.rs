//! How large records are: all that a walk passes, or from an index alone.

use crate::error::Result;
use crate::index::Index;

/// A record's size has so many bits at most.
const POWERS: usize = 64;

/// The data bytes of some records, framing not counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sizes {
    pub records: u64,
    pub total_bytes: u64,
    pub smallest_bytes: u64,
    pub largest_bytes: u64,
    /// How many are empty, have 1 byte, 2 to 3 bytes, 4 to 7 …
    pub by_power: [u64; POWERS],
}

impl Default for Sizes {
    fn default() -> Self {
        Sizes { records: 0, total_bytes: 0, smallest_bytes: 0, largest_bytes: 0, by_power: [0; POWERS] }
    }
}

impl Sizes {
    /// The sizes of all records that are not known to be damaged.
    pub fn of(index: &Index) -> Result<Self> {
        let mut sizes = Sizes::default();
        let mut bad = index.bad.iter().map(|bad| bad.number).peekable();
        for (number, extent) in (0..).zip(index.extents(0)) {
            if bad.next_if_eq(&number).is_none() {
                sizes.add(extent?.data_bytes());
            }
        }
        Ok(sizes)
    }

    #[inline]
    pub fn add(&mut self, bytes: u64) {
        self.records += 1;
        self.total_bytes = self.total_bytes.saturating_add(bytes);
        self.smallest_bytes = if self.records == 1 { bytes } else { self.smallest_bytes.min(bytes) };
        self.largest_bytes = self.largest_bytes.max(bytes);
        let bits = (u64::BITS - bytes.leading_zeros()) as usize;
        self.by_power[bits.min(POWERS - 1)] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Compression;
    use crate::frame::OVERHEAD;
    use crate::index::{Builder, Extent, Fingerprint, Reason};

    const ANY_FILE: Fingerprint = Fingerprint { size: 0, modified_s: 0, modified_ns: 0, ends: 0 };

    #[test]
    fn damaged_records_and_what_lies_between_records_do_not_count() {
        let (mut builder, mut at) = (Builder::default(), 0);
        for (bytes, sound) in [(0, true), (1, true), (700, false), (7, true), (8, true)] {
            let extent = Extent { offset: at, end: at + OVERHEAD + bytes };
            if sound {
                builder.whole(extent, true)
            } else {
                builder.bad(extent, Reason::Header)
            };
            builder.gap(extent.end, extent.end + 5, Reason::Header);
            at = extent.end + 5;
        }
        let index = builder.finish(ANY_FILE, Compression::None, at);
        let sizes = Sizes::of(&index).unwrap();
        assert_eq!((sizes.records, sizes.total_bytes), (4, 16));
        assert_eq!((sizes.smallest_bytes, sizes.largest_bytes), (0, 8));
        assert_eq!(sizes.by_power[..6], [1, 1, 0, 1, 1, 0]);
        let one_by_one: Vec<_> = (0..5).map(|number| index.extent(number).unwrap()).collect();
        assert_eq!(index.extents(0).collect::<Result<Vec<_>>>().unwrap(), one_by_one);
        assert_eq!(index.extents(3).count(), 2);
        assert!(index.extent(5).is_err());
    }

    #[test]
    fn no_records_have_no_sizes() {
        let index = Builder::default().finish(ANY_FILE, Compression::None, 0);
        let sizes = Sizes::of(&index).unwrap();
        assert_eq!((sizes.records, sizes.smallest_bytes, sizes.largest_bytes), (0, 0, 0));
    }
}
