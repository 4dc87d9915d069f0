//! Commits: changes become the next generation, several at once.

mod first;
mod plan;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use crate::backend::{Backend, Fault, has_fault};
use crate::bucket::{Content, Creation};
use crate::clock::Clock as _;
use crate::generations::Generations as _;
use crate::manifest::{Layer, LayerKind, Manifest, TableRecord};
use crate::name::UploadId;
use crate::refs::{RefUpdate, Value, Verdict};
use crate::repository::{Generation, Pauses, Repository};
use crate::upload::Uploaded;
use crate::{Error, ErrorKind, Result};
use pronto_refs::RefNameRef;

pub use first::Creating;
use plan::{Decision, Plan};

/// The most changes that are committed together.
const MOST_TOGETHER: usize = 1000;

/// A change of a repository.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Change {
    /// New packs and refs.
    Push(Push),
    /// Other files for the same content.
    Replace(Replacement),
}

/// New packs and refs.
#[derive(Clone, Debug, Default)]
pub struct Push {
    /// The packs, which have all objects that the refs need and the repository lacks.
    pub packs: Vec<Uploaded>,
    /// The changes of refs, each ref once.
    pub updates: Vec<RefUpdate>,
    /// Whether all refs change or none.
    pub is_atomic: bool,
}

/// Other files for the same content: a step of upkeep.
#[derive(Clone, Debug, Default)]
pub struct Replacement {
    /// The packs that are dropped. They must all be there.
    pub dropped_packs: Vec<UploadId>,
    /// The packs with their objects.
    pub packs: Vec<Uploaded>,
    /// Neighbouring tables that are merged. They must all be there.
    pub tables: Option<MergedTables>,
    /// Layers, which replace all of these kinds.
    pub layers: Vec<(LayerKind, Vec<Layer>)>,
}

/// Tables of which another has all records.
#[derive(Clone, Debug)]
pub struct MergedTables {
    /// The tables, the oldest first.
    pub(crate) old: Vec<UploadId>,
    /// The table with their records, and its bytes; `None` if there are none.
    pub(crate) new: Option<(TableRecord, Bytes)>,
    /// The moment before it was written.
    pub(crate) begun: Duration,
}

/// The result of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The generation in which the change is, or on which it was refused.
    pub generation: u64,
    /// The decision about each ref of a push.
    pub verdicts: Vec<Verdict>,
}

/// Changes that wait for a commit.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: Mutex<Vec<Arc<Waiting>>>,
    /// Held while a commit is on its way.
    turn: tokio::sync::Mutex<()>,
}

/// A change in the queue.
#[derive(Debug)]
struct Waiting {
    change: Change,
    /// The moment from which on the base of the decision must be the newest.
    arrived: Duration,
    outcome: Mutex<Option<Result<Outcome>>>,
}

impl Waiting {
    fn settle(&self, outcome: Result<Outcome>) {
        let mut slot = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        slot.get_or_insert(outcome);
    }

    fn take(&self) -> Option<Result<Outcome>> {
        let mut slot = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        slot.take()
    }
}

/// Changes that are committed together. Those that have no outcome when it is dropped are unknown.
struct Batch(Vec<Arc<Waiting>>);

impl Drop for Batch {
    fn drop(&mut self) {
        for waiting in &self.0 {
            waiting.settle(Err(unknown()));
        }
    }
}

impl<B: Backend> Repository<B> {
    /// Commits a change: it is part of a generation that is the newest at some moment before this returns.
    /// Changes that arrive while a commit is on its way share the next one.
    ///
    /// # Errors
    /// [`ErrorKind::Unknown`]: the change may be there, or appear within the grace period.
    /// [`ErrorKind::Expired`]: the uploads are too old; nothing changed. [`ErrorKind::Conflict`]: what is
    /// to be replaced is not there; nothing changed. As for [`latest`](Repository::latest).
    pub async fn commit(&self, change: Change) -> Result<Outcome> {
        check_names(&change)?;
        let waiting = Arc::new(Waiting {
            change,
            arrived: self.backend.clock().now(),
            outcome: Mutex::new(None),
        });
        self.enqueue(Arc::clone(&waiting));
        loop {
            let turn = self.queue.turn.lock().await;
            if let Some(outcome) = waiting.take() {
                return outcome;
            }
            let batch = self.next_batch();
            if batch.0.is_empty() {
                return Err(unknown());
            }
            let settled = self.commit_batch(&batch).await;
            if let Err(error) = settled {
                for waiting in &batch.0 {
                    waiting.settle(Err(copy(&error)));
                }
            }
            drop(turn);
            if let Some(outcome) = waiting.take() {
                return outcome;
            }
        }
    }

    fn enqueue(&self, waiting: Arc<Waiting>) {
        let queue = &self.queue.waiting;
        let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.push(waiting);
    }

    fn next_batch(&self) -> Batch {
        let queue = &self.queue.waiting;
        let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        let len = queue.len().min(MOST_TOGETHER);
        Batch(queue.drain(..len).collect())
    }

