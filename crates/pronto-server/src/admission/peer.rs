//! The peer of a request that has a slot: how long it lets the server wait, and whether it has lost the slot.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::turns::Turns;

/// The peer of one request. A request without a slot has a peer that never loses it.
#[derive(Debug, Default)]
pub(crate) struct Peer {
    waiting: Mutex<Waiting>,
    is_evicted: AtomicBool,
    evicted: Notify,
    /// The turns to compute of its account, if it has any.
    turns: Option<Arc<Turns>>,
    work: Mutex<Work>,
}

/// Whether the request works on a blocking thread, and has a turn.
#[derive(Debug, Default)]
struct Work {
    is_begun: bool,
    turn: Option<u64>,
}

/// The time that the server has waited for the peer since it made progress.
#[derive(Debug, Default)]
struct Waiting {
    before: Duration,
    /// The begin of the present wait.
    since: Option<Instant>,
}

impl Peer {
    /// Returns the peer of a request whose account has turns.
    pub(super) fn with_turns(turns: Arc<Turns>) -> Self {
        Peer {
            turns: Some(turns),
            ..Peer::default()
        }
    }

    /// Waits for a turn to compute. From now on, the request gives it back while it waits for its peer. Use it on the
    /// blocking thread of the request.
    pub(crate) fn begin_work(&self) {
        self.work().is_begun = true;
        self.take_turn();
    }

    /// Gives the turn back at the end of the request.
    pub(super) fn end_work(&self) {
        self.work().is_begun = false;
        self.give_turn_back();
    }

    /// Lets others compute, if the request has for a while.
    pub(crate) fn pause(&self) {
        let turn = self.work().turn;
        let is_due = |turns: &Arc<Turns>| turn.is_some_and(|turn| turns.is_due(turn));
        if self.turns.as_ref().is_some_and(is_due) {
            self.give_turn_back();
            self.take_turn();
        }
    }

    fn take_turn(&self) {
        let is_missing = {
            let work = self.work();
            work.is_begun && work.turn.is_none()
        };
        if let Some(turns) = self.turns.as_ref().filter(|_| is_missing) {
            let turn = turns.take();
            let mut work = self.work();
            // The other direction of the request may have taken one meanwhile, or the request may have ended.
            match work.is_begun && work.turn.is_none() {
                true => work.turn = turn,
                false => turn.into_iter().for_each(|turn| turns.give_back(turn)),
            }
        }
    }

    fn give_turn_back(&self) {
        let turn = self.work().turn.take();
        if let (Some(turns), Some(turn)) = (&self.turns, turn) {
            turns.give_back(turn);
        }
    }

    /// The two fields stay consistent whatever panics.
    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the server waits for the peer, after it has waited for `before` without progress.
    pub(crate) fn begin_waiting(&self, before: Duration) {
        *self.waiting() = Waiting {
            before,
            since: Some(Instant::now()),
        };
        self.give_turn_back();
    }

    /// Notes that the server does not wait for the peer any more.
    pub(crate) fn end_waiting(&self) {
        self.waiting().since = None;
        self.take_turn();
    }

    /// Returns how long the server waits for the peer; `None` if it does not.
    pub(super) fn stalls(&self) -> Option<Duration> {
        let waiting = self.waiting();
        waiting.since.map(|since| waiting.before + since.elapsed())
    }

    /// Takes the slot away: what waits for the peer fails.
    pub(super) fn evict(&self) {
        self.is_evicted.store(true, Relaxed);
        self.evicted.notify_waiters();
    }

    pub(crate) fn is_evicted(&self) -> bool {
        self.is_evicted.load(Relaxed)
    }

    /// Waits until the slot is taken away.
    pub(crate) async fn evicted(&self) {
        let notified = self.evicted.notified();
        tokio::pin!(notified);
        // From here on no notification is missed.
        notified.as_mut().enable();
        if !self.is_evicted() {
            notified.await;
        }
    }

    /// The two fields stay consistent whatever panics.
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
