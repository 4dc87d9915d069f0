//! Continuous upkeep of all repositories of a store.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pronto::Watch;
use pronto_io::interrupt::Interrupt;

use super::pass::{UpkeepOptions, UpkeepPass};
use crate::Result;
use crate::backend::StoreBackend as _;
use crate::blocking::{BlockingStore, StoredRepository};
use crate::clock::Clock as _;

/// The interval at which a sleeping loop checks for an interrupt.
const LOOK: Duration = Duration::from_millis(200);

/// The number of changes after which a repository is checked without a pause. Each change may have
/// added a pack, and a request opens all packs.
const MANY_CHANGES: u32 = 50;

/// The largest number of times that the pause of a repository is doubled.
const DOUBLINGS: u32 = 6;

/// The pause between two deletions in a repository.
const BETWEEN_DELETIONS: Duration = Duration::from_secs(3600);

/// The pause between two prunings in a repository. Each pruning may repack all objects.
const BETWEEN_PRUNINGS: Duration = Duration::from_secs(24 * 3600);

/// The result of a pass over one repository.
#[derive(Debug)]
#[non_exhaustive]
pub struct Pass<'a> {
    /// The name of the repository, or an empty string if the repositories cannot be listed.
    pub repository: &'a str,
    /// The effects of the pass, or the error.
    pub result: Result<UpkeepPass>,
    /// The duration of the pass.
    pub took: Duration,
}

/// The upkeep of a store. `Send + Sync`: one thread runs it, and other threads report changes.
///
/// A repository is checked once in each interval. While it does not change, the interval grows up
/// to 64 times. A check costs a probe, which is one call of the store. The order is random, so that
/// several nodes rarely do the same work concurrently.
pub struct UpkeepRole {
    store: Arc<BlockingStore>,
    options: UpkeepOptions,
    every: Duration,
    known: Mutex<BTreeMap<String, UpkeepRepository>>,
    changed: Condvar,
}

/// The state of the upkeep of a repository.
struct UpkeepRepository {
    repository: Arc<StoredRepository>,
    /// The number of the generation for which the last pass found nothing to do, or 0.
    seen: u64,
    quiet: u32,
    /// The number of changes since the last check.
    changes: u32,
    next: Instant,
    next_deletion: Instant,
    next_pruning: Instant,
}

