//! Moves `HEAD` to another commit and, depending on the mode, resets the index and the worktree:
//! `git reset`. Files change first, then the index, then the branch.
//!
//! Reads the trees that differ from the cached trees of the index, writes the files that differ,
//! and in a refresh examines each file once.

use crate::switch::Oneline;
use bstr::{BString, ByteSlice};
use gix_object::Kind;
use pronto_diff::Difference;
use pronto_hash::{ObjectId, oid};
use pronto_index::{Entry, Flags, IndexEdit, IndexLock, mode};
use pronto_io::watch::Watch;
use pronto_worktree::checkout::{CheckoutFailure, CheckoutWarning};
use pronto_worktree::diff::{IntentToAdd, cached_trees, tree_and_index};
use pronto_worktree::pathspec::Pathspec;
use pronto_worktree::unpack::{self, PlanningResult, Refusals};

use crate::add::{self, StagedIndex};
use crate::errors::{from_index, from_worktree};
use crate::refresh::{self, Outdated};
use crate::refs::{ExpectedValue, update_failed};
use crate::revision::ExpectedType;
use crate::session::WorktreeSession;
use crate::status::read_tree as read_tree_object;
use crate::support::{self, Operation};
use crate::{Error, ErrorKind, PartialFailure, Repository, Result, in_progress, index, read_tree};
use pronto_repository::Notice;

mod files;

/// The mode of `git reset`: the parts that are reset besides `HEAD`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Reset only `HEAD` (`--soft`).
    Soft,
    /// Reset the index (`--mixed`).
    #[default]
    Mixed,
    /// Reset the index and the worktree, and discard changes (`--hard`).
    Hard,
    /// Reset the index and the worktree, except files with unstaged changes (`--merge`).
    Merge,
    /// Reset the index and the worktree, and keep local changes (`--keep`). The reset is refused if
    /// a file with local changes differs between the commits.
    Keep,
}

impl Mode {
    /// Returns Git's name of the mode.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Soft => "soft",
            Mode::Mixed => "mixed",
            Mode::Hard => "hard",
            Mode::Merge => "merge",
            Mode::Keep => "keep",
        }
    }
}

/// The target of a reset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResetTarget {
    /// The name of the target for reflogs and messages.
    pub name: BString,
    /// The commit; `None` for a tree and for an unborn branch.
    pub commit: Option<ObjectId>,
    /// The tree.
    pub tree: ObjectId,
}

/// Options of `git reset`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The commit or tree to reset to.
    pub to: ResetTarget,
    /// The mode of the reset (`--soft`, `--mixed`, `--hard`, `--merge`, `--keep`).
    pub mode: Mode,
    /// The paths of the index to reset; `HEAD` is unchanged then. If empty, the whole index is
    /// reset. Requires [`Mode::Mixed`].
    pub pathspec: Pathspec,
    /// Keep paths that the commit lacks in the index as intent-to-add entries (`--intent-to-add`).
    pub intent_to_add: bool,
    /// Do not refresh the index after a mixed reset (`--no-refresh`).
    pub no_refresh: bool,
}

impl Options {
    /// Returns the options of `git reset` to `to`: a mixed reset of the whole index.
    pub fn new(to: ResetTarget) -> Self {
        Options {
            to,
            mode: Mode::default(),
            pathspec: Pathspec::default(),
            intent_to_add: false,
            no_refresh: false,
        }
    }
}

/// The result of a reset.
#[derive(Debug, Default)]
#[must_use]
#[non_exhaustive]
pub struct Report {
    /// The files that differ from the index. Empty if the index was not refreshed.
    pub unstaged: Vec<Outdated>,
    /// The files that could not be written. If there are any, neither the index nor `HEAD` has
    /// changed, and a repeated call completes the reset.
    pub failed: Vec<CheckoutFailure>,
    /// Warnings about other problems.
    pub warnings: Vec<CheckoutWarning>,
    /// The new commit of `HEAD`, after a reset with `--hard`.
    pub head: Option<Oneline>,
}

