//! Tests of the choice of the connection that is closed to admit another one.

use std::io::Read as _;
use std::net::TcpListener;

use super::*;

fn connections(most: usize, most_of_network: usize) -> Connections {
    let all = Connections::new(&ServerLimits {
        connections: most,
        connections_per_address: most_of_network,
        ..ServerLimits::default()
    });
    // No connection counts as new in these tests.
    locked(&all.0).new = Duration::ZERO;
    all
}

fn address(last: u8) -> IpAddr {
    [127, 0, 0, last].into()
}

fn user(name: &str) -> SlotOwner {
    SlotOwner::User(name.into())
}

fn is_evicted(connected: &ConnectionGuard) -> bool {
    connected.connection().is_evicted()
}

#[test]
fn connections_are_bounded_in_all_and_per_address() {
    let all = connections(3, 2);
    let first = all.enter(address(1)).expect("room");
    let _second = all.enter(address(1)).expect("room");
    assert_eq!(
        all.enter(address(1)).err(),
        Some(ConnectionRefusal::Address)
    );
    let _third = all.enter(address(2)).expect("room");
    let fourth = all.enter(address(2)).expect("the first makes room");
    assert!(is_evicted(&first));
    assert_eq!(all.count(), 3);
    // The connection is not counted twice.
    drop(first);
    assert_eq!(all.count(), 3);
    assert_eq!(
        all.enter(address(2)).err(),
        Some(ConnectionRefusal::Address)
    );
    drop(fourth);
    let _fifth = all.enter(address(2)).expect("room");
    // No network has more connections than the networks of these.
    let all = connections(2, 2);
    let held = [1, 2].map(|last| all.enter(address(last)).expect("room"));
    assert_eq!(all.enter(address(1)).err(), Some(ConnectionRefusal::Server));
    drop(held);
    assert!(all.is_unused());
}

#[test]
fn four_addresses_do_not_keep_others_out() {
    let all = connections(16, 4);
    let hostile: Vec<_> = (0..16)
        .map(|number| all.enter(address(number % 4 + 1)).expect("room"))
        .collect();
    assert_eq!(
        all.enter(address(1)).err(),
        Some(ConnectionRefusal::Address)
    );
    let honest: Vec<_> = (10..20)
        .map(|last| all.enter(address(last)).expect("another makes room"))
        .collect();
    assert!(!honest.iter().any(is_evicted));
    let gone: Vec<_> = hostile.iter().map(is_evicted).collect();
    // The oldest connection of each address, in turn.
    assert_eq!(gone.iter().filter(|gone| **gone).count(), 10);
    assert!(gone[..8].iter().all(|gone| *gone), "{gone:?}");
    assert_eq!(all.count(), 16);
    drop((hostile, honest));
    assert!(all.is_unused());
}

#[test]
fn many_networks_are_left_in_the_order_of_their_age() {
    let all = connections(4, 4);
    let mut held: Vec<_> = (1..=4)
        .map(|last| all.enter(address(last)).expect("room"))
        .collect();
    for last in 5..=8 {
        held.push(all.enter(address(last)).expect("the oldest makes room"));
        let gone = held.iter().take_while(|it| is_evicted(it)).count();
        assert_eq!(
            (gone, held.len()),
            (usize::from(last) - 4, usize::from(last))
        );
        assert!(!held[gone..].iter().any(is_evicted));
    }
}

#[test]
fn connections_with_slots_and_of_users_stay() {
    let all = connections(4, 4);
    let held: Vec<_> = (0..4)
        .map(|_| all.enter(address(1)).expect("room"))
        .collect();
    let works = held[0].connection().hold().expect("it is open");
    held[1].connection().belongs_to(&user("a"));
    held[2]
        .connection()
        .belongs_to(&SlotOwner::Administrator("root".into()));
    let second = all.enter(address(2)).expect("another makes room");
    let gone: Vec<_> = held.iter().map(is_evicted).collect();
    assert_eq!(gone, [false, false, false, true]);
    held[3].connection().hold().expect_err("it is over");
    // The release of its slot was the last event on the connection.
    drop(works);
    let third = all.enter(address(3)).expect("the second makes room");
    assert!(is_evicted(&second) && !is_evicted(&held[0]));
    let mut busy = Vec::new();
    for (last, next) in [(4, &held[0]), (5, &third), (6, &held[1]), (7, &held[2])] {
        assert!(!is_evicted(next));
        let one = all.enter(address(last)).expect("another makes room");
        let works = one.connection().hold().expect("it is open");
        assert!(is_evicted(next), "{last}");
        busy.push((works, one));
    }
    assert_eq!(all.enter(address(8)).err(), Some(ConnectionRefusal::Server));
    drop(busy);
    drop((held, second, third));
    assert!(all.is_unused());
}

