//! Transactions of refs: all changes or none.
//!
//! Each ref is locked, its old value is compared, and its new value is written to the lock file
//! before the first one is renamed. The hook `reference-transaction` may refuse in between.

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

use super::{BadName, Host, RefName, Target};
pub(super) use files::remove_empty_parents;
use files::{move_into_place, write_log};
use pronto_config::lock::Lock;
use pronto_config::{Error, ErrorKind, Result};

/// The value that a reference must have before the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Anything, or nothing.
    Anything,
    /// Nothing: it must not exist.
    Missing,
    /// Something: it must exist.
    Existing,
    /// This object.
    Object(ObjectId),
    /// The name of this reference.
    Symbolic(BString),
}

/// The change of a ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Sets the reference to a target.
    Set(Target),
    /// Deletes the reference and its reflog.
    Delete,
    /// Changes nothing, and only checks the expected value.
    Verify,
}

/// One change of one reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The full name of the reference.
    pub name: BString,
    /// The change.
    pub change: Change,
    /// The value that it must have before.
    pub expected: Expected,
    /// The message of the reflog entry.
    pub message: Option<BString>,
    /// Whether to change the reference that a symbolic one leads to, in place of the symbolic one.
    pub follow: bool,
    /// Whether to begin a log where configuration does not ask for one.
    pub create_log: bool,
    /// The object to which a tag finally points, if the caller knows it.
    pub peeled: Option<ObjectId>,
    /// The ref whose reflog is taken over, because it is renamed to this one.
    pub log_from: Option<BString>,
}

/// Changes to be made together.
#[derive(Debug)]
#[must_use = "nothing changes before it is committed"]
pub struct Transaction<'r> {
    repository: &'r dyn Host,
    edits: Vec<Edit>,
}

/// A change of a transaction that could not be made, while others were.
#[derive(Debug)]
pub struct Refusal {
    /// The full name of the reference.
    pub name: BString,
    /// Why.
    pub reason: Reason,
    /// The same in more words.
    pub error: Error,
}

/// Why one change of several could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Another reference has a name that cannot exist beside this one.
    NameConflict,
    /// The reference exists already.
    Exists,
    /// The reference does not exist.
    Missing,
    /// The reference has another value than expected.
    Moved,
    /// The new value does not exist, or no branch can have it.
    InvalidValue,
}

impl Reason {
    /// The reason in Git's words.
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

/// Changes that are sure to succeed as far as one can tell: every lock is held, every new value
/// written. Dropping it gives all up.
#[derive(Debug)]
#[must_use = "nothing changes before it is committed"]
pub struct Prepared<'r> {
    repository: &'r dyn Host,
    edits: Vec<Edit>,
    steps: Vec<Step>,
    packed: Option<packed::Removal>,
    /// The locked reftable stacks.
    stacks: Option<tables::Stacks<'r>>,
    aborts: bool,
}

/// One edit, or one of those that follow from it.
#[derive(Debug)]
struct Step {
    name: RefName,
    change: Change,
    message: Option<BString>,
    create_log: bool,
    /// Only the log changes: a symbolic reference through which another is changed.
    only_log: bool,
    old: Option<ObjectId>,
    lock: Option<Lock>,
    must_move: bool,
    is_loose: bool,
    /// The ref is in a reftable.
    in_tables: bool,
    /// The ref whose reflog is taken over.
    log_from: Option<RefName>,
}

