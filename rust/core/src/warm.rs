//! All of the data into the page cache, once storage turns out to be slow and all will be needed.
//!
//! Records in random order are slow to come one by one. Where the page cache has room for all of them, the
//! fastest way to any order is the files from end to end, beside what is asked for at the moment.

use std::collections::VecDeque;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use crate::files::{self, Files};

/// What is asked for at a time.
const STEP_BYTES: u64 = 512 << 10;
/// Steps asked for that did not come yet: more would keep others waiting who need a record now.
const IN_FLIGHT: usize = 64;

#[derive(Debug)]
pub struct Warmer {
    files: Arc<Files>,
    stop: Arc<AtomicBool>,
    begun: AtomicBool,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Warmer {
    pub fn new(files: Arc<Files>) -> Self {
        let (stop, begun) = (Arc::default(), AtomicBool::new(false));
        Warmer { files, stop, begun, thread: Mutex::default() }
    }

    /// Somebody had to wait for storage. What is brought in stays, so this is done once.
    pub fn begin(&self) {
        if self.begun.swap(true, Ordering::Relaxed) {
            return;
        }
        let (files, stop) = (Arc::clone(&self.files), Arc::clone(&self.stop));
        let thread = thread::Builder::new().name("anybatch-warm".into()).spawn(move || bring(&files, &stop));
        // without it, records come one by one
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = thread.ok();
    }
}

impl Drop for Warmer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let _ = thread.map(JoinHandle::join);
    }
}

fn bring(files: &Files, stop: &AtomicBool) {
    let steps = (0..files.count()).flat_map(|shard| {
        (0..files.size(shard)).step_by(STEP_BYTES as usize).map(move |offset| (shard, offset))
    });
    let mut asked = VecDeque::with_capacity(IN_FLIGHT);
    for (shard, offset) in steps {
        let Ok(file) = files.get(shard) else { return };
        files::fetch_ahead(&file, offset, STEP_BYTES);
        asked.push_back((file, offset));
        if asked.len() == IN_FLIGHT
            && let Some((file, offset)) = asked.pop_front()
        {
            // whoever reads a byte of it waits until it is there
            let _ = file.read_at(&mut [0], offset);
        }
        if stop.load(Ordering::Relaxed) {
            return;
        }
    }
}
