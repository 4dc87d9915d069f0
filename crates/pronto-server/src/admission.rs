//! Bounds on connections and requests, and on guesses of tokens.
//!
//! A connection costs little before its first request. A request of Git needs one of a fixed number of
//! slots, of which each user has at most a share. It waits for its turn a limited time, in a queue of
//! limited length, and is then refused with the advice to try again later.
//!
//! Slots and places in the queue have classes: clients without a user never get the last quarter, which is for
//! users, and users who do not manage the server never get the last sixteenth. A peer for which the server waits
//! loses its slot to the next in the queue.

mod peer;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pronto_io::budget::{Account, Budget};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::Limits;
use crate::{Error, ErrorKind, Result};

pub(crate) use peer::Peer;

/// The time that a peer may let the server wait while others wait for its slot.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// The time between two looks for such a peer.
const LOOK: Duration = Duration::from_millis(250);

/// The part of the slots, and of the places in the queue, that clients without a user do not get.
pub(crate) const FOR_USERS: usize = 4;

/// The part that only users get who manage the server.
pub(crate) const FOR_ADMINISTRATORS: usize = 16;

/// The period in which wrong tokens are counted.
const PERIOD: Duration = Duration::from_secs(60);

/// The most addresses whose wrong tokens are counted.
const MOST_COUNTED: usize = 65_536;

/// The network that an address stands for: the address, or the first 64 bits of one of IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

/// The owner of slots: a user, or those without a user of one network.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// A user who manages the server.
    Administrator(Arc<str>),
    User(Arc<str>),
    Network(Network),
}

/// The rights to a number of things, by the class of their owner.
#[derive(Debug)]
struct Classes {
    all: Arc<Semaphore>,
    /// Those that only owners get who do not manage the server.
    ordinary: Arc<Semaphore>,
    /// Those that owners without a user get.
    strangers: Arc<Semaphore>,
}

impl Classes {
    fn new(count: usize) -> Self {
        let without = |part: usize| Arc::new(Semaphore::new(count - count / part));
        Classes {
            all: Arc::new(Semaphore::new(count)),
            ordinary: without(FOR_ADMINISTRATORS),
            strangers: without(FOR_USERS),
        }
    }

    /// Returns those that an owner needs, the most special one first.
    fn of(&self, owner: &Owner) -> Vec<Arc<Semaphore>> {
        let classes = match owner {
            Owner::Administrator(_) => vec![&self.all],
            Owner::User(_) => vec![&self.ordinary, &self.all],
            Owner::Network(_) => vec![&self.strangers, &self.ordinary, &self.all],
        };
        classes.into_iter().map(Arc::clone).collect()
    }
}

/// The share of an owner.
#[derive(Clone, Debug)]
struct Share {
    slots: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    memory: Arc<Account>,
}

impl Share {
    fn is_used(&self) -> bool {
        Arc::strong_count(&self.slots) > 1
            || Arc::strong_count(&self.waiting) > 1
            || Arc::strong_count(&self.memory) > 1
    }
}

/// The counts of a server.
#[derive(Debug)]
pub(crate) struct Admission {
    limits: Limits,
    connections: Mutex<Connections>,
    slots: Classes,
    waiting: Classes,
    owners: Mutex<HashMap<Owner, Share>>,
    holders: Arc<Mutex<Holders>>,
    memory: Arc<Account>,
    memory_of_strangers: Arc<Account>,
    failures: Mutex<HashMap<Network, Failures>>,
}

/// The requests that have a slot.
#[derive(Debug, Default)]
struct Holders {
    next: u64,
    by_number: HashMap<u64, Holder>,
}

/// A request that has a slot.
#[derive(Debug)]
struct Holder {
    /// The rights that it holds.
    rights: Vec<Arc<Semaphore>>,
    peer: Arc<Peer>,
}

impl Holders {
    /// Takes the slot away from the peer that has let the server wait for longest, if that was too long, of
    /// those that hold `right`.
    fn evict(&self, right: &Arc<Semaphore>) {
        let has_right = |holder: &&Holder| holder.rights.iter().any(|it| Arc::ptr_eq(it, right));
        let holders = self.by_number.values().filter(has_right);
        let stalling = holders.filter_map(|holder| {
            let stalls = holder.peer.stalls().filter(|time| *time >= GRACE)?;
            (!holder.peer.is_evicted()).then_some((stalls, &holder.peer))
        });
        if let Some((_, peer)) = stalling.max_by_key(|(stalls, _)| *stalls) {
            peer.evict();
        }
    }
}