#[test]
fn a_user_with_many_connections_leaves_room_for_others() {
    let all = connections(8, 8);
    let many: Vec<_> = (0..7)
        .map(|_| all.enter(address(1)).expect("room"))
        .collect();
    for one in &many {
        one.connection().belongs_to(&user("mallory"));
    }
    let honest = all.enter(address(1)).expect("room");
    honest.connection().belongs_to(&user("bob"));
    let mut new = Vec::new();
    for number in 0..6 {
        let one = all.enter(address(2)).expect("another makes room");
        one.connection().belongs_to(&user(&format!("user{number}")));
        new.push(one);
    }
    assert!(!is_evicted(&honest) && !new.iter().any(is_evicted));
    let gone = many.iter().take_while(|it| is_evicted(it)).count();
    assert_eq!(gone, 6);
}

#[test]
fn users_stay_while_strangers_can_leave() {
    let all = connections(4, 4);
    let users: Vec<_> = (0..3)
        .map(|number| {
            let one = all.enter(address(1)).expect("room");
            one.connection().belongs_to(&user(&number.to_string()));
            one
        })
        .collect();
    let mut strangers = vec![all.enter(address(2)).expect("room")];
    assert_eq!(all.enter(address(2)).err(), Some(ConnectionRefusal::Server));
    for last in 3..=9 {
        strangers.push(all.enter(address(last)).expect("a stranger makes room"));
    }
    assert!(!users.iter().any(is_evicted));
    assert_eq!(strangers.iter().filter(|it| is_evicted(it)).count(), 7);
}

#[test]
fn a_new_connection_has_time_to_tell_its_user() {
    let all = connections(8, 8);
    let many: Vec<_> = (0..7)
        .map(|_| all.enter(address(1)).expect("room"))
        .collect();
    for one in &many {
        one.connection().belongs_to(&user("mallory"));
    }
    locked(&all.0).new = Duration::from_secs(3600);
    let first = all.enter(address(2)).expect("room");
    let second = all
        .enter(address(2))
        .expect("the user with the most makes room");
    let third = all
        .enter(address(3))
        .expect("the address with two makes room");
    let fourth = all
        .enter(address(3))
        .expect("the user with the most makes room");
    assert_eq!(many.iter().filter(|it| is_evicted(it)).count(), 2);
    assert!(is_evicted(&first) && !is_evicted(&second) && !is_evicted(&third));
    drop((many, fourth));
    let new: Vec<_> = (4..=9)
        .map(|last| all.enter(address(last)).expect("room"))
        .collect();
    assert_eq!(
        all.enter(address(10)).err(),
        Some(ConnectionRefusal::Server)
    );
    locked(&all.0).new = Duration::ZERO;
    let _last = all.enter(address(10)).expect("the second makes room");
    assert!(is_evicted(&second) && !new.iter().any(is_evicted));
    locked(&all.0).new = Duration::from_secs(3600);
    // This connection has made a request without a user.
    third
        .connection()
        .belongs_to(&SlotOwner::Network(Network::of(address(3))));
    let _one = all.enter(address(11)).expect("the third makes room");
    assert!(is_evicted(&third) && !new.iter().any(is_evicted));
}

#[tokio::test]
async fn the_end_is_told_to_tasks_and_threads() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a place");
    let at = listener.local_addr().expect("an address");
    let mut client = TcpStream::connect(at).expect("it listens");
    let (server, _) = listener.accept().expect("a client connects");
    let server = Arc::new(server);
    let all = connections(1, 1);
    let first = all.enter(address(1)).expect("room");
    first.connection().served_by_thread(Arc::clone(&server));
    let second = all.enter(address(2)).expect("the first makes room");
    assert_eq!(client.read(&mut [0]).expect("it is ended"), 0);
    first.connection().evicted().await;
    // The end may precede the socket.
    let third = all.enter(address(3)).expect("the second makes room");
    let mut client = TcpStream::connect(at).expect("it listens");
    let (server, _) = listener.accept().expect("a client connects");
    second.connection().served_by_thread(Arc::new(server));
    assert_eq!(client.read(&mut [0]).expect("it is ended"), 0);
    assert!(!is_evicted(&third));
}
