//! The peer of a request with a slot: the time for which the server waits for the peer, and whether
//! the peer has lost the slot.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::eviction::Eviction;
use super::turns::Turns;

/// The peer of one request. The peer of a request without a slot never loses a slot.
#[derive(Debug, Default)]
pub(crate) struct RequestPeer {
    waits: Mutex<PeerWaits>,
    evicted: Eviction,
    /// The turns to compute of the account, if the account has turns.
    turns: Option<Arc<Turns>>,
    work: Mutex<PeerActivity>,
}

/// The state of the computation: whether the request runs on a blocking thread, and has a turn.
#[derive(Debug, Default)]
struct PeerActivity {
    is_begun: bool,
    turn: Option<u64>,
}

/// The current waits of the server for the peer. Two directions can wait at the same time, on
/// separate threads.
#[derive(Debug, Default)]
struct PeerWaits {
    next: u64,
    each: BTreeMap<u64, WaitSpan>,
}

/// A wait for the peer.
#[derive(Clone, Copy, Debug)]
struct WaitSpan {
    /// The time that the same direction has waited before, since the last progress of the peer.
    before: Duration,
    since: Instant,
}

impl WaitSpan {
    fn all(self) -> Duration {
        self.before + self.since.elapsed()
    }
}

/// A guard for a wait of one direction for the peer. Dropping the guard ends the wait.
#[derive(Debug)]
pub(crate) struct PeerWait {
    peer: Arc<RequestPeer>,
    number: u64,
    span: WaitSpan,
}

impl PeerWait {
    /// Ends the wait, and returns its duration.
    pub(crate) fn end(self) -> Duration {
        self.span.since.elapsed()
    }
}

impl Drop for PeerWait {
    fn drop(&mut self) {
        let is_last = {
            let mut waits = self.peer.waits();
            waits.each.remove(&self.number);
            waits.each.is_empty()
        };
        if is_last {
            self.peer.take_turn();
        }
    }
}

impl RequestPeer {
    /// Returns the peer of a request whose account has turns.
    pub(super) fn with_turns(turns: Arc<Turns>) -> Self {
        RequestPeer {
            turns: Some(turns),
            ..RequestPeer::default()
        }
    }

    /// Waits for a turn to compute. After this call, the request releases its turn while it waits
    /// for its peer. Call this on the blocking thread of the request.
    pub(crate) fn begin_work(&self) {
        self.work().is_begun = true;
        self.take_turn();
    }

    /// Releases the turn at the end of the request.
    pub(super) fn end_work(&self) {
        self.work().is_begun = false;
        self.give_turn_back();
    }

    /// Releases the turn for a moment if the request has computed for the whole time slice and
    /// other requests wait.
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
            // The other direction of the request may have taken a turn in the meantime, or the
            // request may have ended.
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

    /// Locks the state. A panic of another thread does not make the two fields inconsistent.
    fn work(&self) -> MutexGuard<'_, PeerActivity> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a direction waits for the peer, after it has waited for `before` without
    /// progress. The request has no turn while any direction waits.
    pub(crate) fn wait(self: &Arc<Self>, before: Duration) -> PeerWait {
        let span = WaitSpan {
            before,
            since: Instant::now(),
        };
        let number = {
            let mut waits = self.waits();
            let number = waits.next;
            waits.next += 1;
            waits.each.insert(number, span);
            number
        };
        self.give_turn_back();
        PeerWait {
            peer: Arc::clone(self),
            number,
            span,
        }
    }

    /// Returns the time that the direction with the longest wait has waited for the peer, or `None`
    /// if no direction waits.
    pub(super) fn stalls(&self) -> Option<Duration> {
        self.waits().each.values().map(|span| span.all()).max()
    }

    /// Withdraws the slot, so that reads and writes that wait for the peer fail.
    pub(super) fn evict(&self) {
        self.evicted.set();
    }

    pub(crate) fn is_evicted(&self) -> bool {
        self.evicted.is_set()
    }

    /// Waits until the slot is withdrawn.
    pub(crate) async fn evicted(&self) {
        self.evicted.wait().await;
    }

    /// Locks the waits. A panic of another thread does not make them inconsistent, because each
    /// change is a single step.
    fn waits(&self) -> MutexGuard<'_, PeerWaits> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
