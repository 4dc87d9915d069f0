//! Records a push whose repository on disk is only a view of another storage.

use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::path::Path;

use bstr::{BString, ByteSlice as _};

use super::{PushBounds, ReceivedPush};
use crate::refs::{Edit, ExpectedValue, RefChangeKind, RefHost, RefTarget};
use crate::{ErrorKind, Repository, Result};
use pronto_repository::Notice;

/// A push that has passed all checks.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CheckedPush<'a> {
    /// The repository, with the received objects, and the refs from before the push.
    pub repository: &'a Repository,
    /// The path of the received pack, whose index is in the same directory; `None` if no objects
    /// were received.
    pub pack: Option<&'a Path>,
    /// The changes of refs, deletions first.
    pub edits: &'a [Edit],
    /// Whether all refs are updated or none (`--atomic`).
    pub is_atomic: bool,
    /// The quotas of the repository.
    pub bounds: &'a PushBounds,
}

/// The result of one ref update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefVerdict {
    /// The ref has its new value.
    Changed,
    /// The ref does not have its new value, or its value is unknown.
    Refused {
        /// The reason for the report.
        reason: String,
        /// A longer explanation for the user.
        detail: Option<String>,
    },
}

/// The storage that records pushes, if the repository on disk is only a view of it.
///
/// The view belongs to a single push. The refs of the view are changed, too, so that hooks see the
/// new values.
pub trait PushDestination: Debug + Send + Sync {
    /// Records the objects and the ref updates. Returns a verdict for each update, in their order.
    fn land(&self, push: &CheckedPush<'_>) -> Vec<RefVerdict>;
}

impl ReceivedPush<'_> {
    /// Fails the commands that the hook `proc-receive` would execute, because the hook would change
    /// only the view.
    pub(super) fn refuse_proc_receive(&mut self) {
        let rules = &self.settings.proc_receive;
        let mut is_refused = false;
        for command in self.commands.iter_mut().filter(|command| command.is_open()) {
            let (creates, deletes) = (command.creates(), command.deletes());
            let name = command.name.as_bstr();
            if rules.iter().any(|rule| rule.takes(name, creates, deletes)) {
                command.fail("the proc-receive hook is not supported for repositories in a store");
                is_refused = true;
            }
        }
        if is_refused && self.features.atomic {
            self.fail_all("atomic push failure");
        }
    }

    /// Records `edits` at `landing`, and applies the accepted changes to the view.
    pub(super) fn land(
        &mut self,
        landing: &dyn PushDestination,
        edits: Vec<Edit>,
        is_atomic: bool,
    ) -> Result<()> {
        let edits = self.storable(edits, is_atomic)?;
        if edits.is_empty() {
            return Ok(());
        }
        let verdicts = landing.land(&CheckedPush {
            repository: self.repository,
            pack: self.pack.as_deref(),
            edits: &edits,
            is_atomic,
            bounds: &self.options.bounds,
        });
        let namespace = self.repository.refs().namespace().to_owned();
        let mut reasons: HashMap<BString, String> = HashMap::new();
        let mut changed = Vec::new();
        let mut verdicts = verdicts.into_iter();
        for edit in edits {
            match verdicts.next() {
                Some(RefVerdict::Changed) => changed.push(edit),
                Some(RefVerdict::Refused { reason, detail }) => {
                    if let Some(detail) = detail {
                        self.bands.error(&detail);
                    }
                    let name = edit.name.strip_prefix(namespace.as_bytes());
                    reasons.insert(name.unwrap_or_default().into(), reason);
                }
                None => {
                    let name = edit.name.strip_prefix(namespace.as_bytes());
                    let reason = "the result is unknown".to_owned();
                    reasons.insert(name.unwrap_or_default().into(), reason);
                }
            }
        }
        for command in &mut self.commands {
            if let Some(reason) = reasons.get(&command.name) {
                command.fail(reason);
            }
        }
        self.change_view(changed);
        Ok(())
    }

    /// Refuses changes that a ref transaction would reject, such as a branch that does not point to
    /// a commit. Returns the other changes.
    fn storable(&mut self, edits: Vec<Edit>, is_atomic: bool) -> Result<Vec<Edit>> {
        let namespace = self.repository.refs().namespace().to_owned();
        let mut refused: HashSet<BString> = HashSet::new();
        let mut storable = Vec::with_capacity(edits.len());
        for edit in edits {
            match self.check_storable(&edit) {
                Ok(()) => storable.push(edit),
                Err(error) if error.kind() == ErrorKind::Reference => {
                    self.bands.error(&error.to_string());
                    let name = edit.name.strip_prefix(namespace.as_bytes());
                    refused.insert(name.unwrap_or_default().into());
                }
                Err(error) => return Err(error),
            }
        }
        if is_atomic && !refused.is_empty() {
            self.fail_all("atomic transaction failed");
            return Ok(Vec::new());
        }
        for command in &mut self.commands {
            if refused.contains(&command.name) {
                command.fail("invalid new value provided");
            }
        }
        Ok(storable)
    }

    fn check_storable(&self, edit: &Edit) -> Result<()> {
        let RefChangeKind::Set(RefTarget::Object(id)) = &edit.change else {
            return Ok(());
        };
        let found = self.repository.refs().resolve(&edit.name)?;
        let name = match found {
            Some(found) if found.is_symbolic => found.name,
            _ => edit.name.clone(),
        };
        RefHost::check_storable(self.repository, name.as_bstr(), id)
    }

    /// Applies recorded changes to the view. A failure only matters to hooks.
    fn change_view(&self, edits: Vec<Edit>) {
        let (deletions, others): (Vec<Edit>, Vec<Edit>) = edits
            .into_iter()
            .partition(|edit| matches!(edit.change, RefChangeKind::Delete));
        for edits in [deletions, others] {
            let mut transaction = self.repository.transaction();
            for edit in edits {
                // The old values may be newer than those of the view.
                transaction.push(Edit {
                    expected: ExpectedValue::Anything,
                    ..edit
                });
            }
            match transaction.commit_each() {
                Ok(refusals) => {
                    for refusal in refusals {
                        self.repository.notify(Notice::Failure(refusal.error));
                    }
                }
                Err(error) => self.repository.notify(Notice::Failure(error)),
            }
        }
    }
}