#[derive(Debug, Default)]
struct Connections {
    all: usize,
    by_network: HashMap<Network, usize>,
}

#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u32,
    since: Instant,
}

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

impl Admission {
    pub(crate) fn new(limits: &Limits) -> Self {
        Admission {
            slots: Classes::new(limits.requests),
            waiting: Classes::new(limits.queue),
            holders: Arc::default(),
            memory: Arc::new(Account::new("all clients", limits.memory_bytes)),
            memory_of_strangers: Arc::new(Account::new(
                "clients without a user",
                limits.memory_bytes - limits.memory_bytes / FOR_USERS as u64,
            )),
            limits: limits.clone(),
            connections: Mutex::default(),
            owners: Mutex::default(),
            failures: Mutex::default(),
        }
    }

    /// Admits a connection; it counts until the guard is dropped.
    pub(crate) fn connect(self: &Arc<Self>, address: IpAddr) -> Result<Connected, Full> {
        let network = Network::of(address);
        let mut connections = locked(&self.connections);
        if connections.all >= self.limits.connections {
            return Err(Full::Server);
        }
        let of_network = connections.by_network.entry(network).or_default();
        if *of_network >= self.limits.connections_per_address {
            return Err(Full::Address);
        }
        *of_network += 1;
        connections.all += 1;
        Ok(Connected {
            admission: Arc::clone(self),
            network,
        })
    }

    /// Returns the number of connections.
    pub(crate) fn connections(&self) -> usize {
        locked(&self.connections).all
    }

    /// Waits for a slot of the owner.
    ///
    /// # Errors
    /// The queue is full, or the wait takes too long.
    pub(crate) async fn slot(&self, owner: &Owner) -> Result<Slot> {
        let share = self.of_owner(owner);
        let mut rights = vec![share.slots];
        rights.extend(self.slots.of(owner));
        // Without a queue, a request is served at once or not at all.
        if let Some(permits) = all_at_once(&rights) {
            return Ok(self.hold(rights, permits));
        }
        let overloaded = |message| Error::new(ErrorKind::Overloaded, message);
        let mut places = vec![share.waiting];
        places.extend(self.waiting.of(owner));
        let Some(_places) = all_at_once(&places) else {
            return Err(overloaded("too many requests wait; try again later"));
        };
        let end = tokio::time::Instant::now() + self.limits.wait;
        let mut permits = Vec::with_capacity(rights.len());
        for right in &rights {
            match self.wait_for(right, end).await {
                Some(permit) => permits.push(permit),
                None if permits.is_empty() => {
                    let message = "too many of your requests are under way; try again later";
                    return Err(Error::new(ErrorKind::TooMany, message));
                }
                None => return Err(overloaded("the server is busy; try again later")),
            }
        }
        Ok(self.hold(rights, permits))
    }

    /// Waits for a right until `end`. Peers that let the server wait too long lose it meanwhile.
    async fn wait_for(
        &self,
        right: &Arc<Semaphore>,
        end: tokio::time::Instant,
    ) -> Option<OwnedSemaphorePermit> {
        let permit = Arc::clone(right).acquire_owned();
        tokio::pin!(permit);
        loop {
            let next = end.min(tokio::time::Instant::now() + LOOK);
            match tokio::time::timeout_at(next, &mut permit).await {
                Ok(permit) => return permit.ok(),
                Err(_) if next == end => return None,
                Err(_) => locked(&self.holders).evict(right),
            }
        }
    }

    fn hold(&self, rights: Vec<Arc<Semaphore>>, permits: Vec<OwnedSemaphorePermit>) -> Slot {
        let peer = Arc::new(Peer::default());
        let mut holders = locked(&self.holders);
        let number = holders.next;
        holders.next += 1;
        let holder = Holder {
            rights,
            peer: Arc::clone(&peer),
        };
        holders.by_number.insert(number, holder);
        Slot {
            peer,
            number,
            holders: Arc::clone(&self.holders),
            _permits: permits,
        }
    }

    /// Returns the memory that a request of the owner may hold.
    pub(crate) fn budget(&self, owner: &Owner) -> Budget {
        let mut accounts = vec![self.of_owner(owner).memory];
        if let Owner::Network(_) = owner {
            accounts.push(Arc::clone(&self.memory_of_strangers));
        }
        accounts.push(Arc::clone(&self.memory));
        Budget::new(accounts)
    }

