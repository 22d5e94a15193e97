//! Where jobs meet what was read for them, and what all of that holds.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

use super::group::Group;
use crate::engine::Aside;

#[derive(Debug)]
pub(super) struct Ready {
    most_bytes: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// By their first jobs, groups for which nothing more is to be read, and how many of their jobs nobody has
    /// taken.
    groups: BTreeMap<u64, (Arc<Group>, usize)>,
    /// The first job that is in none of those groups so far.
    reached: u64,
    held_bytes: usize,
    /// Complete groups that somebody still holds.
    handed_over: usize,
    /// No more groups will come.
    ended: bool,
}

impl Ready {
    /// Nothing yet, of what may never hold more than `most_bytes`.
    pub fn new(most_bytes: usize) -> Arc<Self> {
        Arc::new(Ready { most_bytes, state: Mutex::default(), changed: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wait for the group that a job is in; `None` if none will come.
    pub fn group_of(&self, number: u64) -> Option<Arc<Group>> {
        let waits = |state: &mut State| !state.ended && state.reached <= number;
        let mut state = self.changed.wait_while(self.lock(), waits).unwrap_or_else(PoisonError::into_inner);
        let (first, (group, left)) = state.groups.range_mut(..=number).next_back()?;
        let (first, group) = (*first, group.has(number).then(|| Arc::clone(group))?);
        *left -= 1;
        if *left == 0 {
            state.groups.remove(&first);
        }
        Some(group)
    }

    pub fn put(&self, mut group: Group) {
        group.hand_over();
        let (first, jobs) = (group.first_job(), group.jobs());
        let mut state = self.lock();
        state.reached = first + jobs as u64;
        state.groups.insert(first, (Arc::new(group), jobs));
        drop(state);
        self.changed.notify_all();
    }

    /// Take room for so many bytes, or for as many as there are: when there is no more to wait for.
    pub fn room_for(&self, bytes: usize) -> usize {
        let left = |state: &State| self.most_bytes.saturating_sub(state.held_bytes);
        let waits = |state: &mut State| !state.ended && state.handed_over > 0 && left(state) < bytes;
        let mut state = self.changed.wait_while(self.lock(), waits).unwrap_or_else(PoisonError::into_inner);
        let room = bytes.min(left(&state));
        state.held_bytes += room;
        room
    }

    pub fn give_back(&self, bytes: usize) {
        self.lock().held_bytes -= bytes;
        self.changed.notify_all();
    }

    pub fn is_ended(&self) -> bool {
        self.lock().ended
    }

    pub fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_all();
    }
}

impl Aside for Ready {
    fn stop(&self) {
        self.end();
    }

    fn held_bytes(&self) -> usize {
        self.lock().held_bytes
    }
}

/// What a group holds of the room that was taken; given back with it.
#[derive(Debug)]
pub(super) struct Lease {
    bytes: usize,
    is_handed_over: bool,
    /// Not kept alive: it holds groups itself.
    of: Weak<Ready>,
}

impl Lease {
    pub fn new(of: &Arc<Ready>) -> Self {
        Lease { bytes: 0, is_handed_over: false, of: Arc::downgrade(of) }
    }

    /// So much of the room that was taken is this one's.
    pub fn add(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// From now on it is up to others when this ends.
    pub fn hand_over(&mut self) {
        self.is_handed_over = true;
        self.of.upgrade().iter().for_each(|ready| ready.lock().handed_over += 1);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(ready) = self.of.upgrade() else { return };
        ready.lock().handed_over -= usize::from(self.is_handed_over);
        ready.give_back(self.bytes);
    }
}
