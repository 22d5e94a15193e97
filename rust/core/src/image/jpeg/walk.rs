//! The blocks of a scan, one after the other, with their bits.

use super::bits::{Bits, Entropy};
use super::frame::{Frame, Scan, Tables};
use super::huffman::Table;
use super::part::Part;
use crate::image::{Read, Unreadable};

/// One block of an MCU: whose it is, where in the MCU it lies, and the tables it is written with.
pub struct Unit<'a> {
    pub part: usize,
    pub dc: &'a Table,
    pub ac: &'a Table,
    /// Blocks of the part that an MCU has across and down, and which of them this one is.
    h: usize,
    v: usize,
    across: usize,
    down: usize,
}

/// What becomes of the blocks.
pub trait Blocks {
    /// Whether the scan can be read with these tables.
    fn check(&self, dc: &Table, ac: &Table) -> Read<()>;

    /// What was remembered from block to block starts again.
    fn restart(&mut self);

    /// Read the block in a column and a row of its part. `None`: its bits are no code.
    fn read(
        &mut self,
        bits: &mut Bits<'_>,
        unit: &Unit<'_>,
        part: &mut Part,
        place: (usize, usize),
    ) -> Option<()>;
}

#[inline(always)]
pub fn walk(
    frame: &Frame,
    scan: &Scan,
    tables: &Tables,
    entropy: &Entropy,
    parts: &mut [Part; 4],
    blocks: &mut impl Blocks,
) -> Read<()> {
    let units = units(frame, scan, tables);
    units.iter().try_for_each(|unit| blocks.check(unit.dc, unit.ac))?;
    let (across, down) = match scan.components[..] {
        [(alone, ..)] => frame.blocks(&frame.components[alone]),
        _ => frame.mcus(),
    };
    let interval = if tables.restart > 0 { tables.restart } else { usize::MAX };
    let (mut stretch, mut left) = (0, interval);
    let mut bits = entropy.stretch(0).ok_or("there is no image data")?;
    for row in 0..down {
        for column in 0..across {
            if left == 0 {
                stretch += 1;
                let next = if bits.overrun() { None } else { entropy.stretch(stretch) };
                bits = next.ok_or_else(|| cut_short(row, down))?;
                left = interval;
                blocks.restart();
            }
            left -= 1;
            for unit in &units {
                let place = (column * unit.h + unit.across, row * unit.v + unit.down);
                let read = blocks.read(&mut bits, unit, &mut parts[unit.part & 3], place);
                read.ok_or_else(|| damaged(row, down))?;
            }
        }
        if bits.overrun() {
            return Err(cut_short(row, down));
        }
    }
    Ok(())
}

fn units<'a>(frame: &Frame, scan: &Scan, tables: &'a Tables) -> Vec<Unit<'a>> {
    let of = |(part, dc, ac): &(usize, usize, usize)| {
        let (part, dc, ac) = (*part, &tables.dc[*dc & 3], &tables.ac[*ac & 3]);
        let component = &frame.components[part];
        let (h, v) = if scan.components.len() > 1 { (component.h, component.v) } else { (1, 1) };
        (0..h * v).map(move |at| Unit { part, dc, ac, h, v, across: at % h, down: at / h })
    };
    scan.components.iter().flat_map(of).collect()
}

#[cold]
fn cut_short(row: usize, rows: usize) -> Unreadable {
    format!("its data ends in row {} of {rows} rows of blocks", row + 1).into()
}

#[cold]
fn damaged(row: usize, rows: usize) -> Unreadable {
    format!("its data holds an impossible code in row {} of {rows} rows of blocks", row + 1).into()
}
