//! Prepares a transaction: takes locks, compares old values, and writes new values.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;

use super::super::loose::{self, LooseRefContents};
use super::super::patience::patience;
use super::super::{BadName, RefName, RefNameRef, RefTarget};
use super::super::{RefHost, log};
use super::tables::Stacks;
use super::{
    Edit, ExpectedValue, PreparedTransaction, Reason, RefChangeKind, RefEdit, RejectedEdit,
    bad_name, packed, rename,
};
use pronto_config::durability::Component;
use pronto_config::lock::{Lock, Marking};
use pronto_config::{Error, ErrorKind, Result};

/// The largest number of locks of one transaction that are marked with their holder.
const MOST_MARKED: usize = 64;
/// The longest chain of symrefs that an edit follows.
const MAX_SYMBOLIC_DEPTH: usize = 5;

/// Prepares all of `edits`. With `refusals`, edits that cannot be made are skipped and added to
/// `refusals`.
pub(super) fn prepare<'r>(
    repository: &'r dyn RefHost,
    edits: Vec<Edit>,
    refusals: Option<&mut Vec<RejectedEdit>>,
) -> Result<PreparedTransaction<'r>> {
    let names = check_names(&edits)?;
    repository.refs().log_policy()?;
    let head = match repository.refs().find("HEAD") {
        Ok(Some(found)) => match found.target {
            RefTarget::Symbolic(target) => Some(target.into_inner()),
            RefTarget::Object(_) => None,
        },
        _ => None,
    };
    let refs = repository.refs();
    let stacks = match refs.tables() {
        Some(tables) => {
            let head = head.as_ref().map(|head: &BString| head.as_bstr());
            Some(Stacks::begin(refs, tables, &edits, head)?)
        }
        None => None,
    };
    let mut preparation = TransactionPreparation {
        repository,
        stacks,
        patience: patience(repository.config())?,
        head,
        names,
        free_directories: HashSet::new(),
        steps: Vec::with_capacity(edits.len()),
    };
    let mut refusals = refusals;
    let mut kept = Vec::with_capacity(edits.len());
    let mut followed = Vec::new();
    for edit in edits {
        let added = preparation.add(&edit);
        match (added, &mut refusals) {
            (Ok(None), _) => kept.push(edit),
            // From here on, the hook gets the name of the ref to which the symref points.
            (Ok(Some(name)), _) => followed.push(Edit { name, ..edit }),
            (Err(error), None) => return Err(error),
            (Err(error), Some(refusals)) => refusals.push(preparation.refuse(&edit, error)?),
        }
    }
    kept.append(&mut followed);
    let TransactionPreparation { steps, stacks, .. } = preparation;
    let gone = steps
        .iter()
        .filter(|step| step.change == RefChangeKind::Delete && !step.only_log && !step.in_tables)
        .map(|step| step.name.as_bstr().to_owned());
    let packed = packed::prepare(repository, gone.collect())?;
    Ok(PreparedTransaction {
        repository,
        edits: kept,
        steps,
        packed,
        stacks,
        aborts: false,
    })
}

/// Checks the names of all edits, and that no ref is changed twice. Returns the names.
pub(super) fn check_names(edits: &[Edit]) -> Result<BTreeSet<BString>> {
    let mut names = BTreeSet::new();
    for edit in edits {
        let name = checked_name(edit).map_err(bad_name)?;
        if !names.insert(name.as_bstr().to_owned()) {
            let message = format!("multiple updates for ref '{name}' not allowed");
            return Err(Error::new(ErrorKind::Reference, message));
        }
    }
    Ok(names)
}

/// Returns the valid name of the ref of `edit`.
fn checked_name(edit: &Edit) -> Result<RefNameRef<'_>, BadName> {
    let name = edit.name.as_bstr();
    match edit.change {
        RefChangeKind::Set(_) => RefNameRef::new(name),
        RefChangeKind::Delete | RefChangeKind::Verify => RefNameRef::existing(name),
    }
}

struct TransactionPreparation<'r> {
    repository: &'r dyn RefHost,
    /// The locked reftable stacks.
    stacks: Option<Stacks<'r>>,
    patience: Duration,
    /// The branch to which `HEAD` points.
    head: Option<BString>,
    names: BTreeSet<BString>,
    /// Directories that are known not to conflict with a ref name.
    free_directories: HashSet<BString>,
    steps: Vec<RefEdit>,
}

