//! Finding the next whole record behind a damaged one.
//!
//! A record is taken up again only where both of its CRCs are right. Frames can also lie inside a
//! record's data (a bytes feature that holds a TFRecord file); those are not ours. So inside a
//! damaged record whose end is known, a find counts only if the records that start there lead to
//! where the damaged one ends, or on past it: frames that are mere data stop before, for behind them
//! comes at least the damaged record's own checksum.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::crc;
use crate::error::Result;
use crate::frame::{self, FOOTER, HEADER, OVERHEAD};
use crate::window::Window;

const STEP: usize = 64 << 10;
const CHECK_STEP: usize = 1 << 20;

/// What searching may cost: a file made of nothing but plausible headers must not take for ever.
#[derive(Debug)]
pub struct Effort {
    left: u64,
    stop: Arc<AtomicBool>,
    /// What trying damaged headers may cost, apart: without it the search still goes on.
    for_guesses: u64,
}

impl Effort {
    const PER_BYTE: u64 = 16;
    const AT_LEAST: u64 = 1 << 30;

    pub fn for_file(file_bytes: u64) -> Self {
        Self::of(file_bytes.saturating_mul(Self::PER_BYTE).max(Self::AT_LEAST))
    }

    fn of(bytes: u64) -> Self {
        Effort { left: bytes, for_guesses: bytes, stop: Arc::default() }
    }

    /// Make none any more once this is set.
    pub fn stop_when(&mut self, stop: Arc<AtomicBool>) {
        self.stop = stop;
    }

    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn spend(&mut self, bytes: u64) -> bool {
        self.left = self.left.saturating_sub(bytes);
        self.left > 0 && !self.stopped()
    }

    /// Whether a guess that costs so much can be tried; one that is too dear leaves the rest to cheaper ones.
    fn guess(&mut self, bytes: u64) -> bool {
        let rest = self.for_guesses.checked_sub(bytes);
        self.for_guesses = rest.unwrap_or(self.for_guesses);
        rest.is_some()
    }

    pub fn exhausted(&self) -> bool {
        self.left == 0
    }
}

/// The length in the header at `at`, if its CRC is right and so many bytes can be there.
pub fn header_at(window: &mut dyn Window, at: u64, ahead: usize) -> Result<Option<u64>> {
    let largest = window.largest_record(at);
    let Ok(header) = window.view(at, HEADER, ahead)?.try_into() else {
        return Ok(None);
    };
    Ok(frame::checked_length(&header).filter(|length| *length <= largest))
}

type Verdict = std::result::Result<(), frame::Mismatch>;

/// Whether the data's CRC is right, read piece by piece; `None` if the stream ends before.
pub fn data_at(window: &mut dyn Window, at: u64, length: u64, ahead: usize) -> Result<Option<Verdict>> {
    let (mut from, end) = (at + HEADER as u64, at + HEADER as u64 + length);
    let mut computed = 0;
    while from < end {
        let want = usize::try_from(end - from).unwrap_or(CHECK_STEP).min(CHECK_STEP);
        let piece = window.view(from, want, ahead)?;
        if piece.len() < want {
            return Ok(None);
        }
        computed = crc32c::crc32c_append(computed, piece);
        from += want as u64;
    }
    let Ok(footer) = <[u8; FOOTER]>::try_from(window.view(end, FOOTER, ahead)?) else {
        return Ok(None);
    };
    let (stored, computed) = (u32::from_le_bytes(footer), crc::mask(computed));
    Ok(Some(if stored == computed { Ok(()) } else { Err(frame::Mismatch { stored, computed }) }))
}

/// Where the whole record at `at` ends, if there is one.
fn whole_record(window: &mut dyn Window, at: u64, effort: &mut Effort) -> Result<Option<u64>> {
    let Some(length) = header_at(window, at, 0)? else {
        return Ok(None);
    };
    if !effort.spend(OVERHEAD + length) {
        return Ok(None);
    }
    let whole = matches!(data_at(window, at, length, 0)?, Some(Ok(())));
    Ok(whole.then_some(at + OVERHEAD + length))
}

/// The first position in `from..to` where a whole record starts. What was passed stays in view only
/// if the caller may have to go back.
fn next_record(
    window: &mut dyn Window,
    from: u64,
    to: u64,
    goes_back: bool,
    effort: &mut Effort,
) -> Result<Option<u64>> {
    let mut at = from;
    while at < to && effort.spend(1) {
        let largest = window.largest_record(at);
        let bytes = window.view(at, STEP + HEADER - 1, STEP)?;
        let Some(found) = bytes.windows(HEADER).position(|header| plausible(header, largest)) else {
            if bytes.len() < STEP + HEADER - 1 {
                return Ok(None);
            }
            at += STEP as u64;
            if !goes_back {
                window.forget(at);
            }
            continue;
        };
        at += found as u64;
        if at < to && whole_record(window, at, effort)?.is_some() {
            return Ok(Some(at));
        }
        at += 1;
    }
    Ok(None)
}

/// The comparison comes first: of random bytes hardly any make a small number.
fn plausible(header: &[u8], largest: u64) -> bool {
    let Ok(header) = header.try_into() else {
        return false;
    };
    frame::claimed_length(&header) <= largest && frame::checked_length(&header).is_some()
}

