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

/// Masked CRC-32C of several slices as if they lay one behind the other.
pub fn masked_of_parts(parts: &[&[u8]]) -> u32 {
    mask(parts.iter().fold(0, |crc, part| crc32c::crc32c_append(crc, part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_the_standard_comes_out() {
        assert_eq!(crc32c::crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn parts_give_the_crc_of_the_whole() {
        assert_eq!(masked_of_parts(&[b"12", b"", b"3456789"]), masked(b"123456789"));
    }
}
