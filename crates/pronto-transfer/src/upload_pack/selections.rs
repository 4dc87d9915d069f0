//! Shares selections of objects between equal requests, while one of them runs.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use pronto_io::interrupt::Interrupt;
use pronto_storage::pack_objects::SelectedObjects;

use super::cache::SentPackKey;
use crate::Result;
use crate::interrupted;

/// The interval in which a waiting request checks for an interrupt.
const LOOK: Duration = Duration::from_millis(50);

/// The selections of the running requests, shared by all requests of a server. `Send + Sync`.
///
/// The objects of a key never change, so that a selection is valid for all equal requests. A table
/// entry does not keep a selection alive, nor the packs that it has opened: they are released after
/// the last request that uses them.
#[derive(Debug, Default)]
pub struct Selections {
    by_key: Mutex<HashMap<SentPackKey, Weak<SharedSelection>>>,
}

/// A selection, shared by the requests that use it or wait for it.
#[derive(Debug, Default)]
struct SharedSelection {
    state: Mutex<SelectionState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
enum SelectionState {
    /// The next request makes the selection.
    #[default]
    Free,
    /// A request is making the selection.
    Begun,
    Made(Arc<SelectedObjects>),
}

/// Guards the making of a selection. If the value is dropped without a selection, another request
/// makes it.
struct Making<'a>(&'a SharedSelection);

/// The selection of a request, which other requests may share while the value exists.
#[derive(Debug)]
pub(super) struct SelectionHandle {
    pub(super) selection: Arc<SelectedObjects>,
    /// Keeps the table entry alive.
    _shared: Option<Arc<SharedSelection>>,
}

impl SelectionHandle {
    /// Returns a selection that is not shared.
    pub(super) fn alone(selection: SelectedObjects) -> SelectionHandle {
        SelectionHandle {
            selection: Arc::new(selection),
            _shared: None,
        }
    }
}

impl Selections {
    /// Returns the selection of `key`. Calls `make` unless another request has made the selection.
    /// Waits while another request makes it; if that request fails, the next one tries.
    ///
    /// # Errors
    /// Fails with the errors of `make`, or if `interrupt` is triggered.
    pub(super) fn get(
        &self,
        key: &SentPackKey,
        make: impl FnOnce() -> Result<SelectedObjects>,
        interrupt: &Interrupt,
    ) -> Result<SelectionHandle> {
        let shared = self.join(key);
        let mut state = lock(&shared.state);
        loop {
            match &*state {
                SelectionState::Made(selection) => {
                    let selection = Arc::clone(selection);
                    drop(state);
                    return Ok(SelectionHandle {
                        selection,
                        _shared: Some(shared),
                    });
                }
                SelectionState::Begun => {
                    interrupt.check().map_err(interrupted)?;
                    let waited = shared.changed.wait_timeout(state, LOOK);
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                SelectionState::Free => break,
            }
        }
        *state = SelectionState::Begun;
        drop(state);
        let making = Making(&shared);
        let selection = Arc::new(make()?);
        *lock(&shared.state) = SelectionState::Made(Arc::clone(&selection));
        drop(making);
        Ok(SelectionHandle {
            selection,
            _shared: Some(shared),
        })
    }

    fn join(&self, key: &SentPackKey) -> Arc<SharedSelection> {
        let mut by_key = lock(&self.by_key);
        if let Some(shared) = by_key.get(key).and_then(Weak::upgrade) {
            return shared;
        }
        by_key.retain(|_, shared| shared.strong_count() > 0);
        let shared = Arc::<SharedSelection>::default();
        by_key.insert(*key, Arc::downgrade(&shared));
        shared
    }
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        if matches!(*state, SelectionState::Begun) {
            *state = SelectionState::Free;
        }
        drop(state);
        self.0.changed.notify_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::{Error, ErrorKind};

    #[test]
    fn equal_requests_share_one_selection() {
        let selections = Selections::default();
        let key = SentPackKey::of(b"one");
        let (made, together) = (AtomicUsize::new(0), Barrier::new(8));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let make = || {
                        made.fetch_add(1, Ordering::Relaxed);
                        Ok(SelectedObjects::default())
                    };
                    let held = selections.get(&key, make, &Interrupt::new());
                    together.wait();
                    drop(held.expect("it is made"));
                });
            }
        });
        assert_eq!(made.load(Ordering::Relaxed), 1);
        // The selection was released.
        let make = || Err(Error::new(ErrorKind::Object, "made again"));
        let again = selections.get(&key, make, &Interrupt::new());
        assert!(
            again
                .expect_err("it is made again")
                .to_string()
                .contains("made again")
        );
    }

    #[test]
    fn the_next_request_makes_what_one_failed_to_make() {
        let selections = Selections::default();
        let key = SentPackKey::of(b"one");
        let begun = Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let make = || {
                    begun.wait();
                    std::thread::sleep(LOOK);
                    Err(Error::new(ErrorKind::Object, "missing"))
                };
                let held = selections.get(&key, make, &Interrupt::new());
                assert!(held.is_err());
            });
            begun.wait();
            let held = selections.get(&key, || Ok(SelectedObjects::default()), &Interrupt::new());
            assert!(held.is_ok());
        });
    }

    #[test]
    fn a_waiting_request_can_be_interrupted() {
        let selections = Selections::default();
        let key = SentPackKey::of(b"one");
        let interrupt = Interrupt::new();
        let make = || {
            interrupt.trigger();
            // Another request on this thread would wait forever.
            let held = selections.get(&key, || Ok(SelectedObjects::default()), &interrupt);
            assert!(held.is_err());
            Ok(SelectedObjects::default())
        };
        assert!(selections.get(&key, make, &Interrupt::new()).is_ok());
    }
}
