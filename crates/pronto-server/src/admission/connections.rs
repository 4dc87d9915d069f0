//! The connections of a server, and the choice of the connection that is closed to make room.
//!
//! A connection has an owner, as a request has: the network of the client, until a user
//! authenticates on the connection. If there is no room for a new connection, the server closes a
//! connection that holds no slot: the oldest connection of the owner with the most such
//! connections. Clients without a user lose connections first, then users, and finally users who
//! manage the server. An owner loses a connection only if the owner has more connections than the
//! network of the new connection. An owner loses its last connection only if that connection is not
//! new, because a new connection needs a moment to authenticate. So a few networks or users that
//! fill the server do not exclude other clients. Each step costs the logarithm of the number of
//! connections.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use super::classes::{CLASSES, STRANGERS, class_of};
use super::eviction::Eviction;
use super::{Network, SlotOwner, locked};
use crate::config::ServerLimits;
use crate::{Error, ErrorKind, Result};

/// The reason that the log shows for a connection that is closed to admit another connection.
pub(crate) const MADE_ROOM: &str = "closed to make room for another connection";

/// The time in which a new connection can authenticate before it may be closed to admit another
/// connection.
const NEW: Duration = Duration::from_secs(2);

/// The reason for which a connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionRefusal {
    /// The server has reached its limit of connections.
    Server,
    /// The address has reached its limit of connections.
    Address,
}

impl ConnectionRefusal {
    pub(crate) fn reason(self) -> &'static str {
        match self {
            ConnectionRefusal::Server => "too many connections",
            ConnectionRefusal::Address => "too many connections from this address",
        }
    }
}

/// All connections.
#[derive(Clone, Debug)]
pub(super) struct Connections(Arc<Mutex<ConnectionTable>>);

/// The connections of an owner that hold no slot, by age: the time since they were admitted, or
/// since they released their last slot.
type Idle = BTreeMap<u64, u64>;

/// The number of an owner's connections that hold no slot, and the age of the oldest one. The owner
/// with the last rank loses a connection first.
type Rank = (usize, Reverse<u64>);

fn rank(idle: &Idle) -> Option<Rank> {
    let (oldest, _) = idle.first_key_value()?;
    Some((idle.len(), Reverse(*oldest)))
}

#[derive(Debug)]
struct ConnectionTable {
    most: usize,
    most_of_network: usize,
    new: Duration,
    next: u64,
    each: HashMap<u64, Entry>,
    of_networks: HashMap<Network, usize>,
    idle: HashMap<SlotOwner, Idle>,
    /// The owners with connections that hold no slot, by class.
    ranks: [BTreeMap<Rank, SlotOwner>; CLASSES],
}

#[derive(Debug)]
struct Entry {
    network: Network,
    owner: SlotOwner,
    /// The number of slots that the connection holds.
    slots: usize,
    /// The key of the connection among those of its owner that hold no slot.
    age: u64,
    /// The time at which the connection was admitted, or `None` once the connection has
    /// authenticated a user, or made a request without a user.
    new_since: Option<Instant>,
    connection: Arc<AdmittedConnection>,
}

/// A guard that counts a connection until the guard is dropped, or the connection is closed to
/// admit another connection.
#[derive(Debug)]
pub(crate) struct ConnectionGuard(Arc<AdmittedConnection>);

/// A connection, as shared with its requests.
#[derive(Debug)]
pub(crate) struct AdmittedConnection {
    all: Connections,
    number: u64,
    evicted: Eviction,
    /// The socket, if no task waits for the end of the connection.
    socket: OnceLock<Arc<TcpStream>>,
}

/// A slot that a connection holds.
#[derive(Debug)]
pub(super) struct ConnectionSlot(Arc<AdmittedConnection>);

impl Connections {
    pub(super) fn new(limits: &ServerLimits) -> Self {
        Connections(Arc::new(Mutex::new(ConnectionTable {
            most: limits.connections,
            most_of_network: limits.connections_per_address,
            new: NEW,
            next: 0,
            each: HashMap::new(),
            of_networks: HashMap::new(),
            idle: HashMap::new(),
            ranks: Default::default(),
        })))
    }

    /// Admits a connection. Another connection may be closed to make room.
    pub(super) fn enter(&self, address: IpAddr) -> Result<ConnectionGuard, ConnectionRefusal> {
        let network = Network::of(address);
        let mut state = locked(&self.0);
        let of_network = state.of_networks.get(&network).copied().unwrap_or(0);
        if of_network >= state.most_of_network {
            return Err(ConnectionRefusal::Address);
        }
        state.make_room(network)?;
        let number = state.next;
        state.next += 1;
        let connection = Arc::new(AdmittedConnection {
            all: self.clone(),
            number,
            evicted: Eviction::default(),
            socket: OnceLock::new(),
        });
        *state.of_networks.entry(network).or_default() += 1;
        let entry = Entry {
            network,
            owner: SlotOwner::Network(network),
            slots: 0,
            age: number,
            new_since: Some(Instant::now()),
            connection: Arc::clone(&connection),
        };
        state.each.insert(number, entry);
        state.list(number);
        Ok(ConnectionGuard(connection))
    }

    pub(super) fn count(&self) -> usize {
        locked(&self.0).each.len()
    }

    /// Returns whether the state holds no data about any connection.
    #[cfg(test)]
    pub(super) fn is_unused(&self) -> bool {
        let state = locked(&self.0);
        state.each.is_empty()
            && state.of_networks.is_empty()
            && state.idle.is_empty()
            && state.ranks.iter().all(BTreeMap::is_empty)
    }
}

