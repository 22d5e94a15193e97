//! One record on disk: length, CRC of the length, data, CRC of the data.

use crate::crc;

pub const HEADER: usize = 12;
pub const FOOTER: usize = 4;
/// What framing adds to a record's data.
pub const OVERHEAD: u64 = (HEADER + FOOTER) as u64;

fn length_field(header: &[u8; HEADER]) -> [u8; 8] {
    let mut field = [0; 8];
    field.copy_from_slice(&header[..8]);
    field
}

fn crc_field(header: &[u8; HEADER]) -> u32 {
    u32::from_le_bytes([header[8], header[9], header[10], header[11]])
}

/// The length as the header states it, right or not.
pub fn claimed_length(header: &[u8; HEADER]) -> u64 {
    u64::from_le_bytes(length_field(header))
}

/// The length, if the header's CRC confirms it.
pub fn checked_length(header: &[u8; HEADER]) -> Option<u64> {
    let field = length_field(header);
    (crc::masked(&field) == crc_field(header)).then(|| u64::from_le_bytes(field))
}

/// The header that proved right last: where records are of one length the next one is the same.
#[derive(Debug)]
pub struct Familiar([u8; HEADER]);

impl Default for Familiar {
    fn default() -> Self {
        Familiar(header(0))
    }
}

impl Familiar {
    /// The length, if the header's CRC confirms it or has confirmed it just now.
    #[inline]
    pub fn checked_length(&mut self, header: &[u8; HEADER]) -> Option<u64> {
        if *header != self.0 {
            checked_length(header)?;
            self.0 = *header;
        }
        Some(claimed_length(header))
    }
}

/// The length that a header with one wrong byte must have had: the one single-byte change of the
/// length that its CRC confirms. Tells where a record with a damaged header ends.
pub fn corrected_length(header: &[u8; HEADER]) -> Option<u64> {
    let stored = crc_field(header);
    let mut field = length_field(header);
    for at in 0..field.len() {
        let kept = field[at];
        for other in (0..=u8::MAX).filter(|other| *other != kept) {
            field[at] = other;
            if crc::masked(&field) == stored {
                return Some(u64::from_le_bytes(field));
            }
        }
        field[at] = kept;
    }
    None
}

pub fn header(length: u64) -> [u8; HEADER] {
    let field = length.to_le_bytes();
    let mut out = [0; HEADER];
    out[..8].copy_from_slice(&field);
    out[8..].copy_from_slice(&crc::masked(&field).to_le_bytes());
    out
}

pub fn footer(data: &[u8]) -> [u8; FOOTER] {
    crc::masked(data).to_le_bytes()
}

/// Two CRCs that should have been one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mismatch {
    pub stored: u32,
    pub computed: u32,
}

/// The data of `data_and_footer`, if its CRC confirms it.
pub fn checked_data(data_and_footer: &[u8]) -> Result<&[u8], Mismatch> {
    let Some((data, footer)) = data_and_footer.split_last_chunk::<FOOTER>() else {
        return Err(Mismatch { stored: 0, computed: 0 });
    };
    let (stored, computed) = (u32::from_le_bytes(*footer), crc::masked(data));
    if stored == computed { Ok(data) } else { Err(Mismatch { stored, computed }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_familiar_header_is_as_right_as_any() {
        let mut familiar = Familiar::default();
        assert_eq!(familiar.checked_length(&[0; HEADER]), checked_length(&[0; HEADER]));
        for length in [7, 7, 1 << 40, 7] {
            assert_eq!(familiar.checked_length(&header(length)), Some(length));
            let mut wrong = header(length);
            wrong[0] ^= 1;
            assert_eq!(familiar.checked_length(&wrong), None);
        }
    }

    proptest! {
        #[test]
        fn a_header_states_its_length(length: u64) {
            prop_assert_eq!(checked_length(&header(length)), Some(length));
        }

        #[test]
        fn a_changed_byte_of_a_header_is_noticed(length: u64, at in 0..HEADER, flip in 1..=255u8) {
            let mut bytes = header(length);
            bytes[at] ^= flip;
            prop_assert_eq!(checked_length(&bytes), None);
        }

        #[test]
        fn a_changed_byte_of_the_length_can_be_undone(length in 0..1u64 << 40, at in 0..8usize, flip in 1..=255u8) {
            let mut bytes = header(length);
            bytes[at] ^= flip;
            prop_assert_eq!(corrected_length(&bytes), Some(length));
        }

        #[test]
        fn a_changed_byte_of_the_data_is_noticed(data: Vec<u8>, at: usize, flip in 1..=255u8) {
            let mut bytes = data.clone();
            bytes.extend(footer(&data));
            prop_assert_eq!(checked_data(&bytes), Ok(&data[..]));
            let at = at % bytes.len();
            bytes[at] ^= flip;
            prop_assert!(checked_data(&bytes).is_err());
        }
    }
}
