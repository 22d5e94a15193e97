//! How large records are, as plain numbers.

use anybatch_core::sizes::Sizes;

/// How many records, their bytes in all, the fewest and the most, and how many records by power of two.
pub type SizesFields = (u64, u64, u64, u64, Vec<u64>);

pub fn fields_of(sizes: &Sizes) -> SizesFields {
    let Sizes { records, total_bytes, smallest_bytes, largest_bytes, by_power } = sizes;
    (*records, *total_bytes, *smallest_bytes, *largest_bytes, by_power.to_vec())
}