impl ConnectionTable {
    /// Closes a connection to admit a new one from `network`.
    fn make_room(&mut self, network: Network) -> Result<(), ConnectionRefusal> {
        if self.each.len() < self.most {
            return Ok(());
        }
        let own = self.idle.get(&SlotOwner::Network(network));
        let own = own.map_or(0, BTreeMap::len);
        let largest = self.ranks.iter().filter_map(BTreeMap::last_key_value);
        let oldest = largest.filter(|((count, _), _)| *count > own);
        let mut oldest = oldest.filter_map(|((count, _), owner)| {
            let number = *self.idle.get(owner)?.first_key_value()?.1;
            let entry = self.each.get(&number)?;
            let is_new = |since: Instant| since.elapsed() < self.new;
            let is_left = *count > 1 || !entry.new_since.is_some_and(is_new);
            is_left.then_some(number)
        });
        let number = oldest.next().ok_or(ConnectionRefusal::Server)?;
        let entry = self.remove(number).ok_or(ConnectionRefusal::Server)?;
        entry.connection.evict();
        Ok(())
    }

    /// Adds a connection that holds no slot to the list of its owner.
    fn list(&mut self, number: u64) {
        let entry = self.each.get(&number);
        if let Some((owner, age)) = entry.map(|entry| (entry.owner.clone(), entry.age)) {
            self.change(&owner, |idle| _ = idle.insert(age, number));
        }
    }

    /// Removes a connection from the list of its owner.
    fn unlist(&mut self, number: u64) {
        let entry = self.each.get(&number);
        if let Some((owner, age)) = entry.map(|entry| (entry.owner.clone(), entry.age)) {
            self.change(&owner, |idle| _ = idle.remove(&age));
        }
    }

    fn change(&mut self, owner: &SlotOwner, act: impl FnOnce(&mut Idle)) {
        let idle = self.idle.entry(owner.clone()).or_default();
        let before = rank(idle);
        act(idle);
        let now = rank(idle);
        if now.is_none() {
            self.idle.remove(owner);
        }
        let Some(ranks) = self.ranks.get_mut(class_of(owner)) else {
            return;
        };
        if let Some(before) = before {
            ranks.remove(&before);
        }
        if let Some(now) = now {
            ranks.insert(now, owner.clone());
        }
    }

    fn remove(&mut self, number: u64) -> Option<Entry> {
        self.unlist(number);
        let entry = self.each.remove(&number)?;
        if let Some(count) = self.of_networks.get_mut(&entry.network) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.of_networks.remove(&entry.network);
            }
        }
        Some(entry)
    }
}

impl ConnectionGuard {
    /// Returns the connection, for its requests.
    pub(crate) fn connection(&self) -> &Arc<AdmittedConnection> {
        &self.0
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        locked(&self.0.all.0).remove(self.0.number);
    }
}

impl AdmittedConnection {
    /// Sets the owner from a request on the connection. After a user has authenticated, the owner
    /// stays that user.
    pub(crate) fn belongs_to(&self, owner: &SlotOwner) {
        let mut state = locked(&self.all.0);
        let Some(entry) = state.each.get_mut(&self.number) else {
            return;
        };
        entry.new_since = None;
        if class_of(owner) == STRANGERS || entry.owner == *owner {
            return;
        }
        let slots = entry.slots;
        if slots == 0 {
            state.unlist(self.number);
        }
        if let Some(entry) = state.each.get_mut(&self.number) {
            entry.owner = owner.clone();
        }
        if slots == 0 {
            state.list(self.number);
        }
    }

    /// Records that a request on this connection has a slot. The connection is not closed to admit
    /// another one while it has a slot.
    ///
    /// # Errors
    /// Fails if the connection has ended.
    pub(super) fn hold(self: &Arc<Self>) -> Result<ConnectionSlot> {
        let mut state = locked(&self.all.0);
        if state.each.get(&self.number).is_some_and(|it| it.slots == 0) {
            state.unlist(self.number);
        }
        let Some(entry) = state.each.get_mut(&self.number) else {
            let message = "the connection was closed";
            return Err(Error::new(ErrorKind::Overloaded, message));
        };
        entry.slots += 1;
        Ok(ConnectionSlot(Arc::clone(self)))
    }

    fn release(&self) {
        let mut state = locked(&self.all.0);
        let age = state.next;
        state.next += 1;
        let Some(entry) = state.each.get_mut(&self.number) else {
            return;
        };
        entry.slots = entry.slots.saturating_sub(1);
        if entry.slots == 0 {
            entry.age = age;
            state.list(self.number);
        }
    }

    /// Stores the socket of a connection that a thread serves. The socket is shut down if the
    /// connection is closed to admit another one.
    pub(crate) fn served_by_thread(&self, socket: Arc<TcpStream>) {
        if self.socket.set(socket).is_ok() && self.is_evicted() {
            self.shut_down();
        }
    }

    fn evict(&self) {
        self.evicted.set();
        self.shut_down();
    }

    fn shut_down(&self) {
        if let Some(socket) = self.socket.get() {
            // The client may have closed the socket before.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Returns whether the connection is being closed to admit another one.
    pub(crate) fn is_evicted(&self) -> bool {
        self.evicted.is_set()
    }

    /// Waits until the connection has to close to admit another one.
    pub(crate) async fn evicted(&self) {
        self.evicted.wait().await;
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.0.release();
    }
}

#[cfg(test)]
mod tests;
