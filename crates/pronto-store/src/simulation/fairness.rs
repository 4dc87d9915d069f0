//! A server that commits continuously, and another server that also has to commit.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use super::content;
use super::executor::{Tasks, Timeline};
use super::random::SimulationRandom;
use super::server::{ServerRepository, Servers};
use super::world::{FaultyBucket, SimulatedFaults, World};
use super::{CLIENTS_GROUP, MOST_STEPS};
use crate::change::{PackPush, StoreChange};
use crate::refs::{ExpectedRefValue, RefUpdate, StoredRefValue};

/// The number of commits of the other server.
const COMMITS: u64 = 30;

/// The number of clients of the busy server, which keep its queue from becoming empty.
const BUSY: usize = 8;

/// The largest number of generations for which the other server waits for a commit.
const MOST_GENERATIONS: u64 = 80;

/// Sets the ref `name` to a new value. Returns the generation with this value.
async fn commit(repository: &ServerRepository, name: &str, number: u64) -> u64 {
    let mut push = PackPush::default();
    push.updates.push(RefUpdate {
        name: name.into(),
        old: ExpectedRefValue::Any,
        new: Some(StoredRefValue::direct(content::id(number))),
    });
    let outcome = repository.commit(StoreChange::Push(push)).await;
    outcome.expect("nothing fails").generation
}

#[test]
fn a_busy_server_leaves_turns_to_others() {
    let mut random = SimulationRandom::new(11);
    let (timeline, tasks) = (Timeline::default(), Tasks::default());
    let bucket = FaultyBucket {
        world: Arc::new(Mutex::new(World::default())),
        timeline: timeline.clone(),
        random: Arc::new(Mutex::new(SimulationRandom::new(12))),
        faults: Arc::new(Mutex::new(SimulatedFaults::default())),
    };
    let servers = Servers::new(bucket, tasks.clone(), None);
    servers.create();
    tasks.run(&timeline, &mut random, MOST_STEPS);
    let (busy, other) = (servers.repository(), servers.repository());
    let is_over = Arc::new(AtomicBool::new(false));
    for client in 0..BUSY {
        let (busy, is_over) = (Arc::clone(&busy), Arc::clone(&is_over));
        tasks.spawn(CLIENTS_GROUP, async move {
            let mut number = 1;
            while !is_over.load(Relaxed) {
                commit(&busy, &format!("refs/heads/busy{client}"), number).await;
                number += 1;
            }
        });
    }
    let waits = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&waits);
    tasks.spawn(CLIENTS_GROUP, async move {
        for number in 1..=COMMITS {
            let before = busy.latest().await.expect("nothing fails").number();
            let at = commit(&other, "refs/heads/other", number).await;
            noted.lock().expect("no panic").push(at - before);
        }
        is_over.store(true, Relaxed);
    });
    assert!(tasks.run(&timeline, &mut random, MOST_STEPS), "it ends");
    let waits = waits.lock().expect("no panic");
    assert_eq!(waits.len() as u64, COMMITS);
    let longest = waits.iter().max().copied().unwrap_or_default();
    assert!(longest <= MOST_GENERATIONS, "{waits:?}");
}