    fn of_owner(&self, owner: &Owner) -> Share {
        let mut owners = locked(&self.owners);
        if let Some(found) = owners.get(owner) {
            return found.clone();
        }
        // Those that nobody holds or waits for are forgotten before the map grows.
        if owners.len() == owners.capacity() {
            owners.retain(|_, share| share.is_used());
        }
        let name = match owner {
            Owner::Administrator(_) | Owner::User(_) => "this user",
            Owner::Network(_) => "this address",
        };
        let share = Share {
            slots: Arc::new(Semaphore::new(self.limits.requests_per_user)),
            waiting: Arc::new(Semaphore::new(self.limits.queue.div_ceil(2))),
            memory: Arc::new(Account::new(name, self.limits.memory_bytes.div_ceil(2))),
        };
        owners.insert(owner.clone(), share.clone());
        share
    }

    /// Checks whether tokens of the address are looked at.
    ///
    /// # Errors
    /// The address has sent too many wrong ones.
    pub(crate) fn may_authenticate(&self, address: IpAddr) -> Result<()> {
        let failures = locked(&self.failures);
        match failures.get(&Network::of(address)) {
            Some(found)
                if found.count >= self.limits.failures_per_minute
                    && found.since.elapsed() < PERIOD =>
            {
                let message = "too many wrong tokens; try again in a minute";
                Err(Error::new(ErrorKind::TooMany, message))
            }
            _ => Ok(()),
        }
    }

    /// Counts a wrong token.
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

/// Takes one permit of each, or none.
fn all_at_once(rights: &[Arc<Semaphore>]) -> Option<Vec<OwnedSemaphorePermit>> {
    let permits = rights
        .iter()
        .map(|right| Arc::clone(right).try_acquire_owned());
    permits.collect::<Result<_, _>>().ok()
}

/// The right to serve a request.
#[derive(Debug)]
pub(crate) struct Slot {
    peer: Arc<Peer>,
    number: u64,
    holders: Arc<Mutex<Holders>>,
    _permits: Vec<OwnedSemaphorePermit>,
}

impl Slot {
    /// Returns the peer, which loses the slot if it lets the server wait.
    pub(crate) fn peer(&self) -> &Arc<Peer> {
        &self.peer
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        locked(&self.holders).by_number.remove(&self.number);
    }
}

/// A connection that is counted.
#[derive(Debug)]
pub(crate) struct Connected {
    admission: Arc<Admission>,
    network: Network,
}

impl Drop for Connected {
    fn drop(&mut self) {
        let mut connections = locked(&self.admission.connections);
        connections.all = connections.all.saturating_sub(1);
        if let Some(count) = connections.by_network.get_mut(&self.network) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                connections.by_network.remove(&self.network);
            }
        }
    }
}

