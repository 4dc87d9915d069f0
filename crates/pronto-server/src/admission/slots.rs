//! The slots of requests, and the queue of requests that wait for a slot.
//!
//! A waiting request runs no code: a request that ends gives its slot to the next one, and a single
//! task checks for peers that stall. The next request is chosen by account: users and clients
//! without a user alternate, and within each of these two groups the waiting accounts take turns.
//! So a request waits for at most one request of each other account, however many requests that
//! account has.
//!
//! Queue entries are shared in the same way. If the queue is full, the newest request of the
//! account with the most entries gives its entry to a request of an account with fewer entries.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;

use super::classes::{ADMINISTRATORS, CLASSES, Classes, STRANGERS, USERS, class_of};
use super::turns::Turns;
use super::{GRACE, LOOK, RequestPeer, SlotOwner, locked};
use crate::config::ServerLimits;
use crate::{Error, ErrorKind, Result};

/// The waiting accounts of a class.
#[derive(Debug, Default)]
struct Crowd {
    /// The accounts that may get another slot, in the order of their turns.
    ready: BTreeMap<u64, SlotOwner>,
    /// All waiting accounts, by the number of their waiting requests.
    by_length: BTreeSet<(usize, SlotOwner)>,
}

/// The requests of an account.
#[derive(Debug, Default)]
struct AccountQueue {
    /// The number of requests that have a slot.
    held: usize,
    waiting: BTreeMap<u64, WaitingRequest>,
    /// The key in [`Crowd::ready`], if the account is in that map.
    ready: Option<u64>,
}

/// A request that waits for a slot.
#[derive(Debug)]
struct WaitingRequest {
    turns: Arc<Turns>,
    /// The channel that delivers the peer when the request gets a slot. It is dropped when the
    /// request loses its queue entry.
    granted: oneshot::Sender<Arc<RequestPeer>>,
}

/// A request that has a slot.
#[derive(Debug)]
struct SlotHolder {
    owner: SlotOwner,
    peer: Arc<RequestPeer>,
}

#[derive(Debug)]
struct SlotTable {
    slots: Classes,
    /// The largest number of slots of one owner.
    share: usize,
    places: Classes,
    /// The largest number of queue entries of one owner.
    share_of_places: usize,
    owners: HashMap<SlotOwner, AccountQueue>,
    crowds: [Crowd; CLASSES],
    holders: HashMap<u64, SlotHolder>,
    next: u64,
    /// The class that got the last slot for which requests waited.
    last: usize,
    /// Whether a task checks for peers that stall.
    is_watched: bool,
    /// The number of checks for peers that stall.
    looks: u64,
}

/// The slots of a server.
#[derive(Clone, Debug)]
pub(super) struct Slots(Arc<Mutex<SlotTable>>);

/// A request that has a slot, or waits for a slot.
#[derive(Debug)]
pub(super) struct Ticket {
    slots: Slots,
    owner: SlotOwner,
    number: u64,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        locked(&self.slots.0).leave(&self.owner, self.number);
    }
}

/// The first result for a request.
enum AdmissionAnswer {
    Granted(Arc<RequestPeer>),
    /// The request waits in the queue.
    Waits(oneshot::Receiver<Arc<RequestPeer>>),
    /// The queue has no room.
    Refused,
}

impl Slots {
    pub(super) fn new(limits: &ServerLimits) -> Self {
        Slots(Arc::new(Mutex::new(SlotTable {
            // A connection with a slot is not closed to admit another one, so the connections of a
            // class have the same bounds as its slots.
            slots: Classes::new(limits.requests.min(limits.connections)),
            share: limits.requests_per_user,
            places: Classes::new(limits.queue),
            share_of_places: limits.queue.div_ceil(2),
            owners: HashMap::new(),
            crowds: Default::default(),
            holders: HashMap::new(),
            next: 0,
            last: STRANGERS,
            is_watched: false,
            looks: 0,
        })))
    }

    /// Waits for a slot of the owner, for at most `wait`.
    ///
    /// # Errors
    /// Fails if the queue is full, or the wait exceeds its timeout.
    pub(super) async fn take(
        &self,
        owner: &SlotOwner,
        turns: Arc<Turns>,
        wait: Duration,
    ) -> Result<(Ticket, Arc<RequestPeer>)> {
        let (number, entered) = locked(&self.0).enter(owner, turns);
        let queue_full = || {
            let message = "too many requests are waiting; try again later";
            Error::new(ErrorKind::QueueFull, message)
        };
        let ticket = Ticket {
            slots: self.clone(),
            owner: owner.clone(),
            number,
        };
        let mut granted = match entered {
            AdmissionAnswer::Granted(peer) => return Ok((ticket, peer)),
            AdmissionAnswer::Refused => return Err(queue_full()),
            AdmissionAnswer::Waits(granted) => granted,
        };
        self.watch();
        match tokio::time::timeout(wait, &mut granted).await {
            Ok(Ok(peer)) => return Ok((ticket, peer)),
            Ok(Err(_)) => return Err(queue_full()),
            Err(_) => {}
        }
        let has_share = locked(&self.0).has_its_share(owner);
        // The slot may have been granted at the last moment.
        match granted.try_recv() {
            Ok(peer) => Ok((ticket, peer)),
            Err(_) if has_share => {
                let message = "too many of your requests are running; try again later";
                Err(Error::new(ErrorKind::TooMany, message))
            }
            Err(_) => {
                let message = "the server is busy; try again later";
                Err(Error::new(ErrorKind::Overloaded, message))
            }
        }
    }

