//! Commits: several changes together become the next generation.

mod first;
mod plan;
mod removal;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pronto_refs::RefNameRef;

use crate::backend::{PlantedFault, StoreBackend, has_fault};
use crate::bucket::{CreationResult, UploadContent};
use crate::change::{Outcome, StoreChange};
use crate::clock::Clock as _;
use crate::generations::GenerationStore as _;
use crate::manifest::Manifest;
use crate::queue::{CommitBatch, CommitSeries, QueuedChange, unknown};
use crate::refs::StoredRefValue;
use crate::repository::{Generation, Pauses, StoreRepository};
use crate::{Error, ErrorKind, Result};

pub use first::Creating;
use plan::{ChangeDecision, GenerationPlan};

impl<B: StoreBackend> StoreRepository<B> {
    /// Commits a change. The change is part of a generation that is the newest at some time before
    /// the method returns. Changes that are submitted during a commit share the next one. After 8
    /// to 64 commits without a pause, other processes get the time for one commit.
    ///
    /// # Errors
    /// - [`ErrorKind::Unknown`] if the result is unknown: the change may be committed, or appear
    ///   within the grace period.
    /// - [`ErrorKind::Expired`] if the uploads are too old, so nothing was changed.
    /// - [`ErrorKind::Conflict`] if the data to replace does not exist, so nothing was changed.
    /// - The errors of [`latest`](StoreRepository::latest).
    pub async fn commit(&self, change: StoreChange) -> Result<Outcome> {
        check_names(&change)?;
        let arrived = self.backend.clock().now();
        let waiting = Arc::new(QueuedChange::new(change, arrived));
        self.queue.push(Arc::clone(&waiting));
        loop {
            let mut turn = self.queue.turn.lock().await;
            if let Some(outcome) = waiting.take() {
                return outcome;
            }
            let pause = turn.pause(arrived);
            if !pause.is_zero() {
                self.backend.clock().sleep(pause).await;
            }
            let batch = self.queue.next_batch();
            if batch.0.is_empty() {
                return Err(unknown());
            }
            let settled = self.commit_batch(&batch, &mut turn).await;
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

    async fn commit_batch(&self, batch: &CommitBatch, turn: &mut CommitSeries) -> Result<()> {
        let changes: Vec<&StoreChange> = batch.0.iter().map(|waiting| &waiting.change).collect();
        let arrived = batch.0.iter().map(|waiting| waiting.arrived).max();
        let arrived = arrived.unwrap_or_default();
        let mut not_before = Duration::ZERO;
        let mut checked = None;
        let mut conflicts = 0;
        loop {
            let known = self.base(not_before).await?;
            let base = &*known.generation;
            if base.manifest.is_removed {
                if known.confirmed < arrived && not_before < arrived {
                    not_before = arrived;
                    continue;
                }
                return Err(self.not_found());
            }
            let old = checked
                .take()
                .filter(|_| has_fault(&*self.backend, PlantedFault::NoCheckAfterConflict));
            let plan = GenerationPlan::make(self, base, &changes, old.as_deref())?;
            // A refusal must be based on a state that was the newest one after the change was
            // submitted.
            if plan.refuses && known.confirmed < arrived && not_before < arrived {
                not_before = arrived;
                continue;
            }
            let Some(next) = &plan.next else {
                settle_all(batch, &plan.decisions, base.number());
                return Ok(());
            };
            if let Some((name, bytes)) = &next.object {
                let content = UploadContent::Bytes(bytes.clone());
                self.write(vec![(name.clone(), content)]).await?;
            }
            let asked = self.backend.clock().now();
            match self.create_next(base, &plan).await? {
                Settled::Ours => {
                    turn.created(asked, self.backend.clock().now());
                    let generation = next.generation();
                    let number = generation.number();
                    self.learn(Arc::new(generation), asked, None);
                    settle_all(batch, &plan.decisions, number);
                    return Ok(());
                }
                Settled::Theirs(bytes) => {
                    turn.lost();
                    let found = self.accept(&bytes, base.number() + 1, Some(base)).await?;
                    // The generation was the newest one at some time after its base was.
                    self.learn(Arc::new(found), known.confirmed, None);
                    checked = Some(plan.decisions);
                    conflicts += 1;
                    if conflicts > 1 {
                        // Other processes create generations faster than this process can read them
                        // one after the other.
                        not_before = self.backend.clock().now();
                    }
                }
            }
        }
    }

    /// Creates the next generation. The same call is retried until the store responds, so that the
    /// generation is created at most once.
    async fn create_next(&self, base: &Generation, plan: &GenerationPlan) -> Result<Settled> {
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
                Ok(CreationResult::Created) => return Ok(Settled::Ours),
                Ok(CreationResult::Exists) => {
                    let found = self
                        .read(number)
                        .await
                        .map_err(|error| unknown().because(error))?;
                    // The generation can only be missing if the retention has ended since the base
                    // was confirmed.
                    let found = found.ok_or_else(unknown)?;
                    return Ok(match self.is_ours(&found, &next.manifest) {
                        true => Settled::Ours,
                        false => Settled::Theirs(found),
                    });
                }
                Err(error) if error.kind() == ErrorKind::Unavailable => {
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
        if has_fault(&*self.backend, PlantedFault::DoubleCommit) {
            return false;
        }
        let found = Manifest::decode(found);
        found.is_ok_and(|found| found.writer == sent.writer && found.nonce == sent.nonce)
    }

    /// Returns whether the uploads of the changes are young enough to be referenced.
    fn is_in_time(&self, base: &Generation, plan: &GenerationPlan) -> bool {
        let grace = Duration::from_secs(base.manifest.policy.grace_seconds);
        let age = |begun: Duration| self.backend.clock().now().saturating_sub(begun);
        plan.oldest_upload
            .is_none_or(|begun| age(begun) < grace / 4)
    }
}

/// Checks the ref names of a push, so that an invalid name does not make the commit of other
/// changes fail.
fn check_names(change: &StoreChange) -> Result<()> {
    let StoreChange::Push(push) = change else {
        return Ok(());
    };
    let is_valid = |name: &[u8]| {
        name == b"HEAD" || (name.starts_with(b"refs/") && RefNameRef::new(name.into()).is_ok())
    };
    for update in &push.updates {
        let target = match &update.new {
            Some(StoredRefValue::Symbolic(target)) => target,
            _ => &update.name,
        };
        for name in [&update.name, target] {
            if !is_valid(name) {
                let message = format!("invalid ref name '{name}'");
                return Err(Error::new(ErrorKind::Options, message));
            }
        }
    }
    Ok(())
}

/// The result of the creation of a generation.
enum Settled {
    /// The generation is the one that was sent.
    Ours,
    /// Another process has created the generation first.
    Theirs(Bytes),
}

fn settle_all(batch: &CommitBatch, decisions: &[ChangeDecision], number: u64) {
    for (waiting, decision) in batch.0.iter().zip(decisions) {
        waiting.settle(match decision {
            ChangeDecision::Refs(verdicts) => Ok(Outcome {
                generation: number,
                verdicts: verdicts.clone(),
            }),
            ChangeDecision::Replaced => Ok(Outcome {
                generation: number,
                verdicts: Vec::new(),
            }),
            ChangeDecision::Gone => Err(Error::new(
                ErrorKind::Conflict,
                "the packs or tables to replace are no longer in the newest generation",
            )),
            ChangeDecision::Pruned => {
                let message = "objects that the push needs may have been deleted meanwhile";
                Err(Error::new(ErrorKind::Expired, message).with_hint("push again"))
            }
        });
    }
}

fn expired() -> Error {
    let message = "the commit came too long after the upload of its objects";
    Error::new(ErrorKind::Expired, message).with_hint("push again")
}

/// Returns a copy of the error, for another change of the same batch.
fn copy(error: &Error) -> Error {
    let mut copy = Error::new(error.kind(), error.to_string());
    if let Some(hint) = error.hint() {
        copy = copy.with_hint(hint);
    }
    copy
}
