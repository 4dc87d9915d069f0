//! Seeded simulations: several servers use one faulty store, with clients that push and read,
//! upkeep, and kills at any step. A seed replays exactly. See `docs/design/store.md`.

mod check;
mod client;
mod content;
mod executor;
mod fairness;
mod random;
mod server;
mod world;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::backend::PlantedFault;
use client::{Observations, SimulatedClient};
use executor::{Tasks, Timeline};
use random::SimulationRandom;
use server::{SERVERS, Servers};
use world::{FaultyBucket, SimulatedFaults, World};

/// The number of clients.
const CLIENTS: usize = 4;

/// The largest number of steps of a history, which no history should reach.
const MOST_STEPS: u64 = 3_000_000;

/// The time after the last request within which all garbage must be deleted.
const END: Duration = Duration::from_secs(4 * 3600);

/// The result of a history.
struct SimulationResult {
    violations: Vec<String>,
    /// The number of generations, and the number of calls of the store.
    generations: usize,
    calls: u64,
    /// A digest of all events of the history.
    digest: String,
}

/// Runs the history of `seed`.
fn run(seed: u64, fault: Option<PlantedFault>) -> SimulationResult {
    let mut random = SimulationRandom::new(seed);
    let timeline = Timeline::default();
    let tasks = Tasks::default();
    let calm = random.chance(20);
    let mut percent = |most: u64| if calm { 0 } else { random.below(most) };
    let faults = SimulatedFaults {
        refused: percent(10),
        lost: percent(10),
        late: percent(4),
        slow: percent(20),
    };
    let bucket = FaultyBucket {
        world: Arc::new(Mutex::new(World::default())),
        timeline: timeline.clone(),
        random: Arc::new(Mutex::new(SimulationRandom::new(random.next()))),
        faults: Arc::new(Mutex::new(faults)),
    };
    let removes = random.chance(40);
    let servers = Servers::new(bucket.clone(), tasks.clone(), fault);
    servers.create();
    tasks.run(&timeline, &mut random, MOST_STEPS);
    for server in 0..SERVERS {
        servers.start(server);
    }
    servers.plan_kills(&mut random);
    let observations = Arc::new(Mutex::new(Observations::default()));
    for number in 0..CLIENTS {
        let mut client =
            SimulatedClient::new(number as u64, &servers, &observations, random.next());
        client.removes = removes;
        tasks.spawn(CLIENTS_GROUP, client.run());
    }
    let mut violations = Vec::new();
    if !tasks.run(&timeline, &mut random, MOST_STEPS) {
        violations.push("the history does not end".into());
    }
    // No call fails from here on, and all garbage must be deleted.
    *bucket.faults.lock().expect("no panic") = SimulatedFaults::default();
    servers.clean_up(END);
    if !tasks.run(&timeline, &mut random, MOST_STEPS) {
        violations.push("cleaning up does not end".into());
    }
    let world = bucket.world.lock().expect("no panic");
    let observations = observations.lock().expect("no panic");
    violations.extend(check::check(&world, &observations));
    SimulationResult {
        violations,
        generations: world.log.len(),
        calls: world.calls,
        digest: check::digest(&world),
    }
}

/// The group of tasks of clients, which are not killed.
const CLIENTS_GROUP: usize = SERVERS;

/// Runs the histories from seed `first`, and stops at the first violation.
fn find(first: u64, count: u64, fault: Option<PlantedFault>) -> Option<(u64, SimulationResult)> {
    let at_once = std::thread::available_parallelism().map_or(1, |count| count.get().min(8)) as u64;
    let found = Mutex::new(None::<(u64, SimulationResult)>);
    std::thread::scope(|scope| {
        for thread in 0..at_once {
            let found = &found;
            scope.spawn(move || {
                for at in (thread..count).step_by(at_once as usize) {
                    if found.lock().expect("no panic").is_some() {
                        return;
                    }
                    let seed = first.wrapping_add(at);
                    let run = run(seed, fault);
                    if !run.violations.is_empty() {
                        found.lock().expect("no panic").get_or_insert((seed, run));
                    }
                }
            });
        }
    });
    found.into_inner().expect("no panic")
}

#[expect(
    clippy::disallowed_methods,
    reason = "long runs are enabled by a variable"
)]
fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn histories_have_no_violation() {
    let count = variable("PRONTO_TEST_HISTORIES").unwrap_or(2000);
    let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let time = time.expect("after 1970").as_nanos() as u64;
    let first = variable("PRONTO_TEST_SEED").unwrap_or(time);
    if let Some((seed, run)) = find(first, count, None) {
        let shown = run.violations.join("\n");
        panic!(
            "the history of seed {seed} is wrong; repeat it with PRONTO_TEST_SEED={seed} \
             PRONTO_TEST_HISTORIES=1:\n{shown}"
        );
    }
}

#[test]
fn a_seed_replays_exactly() {
    for seed in 1..20 {
        let (one, other) = (run(seed, None), run(seed, None));
        assert_eq!(one.digest, other.digest, "{seed}");
        assert_eq!(one.calls, other.calls, "{seed}");
        assert!(one.generations > 3 && one.calls > 100, "{seed}");
    }
}

/// The number of histories within which each fault must be detected.
const ENOUGH: u64 = 10_000;

fn assert_found(fault: PlantedFault) {
    let found = find(1, ENOUGH, Some(fault));
    assert!(found.is_some(), "{fault:?} is not found");
}

#[test]
fn a_commit_before_the_upload_is_found() {
    assert_found(PlantedFault::CommitBeforeUpload);
}

#[test]
fn a_missing_check_after_a_conflict_is_found() {
    assert_found(PlantedFault::NoCheckAfterConflict);
}

#[test]
fn deletion_without_grace_is_found() {
    assert_found(PlantedFault::NoGrace);
}

#[test]
fn a_push_that_rests_on_deleted_objects_is_found() {
    assert_found(PlantedFault::NoCheckOfBase);
}

#[test]
fn deletion_of_objects_that_are_reached_again_is_found() {
    assert_found(PlantedFault::PruneUnchecked);
}

#[test]
fn a_push_that_rests_on_a_removed_repository_is_found() {
    assert_found(PlantedFault::RemovalUnnoticed);
}

#[test]
fn a_stale_read_is_found() {
    assert_found(PlantedFault::StaleRead);
}

#[test]
fn a_double_commit_is_found() {
    assert_found(PlantedFault::DoubleCommit);
}