    /// Returns the number of requests that wait.
    pub(super) fn waiting(&self) -> usize {
        locked(&self.0).places.up_to(ADMINISTRATORS)
    }

    /// Starts the task that checks for peers that stall, as long as requests wait. One task serves
    /// all requests.
    fn watch(&self) {
        if std::mem::replace(&mut locked(&self.0).is_watched, true) {
            return;
        }
        let state = Arc::clone(&self.0);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(LOOK).await;
                if !locked(&state).look() {
                    return;
                }
            }
        });
    }

    #[cfg(test)]
    pub(super) fn looks(&self) -> u64 {
        locked(&self.0).looks
    }

    /// Returns whether the state holds no data about any request.
    #[cfg(test)]
    pub(super) fn is_unused(&self) -> bool {
        let state = locked(&self.0);
        let is_empty = |crowd: &Crowd| crowd.ready.is_empty() && crowd.by_length.is_empty();
        state.owners.is_empty()
            && state.holders.is_empty()
            && state.crowds.iter().all(is_empty)
            && state.slots.up_to(ADMINISTRATORS) == 0
            && state.places.up_to(ADMINISTRATORS) == 0
    }
}

impl SlotTable {
    /// Gives a request a slot, or a queue entry.
    fn enter(&mut self, owner: &SlotOwner, turns: Arc<Turns>) -> (u64, AdmissionAnswer) {
        let (number, class) = (self.next, class_of(owner));
        self.next += 1;
        let held = self.owners.get(owner).map_or(0, |queue| queue.held);
        // A slot that becomes free is given to waiting requests first.
        if held < self.share && self.slots.bound(class).is_none() {
            return (
                number,
                AdmissionAnswer::Granted(self.grant(owner, number, turns)),
            );
        }
        let waiting = self.waiting_of(owner);
        if waiting >= self.share_of_places || !self.make_place(class, waiting) {
            return (number, AdmissionAnswer::Refused);
        }
        let (granted, receiver) = oneshot::channel();
        let queue = self.owners.entry(owner.clone()).or_default();
        queue
            .waiting
            .insert(number, WaitingRequest { turns, granted });
        self.places.add(class);
        self.changed(owner, waiting);
        (number, AdmissionAnswer::Waits(receiver))
    }

    fn waiting_of(&self, owner: &SlotOwner) -> usize {
        let queue = self.owners.get(owner);
        queue.map_or(0, |queue| queue.waiting.len())
    }

    fn has_its_share(&self, owner: &SlotOwner) -> bool {
        let queue = self.owners.get(owner);
        queue.is_some_and(|queue| queue.held >= self.share)
    }

    /// Makes room in the queue for a request of an owner with `waiting` waiting requests. Returns
    /// whether there is room.
    fn make_place(&mut self, class: usize, waiting: usize) -> bool {
        let Some(bound) = self.places.bound(class) else {
            return true;
        };
        let longest = (self.crowds.iter().take(bound + 1))
            .filter_map(|crowd| crowd.by_length.last())
            .max_by_key(|(length, _)| *length);
        match longest {
            Some((length, owner)) if *length > waiting + 1 => {
                let owner = owner.clone();
                let newest = self.owners.get(&owner);
                let newest = newest.and_then(|queue| queue.waiting.last_key_value());
                let newest = newest.map(|(number, _)| *number);
                // The removed request notices that its channel is closed.
                newest.is_some_and(|number| self.forget_waiting(&owner, number).is_some())
            }
            _ => false,
        }
    }

    fn grant(&mut self, owner: &SlotOwner, number: u64, turns: Arc<Turns>) -> Arc<RequestPeer> {
        let peer = Arc::new(RequestPeer::with_turns(turns));
        self.owners.entry(owner.clone()).or_default().held += 1;
        self.slots.add(class_of(owner));
        let holder = SlotHolder {
            owner: owner.clone(),
            peer: Arc::clone(&peer),
        };
        self.holders.insert(number, holder);
        peer
    }

    /// Ends a request that has a slot, waits, or was refused.
    fn leave(&mut self, owner: &SlotOwner, number: u64) {
        if self.holders.remove(&number).is_none() {
            self.forget_waiting(owner, number);
            return;
        }
        self.slots.remove(class_of(owner));
        if let Some(queue) = self.owners.get_mut(owner) {
            queue.held = queue.held.saturating_sub(1);
        }
        self.changed(owner, self.waiting_of(owner));
        while let Some(class) = self.next_class() {
            self.serve_first_of(class);
        }
    }

