//! The slots of sessions, shared fairly among peers.
//!
//! A session has a slot from its admission to its end. Each peer has at most a quarter of the
//! slots, so that a few stalled peers leave slots for others. When all slots are taken, a waiting
//! session gets the slot of a slow peer, or of a peer or network that has more slots than its own.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pronto_netsync::{Error, ErrorKind};

use super::PeerLimits;
use super::unauthenticated::PeerNetwork;

/// The memory in bytes of a session that waits for its peer: its queues, its delta bases, and the
/// handles of a repository. The memory for refs and commits is added.
pub(super) const BASE_BYTES: u64 = 12 << 20;

/// The smallest number of slots, whatever the memory is.
const LEAST_PLACES: usize = 4;

/// The divisor for the part of all slots that a peer may have.
const PARTS: usize = 4;

/// The interval at which a waiting session checks whether it must stop.
const LOOK: Duration = Duration::from_millis(100);

/// The time for which an admitted session may wait for more memory.
const MORE_PATIENCE: Duration = Duration::from_secs(30);

/// The identity of the peer of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Who {
    pub(super) name: String,
    pub(super) network: PeerNetwork,
}

/// The state that the thread of a session shares with the sessions that wait for its slot.
#[derive(Debug, Default)]
pub(super) struct SlotSignal {
    quiet_milliseconds: AtomicU64,
    has_lost_place: AtomicBool,
}

impl SlotSignal {
    /// Records the time for which the peer has been slow.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Busy`] if another session got the slot.
    pub(super) fn keep(&self, quiet: Duration) -> Result<(), Error> {
        let quiet = u64::try_from(quiet.as_millis()).unwrap_or(u64::MAX);
        self.quiet_milliseconds.store(quiet, Relaxed);
        match self.has_lost_place.load(Relaxed) {
            true => Err(busy(
                "closed for a waiting session, because this session was slow or one of many",
            )),
            false => Ok(()),
        }
    }

    fn quiet(&self) -> Duration {
        Duration::from_millis(self.quiet_milliseconds.load(Relaxed))
    }
}

/// The slots of a server.
pub(super) struct SessionSlots {
    most: usize,
    most_of_peer: usize,
    most_waiting: usize,
    most_waiting_of_peer: usize,
    total_bytes: u64,
    patience: Duration,
    slow: Duration,
    turn: Duration,
    state: Mutex<SlotHolders>,
    changed: Condvar,
}

#[derive(Default)]
struct SlotHolders {
    holders: BTreeMap<u64, SessionHolder>,
    waiting: BTreeMap<u64, Who>,
}

struct SessionHolder {
    who: Who,
    bytes: u64,
    signal: Arc<SlotSignal>,
}

/// A slot. Dropping it releases the slot, unless another session got the slot before.
pub(super) struct SessionSlot {
    places: Arc<SessionSlots>,
    number: u64,
    signal: Arc<SlotSignal>,
}

fn busy(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Busy, message)
}

impl SessionSlots {
    /// Creates the slots that fit into `bytes`.
    pub(super) fn new(limits: &PeerLimits, bytes: u64) -> Self {
        let fitting = usize::try_from(bytes / BASE_BYTES).unwrap_or(usize::MAX);
        let most = fitting.min(limits.connections).max(LEAST_PLACES);
        SessionSlots {
            most,
            most_of_peer: (most / PARTS).clamp(1, limits.sessions_per_peer.max(1)),
            most_waiting: limits.connections,
            most_waiting_of_peer: limits.sessions_per_peer,
            total_bytes: bytes.max(LEAST_PLACES as u64 * BASE_BYTES),
            patience: limits.waiting,
            slow: limits.slow,
            turn: limits.turn,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, SlotHolders> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sleep<'a>(&self, state: MutexGuard<'a, SlotHolders>) -> MutexGuard<'a, SlotHolders> {
        let waited = self.changed.wait_timeout(state, LOOK);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits for a slot for the session with this number. `is_over` returns whether the slot is no
    /// longer needed.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Busy`] if too many sessions wait already or the wait exceeds its
    /// timeout, and with [`ErrorKind::Closed`] if the peer has disconnected.
    pub(super) fn take(
        self: &Arc<Self>,
        number: u64,
        who: &Who,
        signal: &Arc<SlotSignal>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<SessionSlot, Error> {
        let begun = Instant::now();
        let mut state = self.state();
        if state.waiting_of(&who.name) >= self.most_waiting_of_peer {
            return Err(busy(format!("peer '{}' has too many sessions", who.name)));
        }
        if state.waiting.len() >= self.most_waiting {
            return Err(busy("too many sessions are waiting"));
        }
        state.waiting.insert(number, who.clone());
        let result = loop {
            if self.next(&state) == Some(number) {
                if !self.has_room(&state, BASE_BYTES) {
                    self.reclaim(&mut state, who, begun.elapsed());
                }
                if self.has_room(&state, BASE_BYTES) {
                    break Ok(());
                }
            }
            if is_over() {
                break Err(Error::new(ErrorKind::Closed, "the peer has disconnected"));
            }
            if begun.elapsed() >= self.patience {
                break Err(busy("too many sessions are running"));
            }
            state = self.sleep(state);
        };
        state.waiting.remove(&number);
        self.changed.notify_all();
        result?;
        let holder = SessionHolder {
            who: who.clone(),
            bytes: BASE_BYTES,
            signal: Arc::clone(signal),
        };
        state.holders.insert(number, holder);
        Ok(SessionSlot {
            places: Arc::clone(self),
            number,
            signal: Arc::clone(signal),
        })
    }

    fn has_room(&self, state: &SlotHolders, bytes: u64) -> bool {
        state.holders.len() < self.most && state.used() + bytes <= self.total_bytes
            || state.holders.is_empty()
    }

    /// Returns the session whose turn it is, among those whose peer may have another slot. The peer
    /// with the fewest slots is first, then the network with the fewest slots, then the session
    /// with the longest wait.
    fn next(&self, state: &SlotHolders) -> Option<u64> {
        let counts = state.counts();
        let may = (state.waiting.iter()).filter(|(_, who)| counts.of_peer(who) < self.most_of_peer);
        let next =
            may.min_by_key(|(number, who)| (counts.of_peer(who), counts.of_network(who), **number));
        next.map(|(number, _)| *number)
    }

    /// Withdraws the slot of a session whose peer is slow, or, if `who` has waited for the time of
    /// a turn, of the newest session of a peer or network that has at least two slots more than
    /// `who`.
    fn reclaim(&self, state: &mut SlotHolders, who: &Who, waited: Duration) {
        let slow = (state.holders.iter()).filter(|(_, holder)| holder.signal.quiet() >= self.slow);
        let slowest = slow.max_by_key(|(_, holder)| holder.signal.quiet());
        let mut victim = slowest.map(|(number, _)| *number);
        if victim.is_none() && waited >= self.turn {
            victim = state.newest_of_many(who);
        }
        if let Some(holder) = victim.and_then(|number| state.holders.remove(&number)) {
            holder.signal.has_lost_place.store(true, Relaxed);
        }
    }
}

/// The number of slots of each peer and of each network.
#[derive(Default)]
struct SlotCounts<'a> {
    peers: BTreeMap<&'a str, usize>,
    networks: BTreeMap<PeerNetwork, usize>,
}

impl SlotCounts<'_> {
    fn of_peer(&self, who: &Who) -> usize {
        self.peers.get(&who.name[..]).copied().unwrap_or(0)
    }

