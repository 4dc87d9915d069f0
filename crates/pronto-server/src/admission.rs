//! Limits on connections and requests, and on attempts to guess tokens.
//!
//! A connection costs little before its first request, and can be closed to admit another
//! connection while it holds no slot. A Git request needs a slot. The number of slots is fixed, and
//! each user has at most a share of them. A request waits for its slot in a queue of limited
//! length, in which accounts take turns. After a limited time, the request is refused with the
//! advice to try again later.
//!
//! Slots and queue entries have classes. Clients without a user never get the last quarter, which
//! is reserved for users. Users who do not manage the server never get the last sixteenth. A peer
//! that lets the server wait loses its slot to the next request in the queue. The turns of an
//! account bound the processor time of its requests.

mod classes;
mod connections;
mod eviction;
mod peer;
mod slots;
mod turns;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use pronto_io::budget::{MemoryAccount, RequestBudget};
use pronto_io::pool::cores;

use crate::config::ServerLimits;
use crate::{Error, ErrorKind, Result};

pub(crate) use connections::{AdmittedConnection, ConnectionGuard, ConnectionRefusal, MADE_ROOM};
pub(crate) use peer::{PeerWait, RequestPeer};

use connections::{ConnectionSlot, Connections};
use slots::{Slots, Ticket};
use turns::Turns;

/// The time that a peer may let the server wait while other requests wait for the slot.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// The interval at which the server checks for peers that let the server wait.
const LOOK: Duration = Duration::from_millis(250);

/// The divisor for the part of the slots, and of the queue entries, that is reserved for users.
pub(crate) const FOR_USERS: usize = 4;

/// The divisor for the part of the slots, and of the queue entries, that is reserved for users who
/// manage the server.
pub(crate) const FOR_ADMINISTRATORS: usize = 16;

/// The period in which invalid tokens are counted.
const PERIOD: Duration = Duration::from_secs(60);

/// The largest number of addresses whose invalid tokens are counted.
const MOST_COUNTED: usize = 65_536;

/// The network of a client: its IPv4 address, or the first 64 bits of its IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Network(IpAddr);

impl Network {
    pub(crate) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(address) => {
                let bits = u128::from(address) >> 64 << 64;
                Network(IpAddr::V6(bits.into()))
            }
            address => Network(address),
        }
    }
}

impl std::fmt::Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The owner of slots: a user, or all clients without a user in one network.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum SlotOwner {
    /// A user who manages the server.
    Administrator(Arc<str>),
    User(Arc<str>),
    Network(Network),
}

/// The share of the server that an owner uses, besides its slots.
#[derive(Clone, Debug)]
struct OwnerShare {
    memory: Arc<MemoryAccount>,
    turns: Arc<Turns>,
}

impl OwnerShare {
    fn is_used(&self) -> bool {
        Arc::strong_count(&self.memory) > 1 || Arc::strong_count(&self.turns) > 1
    }
}

/// The counts of connections, slots and invalid tokens of a server.
#[derive(Debug)]
pub(crate) struct Admission {
    limits: ServerLimits,
    connections: Connections,
    slots: Slots,
    owners: Mutex<HashMap<SlotOwner, OwnerShare>>,
    memory: Arc<MemoryAccount>,
    memory_of_strangers: Arc<MemoryAccount>,
    turns_of_strangers: Arc<Turns>,
    /// The waits for slots, in seconds.
    waits: Histogram,
    failures: Mutex<HashMap<Network, Failures>>,
}

#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u32,
    since: Instant,
}

impl Admission {
    pub(crate) fn new(limits: &ServerLimits) -> Self {
        // The buckets range from a millisecond to about a minute.
        Self::counting(limits, Histogram::new(exponential_buckets(0.001, 4.0, 9)))
    }

    /// Returns an admission with other limits, which counts waits together with this one.
    pub(crate) fn with_limits(&self, limits: &ServerLimits) -> Self {
        Self::counting(limits, self.waits.clone())
    }

    fn counting(limits: &ServerLimits, waits: Histogram) -> Self {
        Admission {
            waits,
            slots: Slots::new(limits),
            memory: Arc::new(MemoryAccount::new("all clients", limits.memory_bytes)),
            memory_of_strangers: Arc::new(MemoryAccount::new(
                "clients without a user",
                limits.memory_bytes - limits.memory_bytes / FOR_USERS as u64,
            )),
            turns_of_strangers: Arc::new(Turns::new(cores())),
            limits: limits.clone(),
            connections: Connections::new(limits),
            owners: Mutex::default(),
            failures: Mutex::default(),
        }
    }

    /// Admits a connection, which counts until the returned guard is dropped. Another connection
    /// may be closed to make room.
    pub(crate) fn connect(&self, address: IpAddr) -> Result<ConnectionGuard, ConnectionRefusal> {
        self.connections.enter(address)
    }

