//! Small records from all over the files, many at a time.

use super::{Batch, Gather, Place, Workspace};
use crate::error::Result;
use crate::scattered::{MOST_STRETCHES, ROOM_BYTES, Stretches};

/// Larger ones are worth a read of their own.
const SMALL: u64 = 16 << 10;

/// How many of the places ahead can be brought together at once.
pub(super) fn group_length(places: &[Place]) -> usize {
    let mut room = ROOM_BYTES as u64;
    let fits = |place: &&Place| {
        let bytes = place.extent.bytes();
        let fits = place.held_at.is_none() && bytes <= SMALL.min(room);
        room = room.saturating_sub(bytes);
        fits
    };
    places.iter().take(MOST_STRETCHES).take_while(fits).count()
}

impl Gather {
    /// Decode some records that are brought together by one call. `false`, and nothing done, if they cannot be.
    pub(super) fn add_scattered(
        &self,
        group: &[Place],
        batch: &mut Batch,
        space: &mut Workspace,
    ) -> Result<bool> {
        let Workspace { files, together, decoder, familiar, pace, .. } = space;
        let mut stretches = Stretches::of(&self.files.maps, group.len());
        for place in group {
            let file = files.get(&self.files, place.shard)?;
            if stretches.add(place.shard, file, place.extent.offset, bytes_of(place)).is_none() {
                return Ok(false);
            }
        }
        let bytes = group.iter().map(bytes_of).sum();
        let Some(mut frames) = pace.timed(group.len(), bytes, || together.brought_together(&stretches))
        else {
            return Ok(false);
        };
        for place in group {
            let (frame, behind) = frames.split_at(bytes_of(place));
            self.add_frame(place, frame, batch, decoder, familiar)?;
            frames = behind;
        }
        Ok(true)
    }
}

fn bytes_of(place: &Place) -> usize {
    place.extent.bytes() as usize
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::buffer::Pool;
    use crate::error::Error;
    use crate::files::{self, Files};
    use crate::frame;
    use crate::gather::pace::Pace;
    use crate::gather::{Job, OnCorrupt};
    use crate::index::Extent;

    const COUNT: u64 = 1000;

    fn record(number: u64) -> Vec<u8> {
        (0..number % 97).map(|at| (at * 31 + number) as u8).collect()
    }

    fn framed(number: u64) -> Vec<u8> {
        let data = record(number);
        [&frame::header(data.len() as u64)[..], &data, &frame::footer(&data)].concat()
    }

    /// A shard of records, where each lies, and how it is read.
    fn shard(path: &Path, on_corrupt: OnCorrupt) -> (Vec<Place>, Gather) {
        let frames: Vec<_> = (0..COUNT).map(framed).collect();
        std::fs::write(path, frames.concat()).unwrap();
        let mut offset = 0;
        let places = frames.iter().zip(0..).map(|(frame, number)| {
            let extent = Extent { offset, end: offset + frame.len() as u64 };
            offset = extent.end;
            Place { number, position: number, shard: 0, extent, held_at: None }
        });
        let places = places.collect();
        let (_, identity) = files::open(path).unwrap();
        let files = Arc::new(Files::new([(path.to_path_buf(), identity)], 4));
        let (pool, room) = (Pool::new(1 << 20), Arc::default());
        (places, Gather { files, schema: None, on_corrupt, pool, fetch_bytes: 0, warmer: None, room })
    }

    /// From all over the file, no two of them neighbours.
    fn scattered(places: &[Place]) -> Job {
        let places = (0..COUNT).map(|at| places[(at * 379 % COUNT) as usize]).collect();
        Job { places, ..Job::default() }
    }

    fn trusting() -> Workspace {
        Workspace { pace: Pace::warm(), ..Workspace::default() }
    }

    #[test]
    fn records_brought_together_are_those_read_one_by_one() {
        let folder = tempfile::tempdir().unwrap();
        let (places, gather) = shard(&folder.path().join("a"), OnCorrupt::Raise);
        let mut space = trusting();
        let together = gather.batch(scattered(&places), &mut space).unwrap();
        assert!(space.block.is_empty(), "something was read on its own");
        let one_by_one = gather.batch(scattered(&places), &mut Workspace::default()).unwrap();
        let expected: Vec<u8> = (0..COUNT).flat_map(|at| record(at * 379 % COUNT)).collect();
        assert_eq!(together.columns[0].values.as_slice(), expected);
        assert_eq!(one_by_one.columns[0].values.as_slice(), expected);
        assert_eq!(together.numbers.as_slice(), one_by_one.numbers.as_slice());
    }

    #[test]
    fn only_the_damaged_one_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let (places, gather) = shard(&path, OnCorrupt::Skip);
        let mut bytes = std::fs::read(&path).unwrap();
        let hit = places[500].extent;
        bytes[hit.offset as usize + frame::HEADER] ^= 1;
        let meta = std::fs::metadata(&path).unwrap();
        std::fs::write(&path, bytes).unwrap();
        std::fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(meta.modified().unwrap())
            .unwrap();
        let batch = gather.batch(scattered(&places), &mut trusting()).unwrap();
        assert_eq!((batch.rows, batch.damaged.len()), (999, 1));
        assert_eq!((batch.damaged[0].offset, batch.damaged[0].length), (hit.offset, hit.bytes()));
    }

    #[test]
    fn a_shard_that_was_cut_is_an_error_and_not_a_signal() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let (places, gather) = shard(&path, OnCorrupt::Skip);
        let mut space = trusting();
        gather.batch(scattered(&places), &mut space).unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_len(100).unwrap();
        let outcome = gather.batch(scattered(&places), &mut space);
        assert!(matches!(outcome, Err(Error::Changed { .. })), "{outcome:?}");
    }
}