/// The outcome of a reset.
#[derive(Debug)]
#[must_use]
#[non_exhaustive]
pub enum Outcome {
    /// The reset is done, except for files that could not be written.
    Done(Report),
    /// Local changes would be lost, so that nothing was changed.
    Refused(Refusals),
    /// `HEAD` has no commit, which [`Mode::Keep`] requires. Nothing was changed.
    NoHead,
}

/// Resolves `name` for `git reset`: as a commit, or with paths as a tree. An unborn `HEAD` is the
/// empty tree.
///
/// # Errors
/// Fails with [`ErrorKind::UnknownRevision`] if `name` is not a commit, or with paths not a tree.
pub fn target(repository: &Repository, name: &bstr::BStr, with_paths: bool) -> Result<ResetTarget> {
    let wrong = |message: String| Error::new(ErrorKind::UnknownRevision, message);
    if name == "HEAD" && repository.head()?.id().is_none() {
        return Ok(ResetTarget {
            name: name.to_owned(),
            commit: None,
            tree: ObjectId::empty_tree(repository.object_hash()),
        });
    }
    let (want, kind, what) = match with_paths {
        true => (ExpectedType::Treeish, Kind::Tree, "tree"),
        false => (ExpectedType::Committish, Kind::Commit, "revision"),
    };
    let id = repository
        .try_resolve(name, want)?
        .ok_or_else(|| wrong(format!("Failed to resolve '{name}' as a valid {what}.")))?;
    let unfit = || wrong(format!("Could not parse object '{name}'."));
    let peeled = repository.peel_to(id, kind)?;
    if peeled.is_none() && !with_paths {
        report_kind(repository, id)?;
    }
    let peeled = peeled.ok_or_else(unfit)?;
    let tree = repository.peel_to(peeled, Kind::Tree)?.ok_or_else(unfit)?;
    Ok(ResetTarget {
        name: name.to_owned(),
        commit: (!with_paths).then_some(peeled),
        tree,
    })
}

/// Sends a notice with the type of the object `id`, which cannot be peeled to a commit.
pub(crate) fn report_kind(repository: &Repository, id: ObjectId) -> Result<()> {
    let id = repository.peel_tags(id)?.unwrap_or(id);
    let header = repository.objects()?.header(&id);
    if let Ok(Some(header)) = header {
        let kind = header.kind;
        let message = format!("object {id} is a {kind}, not a commit");
        repository.notify(Notice::Failure(Error::new(ErrorKind::Object, message)));
    }
    Ok(())
}

/// Resets `HEAD`, the index and files according to `options`.
///
/// # Errors
/// Fails if a merge is in progress, if there is no commit and the mode needs a commit, if an object
/// is missing, if files of the repository cannot be read or written, if the operation is
/// interrupted, or with [`Unsupported`](ErrorKind::Unsupported) before any change. A loss of
/// content is no error: see [`Outcome`]. If `HEAD` cannot be moved, the report describes the reset
/// of the files and the index, which precedes the update of `HEAD`.
pub fn reset(
    repository: &Repository,
    options: &Options,
    watch: &Watch<'_>,
) -> Result<Outcome, PartialFailure<Report>> {
    support::require(repository, Operation::Reset)?;
    let moves = options.pathspec.is_empty();
    if moves && repository.git_path("MERGE_AUTOSTASH").exists() {
        let message = "'reset' while MERGE_AUTOSTASH exists is not implemented natively";
        return Err(Error::new(ErrorKind::Unsupported, message).into());
    }
    if matches!(options.mode, Mode::Soft | Mode::Keep) {
        refuse_in_a_merge(repository, options.mode)?;
    }
    if moves && options.to.commit.is_some() {
        repository.check_log_identity()?;
    }
    let mut report = Report::default();
    match options.mode {
        Mode::Soft => {}
        Mode::Mixed => report.unstaged = reset_index(repository, options, watch)?,
        Mode::Hard | Mode::Merge | Mode::Keep => {
            match files::reset_files(repository, options, watch)? {
                files::FileReset::Refused(refusals) => return Ok(Outcome::Refused(refusals)),
                files::FileReset::NoHead => return Ok(Outcome::NoHead),
                files::FileReset::Done(outcome) => {
                    report.failed = outcome.failed;
                    report.warnings = outcome.warnings;
                }
            }
            if !report.failed.is_empty() {
                return Ok(Outcome::Done(report));
            }
        }
    }
    if let (true, Some(commit)) = (moves, options.to.commit) {
        let moved = save_old_head(repository)
            .and_then(|()| move_branch(repository, commit, &options.to.name));
        if let Err(error) = moved {
            if !error.kind().ends_command() {
                in_progress::cancel(repository)?;
            }
            return Err(PartialFailure::new(error, report));
        }
        if options.mode == Mode::Hard {
            report.head = Some(Oneline::read(repository, commit)?);
        }
    }
    if moves {
        in_progress::cancel(repository)?;
    }
    Ok(Outcome::Done(report))
}