    /// Returns the number of connections.
    pub(crate) fn connections(&self) -> usize {
        self.connections.count()
    }

    /// Returns the number of requests that wait for a slot.
    pub(crate) fn waiting(&self) -> usize {
        self.slots.waiting()
    }

    /// Returns the waits for slots, in seconds.
    pub(crate) fn waits(&self) -> &Histogram {
        &self.waits
    }

    /// Waits for a slot of the owner, for a request on this connection.
    ///
    /// # Errors
    /// Fails if the queue is full, the wait exceeds its timeout, or the connection has ended.
    pub(crate) async fn slot(
        &self,
        owner: &SlotOwner,
        connection: Option<&Arc<AdmittedConnection>>,
    ) -> Result<RequestSlot> {
        if let Some(connection) = connection {
            connection.belongs_to(owner);
        }
        let share = self.of_owner(owner);
        let turns = match owner {
            SlotOwner::Network(_) => Arc::clone(&self.turns_of_strangers),
            SlotOwner::User(_) | SlotOwner::Administrator(_) => share.turns,
        };
        let begun = Instant::now();
        let taken = self.slots.take(owner, turns, self.limits.wait).await;
        self.waits.observe(begun.elapsed().as_secs_f64());
        let (ticket, peer) = taken?;
        let held = connection.map(AdmittedConnection::hold).transpose()?;
        Ok(RequestSlot {
            peer,
            _ticket: ticket,
            _held: held,
        })
    }

    /// Returns the memory budget for a request of the owner.
    pub(crate) fn budget(&self, owner: &SlotOwner) -> RequestBudget {
        let mut accounts = vec![self.of_owner(owner).memory];
        if let SlotOwner::Network(_) = owner {
            accounts.push(Arc::clone(&self.memory_of_strangers));
        }
        accounts.push(Arc::clone(&self.memory));
        RequestBudget::new(accounts)
    }

    fn of_owner(&self, owner: &SlotOwner) -> OwnerShare {
        let mut owners = locked(&self.owners);
        if let Some(found) = owners.get(owner) {
            return found.clone();
        }
        // Shares that no request holds or waits for are removed before the map grows.
        if owners.len() == owners.capacity() {
            owners.retain(|_, share| share.is_used());
        }
        let name = match owner {
            SlotOwner::Administrator(_) | SlotOwner::User(_) => "this user",
            SlotOwner::Network(_) => "this address",
        };
        let share = OwnerShare {
            memory: Arc::new(MemoryAccount::new(
                name,
                self.limits.memory_bytes.div_ceil(2),
            )),
            turns: Arc::new(Turns::new(cores())),
        };
        owners.insert(owner.clone(), share.clone());
        share
    }

    /// Checks whether the server accepts tokens from the address.
    ///
    /// # Errors
    /// Fails if the address has sent too many invalid tokens.
    pub(crate) fn may_authenticate(&self, address: IpAddr) -> Result<()> {
        let failures = locked(&self.failures);
        match failures.get(&Network::of(address)) {
            Some(found)
                if found.count >= self.limits.failures_per_minute
                    && found.since.elapsed() < PERIOD =>
            {
                let message = "too many invalid tokens; try again in a minute";
                Err(Error::new(ErrorKind::TooMany, message))
            }
            _ => Ok(()),
        }
    }

    /// Counts an invalid token.
    pub(crate) fn wrong_token(&self, address: IpAddr) {
        let mut failures = locked(&self.failures);
        if failures.len() >= MOST_COUNTED {
            failures.retain(|_, found| found.since.elapsed() < PERIOD);
        }
        if failures.len() >= MOST_COUNTED {
            return;
        }
        let now = Instant::now();
        let found = failures.entry(Network::of(address)).or_insert(Failures {
            count: 0,
            since: now,
        });
        if found.since.elapsed() >= PERIOD {
            *found = Failures {
                count: 0,
                since: now,
            };
        }
        found.count = found.count.saturating_add(1);
    }
}

/// The right of one request to be served. Dropping the slot releases it.
#[derive(Debug)]
pub(crate) struct RequestSlot {
    peer: Arc<RequestPeer>,
    _ticket: Ticket,
    _held: Option<ConnectionSlot>,
}

impl RequestSlot {
    /// Returns the peer of the request, which loses the slot if it lets the server wait.
    pub(crate) fn peer(&self) -> &Arc<RequestPeer> {
        &self.peer
    }
}

impl Drop for RequestSlot {
    fn drop(&mut self) {
        self.peer.end_work();
    }
}

/// Locks a mutex. A panic of another thread does not make the counts inconsistent, because each
/// change is a single step.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