/// The counts stay consistent whatever panics: each change is a single step.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission() -> Arc<Admission> {
        let limits = Limits {
            connections: 3,
            connections_per_address: 2,
            requests: 3,
            requests_per_user: 2,
            queue: 1,
            wait: Duration::from_millis(50),
            failures_per_minute: 2,
            ..Limits::default()
        };
        Arc::new(Admission::new(&limits))
    }

    #[test]
    fn connections_are_bounded_in_all_and_per_address() {
        let admission = admission();
        let [one, two]: [IpAddr; 2] = [[127, 0, 0, 1].into(), [127, 0, 0, 2].into()];
        let first = admission.connect(one).expect("room");
        let _second = admission.connect(one).expect("room");
        assert_eq!(admission.connect(one).err(), Some(Full::Address));
        let _third = admission.connect(two).expect("room");
        assert_eq!(admission.connect(two).err(), Some(Full::Server));
        drop(first);
        assert_eq!(admission.connections(), 2);
        let _fourth = admission.connect(two).expect("room");
    }

    #[tokio::test]
    async fn one_user_cannot_take_all_slots() {
        let admission = admission();
        let user = |name: &str| Owner::User(name.into());
        let first = admission.slot(&user("a")).await.expect("free");
        let _second = admission.slot(&user("a")).await.expect("free");
        let error = admission
            .slot(&user("a"))
            .await
            .expect_err("it has its share");
        assert_eq!(*error.kind(), ErrorKind::TooMany);
        let _third = admission.slot(&user("b")).await.expect("free");
        let error = admission.slot(&user("c")).await.expect_err("all are taken");
        assert_eq!(*error.kind(), ErrorKind::Overloaded);
        drop(first);
        admission.slot(&user("c")).await.expect("free again");
    }

    fn network(last: u8) -> Owner {
        Owner::Network(Network::of([127, 0, 0, last].into()))
    }

    fn large_admission() -> Admission {
        Admission::new(&Limits {
            requests: 32,
            requests_per_user: 20,
            queue: 8,
            wait: Duration::from_millis(50),
            memory_bytes: 1000,
            ..Limits::default()
        })
    }

    #[tokio::test]
    async fn the_last_slots_are_for_users_and_administrators() {
        let admission = large_admission();
        let mut held = Vec::new();
        for last in 1..=3 {
            for _ in 0..20 {
                held.extend(admission.slot(&network(last)).await);
            }
        }
        assert_eq!(held.len(), 24, "a quarter is for users");
        for name in ["a", "b"] {
            for _ in 0..20 {
                held.extend(admission.slot(&Owner::User(name.into())).await);
            }
        }
        assert_eq!(held.len(), 30, "a sixteenth is for administrators");
        for _ in 0..2 {
            let root = Owner::Administrator("root".into());
            held.push(admission.slot(&root).await.expect("kept free"));
        }
        drop(held);
        let _slot = admission.slot(&network(1)).await.expect("free");
    }

    #[tokio::test]
    async fn strangers_do_not_fill_the_queue() {
        let admission = Arc::new(large_admission());
        let mut held = Vec::new();
        for last in 1..=2 {
            for _ in 0..12 {
                held.push(admission.slot(&network(last)).await.expect("free"));
            }
        }
        let waiting = |owner: Owner| {
            let admission = Arc::clone(&admission);
            tokio::spawn(async move { admission.slot(&owner).await })
        };
        let all: Vec<_> = (3..20).map(|last| waiting(network(last))).collect();
        tokio::task::yield_now().await;
        for _ in 0..6 {
            let user = Owner::User("a".into());
            held.push(admission.slot(&user).await.expect("kept for users"));
        }
        let mut refused = 0;
        for one in all {
            let error = one.await.expect("no panic").expect_err("no slot");
            refused += usize::from(error.message().contains("too many requests wait"));
        }
        assert_eq!(refused, 17 - 6, "six places are for strangers");
    }

    #[tokio::test]
    async fn a_peer_that_stalls_loses_its_slot() {
        let admission = Arc::new(Admission::new(&Limits {
            requests: 1,
            wait: Duration::from_secs(60),
            ..Limits::default()
        }));
        let slot = admission.slot(&network(1)).await.expect("free");
        slot.peer().begin_waiting(GRACE);
        let holder = tokio::spawn(async move {
            slot.peer().evicted().await;
            assert!(slot.peer().is_evicted());
        });
        admission.slot(&network(2)).await.expect("given back");
        holder.await.expect("it has lost its slot");
    }

    #[tokio::test]
    async fn a_peer_that_works_keeps_its_slot() {
        let admission = Admission::new(&Limits {
            requests: 1,
            wait: 2 * LOOK,
            ..Limits::default()
        });
        let slot = admission.slot(&network(1)).await.expect("free");
        slot.peer().begin_waiting(GRACE);
        slot.peer().end_waiting();
        admission.slot(&network(2)).await.expect_err("it is served");
        slot.peer().begin_waiting(Duration::ZERO);
        admission.slot(&network(2)).await.expect_err("not for long");
        assert!(!slot.peer().is_evicted());
    }

    #[test]
    fn memory_has_shares() {
        let admission = large_admission();
        let hold = |owner: Owner, bytes: u64| {
            let budget = admission.budget(&owner);
            budget.charge(bytes).map(|()| budget)
        };
        let _one = hold(network(1), 500).expect("its share");
        hold(network(1), 1).expect_err("more than its share");
        let _two = hold(network(2), 250).expect("room");
        hold(network(3), 1).expect_err("a quarter is for users");
        let _user = hold(Owner::User("a".into()), 250).expect("room");
        hold(Owner::User("b".into()), 1).expect_err("no room");
    }

    #[test]
    fn guesses_of_tokens_are_bounded() {
        let admission = admission();
        let address: IpAddr = [127, 0, 0, 1].into();
        for _ in 0..2 {
            admission.may_authenticate(address).expect("not yet");
            admission.wrong_token(address);
        }
        assert!(admission.may_authenticate(address).is_err());
        admission
            .may_authenticate([127, 0, 0, 2].into())
            .expect("another address");
    }

    #[test]
    fn networks_of_ipv6_have_64_bits() {
        let network = |text: &str| Network::of(text.parse().expect("an address"));
        assert_eq!(network("2001:db8::1"), network("2001:db8::2"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
        assert_eq!(network("::ffff:127.0.0.1"), network("127.0.0.1"));
    }
}
