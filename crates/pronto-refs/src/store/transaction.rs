//! Transactions of refs: either all changes take effect, or no change.
//!
//! Each ref is locked, its old value is compared, and its new value is written to the lock file
//! before the first lock file is renamed. The hook `reference-transaction` may refuse the
//! transaction before the renames.

mod files;
pub(super) mod hook;
mod initial;
mod packed;
mod prepare;
mod rename;
mod tables;

use bstr::{BStr, BString};
use pronto_hash::ObjectId;
pub use rename::Rename;

use super::{BadName, RefHost, RefName, RefTarget};
pub(super) use files::remove_empty_parents;
use files::{move_into_place, write_log};
use pronto_config::lock::Lock;
use pronto_config::{Error, ErrorKind, Result};

/// The value that a ref must have before a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpectedValue {
    /// Accept any value, and a ref that does not exist.
    Anything,
    /// Require that the ref does not exist.
    Missing,
    /// Require that the ref exists.
    Existing,
    /// Require that the ref points to this object.
    Object(ObjectId),
    /// Require that the ref is a symref to this ref.
    Symbolic(BString),
}

/// The change of a ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefChangeKind {
    /// Sets the ref to a target.
    Set(RefTarget),
    /// Deletes the ref and its reflog.
    Delete,
    /// Checks the expected value and changes nothing.
    Verify,
}

/// One change of one ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The full name of the ref.
    pub name: BString,
    /// The change.
    pub change: RefChangeKind,
    /// The value that the ref must have before the change.
    pub expected: ExpectedValue,
    /// The message of the reflog entry.
    pub message: Option<BString>,
    /// Follow symrefs: change the ref to which a symref points, instead of the symref. Git's
    /// `--no-deref` turns this off.
    pub follow: bool,
    /// Create a reflog even if `core.logAllRefUpdates` does not require one (`--create-reflog`).
    pub create_log: bool,
    /// The peeled object of an annotated tag, if the caller has it.
    pub peeled: Option<ObjectId>,
    /// The ref that is renamed to this one; this ref takes over its reflog.
    pub log_from: Option<BString>,
}

/// Changes of refs that take effect together.
#[derive(Debug)]
#[must_use = "nothing changes before it is committed"]
pub struct Transaction<'r> {
    repository: &'r dyn RefHost,
    edits: Vec<Edit>,
}

/// A change of a transaction that failed while others succeeded.
#[derive(Debug)]
pub struct RejectedEdit {
    /// The full name of the ref.
    pub name: BString,
    /// The reason of the failure.
    pub reason: Reason,
    /// The error with Git's full message.
    pub error: Error,
}

/// The reason why one of several changes failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The name conflicts with another ref: one name is a directory of the other.
    NameConflict,
    /// The ref exists, but was expected not to exist.
    Exists,
    /// The ref does not exist, but was expected to exist.
    Missing,
    /// The ref has another value than expected.
    Moved,
    /// The new value does not exist, or is not a commit and the ref is a branch.
    InvalidValue,
}

impl Reason {
    /// Returns the reason as Git's message.
    pub fn text(self) -> &'static str {
        match self {
            Reason::NameConflict => "refname conflict",
            Reason::Exists => "reference already exists",
            Reason::Missing => "reference does not exist",
            Reason::Moved => "incorrect old value provided",
            Reason::InvalidValue => "invalid new value provided",
        }
    }
}

/// A prepared transaction: every lock is held, and every new value is written to a lock file.
/// Dropping the value aborts the transaction.
#[derive(Debug)]
#[must_use = "nothing changes before it is committed"]
pub struct PreparedTransaction<'r> {
    repository: &'r dyn RefHost,
    edits: Vec<Edit>,
    steps: Vec<RefEdit>,
    packed: Option<packed::PackedRemoval>,
    /// The locked reftable stacks.
    stacks: Option<tables::Stacks<'r>>,
    aborts: bool,
}

/// An edit, or a change that follows from an edit.
#[derive(Debug)]
struct RefEdit {
    name: RefName,
    change: RefChangeKind,
    message: Option<BString>,
    create_log: bool,
    /// Whether only the reflog changes, because the ref is a symref to the changed ref.
    only_log: bool,
    old: Option<ObjectId>,
    lock: Option<Lock>,
    must_move: bool,
    is_loose: bool,
    /// Whether the ref is in a reftable.
    in_tables: bool,
    /// The renamed ref whose reflog this ref takes over.
    log_from: Option<RefName>,
}

impl<'r> Transaction<'r> {
    /// Returns an empty transaction on the refs of `repository`.
    pub fn new(repository: &'r dyn RefHost) -> Self {
        Transaction {
            repository,
            edits: Vec::new(),
        }
    }

    /// Adds an edit.
    pub fn push(&mut self, edit: Edit) -> &mut Self {
        self.edits.push(edit);
        self
    }