/// The value of a ref, read under its lock.
struct LockedValue {
    contents: Option<LooseRefContents>,
    is_loose: bool,
}

impl TransactionPreparation<'_> {
    /// Returns the reason why `edit` alone failed with `error`.
    fn refuse(&mut self, edit: &Edit, error: Error) -> Result<RejectedEdit> {
        let reason = match (error.kind(), &edit.expected) {
            (ErrorKind::NameConflict, _) => Reason::NameConflict,
            (ErrorKind::Moved, ExpectedValue::Missing) => Reason::Exists,
            (ErrorKind::Moved, _) => match self.repository.refs().find(&edit.name)? {
                Some(_) => Reason::Moved,
                None => Reason::Missing,
            },
            _ => match &edit.change {
                RefChangeKind::Set(RefTarget::Object(id))
                    if self
                        .repository
                        .check_storable(edit.name.as_bstr(), id)
                        .is_err() =>
                {
                    Reason::InvalidValue
                }
                _ => return Err(error),
            },
        };
        self.names.remove(&edit.name);
        Ok(RejectedEdit {
            name: edit.name.clone(),
            reason,
            error,
        })
    }

    /// Adds the steps of `edit`, or no step on an error. If the edit follows a symref, returns the
    /// name of the ref to which it points.
    fn add(&mut self, edit: &Edit) -> Result<Option<BString>> {
        let before = self.steps.len();
        let added = self.add_steps(edit);
        if added.is_err() {
            // Removing the steps also releases their locks.
            self.steps.truncate(before);
        }
        added
    }

    fn add_steps(&mut self, edit: &Edit) -> Result<Option<BString>> {
        let mut name = checked_name(edit).map_err(bad_name)?.to_owned();
        let mut through_head = edit.name == "HEAD";
        let mut passed: Vec<usize> = Vec::new();
        for _ in 0..=MAX_SYMBOLIC_DEPTH {
            let (mut lock, current) = self.lock(edit, name.borrow())?;
            if let (true, Some(LooseRefContents::Symbolic(next))) = (edit.follow, &current.contents)
            {
                let next = RefName::new(next.clone()).map_err(|_| {
                    let reason = format!("unable to resolve reference '{name}': reference broken");
                    cannot_lock(edit, &reason)
                })?;
                if let Some(lock) = &mut lock {
                    lock.close();
                }
                passed.push(self.steps.len());
                self.steps.push(step(edit, name, lock, true));
                through_head |= next == "HEAD";
                name = next;
                continue;
            }
            let old = self.old_value(edit, &current)?;
            check_expected(edit, &current, old)?;
            for &at in &passed {
                self.steps[at].old = old;
            }
            if current.contents.is_none() && matches!(edit.change, RefChangeKind::Set(_)) {
                let in_tables = self.stacks.is_some();
                self.check_available(&name)
                    .map_err(|error| match in_tables {
                        true => error,
                        false => conflicting(edit, &error),
                    })?;
            }
            let mut done = step(edit, name.clone(), lock, false);
            done.old = old;
            done.is_loose = current.is_loose;
            self.write(&mut done, &current)?;
            // As in Git, an entry is written even if the branch already has the new value.
            let is_logged = edit.change != RefChangeKind::Verify;
            self.steps.push(done);
            if is_logged && !through_head && self.head.as_ref().is_some_and(|head| name == *head) {
                self.add_head(edit, old)?;
            }
            return Ok((!passed.is_empty()).then(|| name.into_inner()));
        }
        Err(cannot_lock(edit, "too many levels of symbolic references"))
    }

    /// Adds an entry to the reflog of `HEAD` if the branch of `HEAD` changes.
    fn add_head(&mut self, edit: &Edit, old: Option<ObjectId>) -> Result<()> {
        if self.names.contains(b"HEAD".as_bstr()) {
            let message = format!(
                "multiple updates for 'HEAD' (including one via its referent '{}') are not allowed",
                edit.name
            );
            return Err(Error::new(ErrorKind::Reference, message));
        }
        let head = RefName::new("HEAD").map_err(bad_name)?;
        let (mut lock, _) = self.lock(edit, head.borrow())?;
        if let Some(lock) = &mut lock {
            lock.close();
        }
        let mut head = step(edit, head, lock, true);
        head.old = old;
        self.steps.push(head);
        Ok(())
    }

    /// Locks the ref, unless its reftable stack is locked already, and reads its value.
    fn lock(&mut self, edit: &Edit, name: RefNameRef<'_>) -> Result<(Option<Lock>, LockedValue)> {
        let refs = self.repository.refs();
        if let (Some(stacks), Some(tables)) = (&mut self.stacks, refs.tables())
            && let Some(contents) = stacks.current(refs, tables, name)?
        {
            let is_loose = false;
            return Ok((None, LockedValue { contents, is_loose }));
        }
        let file = refs.file_of(name);
        // Each marked lock keeps a file descriptor open.
        let marking = match self.steps.len() < MOST_MARKED {
            true => Marking::Marked,
            false => Marking::Plain,
        };
        let lock = Lock::acquire_as(&file, marking, self.patience).map_err(|error| {
            if error.kind() == ErrorKind::Locked {
                return cannot_lock(edit, error.message()).map_kind(|_| ErrorKind::Locked);
            }
            match self.check_available(&name) {
                Err(conflict) if must_exist(edit) => {
                    let _ = conflict;
                    cannot_lock(edit, &format!("unable to resolve reference '{name}'"))
                }
                Err(conflict) => conflicting(edit, &conflict),
                Ok(()) => cannot_lock(edit, &error.to_string()),
            }
        })?;
        let lock = lock.recorded(self.repository.config());
        let lock = lock.waits(self.repository.fsync()?.of(Component::Reference));
        let hash = refs.object_hash();
        let found =
            loose::read(&file, &name, hash).map_err(|error| cannot_lock(edit, error.message()))?;
        let is_loose = found.is_some();
        let contents = match found {
            Some(LooseRefContents::DanglingLink) => None,
            Some(contents) => Some(contents),
            None if self.stacks.is_some() => None,
            None => {
                let found = refs.find_packed(&name)?;
                let id = found.and_then(|found| found.target.object());
                id.map(LooseRefContents::Object)
            }
        };
        Ok((Some(lock), LockedValue { contents, is_loose }))
    }

    /// Returns the object to which the ref resolves before the change.
    fn old_value(&self, edit: &Edit, current: &LockedValue) -> Result<Option<ObjectId>> {
        match &current.contents {
            None | Some(LooseRefContents::DanglingLink) => Ok(None),
            Some(LooseRefContents::Object(id)) => Ok(Some(*id)),
            Some(LooseRefContents::Symbolic(target)) => {
                match self.repository.refs().id_of(target) {
                    Ok(id) => Ok(id),
                    Err(_) if edit.expected == ExpectedValue::Anything => Ok(None),
                    Err(_) => Err(cannot_lock(edit, "error reading reference")),
                }
            }
        }
    }

    fn write(&self, step: &mut RefEdit, current: &LockedValue) -> Result<()> {
        let text = match &step.change {
            RefChangeKind::Set(RefTarget::Object(id))
                if current.contents == Some(LooseRefContents::Object(*id)) =>
            {
                None
            }
            RefChangeKind::Set(RefTarget::Object(id)) => {
                self.repository.check_storable(&step.name, id)?;
                Some(format!("{id}\n"))
            }
            RefChangeKind::Set(RefTarget::Symbolic(target)) => Some(format!("ref: {target}\n")),
            RefChangeKind::Delete | RefChangeKind::Verify => None,
        };
        step.must_move = text.is_some();
        if let Some(lock) = &mut step.lock {
            if let Some(text) = text {
                lock.write_and_close(text.as_bytes())?;
            }
            lock.close();
        }
        Ok(())
    }

    /// Checks that no ref has the name of a parent directory of `name`, or a name below `name`.
    fn check_available(&mut self, name: &BStr) -> Result<()> {
        let refs = self.repository.refs();
        let fail = |message| Err(Error::new(ErrorKind::NameConflict, message));
        if !name.starts_with(b"refs/") {
            // No ref is below `name`, but a directory may exist at the path of the file.
            let place = RefNameRef::existing(name).map_err(bad_name)?;
            let file = refs.file_of(place);
            return match self.stacks.is_none() && is_blocked(&file) {
                true => {
                    let said = refs.display_file(&file);
                    let said = said.display();
                    fail(format!(
                        "there is a non-empty directory '{said}' blocking reference '{name}'"
                    ))
                }
                false => Ok(()),
            };
        }
        for end in name.find_iter(b"/") {
            let directory = name[..end].as_bstr();
            if !self.free_directories.contains(directory) {
                if directory != "refs" && refs.find(directory)?.is_some() {
                    return fail(format!("'{directory}' exists; cannot create '{name}'"));
                }
                self.free_directories.insert(directory.to_owned());
            }
            if self.names.contains(directory) {
                return fail(format!(
                    "cannot process '{name}' and '{directory}' at the same time"
                ));
            }
        }
        if let Some(below) = refs.first_below(name, |_| true)? {
            return fail(format!("'{below}' exists; cannot create '{name}'"));
        }
        let prefix = BString::from([name.as_bytes(), b"/"].concat());
        match self.names.range(prefix.clone()..).next() {
            Some(below) if below.starts_with(&prefix) => fail(format!(
                "cannot process '{name}' and '{below}' at the same time"
            )),
            _ => Ok(()),
        }
    }
}