fn refuse_in_a_merge(repository: &Repository, mode: Mode) -> Result<()> {
    let merges = repository.in_progress().merge();
    if !merges
        && repository
            .sparse_index()?
            .iter()
            .all(|entry| entry.stage() == 0)
    {
        return Ok(());
    }
    let mode = mode.name();
    let message = format!("Cannot do a {mode} reset in the middle of a merge.");
    Err(Error::new(ErrorKind::Refused, message))
}

/// Resets the index, or the selected paths of the index, to the tree. Returns the files that
/// differ.
fn reset_index(
    repository: &Repository,
    options: &Options,
    watch: &Watch<'_>,
) -> Result<Vec<Outdated>> {
    let read = || index::near_differences(repository, &options.to.tree);
    let (mut prepared, lock) = WorktreeSession::with_index(repository, read)?;
    let lock = lock?;
    let is_news = take_tree(repository, &mut prepared, options)?;
    let mut edit = IndexEdit::new(&prepared.index);
    let mut unstaged = Vec::new();
    if !options.no_refresh {
        let how = refresh::Options::default();
        unstaged = refresh::refresh(repository, &prepared, &mut edit, &how, watch)?;
    }
    let is_whole = options.pathspec.is_empty() && !options.intent_to_add;
    if is_news && is_whole && !prepared.index.is_empty() {
        let known = prepared.index.cached_tree();
        let mut read =
            |id: &oid, content: &mut Vec<u8>| read_tree_object(prepared.objects, id, content);
        let (tree, index) = (&options.to.tree, &prepared.index);
        let cached = cached_trees(tree, index, known.as_ref(), &mut read);
        let cached = cached.map_err(from_worktree)?;
        edit.set_cached_tree(Some(cached));
    }
    if is_news || !edit.is_empty() || prepared.index.identity().is_none() {
        write(&prepared, &edit, lock, watch)?;
    }
    Ok(unstaged)
}

/// Sets the index of `prepared` to the tree for the selected paths. Returns whether anything
/// changed.
fn take_tree(
    repository: &Repository,
    prepared: &mut WorktreeSession<'_>,
    options: &Options,
) -> Result<bool> {
    let bytes = {
        let objects = prepared.objects;
        let mut read = |id: &oid, content: &mut Vec<u8>| read_tree_object(objects, id, content);
        let cached = prepared.index.cached_tree();
        let found = tree_and_index(
            Some(&options.to.tree),
            &prepared.index,
            cached.as_ref(),
            &options.pathspec,
            IntentToAdd::Empty,
            &mut read,
        )
        .map_err(from_worktree)?;
        if found.differences.is_empty() {
            return Ok(false);
        }
        let plain = add::Options::default();
        let mut stage = StagedIndex::new(prepared, repository, &plain)?;
        let intent_to_add = match options.intent_to_add {
            true => Some(
                repository
                    .objects()?
                    .write(Kind::Blob, b"")
                    .map_err(crate::objects::from_odb)?,
            ),
            false => None,
        };
        for difference in found.differences {
            take(&mut stage, difference, prepared, intent_to_add)?;
        }
        let edit = stage.into_edit()?;
        let writer = index::writer(repository)?;
        writer.encode(&edit.content()).map_err(from_index)?
    };
    prepared.index = prepared.index.successor(bytes).map_err(from_index)?;
    Ok(true)
}

