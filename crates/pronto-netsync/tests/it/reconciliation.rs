//! Tests that every difference is found with every limit, at a cost proportional to the difference.
//! The crate `negentropy` is the oracle of both.

use std::collections::BTreeSet;

use negentropy::{Id, Negentropy, NegentropyStorageVector};
use pronto_netsync::reconcile::{Fingerprinter, Options, Reconciler, SetBuilder, SortedSet};

use test_support::Random;

/// A date and an id, as of a SHA-1 commit. Costs are compared with negentropy, whose ids have 32
/// bytes, so twelve zeros are appended.
type Item = (u64, [u8; 20]);

fn padded(id: &[u8; 20]) -> [u8; 32] {
    let mut out = [0; 32];
    out[..20].copy_from_slice(id);
    out
}

#[derive(Debug, PartialEq, Eq)]
struct Found {
    have: BTreeSet<Item>,
    need: BTreeSet<Item>,
}

#[derive(Debug)]
struct Cost {
    bytes: usize,
    messages: usize,
}

fn item(random: &mut Random, date: u64) -> Item {
    let mut id = [0; 20];
    for part in id.chunks_exact_mut(4) {
        part.copy_from_slice(&(random.number() as u32).to_le_bytes());
    }
    (date, id)
}

/// Creates `count` shared items and `different` items of one side. The dates of the latter are
/// spread over all, or over the newest `4 * different`.
fn pair(count: u64, different: u64, clustered: bool, seed: u64) -> (Vec<Item>, Vec<Item>) {
    let mut random = Random::new(seed);
    let start = 1_200_000_000;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for at in 0..count {
        let item = item(&mut random, start + 600 * at);
        ours.push(item);
        theirs.push(item);
    }
    let oldest = if clustered {
        count.saturating_sub(4 * different)
    } else {
        0
    };
    for _ in 0..different {
        let date = start + 600 * oldest + random.below(600 * (count - oldest).max(1));
        let item = item(&mut random, date);
        let side = if random.below(2) == 0 {
            &mut ours
        } else {
            &mut theirs
        };
        side.push(item);
    }
    (ours, theirs)
}

fn set(items: &[Item], key: &Fingerprinter) -> SortedSet {
    let mut builder = SetBuilder::default();
    for (date, id) in items {
        builder.push(&[&date.to_be_bytes()[..], id].concat(), b"");
    }
    builder.finish(key).expect("no item twice")
}

fn item_of(key: &[u8]) -> Item {
    let (date, id) = key.split_first_chunk().expect("a date first");
    (
        u64::from_be_bytes(*date),
        id.try_into().expect("an id behind"),
    )
}

fn ours_alone(ours: &[Item], theirs: &[Item], limit: usize) -> (Found, Cost) {
    let key = Fingerprinter::new([3; 32]);
    let (ours, theirs) = (set(ours, &key), set(theirs, &key));
    let mut options = Options::default();
    options.message_bytes = limit;
    options.list_below = 0;
    options.turns = 100_000;
    let mut here = Reconciler::new(&ours, &key, options);
    let mut there = Reconciler::new(&theirs, &key, options);
    let mut cost = Cost {
        bytes: 0,
        messages: 0,
    };
    let mut count = |message: &[u8]| {
        assert!(message.len() <= limit, "{} > {limit}", message.len());
        cost.bytes += message.len() + 6;
        cost.messages += 1;
    };
    let mut question = Some(here.start());
    while let Some(message) = question {
        count(&message);
        let Some(answer) = there.receive(&message).expect("sound") else {
            break;
        };
        count(&answer);
        question = here.receive(&answer).expect("sound");
    }
    assert!(here.is_done() && there.is_done());
    let places =
        |set: &SortedSet, places: &[usize]| places.iter().map(|&at| item_of(set.key(at))).collect();
    let learned = |side: &mut Reconciler<&SortedSet>| {
        side.learned()
            .iter()
            .map(|entry| item_of(&entry.key))
            .collect()
    };
    let found = Found {
        have: places(&ours, here.lacking()),
        need: learned(&mut here),
    };
    // The other side found the same difference, with the sides exchanged.
    let other = Found {
        have: learned(&mut there),
        need: places(&theirs, there.lacking()),
    };
    assert!(found == other, "the sides disagree");
    (found, cost)
}

