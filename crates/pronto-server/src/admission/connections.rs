//! The connections of a server, and those that make room for others.
//!
//! A connection has an owner, as a request has: its network, until a user is seen on it. Where there is no room for a
//! new one, another ends that holds no slot: the oldest of the owner that has the most of these. Clients without a user
//! come first, then users; users who manage the server are the last. An owner loses a connection only if it has more of
//! them than the network of the new one, and its last one only if that is not new: it needs a moment to authenticate.
//! So a few networks, or users, that fill the server do not keep others out. Each step costs the logarithm of the number
//! of connections.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use super::classes::{CLASSES, STRANGERS, class_of};
use super::eviction::Eviction;
use super::{Network, Owner, locked};
use crate::config::Limits;
use crate::{Error, ErrorKind, Result};

/// The reason in the log for a connection that ends for another.
pub(crate) const MADE_ROOM: &str = "made room for another connection";

/// The time in which a new connection can authenticate before it ends for another.
const NEW: Duration = Duration::from_secs(2);

/// Why a connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// The server has no room.
    Server,
    /// The address has too many.
    Address,
}

impl Full {
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Full::Server => "too many connections",
            Full::Address => "too many connections of this address",
        }
    }
}

/// All connections.
#[derive(Clone, Debug)]
pub(super) struct Connections(Arc<Mutex<State>>);

/// The connections of an owner that hold no slot, by their age: since they came, or gave their last slot back.
type Idle = BTreeMap<u64, u64>;

/// The number of an owner's connections that hold no slot, and the age of the oldest. The last rank makes room first.
type Rank = (usize, Reverse<u64>);

fn rank(idle: &Idle) -> Option<Rank> {
    let (oldest, _) = idle.first_key_value()?;
    Some((idle.len(), Reverse(*oldest)))
}

#[derive(Debug)]
struct State {
    most: usize,
    most_of_network: usize,
    new: Duration,
    next: u64,
    each: HashMap<u64, Entry>,
    of_networks: HashMap<Network, usize>,
    idle: HashMap<Owner, Idle>,
    /// The owners with connections that hold no slot, by class.
    ranks: [BTreeMap<Rank, Owner>; CLASSES],
}

#[derive(Debug)]
struct Entry {
    network: Network,
    owner: Owner,
    /// The slots that it holds.
    slots: usize,
    /// Its key among the connections of its owner that hold none.
    age: u64,
    /// The time when it came; `None` once it has authenticated a user, or made a request without one.
    new_since: Option<Instant>,
    connection: Arc<Connection>,
}

/// A connection. It counts until this is dropped, or it has made room for another.
#[derive(Debug)]
pub(crate) struct Connected(Arc<Connection>);

/// A connection, as its requests know it.
#[derive(Debug)]
pub(crate) struct Connection {
    all: Connections,
    number: u64,
    evicted: Eviction,
    /// The socket, if no task waits for the end.
    socket: OnceLock<Arc<TcpStream>>,
}

/// A slot that a connection holds.
#[derive(Debug)]
pub(super) struct Held(Arc<Connection>);

impl Connections {
    pub(super) fn new(limits: &Limits) -> Self {
        Connections(Arc::new(Mutex::new(State {
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

    /// Admits a connection. Another may end for it.
    pub(super) fn enter(&self, address: IpAddr) -> Result<Connected, Full> {
        let network = Network::of(address);
        let mut state = locked(&self.0);
        let of_network = state.of_networks.get(&network).copied().unwrap_or(0);
        if of_network >= state.most_of_network {
            return Err(Full::Address);
        }
        state.make_room(network)?;
        let number = state.next;
        state.next += 1;
        let connection = Arc::new(Connection {
            all: self.clone(),
            number,
            evicted: Eviction::default(),
            socket: OnceLock::new(),
        });
        *state.of_networks.entry(network).or_default() += 1;
        let entry = Entry {
            network,
            owner: Owner::Network(network),
            slots: 0,
            age: number,
            new_since: Some(Instant::now()),
            connection: Arc::clone(&connection),
        };
        state.each.insert(number, entry);
        state.list(number);
        Ok(Connected(connection))
    }

    pub(super) fn count(&self) -> usize {
        locked(&self.0).each.len()
    }

    /// Returns whether nothing is remembered of any connection.
    #[cfg(test)]
    pub(super) fn is_unused(&self) -> bool {
        let state = locked(&self.0);
        state.each.is_empty()
            && state.of_networks.is_empty()
            && state.idle.is_empty()
            && state.ranks.iter().all(BTreeMap::is_empty)
    }
}

impl State {
    /// Makes room for a connection from a network.
    fn make_room(&mut self, network: Network) -> Result<(), Full> {
        if self.each.len() < self.most {
            return Ok(());
        }
        let own = self.idle.get(&Owner::Network(network));
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
        let number = oldest.next().ok_or(Full::Server)?;
        let entry = self.remove(number).ok_or(Full::Server)?;
        entry.connection.evict();
        Ok(())
    }

    /// Adds a connection without a slot to those of its owner.
    fn list(&mut self, number: u64) {
        let entry = self.each.get(&number);
        if let Some((owner, age)) = entry.map(|entry| (entry.owner.clone(), entry.age)) {
            self.change(&owner, |idle| _ = idle.insert(age, number));
        }
    }

    /// Removes a connection from those of its owner that have no slot.
    fn unlist(&mut self, number: u64) {
        let entry = self.each.get(&number);
        if let Some((owner, age)) = entry.map(|entry| (entry.owner.clone(), entry.age)) {
            self.change(&owner, |idle| _ = idle.remove(&age));
        }
    }

    fn change(&mut self, owner: &Owner, act: impl FnOnce(&mut Idle)) {
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

impl Connected {
    /// Returns the connection for its requests.
    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.0
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        locked(&self.0.all.0).remove(self.0.number);
    }
}

impl Connection {
    /// Notes the owner of a request on the connection. A user who was seen on it remains its owner.
    pub(crate) fn belongs_to(&self, owner: &Owner) {
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

    /// Notes a slot of a request. The connection does not make room for others while it has one.
    ///
    /// # Errors
    /// The connection is over.
    pub(super) fn hold(self: &Arc<Self>) -> Result<Held> {
        let mut state = locked(&self.all.0);
        if state.each.get(&self.number).is_some_and(|it| it.slots == 0) {
            state.unlist(self.number);
        }
        let Some(entry) = state.each.get_mut(&self.number) else {
            let message = "the connection is over";
            return Err(Error::new(ErrorKind::Overloaded, message));
        };
        entry.slots += 1;
        Ok(Held(Arc::clone(self)))
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

    /// Takes the socket of a connection that a thread serves. It is shut down when the connection makes room.
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
            // The client may have ended it before.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Returns whether the connection ends for another.
    pub(crate) fn is_evicted(&self) -> bool {
        self.evicted.is_set()
    }

    /// Waits until the connection has to end for another.
    pub(crate) async fn evicted(&self) {
        self.evicted.wait().await;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.release();
    }
}

#[cfg(test)]
mod tests;