    /// Points `name` to the object `id`. If `name` is a symref, changes the ref to which it points.
    pub fn update(
        &mut self,
        name: impl AsRef<[u8]>,
        id: ObjectId,
        expected: ExpectedValue,
        message: impl AsRef<[u8]>,
    ) -> &mut Self {
        self.push(Edit {
            name: name.as_ref().into(),
            change: RefChangeKind::Set(RefTarget::Object(id)),
            expected,
            message: Some(message.as_ref().into()),
            follow: true,
            create_log: false,
            peeled: None,
            log_from: None,
        })
    }

    /// Points `name` itself to the object `id`, even if `name` is a symref: detaches `HEAD`.
    pub fn detach(
        &mut self,
        name: impl AsRef<[u8]>,
        id: ObjectId,
        expected: ExpectedValue,
        message: impl AsRef<[u8]>,
    ) -> &mut Self {
        self.update(name, id, expected, message);
        self.no_follow()
    }

    /// Makes `name` a symref to `target`.
    pub fn set_symbolic(
        &mut self,
        name: impl AsRef<[u8]>,
        target: RefName,
        message: Option<&BStr>,
    ) -> &mut Self {
        self.push(Edit {
            name: name.as_ref().into(),
            change: RefChangeKind::Set(RefTarget::Symbolic(target)),
            expected: ExpectedValue::Anything,
            message: message.map(BStr::to_owned),
            follow: false,
            create_log: false,
            peeled: None,
            log_from: None,
        })
    }

    /// Deletes `name` itself, even if it is a symref.
    pub fn delete(&mut self, name: impl AsRef<[u8]>, expected: ExpectedValue) -> &mut Self {
        self.push(Edit {
            name: name.as_ref().into(),
            change: RefChangeKind::Delete,
            expected,
            message: None,
            follow: false,
            create_log: false,
            peeled: None,
            log_from: None,
        })
    }

    /// Makes the last edit change the ref itself instead of the ref to which a symref points
    /// (`--no-deref`).
    pub fn no_follow(&mut self) -> &mut Self {
        if let Some(edit) = self.edits.last_mut() {
            edit.follow = false;
        }
        self
    }

    /// Returns whether the transaction has no edits.
    pub fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// Prepares the transaction: runs the hook `reference-transaction`, takes all locks, compares
    /// all old values, writes all new values to lock files, and runs the hook again.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Locked`] if another process holds a lock, with [`ErrorKind::Moved`]
    /// if a ref does not have its expected value, with [`ErrorKind::NameConflict`] if two names
    /// cannot both exist, with [`ErrorKind::Hook`] if the hook refuses, and with
    /// [`ErrorKind::Reference`] if a name is invalid or a ref cannot be read. A new value that does
    /// not exist is an error, too. No ref is changed. The messages are Git's.
    pub fn prepare(self) -> Result<PreparedTransaction<'r>> {
        let repository = self.repository;
        let sets = |edit: &Edit| matches!(edit.change, RefChangeKind::Set(RefTarget::Object(_)));
        if self.edits.iter().any(sets) {
            // From this call on, no present object is pruned.
            repository.begin_writing()?;
        }
        Self::announce(repository, &self.edits)?;
        let prepared = prepare::prepare(repository, self.edits, None)?;
        Self::ask(prepared)
    }

    /// Runs the hook with the state `preparing`, before any ref is locked.
    fn announce(repository: &dyn RefHost, edits: &[Edit]) -> Result<()> {
        if repository.has_hook() {
            prepare::check_names(edits)?;
            if refuses(repository, "preparing", edits)? {
                refuses(repository, "aborted", edits)?;
                return Err(hook::refused("preparing"));
            }
        }
        Ok(())
    }

    /// Runs the hook with the state `prepared`. If the hook refuses, aborts.
    fn ask(mut prepared: PreparedTransaction<'r>) -> Result<PreparedTransaction<'r>> {
        if let Some(code) = prepared.run_hook("prepared")?
            && code != 0
        {
            prepared.abort()?;
            return Err(hook::refused("prepared"));
        }
        prepared.aborts = true;
        Ok(prepared)
    }

    /// Prepares and commits the transaction.
    ///
    /// # Errors
    /// Fails as [`prepare`](Self::prepare) and [`PreparedTransaction::commit`] do.
    pub fn commit(self) -> Result<()> {
        if self.edits.is_empty() {
            return Ok(());
        }
        self.prepare()?.commit()
    }

    /// Does the same as [`commit`](Self::commit), and also runs the hook if there are no edits, as
    /// Git's `fetch` does.
    ///
    /// # Errors
    /// Fails as [`commit`](Self::commit) does.
    pub fn commit_always(self) -> Result<()> {
        if self.edits.is_empty() && !self.repository.has_hook() {
            return Ok(());
        }
        self.prepare()?.commit()
    }

    /// Commits the changes that can be made, and returns the refused ones: changes whose refs do
    /// not have their expected value, or whose names conflict.
    ///
    /// # Errors
    /// Fails as [`prepare`](Self::prepare) and [`PreparedTransaction::commit`] do, except for errors that are
    /// returned as a [`RejectedEdit`].
    pub fn commit_each(self) -> Result<Vec<RejectedEdit>> {
        let mut refusals = Vec::new();
        if self.edits.is_empty() {
            return Ok(refusals);
        }
        self.repository.begin_writing()?;
        Self::announce(self.repository, &self.edits)?;
        let prepared = prepare::prepare(self.repository, self.edits, Some(&mut refusals))?;
        if !prepared.edits.is_empty() {
            Self::ask(prepared)?.commit()?;
        }
        Ok(refusals)
    }

    /// Commits to a repository without refs that no other process uses: writes all refs directly to
    /// `packed-refs`, without reflogs and without hooks. Costs one file for any number of refs.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Reference`] if a name is invalid, and with [`ErrorKind::Io`] if a
    /// file cannot be written.
    pub fn commit_initial(self) -> Result<()> {
        initial::commit(self.repository, &self.edits)
    }
}