impl<'r> Transaction<'r> {
    /// A transaction on the references of `repository`, without edits yet.
    pub fn new(repository: &'r dyn Host) -> Self {
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

    /// Lets `name`, or the reference it leads to, hold the object `id`.
    pub fn update(
        &mut self,
        name: impl AsRef<[u8]>,
        id: ObjectId,
        expected: Expected,
        message: impl AsRef<[u8]>,
    ) -> &mut Self {
        self.push(Edit {
            name: name.as_ref().into(),
            change: Change::Set(Target::Object(id)),
            expected,
            message: Some(message.as_ref().into()),
            follow: true,
            create_log: false,
            peeled: None,
            log_from: None,
        })
    }

    /// Lets `name` itself hold the object `id`, even where it was symbolic: detaches `HEAD`.
    pub fn detach(
        &mut self,
        name: impl AsRef<[u8]>,
        id: ObjectId,
        expected: Expected,
        message: impl AsRef<[u8]>,
    ) -> &mut Self {
        self.update(name, id, expected, message);
        self.no_follow()
    }

    /// Lets `name` be symbolic for `target`.
    pub fn set_symbolic(
        &mut self,
        name: impl AsRef<[u8]>,
        target: RefName,
        message: Option<&BStr>,
    ) -> &mut Self {
        self.push(Edit {
            name: name.as_ref().into(),
            change: Change::Set(Target::Symbolic(target)),
            expected: Expected::Anything,
            message: message.map(BStr::to_owned),
            follow: false,
            create_log: false,
            peeled: None,
            log_from: None,
        })
    }

    /// Removes `name` itself, even where it is symbolic.
    pub fn delete(&mut self, name: impl AsRef<[u8]>, expected: Expected) -> &mut Self {
        self.push(Edit {
            name: name.as_ref().into(),
            change: Change::Delete,
            expected,
            message: None,
            follow: false,
            create_log: false,
            peeled: None,
            log_from: None,
        })
    }

    /// The last edit is about the reference itself, not about one that it leads to.
    pub fn no_follow(&mut self) -> &mut Self {
        if let Some(edit) = self.edits.last_mut() {
            edit.follow = false;
        }
        self
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// Asks the hook, takes all locks, compares all old values, writes all new ones, and asks the
    /// hook again.
    ///
    /// # Errors
    /// A lock is held, a reference does not hold what is expected, two names cannot both exist,
    /// an object is missing, or the hook refused. Nothing has changed then. The messages are
    /// Git's.
    pub fn prepare(self) -> Result<Prepared<'r>> {
        let repository = self.repository;
        let sets = |edit: &Edit| matches!(edit.change, Change::Set(Target::Object(_)));
        if self.edits.iter().any(sets) {
            // From now on no present object is pruned.
            repository.begin_writing()?;
        }
        Self::announce(repository, &self.edits)?;
        let prepared = prepare::prepare(repository, self.edits, None)?;
        Self::ask(prepared)
    }

    /// Asks the hook before anything is locked (`preparing`).
    fn announce(repository: &dyn Host, edits: &[Edit]) -> Result<()> {
        if repository.has_hook() {
            prepare::check_names(edits)?;
            if refuses(repository, "preparing", edits)? {
                refuses(repository, "aborted", edits)?;
                return Err(hook::refused("preparing"));
            }
        }
        Ok(())
    }

    /// Asks the hook about `prepared`.
    fn ask(mut prepared: Prepared<'r>) -> Result<Prepared<'r>> {
        if let Some(code) = prepared.run_hook("prepared")?
            && code != 0
        {
            prepared.abort()?;
            return Err(hook::refused("prepared"));
        }
        prepared.aborts = true;
        Ok(prepared)
    }

    /// Prepares and commits.
    ///
    /// # Errors
    /// As for [`prepare`](Self::prepare) and [`Prepared::commit`].
    pub fn commit(self) -> Result<()> {
        if self.edits.is_empty() {
            return Ok(());
        }
        self.prepare()?.commit()
    }

    /// Does the same as [`commit`](Self::commit), and calls the hook also without edits, as Git's `fetch`
    /// does.
    ///
    /// # Errors
    /// As for [`commit`](Self::commit).
    pub fn commit_always(self) -> Result<()> {
        if self.edits.is_empty() && !self.repository.has_hook() {
            return Ok(());
        }
        self.prepare()?.commit()
    }

    /// Prepares and commits those of the changes that can be made, and returns the others: those
    /// whose references do not hold what is expected, or whose names conflict.
    ///
    /// # Errors
    /// As for [`prepare`](Self::prepare) and [`Prepared::commit`], for other reasons than these.
    pub fn commit_each(self) -> Result<Vec<Refusal>> {
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

    /// Commits into a repository without refs that no other process uses: the refs are written to
    /// `packed-refs` at once, without reflogs and hooks. Costs one file for any number of refs.
    ///
    /// # Errors
    /// A name is invalid, or a file cannot be written.
    pub fn commit_initial(self) -> Result<()> {
        initial::commit(self.repository, &self.edits)
    }
}

impl Prepared<'_> {
    /// Makes the changes: first what is new, then what goes.
    ///
    /// # Errors
    /// A file cannot be written, moved or removed. What was moved before stays.
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
        let deleted = |step: &&mut Step| step.change == Change::Delete && !step.only_log;
        for step in self.steps.iter_mut().filter(deleted) {
            let log = refs.log_path(step.name.borrow());
            if std::fs::remove_file(&log).is_ok() {
                remove_empty_parents(refs, step.name.borrow(), true);
            }
        }
        // The lock is held until the files of the refs are gone, so no other process packs them
        // again.
        if let Some(packed) = &mut self.packed {
            packed.put_in_place()?;
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
        // What the hook says now comes too late to matter.
        self.run_hook("committed")?;
        Ok(())
    }

    /// Gives the changes up.
    ///
    /// # Errors
    /// The hook cannot be started.
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
            // A failure here cannot be reported.
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

/// Runs the hook with `state` for `edits` and returns whether it refuses.
fn refuses(repository: &dyn Host, state: &str, edits: &[Edit]) -> Result<bool> {
    let code = hook::run(repository, state, edits.iter().map(hook::line_of))?;
    Ok(code.is_some_and(|code| code != 0))
}

impl Drop for Prepared<'_> {
    fn drop(&mut self) {
        if self.aborts {
            self.release();
            // A failure here cannot be reported.
            let _ = self.run_hook("aborted");
        }
    }
}

/// Returns `error`, for which the ref `name` was not updated, in the words of commands that name the update. The hook
/// ends them in its own words.
pub fn update_failed(name: &str, error: Error) -> Error {
    if *error.kind() == ErrorKind::Hook {
        return error;
    }
    let message = format!("update_ref failed for ref '{name}': {error}");
    Error::new(*error.kind(), message)
}

/// The error that a transaction reports for a name that no reference can have.
pub fn bad_name(BadName { name }: BadName) -> Error {
    let message = format!("refusing to update ref with bad name '{name}'");
    Error::new(ErrorKind::Reference, message)
}
