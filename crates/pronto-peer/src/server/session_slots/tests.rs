//! Tests of the distribution of slots.

use std::net::IpAddr;

use super::*;

fn who(name: &str, last: u8) -> Who {
    Who {
        name: name.to_owned(),
        network: PeerNetwork::of(IpAddr::from([10, 0, 0, last])),
    }
}

fn places(count: u64, slow: Duration, turn: Duration) -> Arc<SessionSlots> {
    let limits = PeerLimits {
        waiting: Duration::from_secs(30),
        slow,
        turn,
        ..PeerLimits::default()
    };
    Arc::new(SessionSlots::new(&limits, count * BASE_BYTES))
}

/// Takes a slot if one is free.
fn take(places: &Arc<SessionSlots>, number: u64, who: &Who) -> Result<SessionSlot, ErrorKind> {
    let place = places.take(number, who, &Arc::default(), &|| true);
    place.map_err(|error| error.kind())
}

const LONG: Duration = Duration::from_secs(3600);

#[test]
fn peers_that_stall_leave_places_for_others_whatever_the_size() {
    for count in [0, 1, 4, 7, 100] {
        let places = places(count, LONG, LONG);
        let (mut held, mut number) = (Vec::new(), 0);
        for peer in ["a", "b"] {
            while let Ok(place) = take(&places, number, &who(peer, 1)) {
                held.push(place);
                number += 1;
            }
        }
        assert!(held.len() <= places.most.div_ceil(2), "{count}");
        take(&places, number, &who("c", 1)).expect("there is room");
    }
}

#[test]
fn a_slow_session_loses_its_place_to_one_that_waits() {
    let places = places(4, Duration::from_secs(1), LONG);
    let signals: Vec<Arc<SlotSignal>> = (0..4).map(|_| Arc::default()).collect();
    let held: Vec<SessionSlot> = (0..4)
        .map(|at| {
            let who = who(&format!("p{at}"), at);
            let signal = &signals[usize::from(at)];
            let place = places.take(u64::from(at), &who, signal, &|| true);
            place.expect("there is room")
        })
        .collect();
    assert_eq!(
        take(&places, 4, &who("q", 9)).err(),
        Some(ErrorKind::Closed),
        "all are quick"
    );
    for (signal, seconds) in signals.iter().zip([0, 2, 3, 0]) {
        signal.keep(Duration::from_secs(seconds)).expect("its own");
    }
    let fifth = take(&places, 5, &who("q", 9)).expect("the slowest makes room");
    let lost: Vec<bool> = (signals.iter())
        .map(|signal| signal.keep(Duration::ZERO).is_err())
        .collect();
    assert_eq!(lost, [false, false, true, false]);
    // A lost slot is not released twice.
    drop(held);
    assert_eq!(places.state().holders.len(), 1);
    drop(fifth);
    assert!(places.state().holders.is_empty());
}

#[test]
fn a_network_with_many_keys_gives_way_to_others() {
    let places = places(4, LONG, Duration::ZERO);
    let signals: Vec<Arc<SlotSignal>> = (0..4).map(|_| Arc::default()).collect();
    let _held: Vec<SessionSlot> = (0..4)
        .map(|at| {
            let signal = &signals[at as usize];
            let place = places.take(at, &who(&format!("p{at}"), 1), signal, &|| true);
            place.expect("there is room")
        })
        .collect();
    take(&places, 4, &who("q", 1))
        .err()
        .expect("of the same network");
    let _fifth = take(&places, 5, &who("q", 2)).expect("of another network");
    let lost: Vec<bool> = (signals.iter())
        .map(|signal| signal.keep(Duration::ZERO).is_err())
        .collect();
    assert_eq!(lost, [false, false, false, true], "the newest");
}

#[test]
fn more_is_held_while_there_is_room() {
    let places = places(8, Duration::from_secs(1), LONG);
    let first = take(&places, 0, &who("a", 1)).expect("there is room");
    first.hold(100 * BASE_BYTES).expect("it is alone");
    take(&places, 1, &who("b", 2)).err().expect("all is held");
    first.hold(6 * BASE_BYTES).expect("less");
    let second = take(&places, 2, &who("b", 2)).expect("there is room");
    // The peer of the first session is slow.
    first.signal.keep(Duration::from_secs(2)).expect("its own");
    second.hold(3 * BASE_BYTES).expect("the slow one gives way");
    assert_eq!(
        first.hold(0).map_err(|error| error.kind()),
        Err(ErrorKind::Busy)
    );
}

#[test]
fn a_peer_waits_so_often_and_no_more() {
    let limits = PeerLimits {
        sessions_per_peer: 0,
        ..PeerLimits::default()
    };
    let places = Arc::new(SessionSlots::new(&limits, 1 << 30));
    let refused = take(&places, 0, &who("a", 1)).err();
    assert_eq!(refused, Some(ErrorKind::Busy));
}