impl PreparedTransaction<'_> {
    /// Commits the prepared changes: writes new values first, then deletes refs.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if a file cannot be written, renamed or removed. Refs that were
    /// changed before the failure stay changed.
    pub fn commit(mut self) -> Result<()> {
        let repository = self.repository;
        let refs = repository.refs();
        if let Some(stacks) = self.stacks.take() {
            stacks.commit(repository, &self.steps)?;
        }
        self.steps.retain(|step| !step.in_tables);
        let mut who = None;
        for step in &mut self.steps {
            if step.only_log || step.must_move {
                write_log(repository, step, &mut who)?;
            }
            if let Some(lock) = step.lock.take_if(|_| step.must_move) {
                move_into_place(lock, &step.name)?;
            }
        }
        let deleted = |step: &&mut RefEdit| step.change == RefChangeKind::Delete && !step.only_log;
        for step in self.steps.iter_mut().filter(deleted) {
            let log = refs.log_path(step.name.borrow());
            if std::fs::remove_file(&log).is_ok() {
                remove_empty_parents(refs, step.name.borrow(), true);
            }
        }
        // The lock of `packed-refs` is held until the loose files are gone, so no other process
        // packs the deleted refs again.
        if let Some(packed) = &mut self.packed {
            packed.rename_into_place()?;
        }
        for step in self.steps.iter_mut().filter(deleted) {
            if step.is_loose {
                let file = refs.file_of(step.name.borrow());
                std::fs::remove_file(&file).map_err(|error| {
                    let message = format!("unable to unlink {}", file.display());
                    Error::new(ErrorKind::Io, message).because(error)
                })?;
            }
            step.lock = None;
            remove_empty_parents(refs, step.name.borrow(), false);
        }
        self.steps.clear();
        self.aborts = false;
        if let Some(packed) = self.packed.take() {
            packed.end(repository, "committed")?;
        }
        // The exit code is ignored, because the changes have taken effect already.
        self.run_hook("committed")?;
        Ok(())
    }

    /// Aborts the transaction, and runs the hook with the state `aborted`.
    ///
    /// # Errors
    /// Fails if the hook cannot be started.
    pub fn abort(mut self) -> Result<()> {
        self.aborts = false;
        self.release();
        self.run_hook("aborted").map(|_| ())
    }

    /// Releases all locks.
    fn release(&mut self) {
        self.steps.clear();
        self.stacks = None;
        if let Some(packed) = self.packed.take() {
            // An error is ignored, because it cannot be reported here.
            let _ = packed.end(self.repository, "aborted");
        }
    }

    fn run_hook(&self, state: &str) -> Result<Option<i32>> {
        if !self.repository.has_hook() {
            return Ok(None);
        }
        let lines = self.edits.iter().map(hook::line_of);
        hook::run(self.repository, state, lines)
    }
}

/// Runs the hook with `state` for `edits`. Returns whether the hook refuses.
fn refuses(repository: &dyn RefHost, state: &str, edits: &[Edit]) -> Result<bool> {
    let code = hook::run(repository, state, edits.iter().map(hook::line_of))?;
    Ok(code.is_some_and(|code| code != 0))
}

impl Drop for PreparedTransaction<'_> {
    fn drop(&mut self) {
        if self.aborts {
            self.release();
            // An error is ignored, because a destructor cannot report it.
            let _ = self.run_hook("aborted");
        }
    }
}

/// Adds the ref `name` to the message of `error`, like commands that name the failed update. The
/// errors that end the whole command ([`ErrorKind::ends_command`]) are returned unchanged.
pub fn update_failed(name: &str, error: Error) -> Error {
    if error.kind().ends_command() {
        return error;
    }
    let message = format!("update_ref failed for ref '{name}': {error}");
    Error::new(error.kind(), message)
}

/// Returns the error of a transaction for an invalid ref name.
pub fn bad_name(BadName { name }: BadName) -> Error {
    let message = format!("refusing to update ref with bad name '{name}'");
    Error::new(ErrorKind::Reference, message)
}