/// Follow records from `at` until `end` is reached or passed, or they stop. One that is damaged but has
/// a known end does not stop them: a second wound must not hide the records before it.
fn follow(window: &mut dyn Window, at: u64, end: u64, effort: &mut Effort) -> Result<u64> {
    let mut at = at;
    while at < end && !effort.exhausted() && !effort.stopped() {
        let next = match whole_record(window, at, effort)? {
            None => delimited_record(window, at, effort)?,
            whole => whole,
        };
        match next {
            Some(next) => at = next,
            None => break,
        }
    }
    Ok(at)
}

/// Where a damaged record ends: its header is right, or can be put right, and leads to another header.
fn delimited_record(window: &mut dyn Window, at: u64, effort: &mut Effort) -> Result<Option<u64>> {
    if let Some(length) = header_at(window, at, 0)? {
        let end = at + OVERHEAD + length;
        let leads_on = window.view(end, 1, 0)?.is_empty() || header_at(window, end, 0)?.is_some();
        return Ok(leads_on.then_some(end));
    }
    end_by_correction(window, at, effort)
}

/// Where to go on inside a record whose header is right and whose data is not: the length may lie,
/// or bytes may be missing. `None`: the record is what its header says, only damaged or cut short.
pub fn inside(window: &mut dyn Window, at: u64, end: u64, effort: &mut Effort) -> Result<Option<u64>> {
    let mut from = at + 1;
    while let Some(found) = next_record(window, from, end, true, effort)? {
        let reached = follow(window, found, end, effort)?;
        if reached >= end {
            return Ok(Some(found));
        }
        from = reached.max(found + 1);
    }
    Ok(None)
}

/// Where to go on behind a header that is damaged or lies; `None`: nowhere before `to`.
pub fn after_bad_header(
    window: &mut dyn Window,
    at: u64,
    to: u64,
    effort: &mut Effort,
) -> Result<Option<u64>> {
    if let Some(end) = end_by_correction(window, at, effort)? {
        return Ok(Some(end));
    }
    next_record(window, at + 1, to, false, effort)
}

/// Where a record ends whose header has one wrong byte, confirmed by its data.
fn end_by_correction(window: &mut dyn Window, at: u64, effort: &mut Effort) -> Result<Option<u64>> {
    let largest = window.largest_record(at);
    let Ok(header) = window.view(at, HEADER, 0)?.try_into() else {
        return Ok(None);
    };
    // a correction is nearly always right; a claim that is wrong costs all the bytes it claims
    let guesses = [frame::corrected_length(&header), Some(frame::claimed_length(&header))];
    for length in guesses.into_iter().flatten().filter(|length| *length <= largest) {
        if effort.guess(OVERHEAD + length) && matches!(data_at(window, at, length, 0)?, Some(Ok(()))) {
            return Ok(Some(at + OVERHEAD + length));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes in memory that count how many of them are looked at, but for those passed in order.
    struct Counted {
        bytes: Vec<u8>,
        viewed: u64,
    }

    impl Window for Counted {
        fn view(&mut self, offset: u64, want: usize, ahead: usize) -> Result<&[u8]> {
            let from = usize::try_from(offset).unwrap().min(self.bytes.len());
            let view = &self.bytes[from..from.saturating_add(want).min(self.bytes.len())];
            self.viewed += if ahead == 0 { view.len() as u64 } else { 0 };
            Ok(view)
        }

        fn forget(&mut self, _before: u64) {}

        fn end(&self) -> Option<u64> {
            Some(self.bytes.len() as u64)
        }

        fn file_position(&self, offset: u64) -> u64 {
            offset
        }

        fn largest_record(&self, offset: u64) -> u64 {
            (self.bytes.len() as u64).saturating_sub(offset + OVERHEAD)
        }
    }

    /// Empty records, each behind a damaged header that claims everything up to the end.
    fn claims_to_the_end(count: u64) -> Vec<u8> {
        let empty = [&frame::header(0)[..], &frame::footer(b"")].concat();
        let each = HEADER as u64 + OVERHEAD;
        let claim = |n: u64| (count - n) * each - OVERHEAD;
        let one = |n| [&claim(n).to_le_bytes()[..], &[0xde, 0xad, 0xbe, 0xef], &empty].concat();
        (0..count).flat_map(one).collect()
    }

    #[test]
    fn damaged_headers_that_claim_all_the_rest_cost_bounded_effort_and_no_record() {
        let count = 2000;
        let mut window = Counted { bytes: claims_to_the_end(count), viewed: 0 };
        let size = window.bytes.len() as u64;
        let mut effort = Effort::of(16 * size);
        let (mut at, mut found) = (0, 0);
        while let Some(next) = after_bad_header(&mut window, at, u64::MAX, &mut effort).unwrap() {
            let length = header_at(&mut window, next, 0).unwrap();
            assert_eq!((next, length), (at + HEADER as u64, Some(0)));
            (at, found) = (next + OVERHEAD, found + 1);
        }
        assert_eq!(found, count);
        assert!(window.viewed < 20 * size, "{} of {size} bytes", window.viewed);
    }

    #[test]
    fn records_that_lead_nowhere_are_not_followed_for_ever() {
        let empty = [&frame::header(0)[..], &frame::footer(b"")].concat();
        let mut window = Counted { bytes: empty.repeat(1000), viewed: 0 };
        let mut effort = Effort::of(100 * OVERHEAD);
        let reached = follow(&mut window, 0, u64::MAX, &mut effort).unwrap();
        assert!(effort.exhausted() && reached < 101 * OVERHEAD, "{reached}");
    }
}