/// Returns the message of a reflog entry: `what` after the action of `GIT_REFLOG_ACTION`, or else
/// `plain`.
fn reflog_message(repository: &Repository, what: &str, plain: BString) -> BString {
    match repository.environment().bytes("GIT_REFLOG_ACTION") {
        Some(action) => format!("{}: {what}", action.as_bstr()).into(),
        None => plain,
    }
}

/// Sets `ORIG_HEAD` to the old `HEAD`. Only the refusal by a hook fails the reset.
fn save_old_head(repository: &Repository) -> Result<()> {
    // A branch with the null object id has no commit.
    let old = repository.head()?.id().filter(|id| !id.is_null());
    let before = repository.refs().id_of("ORIG_HEAD").unwrap_or_default();
    let expected = before.map_or(ExpectedValue::Anything, ExpectedValue::Object);
    let mut transaction = repository.transaction();
    let failed = match old {
        Some(old) => {
            let plain = "reset: updating ORIG_HEAD".into();
            let message = reflog_message(repository, "updating ORIG_HEAD", plain);
            transaction.update("ORIG_HEAD", old, expected, message);
            let updated = transaction.commit();
            updated.map_err(|error| update_failed("ORIG_HEAD", error))
        }
        None if before.is_some() => {
            transaction.delete("ORIG_HEAD", expected);
            transaction.commit()
        }
        None => Ok(()),
    };
    match failed {
        Err(error) if error.kind().ends_command() => Err(error),
        Err(error) => {
            repository.notify(Notice::Failure(error));
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

/// Sets `HEAD`, or its branch, to the commit.
fn move_branch(repository: &Repository, commit: ObjectId, name: &BString) -> Result<()> {
    let old = repository.head()?.id();
    // As in Git, `@` is recorded as `HEAD`.
    let shown = if name == "@" {
        "HEAD".into()
    } else {
        name.as_bstr()
    };
    let plain = [b"reset: moving to ", shown.as_bytes()].concat().into();
    let expected = match old {
        // Git does not verify the old value if it is the null object id.
        Some(old) if old.is_null() => ExpectedValue::Anything,
        Some(old) => ExpectedValue::Object(old),
        None => ExpectedValue::Missing,
    };
    let mut transaction = repository.transaction();
    let message = reflog_message(repository, "updating HEAD", plain);
    transaction.update("HEAD", commit, expected, message);
    let moved = transaction.commit();
    moved.map_err(|error| update_failed("HEAD", error))
}

/// Sets the index entries that differ from the tree to those of the tree.
fn take(
    stage: &mut StagedIndex<'_>,
    difference: Difference,
    prepared: &WorktreeSession<'_>,
    intent_to_add: Option<ObjectId>,
) -> Result<()> {
    let path = difference.path;
    let (id, entry_mode) = match (difference.old, intent_to_add) {
        (Some(side), _) => (side.id, side.mode),
        (None, Some(empty)) => (empty, mode::FILE),
        (None, None) => {
            stage.remove_path(path.as_bstr());
            return Ok(());
        }
    };
    let protect = prepared.repository.protection()?;
    protect
        .check_path(path.as_bstr(), entry_mode == mode::SYMLINK)
        .map_err(from_worktree)?;
    let is_left_out = match prepared.index.find(path.as_bstr(), 0) {
        Ok(at) => prepared
            .index
            .entry(at)
            .flags
            .contains(Flags::SKIP_WORKTREE),
        Err(_) => {
            let sparse = prepared.sparse.as_ref();
            sparse.is_some_and(|sparse| !sparse.includes(path.as_bstr()))
        }
    };
    let mut flags = Flags::default();
    if is_left_out {
        flags = flags.with(Flags::SKIP_WORKTREE);
    }
    if difference.old.is_none() {
        flags = flags.with(Flags::INTENT_TO_ADD);
    }
    stage.replace(Entry {
        path,
        id,
        mode: entry_mode,
        flags,
        stat: pronto_index::Stat::default(),
    });
    Ok(())
}

fn write(
    prepared: &WorktreeSession<'_>,
    edit: &IndexEdit<'_>,
    lock: IndexLock,
    watch: &Watch<'_>,
) -> Result<()> {
    let bytes = prepared.encode(edit.content(), watch)?;
    lock.commit(&bytes).map_err(from_index).map(|_| ())
}
