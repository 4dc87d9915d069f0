//! Tests of the limits on connections, requests, memory and token guesses.

use super::*;

fn admission() -> Arc<Admission> {
    let limits = ServerLimits {
        connections: 3,
        connections_per_address: 2,
        requests: 3,
        requests_per_user: 2,
        queue: 1,
        wait: Duration::from_millis(50),
        failures_per_minute: 2,
        ..ServerLimits::default()
    };
    Arc::new(Admission::new(&limits))
}

#[tokio::test]
async fn a_wait_of_one_direction_does_not_end_that_of_the_other() {
    let admission = admission();
    let slot = admission.slot(&network(1), None).await.expect("free");
    let peer = slot.peer();
    let sends = peer.wait(GRACE);
    let takes = peer.wait(Duration::ZERO);
    assert!(peer.stalls().is_some_and(|time| time >= GRACE));
    drop(takes);
    assert!(peer.stalls().is_some_and(|time| time >= GRACE));
    let takes = peer.wait(Duration::ZERO);
    drop(sends);
    assert!(peer.stalls().is_some_and(|time| time < GRACE));
    drop(takes);
    assert_eq!(peer.stalls(), None);
}

#[tokio::test]
async fn one_user_cannot_take_all_slots() {
    let admission = admission();
    let user = |name: &str| SlotOwner::User(name.into());
    let first = admission.slot(&user("a"), None).await.expect("free");
    let _second = admission.slot(&user("a"), None).await.expect("free");
    let error = admission
        .slot(&user("a"), None)
        .await
        .expect_err("it has its share");
    assert_eq!(error.kind(), ErrorKind::TooMany);
    let _third = admission.slot(&user("b"), None).await.expect("free");
    let error = admission
        .slot(&user("c"), None)
        .await
        .expect_err("all are taken");
    assert_eq!(error.kind(), ErrorKind::Overloaded);
    drop(first);
    admission.slot(&user("c"), None).await.expect("free again");
}

fn network(last: u8) -> SlotOwner {
    SlotOwner::Network(Network::of([127, 0, 0, last].into()))
}

fn large_admission() -> Admission {
    Admission::new(&ServerLimits {
        requests: 32,
        requests_per_user: 20,
        queue: 8,
        wait: Duration::from_millis(50),
        memory_bytes: 1000,
        ..ServerLimits::default()
    })
}

#[tokio::test]
async fn the_last_slots_are_for_users_and_administrators() {
    let admission = large_admission();
    let mut held = Vec::new();
    for last in 1..=3 {
        for _ in 0..20 {
            held.extend(admission.slot(&network(last), None).await);
        }
    }
    assert_eq!(held.len(), 24, "a quarter is for users");
    for name in ["a", "b"] {
        for _ in 0..20 {
            held.extend(admission.slot(&SlotOwner::User(name.into()), None).await);
        }
    }
    assert_eq!(held.len(), 30, "a sixteenth is for administrators");
    for _ in 0..2 {
        let root = SlotOwner::Administrator("root".into());
        held.push(admission.slot(&root, None).await.expect("kept free"));
    }
    drop(held);
    let _slot = admission.slot(&network(1), None).await.expect("free");
}

#[tokio::test]
async fn strangers_with_slots_do_not_take_all_connections() {
    let admission = Admission::new(&ServerLimits {
        connections: 8,
        connections_per_address: 8,
        requests: 128,
        requests_per_user: 64,
        wait: Duration::from_millis(50),
        ..ServerLimits::default()
    });
    let mut held = Vec::new();
    for last in 1..=8 {
        let connected = admission.connect([127, 0, 0, last].into());
        let connected = connected.expect("room");
        let connection = Arc::clone(connected.connection());
        let slot = admission.slot(&network(last), Some(&connection)).await;
        held.push((connected, slot.ok()));
    }
    assert_eq!(held.iter().filter(|(_, slot)| slot.is_some()).count(), 6);
}

#[tokio::test]
async fn strangers_do_not_fill_the_queue() {
    let admission = Arc::new(large_admission());
    let mut held = Vec::new();
    for last in 1..=2 {
        for _ in 0..12 {
            held.push(admission.slot(&network(last), None).await.expect("free"));
        }
    }
    let waiting = |owner: SlotOwner| {
        let admission = Arc::clone(&admission);
        tokio::spawn(async move { admission.slot(&owner, None).await })
    };
    let all: Vec<_> = (3..20).map(|last| waiting(network(last))).collect();
    tokio::task::yield_now().await;
    for _ in 0..6 {
        let user = SlotOwner::User("a".into());
        held.push(admission.slot(&user, None).await.expect("kept for users"));
    }
    let mut refused = 0;
    for one in all {
        let error = one.await.expect("no panic").expect_err("no slot");
        refused += usize::from(error.kind() == ErrorKind::QueueFull);
    }
    assert_eq!(refused, 17 - 6, "six places are for strangers");
}

/// Queues a request of each owner, in this order, and returns the requests with their results.
async fn waiting(
    admission: &Arc<Admission>,
    owners: impl IntoIterator<Item = SlotOwner>,
) -> Vec<tokio::task::JoinHandle<Result<RequestSlot>>> {
    let mut all = Vec::new();
    for owner in owners {
        let admission = Arc::clone(admission);
        all.push(tokio::spawn(
            async move { admission.slot(&owner, None).await },
        ));
        tokio::task::yield_now().await;
    }
    all
}

fn patient_admission(requests: usize, requests_per_user: usize, queue: usize) -> Arc<Admission> {
    Arc::new(Admission::new(&ServerLimits {
        requests,
        requests_per_user,
        queue,
        wait: Duration::from_secs(3600),
        ..ServerLimits::default()
    }))
}