    /// Returns the class whose turn it is, among the classes that have room for a slot and waiting
    /// requests.
    fn next_class(&self) -> Option<usize> {
        let order = match self.last {
            USERS => [ADMINISTRATORS, STRANGERS, USERS],
            _ => [ADMINISTRATORS, USERS, STRANGERS],
        };
        let is_waiting = |class: usize| {
            let crowd = self.crowds.get(class);
            crowd.is_some_and(|crowd| !crowd.ready.is_empty())
        };
        let mut order = order.into_iter();
        order.find(|class| is_waiting(*class) && self.slots.bound(*class).is_none())
    }

    /// Gives a slot to the account of the class whose turn it is.
    fn serve_first_of(&mut self, class: usize) {
        let crowd = self.crowds.get_mut(class);
        let Some((_, owner)) = crowd.and_then(|crowd| crowd.ready.pop_first()) else {
            return;
        };
        if class != ADMINISTRATORS {
            self.last = class;
        }
        let mut oldest = None;
        if let Some(queue) = self.owners.get_mut(&owner) {
            queue.ready = None;
            oldest = queue.waiting.first_key_value().map(|(number, _)| *number);
        }
        let waiting = oldest.and_then(|number| {
            let waiting = self.forget_waiting(&owner, number);
            waiting.map(|waiting| (number, waiting))
        });
        if let Some((number, waiting)) = waiting {
            let peer = self.grant(&owner, number, waiting.turns);
            // A request that has ended has a ticket, which releases the slot.
            let _ = waiting.granted.send(peer);
            self.changed(&owner, self.waiting_of(&owner));
        }
    }

    /// Removes a waiting request.
    fn forget_waiting(&mut self, owner: &SlotOwner, number: u64) -> Option<WaitingRequest> {
        let queue = self.owners.get_mut(owner)?;
        let before = queue.waiting.len();
        let found = queue.waiting.remove(&number)?;
        self.places.remove(class_of(owner));
        self.changed(owner, before);
        Some(found)
    }

    /// Updates the position of an account, of which `before` requests have waited.
    fn changed(&mut self, owner: &SlotOwner, before: usize) {
        let (share, number) = (self.share, self.next);
        let Some(queue) = self.owners.get_mut(owner) else {
            return;
        };
        let Some(crowd) = self.crowds.get_mut(class_of(owner)) else {
            return;
        };
        let now = queue.waiting.len();
        if now != before {
            crowd.by_length.remove(&(before, owner.clone()));
        }
        if now > 0 {
            crowd.by_length.insert((now, owner.clone()));
        }
        match (now > 0 && queue.held < share, queue.ready) {
            (true, None) => {
                self.next += 1;
                queue.ready = Some(number);
                crowd.ready.insert(number, owner.clone());
            }
            (false, Some(place)) => {
                queue.ready = None;
                crowd.ready.remove(&place);
            }
            (true, Some(_)) | (false, None) => {}
        }
        if queue.held == 0 && now == 0 {
            self.owners.remove(owner);
        }
    }

    /// Withdraws slots from peers that stall, those with the longest wait first, as far as requests
    /// wait for the slots. Returns whether requests wait.
    fn look(&mut self) -> bool {
        self.looks += 1;
        if self.places.up_to(ADMINISTRATORS) == 0 {
            self.is_watched = false;
            return false;
        }
        let mut wanted = WantedSlots::of(self);
        let mut stalling = Vec::new();
        for holder in self.holders.values() {
            match holder.peer.stalls().filter(|time| *time >= GRACE) {
                // The slot of this request is already being released.
                _ if holder.peer.is_evicted() => {
                    wanted.take(&holder.owner, self);
                }
                Some(time) => stalling.push((time, holder)),
                None => {}
            }
        }
        stalling.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
        for (_, holder) in stalling {
            if wanted.take(&holder.owner, self) {
                holder.peer.evict();
            }
        }
        true
    }
}

/// The slots for which requests wait.
struct WantedSlots {
    /// The number of waiting requests under each bound that has no free slot.
    of_bounds: [usize; CLASSES],
    /// The number of slots that were already found for accounts that have reached their share.
    of_owners: HashMap<SlotOwner, usize>,
}

impl WantedSlots {
    fn of(state: &SlotTable) -> Self {
        let of_bounds = std::array::from_fn(|class| {
            let mut crowds = state.crowds.iter().take(class + 1);
            let is_ready = crowds.any(|crowd| !crowd.ready.is_empty());
            match is_ready && state.slots.is_full(class) {
                true => state.places.up_to(class),
                false => 0,
            }
        });
        WantedSlots {
            of_bounds,
            of_owners: HashMap::new(),
        }
    }

    /// Returns whether a request waits for a slot of this owner. The slot is then no longer counted
    /// as wanted.
    fn take(&mut self, owner: &SlotOwner, state: &SlotTable) -> bool {
        let mut is_wanted = false;
        for wanted in self.of_bounds.iter_mut().skip(class_of(owner)) {
            is_wanted |= *wanted > 0;
            *wanted = wanted.saturating_sub(1);
        }
        if let Some(queue) = state.owners.get(owner).filter(|it| it.held >= state.share) {
            let found = self.of_owners.entry(owner.clone()).or_default();
            is_wanted |= *found < queue.waiting.len();
            *found += 1;
        }
        is_wanted
    }
}
