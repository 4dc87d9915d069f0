//! Checks a history: the generations are the single order of all pushes, the order is consistent
//! with real time, and only the objects of the newest generation remain.

mod existence;

use std::collections::{BTreeMap, BTreeSet};

use bstr::BString;
use pronto_hash::ObjectId;
use pronto_io::view::FileView;
use pronto_refs::reftable::{RefTable, StackSnapshot};

use super::client::{Observations, PushResult, SeenPush, shown};
use super::content::{self, ObjectLinks};
use super::world::{CreatedGeneration, PREFIX, World};
use crate::digest::Digest;
use crate::manifest::{Manifest, TableStorage};
use crate::refs::{self, ExpectedRefValue, RefDecision, RefUpdate, StoredRefValue};
use crate::{name, tables};

/// The refs of a generation.
type SimulatedRefs = BTreeMap<BString, ObjectId>;

/// Returns all violations.
pub(super) fn check(world: &World, observations: &Observations) -> Vec<String> {
    let mut checker = SimulationChecker {
        world,
        refs: refs_of_all(world),
        violations: world.violations.clone(),
    };
    checker
        .violations
        .extend(observations.violations.iter().cloned());
    checker.chain();
    checker.reads(observations);
    checker.changes(observations);
    existence::check(&mut checker, observations);
    for push in &observations.pushes {
        checker.acknowledged(push);
        checker.refusals(push);
    }
    checker.newest_is_complete();
    checker.garbage();
    checker.violations
}

/// Returns a digest of all events.
pub(super) fn digest(world: &World) -> String {
    let mut text = format!("{} {:?}\n", world.calls, world.violations);
    for created in &world.log {
        text.push_str(&format!(
            "{:?} {}\n",
            created.at,
            Digest::of(&created.bytes)
        ));
    }
    for (name, (bytes, modified)) in &world.objects {
        text.push_str(&format!("{name} {modified:?} {}\n", Digest::of(bytes)));
    }
    Digest::of(text.as_bytes()).to_string()
}

struct SimulationChecker<'a> {
    world: &'a World,
    /// The refs of all generations. Generation 0 has no refs.
    refs: Vec<SimulatedRefs>,
    violations: Vec<String>,
}

fn refs_of_all(world: &World) -> Vec<SimulatedRefs> {
    let mut all = vec![SimulatedRefs::new()];
    let mut known = StackSnapshot::default();
    for created in &world.log {
        let names: Vec<_> = created
            .manifest
            .tables
            .iter()
            .map(tables::table_name)
            .collect();
        let opened = StackSnapshot::of(&names, &known, |name| {
            let at = names
                .iter()
                .position(|other| other == name)
                .expect("it is one of them");
            let bytes = table(world, &created.manifest, at);
            RefTable::from_view(FileView::from_bytes(bytes), name.as_str())
        });
        known = opened.expect("sound tables");
        let values = refs::all(&known).expect("sound tables");
        let direct = values.into_iter().filter_map(|(name, value)| match value {
            StoredRefValue::Direct { id, .. } => Some((name, id)),
            StoredRefValue::Symbolic(_) => None,
        });
        all.push(direct.collect());
    }
    all
}

fn table(world: &World, manifest: &Manifest, at: usize) -> Vec<u8> {
    let record = &manifest.tables[at];
    match &record.place {
        TableStorage::Inline(bytes) => bytes.to_vec(),
        TableStorage::Object { .. } => {
            let name = format!("{PREFIX}{}", name::table(record.upload));
            world
                .history
                .get(&name)
                .map(|bytes| bytes.to_vec())
                .unwrap_or_default()
        }
    }
}

fn value_after(update: &RefUpdate) -> Option<ObjectId> {
    match &update.new {
        Some(StoredRefValue::Direct { id, .. }) => Some(*id),
        _ => None,
    }
}

fn value_before(update: &RefUpdate) -> Option<ObjectId> {
    match update.old {
        ExpectedRefValue::Id(id) => Some(id),
        _ => None,
    }
}

