//! A condition that threads wait for under one lock. Calling costs nothing while nobody waits.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, MutexGuard, PoisonError};
use std::time::Duration;

/// A condition variable that knows whether anybody waits: the standard one asks the kernel at every call.
///
/// Whoever waits counts itself before it lets go of the lock, and whoever calls has changed something under the
/// same lock before. So a caller that counts nobody has nobody to wake.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    condition: Condvar,
    waiting: AtomicUsize,
}

impl Signal {
    /// Wait as long as `waits` says so.
    pub fn wait_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut waits: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        if !waits(&mut guard) {
            return guard;
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let guard = self.condition.wait_while(guard, waits).unwrap_or_else(PoisonError::into_inner);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        guard
    }

    /// Wait as long as `waits` says so, and no longer than `patience`.
    pub fn wait_while_for<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        patience: Duration,
        mut waits: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        if !waits(&mut guard) {
            return guard;
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let waited = self.condition.wait_timeout_while(guard, patience, waits);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    pub fn call_one(&self) {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.condition.notify_one();
        }
    }

    pub fn call_all(&self) {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.condition.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::thread;

    use super::*;

    #[test]
    fn nobody_sleeps_through_a_call() {
        const TURNS: u64 = 20_000;
        let (count, changed) = (Mutex::new(0_u64), Signal::default());
        let advance_when = |parity: u64| {
            for _ in 0..TURNS {
                let mut turn = changed.wait_while(count.lock().unwrap(), |count| *count % 2 != parity);
                *turn += 1;
                drop(turn);
                changed.call_all();
            }
        };
        thread::scope(|scope| {
            scope.spawn(|| advance_when(0));
            scope.spawn(|| advance_when(1));
        });
        assert_eq!(*count.lock().unwrap(), 2 * TURNS);
    }

    #[test]
    fn patience_ends() {
        let (never, changed) = (Mutex::new(()), Signal::default());
        drop(changed.wait_while_for(never.lock().unwrap(), Duration::from_millis(1), |()| true));
        assert_eq!(changed.waiting.load(Ordering::Relaxed), 0);
    }
}