impl UpkeepRole {
    /// Prepares upkeep of all repositories in `store`, with the check interval `every`.
    pub fn new(store: Arc<BlockingStore>, options: UpkeepOptions, every: Duration) -> Self {
        UpkeepRole {
            store,
            options,
            every,
            known: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Reports a change of a repository, so that it is checked soon: after a quarter of the
    /// interval, or immediately after 50 changes. From now on, upkeep commits through `repository`,
    /// so that its changes share a queue with those of the caller. Commits outside of the queue
    /// would conflict with each generation of a repository that changes continuously.
    pub fn note_change(&self, repository: &Arc<StoredRepository>) {
        if let Some(known) = self.known().get_mut(repository.name()) {
            known.repository = Arc::clone(repository);
            known.quiet = 0;
            known.changes = known.changes.saturating_add(1);
            let pause = match known.changes < MANY_CHANGES {
                true => self.every / 4,
                false => Duration::ZERO,
            };
            known.next = known.next.min(Instant::now() + pause);
        }
        self.changed.notify_one();
    }

    /// Does upkeep until `interrupt` is triggered. `on_pass` receives each pass that did something or
    /// failed. A failed pass is retried.
    pub fn run(&self, interrupt: &Interrupt, on_pass: &dyn Fn(&Pass<'_>)) {
        let mut next_listing = Instant::now();
        while !interrupt.is_triggered() {
            if next_listing <= Instant::now() {
                next_listing = Instant::now() + self.every;
                if let Err(error) = self.list() {
                    on_pass(&Pass {
                        repository: "",
                        result: Err(error),
                        took: Duration::ZERO,
                    });
                }
            }
            let due = self.due();
            if due.is_empty() {
                let known = self.known();
                let _ = self.changed.wait_timeout(known, LOOK.min(self.every));
            }
            for name in due {
                if interrupt.is_triggered() {
                    return;
                }
                self.look_at(&name, interrupt, on_pass);
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, UpkeepRepository>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds new repositories, and removes those that no longer exist.
    fn list(&self) -> Result<()> {
        let names = self.store.repositories()?;
        let mut known = self.known();
        known.retain(|name, _| names.binary_search(name).is_ok());
        for name in names {
            if let Entry::Vacant(place) = known.entry(name) {
                let now = Instant::now();
                let repository = self.store.repository(place.key())?;
                place.insert(UpkeepRepository {
                    repository: Arc::new(repository),
                    seen: 0,
                    quiet: 0,
                    changes: 0,
                    next: now,
                    next_deletion: now,
                    next_pruning: now,
                });
            }
        }
        Ok(())
    }

    /// Returns the repositories to check, in random order.
    fn due(&self) -> Vec<String> {
        let known = self.known();
        let now = Instant::now();
        let due = known.iter().filter(|(_, known)| known.next <= now);
        let mut due: Vec<(u64, String)> = due
            .map(|(name, known)| (known.repository.backend.clock().random(), name.clone()))
            .collect();
        due.sort_unstable();
        due.into_iter().map(|(_, name)| name).collect()
    }

    /// Checks a repository, and does a pass if it has changed, or a deletion is pending.
    fn look_at(&self, name: &str, interrupt: &Interrupt, on_pass: &dyn Fn(&Pass<'_>)) {
        let mut options = self.options.clone();
        let (repository, seen) = match self.known().get_mut(name) {
            Some(known) => {
                known.changes = 0;
                let now = Instant::now();
                options.deletes &= known.next_deletion <= now;
                options.prune_after = options.prune_after.filter(|_| known.next_pruning <= now);
                (Arc::clone(&known.repository), known.seen)
            }
            None => return,
        };
        let begun = Instant::now();
        let newest = self.store.wait(repository.tip());
        let number = newest.as_ref().map_or(0, |newest| newest.number());
        // Another pass over the same generation would find no pack to repack.
        options.repacks = number != seen;
        let has_work = options.repacks || options.deletes || options.prune_after.is_some();
        let result = match newest {
            Ok(_) if !has_work => Ok(UpkeepPass::default()),
            Ok(_) => {
                let watch = Watch::from(interrupt);
                self.store.keep_up(&repository, &options, &watch)
            }
            Err(error) => Err(error),
        };
        let did_nothing = result
            .as_ref()
            .is_ok_and(|done| *done == UpkeepPass::default());
        if let Some(known) = self.known().get_mut(name) {
            let end = match &result {
                Ok(_) if did_nothing => PassResult::Idle(number),
                Ok(_) => PassResult::Worked,
                Err(_) => PassResult::Failed,
            };
            known.look_again(self.every, end);
            // A pass that failed, or in which another process was faster, has not done its
            // deletions.
            let is_whole = result.as_ref().is_ok_and(|done| !done.was_overtaken);
            let now = Instant::now();
            if is_whole && options.deletes {
                known.next_deletion = now + BETWEEN_DELETIONS;
            }
            if is_whole && options.prune_after.is_some() {
                known.next_pruning = now + BETWEEN_PRUNINGS;
            }
        }
        if !did_nothing && !interrupt.is_triggered() {
            on_pass(&Pass {
                repository: name,
                result,
                took: begun.elapsed(),
            });
        }
    }
}

/// The result of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PassResult {
    /// The pass found nothing to do for the generation with this number.
    Idle(u64),
    /// The pass changed the repository.
    Worked,
    /// The pass failed.
    Failed,
}

impl UpkeepRepository {
    /// Schedules the next check after a pass.
    fn look_again(&mut self, every: Duration, end: PassResult) {
        let is_quiet = end == PassResult::Idle(self.seen);
        self.quiet = if is_quiet { self.quiet + 1 } else { 0 };
        self.seen = match end {
            PassResult::Idle(number) => number,
            PassResult::Worked | PassResult::Failed => 0,
        };
        // A failed pass would fail again immediately.
        let pause = match end == PassResult::Failed || self.changes < MANY_CHANGES {
            true => every * (1 << self.quiet.min(DOUBLINGS)),
            false => Duration::ZERO,
        };
        self.next = Instant::now() + pause;
    }
}
