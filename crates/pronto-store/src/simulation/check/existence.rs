//! Checks removals and creations: each generation that marks the repository as removed, or creates
//! it again, belongs to a request, and requests find the repository only in a state that it had
//! during the request.

use super::SimulationChecker;
use crate::simulation::client::{Existence, Observations, SeenExistence};

pub(super) fn check(checker: &mut SimulationChecker<'_>, observations: &Observations) {
    for read in &observations.reads {
        if is_removed(checker, read.generation) {
            let number = read.generation;
            checker.fail(format!(
                "a request saw generation {number}, which is removed"
            ));
        }
    }
    for seen in &observations.existences {
        answer(checker, seen);
    }
    let changes = [
        (Existence::Removed, Existence::MaybeRemoved, true),
        (Existence::Created, Existence::MaybeCreated, false),
    ];
    for (sure, unsure, removes) in changes {
        let generations = changed(checker, removes);
        let of = |existence: Existence| {
            let all = observations.existences.iter();
            all.filter(move |seen| seen.existence == existence)
        };
        for number in &generations {
            let at = checker.world.log[*number as usize - 1].at;
            let explained = of(sure).any(|seen| (seen.begun..=seen.ended).contains(&at))
                || of(unsure).any(|seen| seen.begun <= at);
            if !explained {
                checker.fail(format!("no request made generation {number}: {sure:?}"));
            }
        }
        if generations.len() < of(sure).count() {
            checker.fail(format!(
                "two requests are answered with {sure:?} for one generation"
            ));
        }
    }
}

/// Returns whether generation `number` marks the repository as removed. Generation 0 precedes the
/// first one.
fn is_removed(checker: &SimulationChecker<'_>, number: u64) -> bool {
    match number.checked_sub(1) {
        Some(at) => checker.world.log[at as usize].manifest.is_removed,
        None => true,
    }
}

/// Returns the generations that removed the repository, or created it again.
fn changed(checker: &SimulationChecker<'_>, removes: bool) -> Vec<u64> {
    let last = checker.world.log.len() as u64;
    let is_change = |number: &u64| {
        is_removed(checker, *number) == removes && is_removed(checker, number - 1) != removes
    };
    // The first generation was created before the clients began.
    (2..=last).filter(is_change).collect()
}

fn answer(checker: &mut SimulationChecker<'_>, seen: &SeenExistence) {
    let least = checker.world.newest_at(seen.begun);
    let most = checker.world.newest_at(seen.ended);
    let mut states = (least..=most).map(|number| is_removed(checker, number));
    let is_right = match seen.existence {
        Existence::Absent => states.any(|is_removed| is_removed),
        Existence::Present => states.any(|is_removed| !is_removed),
        Existence::Removed => within(checker, seen, true),
        Existence::Created => within(checker, seen, false),
        Existence::MaybeRemoved | Existence::MaybeCreated => true,
    };
    if !is_right {
        checker.fail(format!("no generation is as {seen:?} says"));
    }
}

/// Returns whether the repository was removed, or created, during a request.
fn within(checker: &SimulationChecker<'_>, seen: &SeenExistence, removes: bool) -> bool {
    let changed = changed(checker, removes);
    changed.iter().any(|number| {
        let at = checker.world.log[*number as usize - 1].at;
        (seen.begun..=seen.ended).contains(&at)
    })
}