fn oracle(ours: &[Item], theirs: &[Item]) -> (Found, Cost) {
    let storage = |items: &[Item]| {
        let mut storage = NegentropyStorageVector::new();
        for (date, id) in items {
            storage
                .insert(*date, Id::from_byte_array(padded(id)))
                .expect("not sealed");
        }
        storage.seal().expect("once");
        storage
    };
    let mut here = Negentropy::owned(storage(ours), 0).expect("no limit");
    let mut there = Negentropy::owned(storage(theirs), 0).expect("no limit");
    let (mut have, mut need) = (Vec::new(), Vec::new());
    let mut cost = Cost {
        bytes: 0,
        messages: 0,
    };
    let mut question = Some(here.initiate().expect("the first"));
    while let Some(message) = question {
        let answer = there.reconcile(&message).expect("sound");
        cost.bytes += message.len() + answer.len();
        cost.messages += 2;
        question = here
            .reconcile_with_ids(&answer, &mut have, &mut need)
            .expect("sound");
    }
    let dated = |ids: Vec<Id>, items: &[Item]| {
        let ids: BTreeSet<[u8; 32]> = ids.iter().map(|id| **id).collect();
        items
            .iter()
            .filter(|(_, id)| ids.contains(&padded(id)))
            .copied()
            .collect()
    };
    (
        Found {
            have: dated(have, ours),
            need: dated(need, theirs),
        },
        cost,
    )
}

fn compare(count: u64, different: u64, clustered: bool) {
    let (ours, theirs) = pair(count, different, clustered, count + different);
    let (expected, theirs_cost) = oracle(&ours, &theirs);
    assert_eq!(
        (expected.have.len() + expected.need.len()) as u64,
        different
    );
    let (found, cost) = ours_alone(&ours, &theirs, usize::MAX / 4);
    assert!(found == expected, "not what negentropy finds");
    let what = format!(
        "N {count} d {different} clustered {clustered}: {cost:?}, negentropy {theirs_cost:?}"
    );
    assert!(cost.bytes <= theirs_cost.bytes * 6 / 5 + 64, "{what}");
    // log16 N + 2 round trips.
    let rounds = (count.max(16).ilog2() as usize).div_ceil(4) + 2;
    assert!(cost.messages <= 2 * rounds, "{what}");
    if different == 0 {
        assert!(cost.bytes <= 512 && cost.messages <= 4, "{what}");
    }
    if count <= 10_000 {
        for limit in [8192, 9001, 20_000, 262_142] {
            assert!(
                ours_alone(&ours, &theirs, limit).0 == expected,
                "limit {limit}"
            );
        }
    }
}

#[test]
fn every_difference_is_found_at_the_price_of_negentropy() {
    for different in [0, 1, 10, 100, 1000, 10_000] {
        for clustered in [false, true] {
            compare(10_000, different, clustered);
        }
    }
    compare(0, 0, false);
    compare(1, 1, false);
    compare(31, 5, false);
}

/// Slow without optimisation: `PRONTO_SLOW_TESTS=1`.
#[test]
fn a_million() {
    if std::env::var_os("PRONTO_SLOW_TESTS").is_none() {
        return;
    }
    for different in [0, 1, 10, 100, 1000, 10_000] {
        for clustered in [false, true] {
            compare(1_000_000, different, clustered);
        }
    }
}

#[test]
fn one_side_with_nothing_gets_everything() {
    let (ours, _) = pair(5_000, 0, false, 1);
    for limit in [8192, 100_000] {
        assert_eq!(ours_alone(&ours, &[], limit).0.have.len(), 5_000);
        assert_eq!(ours_alone(&[], &ours, limit).0.need.len(), 5_000);
    }
}

#[test]
fn values_are_part_of_entries_and_long_names_fit() {
    let key = Fingerprinter::new([5; 32]);
    let mut random = Random::new(9);
    let (mut left, mut right) = (SetBuilder::default(), SetBuilder::default());
    let (mut only_left, mut only_right) = (0, 0);
    for at in 0..3_000 {
        // Names of up to 1,024 bytes with long common prefixes.
        let name = format!(
            "refs/heads/{}{at:05}",
            "x".repeat(random.below(1008) as usize)
        );
        match random.below(20) {
            0 => {
                left.push(name.as_bytes(), &[1; 20]);
                only_left += 1;
            }
            1 => {
                right.push(name.as_bytes(), &[1; 20]);
                only_right += 1;
            }
            2 => {
                left.push(name.as_bytes(), &[1; 20]);
                right.push(name.as_bytes(), &[2; 40]);
                only_left += 1;
                only_right += 1;
            }
            _ => {
                left.push(name.as_bytes(), &[1; 20]);
                right.push(name.as_bytes(), &[1; 20]);
            }
        }
    }
    let (left, right) = (
        left.finish(&key).expect("sound"),
        right.finish(&key).expect("sound"),
    );
    for limit in [8192, 50_000, 262_142] {
        let mut options = Options::default();
        options.message_bytes = limit;
        options.turns = 1000;
        let mut here = Reconciler::new(&left, &key, options);
        let mut there = Reconciler::new(&right, &key, options);
        let mut question = Some(here.start());
        while let Some(message) = question {
            assert!(message.len() <= limit);
            let Some(answer) = there.receive(&message).expect("sound") else {
                break;
            };
            assert!(answer.len() <= limit);
            question = here.receive(&answer).expect("sound");
        }
        assert_eq!(
            (here.learned().len(), here.lacking().len()),
            (only_right, only_left)
        );
        assert_eq!(
            (there.learned().len(), there.lacking().len()),
            (only_left, only_right)
        );
    }
}
