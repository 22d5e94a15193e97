//! Records of many batches at a time, brought past the page cache before anybody asks for them.
//!
//! Where the page cache holds only a part of the data, exactly shuffled records cost a read each, and nearly
//! all that is read is thrown away. But the order is known, so the records of as many batches as memory allows
//! are looked up ahead. Small ones are read in rounds over the files, large ones each by a read of its own.
//!
//! A sweep promises nothing: whatever it could not fetch is read one by one, by whoever finds it missing.

use std::sync::Arc;

use crate::engine::Source;
use crate::files::Files;
use crate::source::Ordered;

mod apart;
mod broom;
mod group;
mod ready;
mod rounds;
mod sections;
mod shares;
#[cfg(test)]
mod tests;
mod turns;

pub use shares::{Manner, Shares};

/// The jobs of an order, most of them with their records' bytes.
pub fn swept(order: Ordered, files: Arc<Files>, shares: Shares) -> Box<dyn Source> {
    match shares.manner {
        Manner::Apart { sweep_bytes } => Box::new(turns::InTurns::new(order, files, sweep_bytes)),
        Manner::InRounds { held_bytes, joining_bytes } => {
            Box::new(rounds::InRounds::new(order, files, held_bytes, joining_bytes))
        }
    }
}