    fn of_network(&self, who: &Who) -> usize {
        self.networks.get(&who.network).copied().unwrap_or(0)
    }
}

impl SlotHolders {
    fn used(&self) -> u64 {
        self.holders.values().map(|holder| holder.bytes).sum()
    }

    fn waiting_of(&self, name: &str) -> usize {
        self.waiting.values().filter(|who| who.name == name).count()
    }

    fn counts(&self) -> SlotCounts<'_> {
        let mut counts = SlotCounts::default();
        for SessionHolder { who, .. } in self.holders.values() {
            *counts.peers.entry(&who.name[..]).or_default() += 1;
            *counts.networks.entry(who.network).or_default() += 1;
        }
        counts
    }

    fn newest_of_many(&self, who: &Who) -> Option<u64> {
        let counts = self.counts();
        let (of_peer, of_network) = (counts.of_peer(who), counts.of_network(who));
        let SlotCounts { peers, networks } = counts;
        let (peer, most) = peers.into_iter().max_by_key(|(_, count)| *count)?;
        let newest = |is_meant: &dyn Fn(&Who) -> bool| {
            let meant = (self.holders.iter()).filter(|(_, holder)| is_meant(&holder.who));
            meant.map(|(number, _)| *number).max()
        };
        if most >= of_peer + 2 {
            return newest(&|who| who.name == peer);
        }
        let (network, most) = networks.into_iter().max_by_key(|(_, count)| *count)?;
        match most >= of_network + 2 {
            true => newest(&|who| who.network == network),
            false => None,
        }
    }
}

impl SessionSlot {
    /// Marks that this side works, so that the peer does not count as slow in the meantime.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Busy`] if another session got the slot.
    pub(super) fn work(&self) -> Result<(), Error> {
        self.signal.keep(Duration::ZERO)
    }

    /// Waits until the session may hold `bytes` in addition to the memory of every session.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Busy`] if no memory is available in time, or another session got the
    /// slot.
    pub(super) fn hold(&self, bytes: u64) -> Result<(), Error> {
        let (begun, places) = (Instant::now(), &self.places);
        let bytes = BASE_BYTES.saturating_add(bytes);
        let mut state = places.state();
        loop {
            self.work()?;
            let others = state.used_without(self.number);
            let Some(who) = state.holders.get(&self.number).map(|own| own.who.clone()) else {
                return Err(busy("closed for a waiting session"));
            };
            let fits = others.saturating_add(bytes) <= places.total_bytes;
            if fits || state.holders.len() == 1 {
                if let Some(own) = state.holders.get_mut(&self.number) {
                    own.bytes = bytes;
                }
                return Ok(());
            }
            if begun.elapsed() >= MORE_PATIENCE {
                return Err(busy("the memory for sessions is exhausted"));
            }
            places.reclaim(&mut state, &who, Duration::ZERO);
            state = places.sleep(state);
        }
    }
}

impl SlotHolders {
    fn used_without(&self, number: u64) -> u64 {
        let others = self.holders.iter().filter(|(other, _)| **other != number);
        others.map(|(_, holder)| holder.bytes).sum()
    }
}

impl Drop for SessionSlot {
    fn drop(&mut self) {
        // If another session got the slot, the number is no longer in the list. Numbers are not
        // reused.
        self.places.state().holders.remove(&self.number);
        self.places.changed.notify_all();
    }
}

#[cfg(test)]
mod tests;