impl SimulationChecker<'_> {
    fn fail(&mut self, message: String) {
        self.violations.push(message);
    }

    /// Checks that each generation references its predecessor.
    fn chain(&mut self) {
        for at in 1..self.world.log.len() {
            let [before, after]: &[CreatedGeneration; 2] =
                match self.world.log[at - 1..=at].try_into() {
                    Ok(pair) => pair,
                    Err(_) => return,
                };
            if after.manifest.replaces != Some(Digest::of(&before.bytes)) {
                self.fail(format!(
                    "generation {} does not replace the one before",
                    at + 1
                ));
            }
        }
    }

    /// Checks that each request reads a generation that was the newest one at some time during the
    /// request.
    fn reads(&mut self, observations: &Observations) {
        for read in &observations.reads {
            let least = self.world.newest_at(read.begun);
            let most = self.world.newest_at(read.ended);
            if !(least..=most).contains(&read.generation) {
                self.fail(format!(
                    "a request from {:?} to {:?} saw generation {} instead of {least} to {most}",
                    read.begun, read.ended, read.generation
                ));
            }
        }
    }

    /// Checks that each change of a ref is part of a push with the same expected old value, and
    /// that no value occurs again.
    fn changes(&mut self, observations: &Observations) {
        let mut gone: BTreeSet<ObjectId> = BTreeSet::new();
        for number in 1..self.refs.len() {
            let (before, after) = (&self.refs[number - 1], &self.refs[number]);
            let names: BTreeSet<&BString> = before.keys().chain(after.keys()).collect();
            let mut wrong = Vec::new();
            for name in names {
                let (old, new) = (before.get(name).copied(), after.get(name).copied());
                if old == new {
                    continue;
                }
                let updates = updates_at(observations, number as u64, name);
                let is_removed = self.world.log[number - 1].manifest.is_removed;
                if !is_removed && !explains(old, new, &updates) {
                    wrong.push(format!(
                        "generation {number} changes {} from {old:?} to {new:?}, which no push did",
                        shown(name)
                    ));
                }
                if new.is_some_and(|id| gone.contains(&id)) {
                    let name = shown(name);
                    wrong.push(format!(
                        "generation {number} gives {name} an old value again"
                    ));
                }
                gone.extend(old);
            }
            self.violations.extend(wrong);
        }
    }

    /// Checks that each acknowledged change is in the generation of the response, which was created
    /// during the push.
    fn acknowledged(&mut self, push: &SeenPush) {
        let PushResult::Answered(outcome) = &push.ending else {
            return;
        };
        if push.applied().next().is_none() {
            return;
        }
        let number = outcome.generation as usize;
        let created = self.world.log.get(number - 1).map(|created| created.at);
        if created.is_none_or(|at| at < push.begun || at > push.ended) {
            self.fail(format!(
                "generation {number} was not created while its push ran"
            ));
            return;
        }
        for update in push.applied() {
            let (old, new) = (&self.refs[number - 1], &self.refs[number]);
            let (old, new) = (old.get(&update.name), new.get(&update.name));
            // Another push of the same group can precede or follow.
            let fits = value_after(update) == new.copied() || value_before(update) == old.copied();
            if !fits || old == new {
                let name = shown(&update.name);
                self.fail(format!(
                    "generation {number} lacks an acknowledged change of {name}"
                ));
            }
        }
    }

    /// Checks that no refused change happened, and that the ref had another old value at some time.
    fn refusals(&mut self, push: &SeenPush) {
        for (update, verdict) in push.refused() {
            if let Some(id) = value_after(update)
                && let Some(number) = self
                    .refs
                    .iter()
                    .position(|refs| refs.values().any(|at| *at == id))
            {
                let name = shown(&update.name);
                self.fail(format!(
                    "generation {number} has a refused change of {name}"
                ));
            }
            if !matches!(verdict, Some(RefDecision::Stale(_))) {
                continue;
            }
            let first = self.world.newest_at(push.begun) as usize;
            let last = self.world.newest_at(push.ended) as usize;
            let expected = value_before(update);
            let differs = |refs: &SimulatedRefs| refs.get(&update.name).copied() != expected;
            if !self.refs[first..=last].iter().any(differs) {
                let name = shown(&update.name);
                self.fail(format!("a push of {name} was refused without a reason"));
            }
        }
    }

    /// Checks that the newest generation has all objects that are reachable from its refs.
    fn newest_is_complete(&mut self) {
        let Some(created) = self.world.log.last() else {
            return;
        };
        let mut objects = ObjectLinks::new();
        for object in created.names.iter().filter(|name| name.ends_with(".pack")) {
            if let Some((bytes, _)) = self.world.objects.get(&format!("{PREFIX}{object}")) {
                content::unpack(bytes, &mut objects);
            }
        }
        let tips = self
            .refs
            .last()
            .into_iter()
            .flat_map(|refs| refs.values().copied());
        if let Some(id) = content::missing(tips, &objects) {
            self.fail(format!("the newest generation lacks the object {id}"));
        }
    }

    /// Checks that only the objects of the newest generation remain.
    fn garbage(&mut self) {
        let Some(newest) = self.world.log.last() else {
            return;
        };
        let number = self.world.log.len() as u64;
        let mut left: BTreeSet<String> = newest.names.clone();
        left.insert(name::generation(number));
        left.insert(name::TIME.into());
        for full in self.world.objects.keys() {
            let short = full.strip_prefix(PREFIX).unwrap_or(full);
            if !left.remove(short) {
                self.violations.push(format!("{short} is left behind"));
            }
        }
    }
}

/// Returns the updates of `name` that must, or may, be part of generation `number`, each with a
/// flag that is set if it must.
fn updates_at<'a>(
    observations: &'a Observations,
    number: u64,
    name: &BString,
) -> Vec<(&'a RefUpdate, bool)> {
    let mut found = Vec::new();
    for push in &observations.pushes {
        match &push.ending {
            PushResult::Answered(outcome) if outcome.generation == number => {
                found.extend(push.applied().map(|update| (update, true)));
            }
            PushResult::Unknown => found.extend(push.updates.iter().map(|update| (update, false))),
            _ => {}
        }
    }
    found.retain(|(update, _)| update.name == *name);
    found
}

/// Returns whether some order of `updates` changes the one value to the other.
fn explains(from: Option<ObjectId>, to: Option<ObjectId>, updates: &[(&RefUpdate, bool)]) -> bool {
    if from == to && updates.iter().all(|(_, must)| !must) {
        return true;
    }
    (0..updates.len()).any(|at| {
        let (update, _) = updates[at];
        let mut others = updates.to_vec();
        others.remove(at);
        value_before(update) == from && explains(value_after(update), to, &others)
    })
}