fn step(edit: &Edit, name: RefName, lock: Option<Lock>, only_log: bool) -> RefEdit {
    RefEdit {
        in_tables: lock.is_none(),
        name,
        change: edit.change.clone(),
        message: edit.message.clone(),
        create_log: edit.create_log && !only_log,
        only_log,
        old: None,
        lock,
        must_move: false,
        is_loose: false,
        log_from: rename::source(edit).filter(|_| !only_log),
    }
}

/// Returns whether `file` is a directory that contains files. Empty directories are removed.
fn is_blocked(file: &std::path::Path) -> bool {
    if file.is_dir() {
        log::remove_empty_directories(file);
    }
    file.is_dir()
}

fn must_exist(edit: &Edit) -> bool {
    matches!(
        edit.expected,
        ExpectedValue::Existing | ExpectedValue::Object(_) | ExpectedValue::Symbolic(_)
    ) && !matches!(&edit.expected, ExpectedValue::Object(id) if id.is_null())
}

fn cannot_lock(edit: &Edit, reason: &str) -> Error {
    let message = format!("cannot lock ref '{}': {reason}", edit.name);
    Error::new(ErrorKind::Reference, message)
}

/// Returns the error for an edit whose name conflicts with another ref; `error` names the conflict.
fn conflicting(edit: &Edit, error: &Error) -> Error {
    let kind = match error.kind() {
        ErrorKind::NameConflict => ErrorKind::NameConflict,
        _ => ErrorKind::Reference,
    };
    cannot_lock(edit, error.message()).map_kind(|_| kind)
}

