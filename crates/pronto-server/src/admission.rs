//! Bounds on connections and requests, and on guesses of tokens.
//!
//! A connection costs little before its first request. A request of Git needs one of a fixed number of
//! slots, of which each user has at most a share. It waits for its turn a limited time, in a queue of
//! limited length, and is then refused with the advice to try again later.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::Limits;
use crate::{Error, ErrorKind, Result};

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
    User(Arc<str>),
    Network(Network),
}

/// The counts of a server.
#[derive(Debug)]
pub(crate) struct Admission {
    limits: Limits,
    connections: Mutex<Connections>,
    slots: Arc<Semaphore>,
    waiting: Semaphore,
    owners: Mutex<HashMap<Owner, Arc<Semaphore>>>,
    failures: Mutex<HashMap<Network, Failures>>,
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
            slots: Arc::new(Semaphore::new(limits.requests)),
            waiting: Semaphore::new(limits.queue),
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
        let own = self.of_owner(owner);
        // Without a queue, a request is served at once or not at all.
        let at_once = own.clone().try_acquire_owned().ok().and_then(|own| {
            let slot = Arc::clone(&self.slots).try_acquire_owned().ok()?;
            Some(Slot {
                _slot: slot,
                _own: own,
            })
        });
        if let Some(slot) = at_once {
            return Ok(slot);
        }
        let overloaded = |message| Error::new(ErrorKind::Overloaded, message);
        let Ok(_waiting) = self.waiting.try_acquire() else {
            return Err(overloaded("too many requests wait; try again later"));
        };
        let end = tokio::time::Instant::now() + self.limits.wait;
        let own = match tokio::time::timeout_at(end, own.acquire_owned()).await {
            Ok(Ok(own)) => own,
            _ => {
                let message = "too many of your requests are under way; try again later";
                return Err(Error::new(ErrorKind::TooMany, message));
            }
        };
        match tokio::time::timeout_at(end, Arc::clone(&self.slots).acquire_owned()).await {
            Ok(Ok(slot)) => Ok(Slot {
                _slot: slot,
                _own: own,
            }),
            _ => Err(overloaded("the server is busy; try again later")),
        }
    }

    fn of_owner(&self, owner: &Owner) -> Arc<Semaphore> {
        let mut owners = locked(&self.owners);
        if let Some(found) = owners.get(owner) {
            return Arc::clone(found);
        }
        // Those that nobody holds or waits for are forgotten before the map grows.
        if owners.len() == owners.capacity() {
            owners.retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
        }
        let semaphore = Arc::new(Semaphore::new(self.limits.requests_per_user));
        owners.insert(owner.clone(), Arc::clone(&semaphore));
        semaphore
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

/// The right to serve a request.
#[derive(Debug)]
pub(crate) struct Slot {
    _slot: OwnedSemaphorePermit,
    _own: OwnedSemaphorePermit,
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