#[tokio::test]
async fn requests_that_wait_do_not_look() {
    let admission = patient_admission(1, 1, 4096);
    let _held = admission.slot(&network(0), None).await.expect("free");
    let begun = Instant::now();
    let owners = (0..2000).map(|number: u32| network((number % 200 + 1) as u8));
    let all = waiting(&admission, owners).await;
    tokio::time::sleep(4 * LOOK).await;
    let looks = admission.slots.looks();
    let most = begun.elapsed().as_millis() / LOOK.as_millis();
    assert!(looks > 0 && u128::from(looks) <= most, "{looks} looks");
    for one in &all {
        assert!(!one.is_finished(), "it waits");
        one.abort();
    }
    // Without waiting requests, no check takes place.
    tokio::time::sleep(2 * LOOK).await;
    let looks = admission.slots.looks();
    tokio::time::sleep(2 * LOOK).await;
    assert_eq!(admission.slots.looks(), looks);
}

#[tokio::test]
async fn a_request_waits_behind_one_of_each_other_account() {
    let admission = patient_admission(4, 1, 4096);
    let one_of = |number: u8| SlotOwner::User(format!("user{number}").into());
    let mut held = Vec::new();
    for number in 1..=3 {
        held.push(admission.slot(&network(number), None).await.expect("free"));
    }
    let user = admission
        .slot(&one_of(0), None)
        .await
        .expect("kept for users");
    // Each account has a share of one slot, so all these requests wait.
    let hostile = (0..1000).map(|number: u32| network((number % 3 + 4) as u8));
    let mut hostile = waiting(&admission, hostile).await;
    let honest = waiting(&admission, [network(9), one_of(1)]).await;
    let is_served = |index: usize| {
        let one = honest.get(index);
        one.is_some_and(tokio::task::JoinHandle::is_finished)
    };
    drop(user);
    tokio::task::yield_now().await;
    assert!(is_served(1), "a user is next");
    let mut freed = 0;
    while !is_served(0) {
        freed += 1;
        let ended = hostile
            .iter()
            .position(tokio::task::JoinHandle::is_finished);
        match (held.pop(), ended) {
            (Some(slot), _) => drop(slot),
            // The result of the task contains its slot.
            (None, Some(index)) => drop(hostile.remove(index)),
            (None, None) => unreachable!("slots are held by these alone"),
        }
        for _ in 0..4 {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(
        freed, 4,
        "one for each account before this one, and its own"
    );
}

#[tokio::test]
async fn the_longest_queue_gives_its_places_to_others() {
    let admission = patient_admission(2, 1, 16);
    let _one = admission.slot(&network(1), None).await.expect("free");
    let _two = admission
        .slot(&SlotOwner::User("a".into()), None)
        .await
        .expect("free");
    let many = |number: u8| std::iter::repeat_n(network(number), 8);
    // A quarter of the 16 queue entries is reserved for users, and an account has at most 8.
    let hostile = waiting(&admission, many(2).chain(many(3))).await;
    let honest = waiting(&admission, [network(4), network(5)]).await;
    let count = |all: &[tokio::task::JoinHandle<Result<RequestSlot>>]| {
        all.iter().filter(|one| one.is_finished()).count()
    };
    for _ in 0..4 {
        tokio::task::yield_now().await;
    }
    assert_eq!((count(&hostile), count(&honest)), (4 + 2, 0));
}

#[tokio::test]
async fn a_request_that_gives_up_leaves_nothing_behind() {
    let admission = patient_admission(1, 1, 16);
    let held = admission.slot(&network(1), None).await.expect("free");
    for one in waiting(&admission, (2..8).map(network)).await {
        one.abort();
        // The task has been cancelled.
        let _ = one.await;
    }
    drop(held);
    let slot = admission.slot(&network(9), None).await.expect("free");
    drop(slot);
    assert!(admission.slots.is_unused());
}

#[tokio::test]
async fn a_peer_that_stalls_loses_its_slot() {
    let admission = Arc::new(Admission::new(&ServerLimits {
        requests: 1,
        wait: Duration::from_secs(60),
        ..ServerLimits::default()
    }));
    let slot = admission.slot(&network(1), None).await.expect("free");
    let wait = slot.peer().wait(GRACE);
    let holder = tokio::spawn(async move {
        let _wait = wait;
        slot.peer().evicted().await;
        assert!(slot.peer().is_evicted());
    });
    admission.slot(&network(2), None).await.expect("given back");
    holder.await.expect("it has lost its slot");
}

#[tokio::test]
async fn a_peer_that_works_keeps_its_slot() {
    let admission = Admission::new(&ServerLimits {
        requests: 1,
        wait: 2 * LOOK,
        ..ServerLimits::default()
    });
    let slot = admission.slot(&network(1), None).await.expect("free");
    drop(slot.peer().wait(GRACE));
    admission
        .slot(&network(2), None)
        .await
        .expect_err("it is served");
    let _wait = slot.peer().wait(Duration::ZERO);
    admission
        .slot(&network(2), None)
        .await
        .expect_err("not for long");
    assert!(!slot.peer().is_evicted());
}

#[test]
fn memory_has_shares() {
    let admission = large_admission();
    let hold = |owner: SlotOwner, bytes: u64| {
        let budget = admission.budget(&owner);
        budget.charge(bytes).map(|()| budget)
    };
    let _one = hold(network(1), 500).expect("its share");
    hold(network(1), 1).expect_err("more than its share");
    let _two = hold(network(2), 250).expect("room");
    hold(network(3), 1).expect_err("a quarter is for users");
    let _user = hold(SlotOwner::User("a".into()), 250).expect("room");
    hold(SlotOwner::User("b".into()), 1).expect_err("no room");
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