    async fn commit_batch(&self, batch: &Batch) -> Result<()> {
        let changes: Vec<&Change> = batch.0.iter().map(|waiting| &waiting.change).collect();
        let arrived = batch.0.iter().map(|waiting| waiting.arrived).max();
        let arrived = arrived.unwrap_or_default();
        let mut not_before = Duration::ZERO;
        let mut checked = None;
        loop {
            let known = self.base(not_before).await?;
            let base = &*known.generation;
            let old = checked
                .take()
                .filter(|_| has_fault(&*self.backend, Fault::NoCheckAfterConflict));
            let plan = Plan::make(self, base, &changes, old)?;
            // A refusal must rest on a state that was the newest after the change arrived.
            if plan.refuses && known.confirmed < arrived && not_before < arrived {
                not_before = arrived;
                continue;
            }
            let Some(next) = &plan.next else {
                settle_all(batch, &plan.decisions, base.number());
                return Ok(());
            };
            if let Some((name, bytes)) = &next.object {
                let content = Content::Bytes(bytes.clone());
                self.write(vec![(name.clone(), content)]).await?;
            }
            let asked = self.backend.clock().now();
            match self.create_next(base, &plan).await? {
                Settled::Ours => {
                    let generation = next.generation();
                    let number = generation.number();
                    self.learn(Arc::new(generation), asked, None);
                    settle_all(batch, &plan.decisions, number);
                    return Ok(());
                }
                Settled::Theirs(bytes) => {
                    let found = self.accept(&bytes, base.number() + 1, Some(base)).await?;
                    // It was the newest at some moment after its base was.
                    self.learn(Arc::new(found), known.confirmed, None);
                    checked = Some(plan.decisions);
                }
            }
        }
    }

    /// Creates the next generation. The same call is repeated until there is an answer, so that it is
    /// created once at most.
    async fn create_next(&self, base: &Generation, plan: &Plan) -> Result<Settled> {
        let Some(next) = &plan.next else {
            return Err(unknown());
        };
        let number = base.number() + 1;
        let generations = self.backend.generations();
        let mut pauses = Pauses::begin(self);
        let mut may_exist = false;
        loop {
            if !self.is_in_time(base, plan) {
                return Err(if may_exist { unknown() } else { expired() });
            }
            let bytes = next.bytes.clone();
            match generations.create(&self.prefix, number, bytes).await {
                Ok(Creation::Created) => return Ok(Settled::Ours),
                Ok(Creation::Exists) => {
                    let found = self
                        .read(number)
                        .await
                        .map_err(|error| unknown().because(error))?;
                    // It can only be gone if the retention has ended since the base was confirmed.
                    let found = found.ok_or_else(unknown)?;
                    return Ok(match self.is_ours(&found, &next.manifest) {
                        true => Settled::Ours,
                        false => Settled::Theirs(found),
                    });
                }
                Err(error) if *error.kind() == ErrorKind::Unavailable => {
                    may_exist = true;
                    if !pauses.wait().await {
                        return Err(unknown().because(error));
                    }
                }
                Err(error) if may_exist => return Err(unknown().because(error)),
                Err(error) => return Err(error),
            }
        }
    }

    fn is_ours(&self, found: &Bytes, sent: &Manifest) -> bool {
        if has_fault(&*self.backend, Fault::DoubleCommit) {
            return false;
        }
        let found = Manifest::decode(found);
        found.is_ok_and(|found| found.writer == sent.writer && found.nonce == sent.nonce)
    }

    /// Returns whether the uploads of the changes are young enough to be referred to.
    fn is_in_time(&self, base: &Generation, plan: &Plan) -> bool {
        let grace = Duration::from_secs(base.manifest.policy.grace_seconds);
        let age = |begun: Duration| self.backend.clock().now().saturating_sub(begun);
        plan.oldest_upload
            .is_none_or(|begun| age(begun) < grace / 4)
    }
}

/// Checks the names of a push, which must not make the commit of others fail.
fn check_names(change: &Change) -> Result<()> {
    let Change::Push(push) = change else {
        return Ok(());
    };
    let is_valid = |name: &[u8]| {
        name == b"HEAD" || (name.starts_with(b"refs/") && RefNameRef::new(name.into()).is_ok())
    };
    for update in &push.updates {
        let target = match &update.new {
            Some(Value::Symbolic(target)) => target,
            _ => &update.name,
        };
        for name in [&update.name, target] {
            if !is_valid(name) {
                let message = format!("'{name}' is not a valid name of a ref");
                return Err(Error::new(ErrorKind::Options, message));
            }
        }
    }
    Ok(())
}

/// The answer to the creation of a generation.
enum Settled {
    /// It is the one that was sent.
    Ours,
    /// Another process was faster.
    Theirs(Bytes),
}

fn settle_all(batch: &Batch, decisions: &[Decision], number: u64) {
    for (waiting, decision) in batch.0.iter().zip(decisions) {
        waiting.settle(match decision {
            Decision::Refs(verdicts) => Ok(Outcome {
                generation: number,
                verdicts: verdicts.clone(),
            }),
            Decision::Replaced => Ok(Outcome {
                generation: number,
                verdicts: Vec::new(),
            }),
            Decision::Gone => Err(Error::new(
                ErrorKind::Conflict,
                "what was to be replaced is not in the newest generation",
            )),
        });
    }
}

fn unknown() -> Error {
    let message = "the store did not tell whether the change was committed";
    Error::new(ErrorKind::Unknown, message).with_hint("fetch to see whether it was")
}

fn expired() -> Error {
    let message = "the change took too long after its objects were uploaded";
    Error::new(ErrorKind::Expired, message).with_hint("push again")
}

/// Returns the error for another change of the same batch.
fn copy(error: &Error) -> Error {
    let mut copy = Error::new(*error.kind(), error.to_string());
    if let Some(hint) = error.hint() {
        copy = copy.with_hint(hint);
    }
    copy
}
