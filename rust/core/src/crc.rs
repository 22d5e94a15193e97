//! The masked CRC-32C that guards a record's length and its data.

const MASK_DELTA: u32 = 0xa282_ead8;

/// Stored in place of the plain CRC, so that a CRC of data that itself holds CRCs stays strong.
pub fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(MASK_DELTA)
}

/// Masked CRC-32C of `data`; uses the processor's instruction where there is one.
pub fn masked(data: &[u8]) -> u32 {
    mask(crc32c::crc32c(data))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_check_value_of_the_standard_comes_out() {
        assert_eq!(crc32c::crc32c(b"123456789"), 0xe306_9283);
    }
}