fn check_expected(edit: &Edit, current: &LockedValue, old: Option<ObjectId>) -> Result<()> {
    let name = &edit.name;
    let fail = |reason: String| Err(cannot_lock(edit, &reason).map_kind(|_| ErrorKind::Moved));
    match (&edit.expected, old) {
        (ExpectedValue::Anything, _) => Ok(()),
        (ExpectedValue::Missing, _) if current.contents.is_none() => Ok(()),
        (ExpectedValue::Missing, None) => fail("dangling symref already exists".into()),
        (ExpectedValue::Missing, Some(_)) => fail("reference already exists".into()),
        (ExpectedValue::Object(id), _) if id.is_null() => {
            let edit = Edit {
                expected: ExpectedValue::Missing,
                ..edit.clone()
            };
            check_expected(&edit, current, old)
        }
        (ExpectedValue::Existing, _) if current.contents.is_some() => Ok(()),
        (ExpectedValue::Existing, _) => fail(format!("unable to resolve reference '{name}'")),
        (ExpectedValue::Object(id), Some(found)) if *id == found => Ok(()),
        (ExpectedValue::Object(id), Some(found)) => {
            fail(format!("is at {found} but expected {id}"))
        }
        (ExpectedValue::Object(_), None) if current.contents.is_none() => {
            fail(format!("unable to resolve reference '{name}'"))
        }
        (ExpectedValue::Object(id), None) => {
            fail(format!("reference is missing but expected {id}"))
        }
        (ExpectedValue::Symbolic(wanted), _) => match &current.contents {
            Some(LooseRefContents::Symbolic(target)) if target == wanted => Ok(()),
            Some(LooseRefContents::Symbolic(target)) => {
                fail(format!("is at {target} but expected {wanted}"))
            }
            Some(LooseRefContents::Object(_)) => fail(format!(
                "expected symref with target '{wanted}': but is a regular ref"
            )),
            None | Some(LooseRefContents::DanglingLink) => {
                fail(format!("unable to resolve reference '{name}'"))
            }
        },
    }
}
