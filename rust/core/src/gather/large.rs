//! Records with one large value, an image say: read so that it comes to lie in its row.

use super::{Batch, Gather, Place, Workspace, checked};
use crate::column::SPILL;
use crate::decode::{Fault, RawPlace};
use crate::error::Result;
use crate::files;
use crate::frame::{self, HEADER};
use crate::schema::Schema;

/// Where the large value of a record lies, and how long such a record is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    frame_bytes: usize,
    place: RawPlace,
}

impl Gather {
    /// One record with a large value: read into place if its layout was guessed right.
    pub(super) fn add_large(
        &self,
        schema: &Schema,
        field: usize,
        place: &Place,
        batch: &mut Batch,
        space: &mut Workspace,
    ) -> Result<()> {
        let before = batch.rows;
        if self.add_in_place(schema, place, batch, space)? {
            return Ok(());
        }
        self.add_run(place, &[*place], &[], batch, space)?;
        let frame_bytes = usize::try_from(place.extent.bytes()).unwrap_or(usize::MAX);
        let data = space.block.get(HEADER..frame_bytes.saturating_sub(frame::FOOTER)).unwrap_or_default();
        space.layout = (batch.rows > before)
            .then(|| space.decoder.place_of_raw(schema, data, field))
            .flatten()
            .map(|place| Layout { frame_bytes, place });
        Ok(())
    }

    /// Read a record so that its large value comes to lie where it belongs: what stands before the
    /// value runs over the end of the row before, which is put right afterwards. Saves a copy of
    /// nearly all bytes. `false`: not possible here, nothing changed.
    fn add_in_place(
        &self,
        schema: &Schema,
        place: &Place,
        batch: &mut Batch,
        space: &mut Workspace,
    ) -> Result<bool> {
        let Some(Layout { frame_bytes, place: there }) = space.layout else { return Ok(false) };
        let Some(column) = batch.columns.get_mut(there.field) else { return Ok(false) };
        let item_bytes = schema.fields[there.field].item_bytes();
        let (row, lead) = (column.values.len(), HEADER + there.at);
        let trail = frame_bytes.saturating_sub(lead + item_bytes);
        if place.extent.bytes() != frame_bytes as u64 || row < lead || trail > SPILL {
            return Ok(false);
        }
        let mut values = std::mem::take(&mut column.values);
        let kept = values.as_slice()[row - lead..].to_vec();
        let frame = values.memory(row - lead, frame_bytes);
        let Workspace { files: at_hand, pace, .. } = space;
        let read = at_hand.get(&self.files, place.shard).and_then(|file| {
            let (path, offset) = (self.path(place), place.extent.offset);
            pace.timed(1, frame_bytes, || files::read_at(file, path, frame, offset))
        });
        let decoded = read.map(|()| {
            let data = checked(frame, &mut space.familiar).map_err(|reason| reason.to_string())?;
            Ok(space.decoder.decode_around(schema, data, &mut batch.columns, batch.rows, Some(there)))
        });
        values.memory(row - lead, lead).copy_from_slice(&kept);
        if matches!(decoded, Ok(Ok(Ok(())))) {
            values.grow_to(row + item_bytes);
        }
        batch.columns[there.field].values = values;
        match decoded? {
            Ok(Err(Fault::Moved)) => Ok(false),
            Ok(outcome) => self.settle(place, outcome, batch).map(|()| true),
            Err(reason) => self.damaged(place, reason, batch).map(|()| true),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::buffer::Pool;
    use crate::encode::{self, Values};
    use crate::example::Level;
    use crate::files::{self, Files};
    use crate::frame;
    use crate::gather::{Gather, Job, KEPT_BLOCK_BYTES, OnCorrupt, Place, Workspace};
    use crate::index::Extent;
    use crate::schema::{Dtype, Fallback, Field, Form, LARGE, Schema};

    fn image(number: u8) -> Vec<u8> {
        (0..LARGE).map(|at| (at % 251) as u8 ^ number).collect()
    }

    fn framed(number: u8) -> Vec<u8> {
        let values = [Values::Strings(vec![image(number)]), Values::Ints(vec![i64::from(number)])];
        let data = encode::example(["image", "label"].into_iter().zip(&values));
        [&frame::header(data.len() as u64)[..], &data, &frame::footer(&data)].concat()
    }

    fn field(key: &str, form: Form, dtype: Dtype, count: usize) -> Field {
        let (level, default) = (Level::Context, Fallback::None);
        Field { key: key.into(), level, form, dtype, count, default, required: true }
    }

    #[test]
    fn memory_for_a_very_large_record_is_not_kept() {
        let data = vec![1; KEPT_BLOCK_BYTES];
        let frame = [&frame::header(data.len() as u64)[..], &data, &frame::footer(&data)].concat();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tfrecord");
        std::fs::write(&path, &frame).unwrap();
        let (_, identity) = files::open(&path).unwrap();
        let gather = Gather {
            files: Arc::new(Files::new([(path, identity)], 4)),
            schema: None,
            on_corrupt: OnCorrupt::Raise,
            pool: Pool::new(0),
            fetch_bytes: 0,
            warmer: None,
            room: Arc::default(),
        };
        let extent = Extent { offset: 0, end: frame.len() as u64 };
        let place = Place { number: 0, position: 0, shard: 0, extent, held_at: None };
        let mut space = Workspace::default();
        let batch = gather.batch(Job { places: vec![place], ..Job::default() }, &mut space).unwrap();
        assert_eq!((batch.rows, space.block.capacity()), (1, 0));
    }

    #[test]
    fn only_the_first_record_is_copied() {
        let frames: Vec<Vec<u8>> = (0..20).map(framed).collect();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tfrecord");
        std::fs::write(&path, frames.concat()).unwrap();
        let (_, identity) = files::open(&path).unwrap();
        let fields = vec![
            field("image", Form::Raw, Dtype::Uint8, LARGE),
            field("label", Form::Dense, Dtype::Int64, 1),
        ];
        let gather = Gather {
            files: Arc::new(Files::new([(path, identity)], 4)),
            schema: Some(Arc::new(Schema::new(fields).unwrap())),
            on_corrupt: OnCorrupt::Raise,
            pool: Pool::new(1 << 20),
            fetch_bytes: 0,
            warmer: None,
            room: Arc::default(),
        };
        let size = frames[0].len() as u64;
        let place = |number: u64| {
            let extent = Extent { offset: number * size, end: (number + 1) * size };
            Place { number, position: number, shard: 0, extent, held_at: None }
        };
        // every other one, so that no two are neighbours
        let job = Job { places: (0..20).step_by(2).map(place).collect(), ..Job::default() };
        let mut space = Workspace::default();
        let batch = gather.batch(job, &mut space).unwrap();

        let expected: Vec<u8> = (0..20).step_by(2).flat_map(image).collect();
        assert_eq!(batch.columns[0].values.as_slice(), expected);
        assert_eq!((batch.rows, batch.columns[1].values.i64_at(9)), (10, 18));
        assert_eq!(space.block, frames[0]);
    }
}
