//! Records the index as a commit: `git commit`.
//!
//! Cases that need Git (an editor, hooks, an operation in progress that ends with the commit,
//! signatures, encodings) are reported as [`ErrorKind::Unsupported`] before anything is changed, so
//! that the caller can hand them over to Git.

use std::io::Write as _;

use bstr::{BStr, BString, ByteSlice};
use gix_object::Kind;
use pronto_hash::ObjectId;
use pronto_index::{Flags, IndexEdit, mode};
use pronto_io::watch::Watch;
use pronto_object::commit::NewCommit;
use pronto_object::message;
use pronto_odb::PACKED_FROM;

pub use pronto_object::message::Cleanup;

use crate::errors::from_index;
use crate::identity::{self, Care, IdentityRole};
use crate::objects::from_odb;
use crate::refs::ExpectedValue;
use crate::reset::report_kind;
use crate::session::WorktreeSession;
use crate::support::{self, Operation};
use crate::write_tree::{self, TreeWriting};
use crate::{Error, ErrorKind, Repository, Result, hooks, in_progress, refresh};
use pronto_repository::Notice;

/// Options of `git commit`. The default has an empty message, and each flag is off.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// The message, before cleanup (`--message`).
    pub message: BString,
    /// The cleanup mode of the message (`--cleanup`); `None` for the configured one
    /// (`commit.cleanup`).
    pub cleanup: Option<Cleanup>,
    /// Allow a commit without changes (`--allow-empty`).
    pub allow_empty: bool,
    /// Allow an empty message (`--allow-empty-message`).
    pub allow_empty_message: bool,
    /// Skip the hooks `pre-commit` and `commit-msg` (`--no-verify`).
    pub no_verify: bool,
}

/// The result of `git commit`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub enum Outcome {
    /// The commit was created, with this id.
    Done(ObjectId),
    /// The message is empty, and no commit was created.
    EmptyMessage,
    /// The new tree is equal to the tree of `HEAD`, and [`Options::allow_empty`] is not set.
    /// Nothing was changed.
    NothingToCommit,
}

/// The number of trees from which on a root commit stores them as a pack. Each loose object would
/// also need a new fan-out directory.
const PACKED_FROM_AT_FIRST: usize = 16;

/// Records the index as a commit on top of `HEAD`, and moves the branch there. Refreshes stat
/// data in the index first.
///
/// # Errors
/// Fails with [`Unsupported`](ErrorKind::Unsupported), before any change, in the cases that need
/// Git (see the module), and with [`Identity`](ErrorKind::Identity), before any change and with Git's
/// advice as the hint, if the author or the committer is not configured. Fails with
/// [`Refused`](ErrorKind::Refused) if the index is unmerged, and with
/// [`InvalidInput`](ErrorKind::InvalidInput) if the message contains NUL. Also fails if the index is locked or cannot be written, if an object
/// cannot be written, or if another process has moved the branch meanwhile.
pub fn commit(repository: &Repository, options: &Options, watch: &Watch<'_>) -> Result<Outcome> {
    support::require(repository, Operation::Commit)?;
    refuse_other_commits(repository, options)?;
    let cleanup = message_cleanup(repository, options.cleanup)?;
    let head = current_commit(repository)?;
    let now = identity::now();
    let identity = |role| {
        let (config, environment) = (repository.config(), repository.environment());
        identity::signature_at(now, role, Care::Strict, config, environment)
    };
    let author = identity(IdentityRole::Author)?;
    let committer = match identity(IdentityRole::Committer) {
        // Git checks the date of the committer after it has written the message.
        Err(error) if error.kind() != ErrorKind::Identity => Err(error),
        found => Ok(found?),
    };
    let written = match cleanup {
        Cleanup::Verbatim => options.message.clone(),
        _ => message::stripped(options.message.as_bstr(), false),
    };
    let text = message::cleaned(written.as_bstr(), cleanup);
    let tree = stage_tree(repository, head, options, watch)?;
    // Git writes the message and checks the committer, and then whether there is anything to commit.
    write_edit_message(repository, written.as_bstr())?;
    let committer = committer?;
    let Some(tree) = tree else {
        return Ok(Outcome::NothingToCommit);
    };
    if message::is_empty(text.as_bstr(), cleanup) && !options.allow_empty_message {
        return Ok(Outcome::EmptyMessage);
    }
    let new = NewCommit {
        tree,
        parents: head.into_iter().collect(),
        author,
        committer,
        message: text.clone(),
    };
    let id = repository
        .objects()?
        .write(Kind::Commit, &new.encode())
        .map_err(from_odb)?;
    move_to(repository, id, head, text.as_bstr())?;
    in_progress::remove_auto_merge(repository)?;
    Ok(Outcome::Done(id))
}

/// Returns the commit of `HEAD`, peeling a tag.
fn current_commit(repository: &Repository) -> Result<Option<ObjectId>> {
    let Some(id) = repository.head()?.id() else {
        return Ok(None);
    };
    let Some(commit) = repository.peel_to(id, Kind::Commit)? else {
        report_kind(repository, id)?;
        return Err(Error::new(ErrorKind::Object, "could not parse HEAD"));
    };
    if commit != id {
        let message = format!("HEAD {id} is not a commit!");
        repository.notify(Notice::Ignored(Error::new(ErrorKind::Object, message)));
    }
    Ok(Some(commit))
}

/// Refuses commits that end an operation such as a merge, commits that run hooks, and messages that
/// contain NUL or are not UTF-8.
fn refuse_other_commits(repository: &Repository, options: &Options) -> Result<()> {
    if repository.in_progress().concerns_commit() {
        return Err(lacks(
            "'commit' during a merge, cherry-pick, revert or rebase",
        ));
    }
    let refusing = ["pre-commit", "commit-msg"];
    let informing = ["prepare-commit-msg", "post-commit"];
    let refusing = refusing.iter().filter(|_| !options.no_verify);
    if refusing
        .chain(&informing)
        .any(|name| hooks::has_programs(repository, name))
    {
        return Err(lacks("'commit' with hooks"));
    }
    if options.message.contains(&0) {
        let message = "a NUL byte in commit log message not allowed";
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    if options.message.to_str().is_err() {
        return Err(lacks("a commit message that is not UTF-8"));
    }
    Ok(())
}

fn message_cleanup(repository: &Repository, wanted: Option<Cleanup>) -> Result<Cleanup> {
    let configured = match (wanted, repository.config().string("commit.cleanup")?) {
        (Some(wanted), _) => return Ok(wanted),
        (None, None) => return Ok(Cleanup::default()),
        (None, Some(configured)) => configured,
    };
    Cleanup::named(configured).ok_or_else(|| lacks("this value of commit.cleanup"))
}

/// Writes the trees of the refreshed index. Returns the id of the root tree, or `None` if there is
/// nothing to commit.
fn stage_tree(
    repository: &Repository,
    head: Option<ObjectId>,
    options: &Options,
    watch: &Watch<'_>,
) -> Result<Option<ObjectId>> {
    let (prepared, lock) = WorktreeSession::with_sparse_index(repository)?;
    let index = &prepared.index;
    if index.iter().any(|entry| entry.stage() != 0) {
        let message = "committing is not possible because there are unmerged files";
        return Err(Error::new(ErrorKind::Refused, message));
    }
    let is_for_git = |entry: pronto_index::EntryRef<'_>| {
        entry.flags.contains(Flags::INTENT_TO_ADD) || entry.mode & mode::TYPE == mode::GITLINK
    };
    if index.is_split() || index.iter().any(is_for_git) {
        return Err(lacks(
            "'commit' with submodules, intent-to-add entries or a split index",
        ));
    }
    // All trees of a root commit are new, and there is only one such commit.
    let packed_from = match head {
        Some(_) => PACKED_FROM,
        None => PACKED_FROM_AT_FIRST,
    };
    let (id, made) = match write_tree::make_trees(repository, index, false, packed_from)? {
        TreeWriting::Known(_, id) => (id, None),
        TreeWriting::New(cached, id) => (id, Some(cached)),
        TreeWriting::Not(_) => return Err(lacks("writing a tree from this index")),
    };
    let before = match head {
        Some(head) => repository.peel_to(head, Kind::Tree)?,
        None => Some(ObjectId::empty_tree(repository.object_hash())),
    };
    if before == Some(id) && !(options.allow_empty && head.is_some()) {
        return Ok(None);
    }
    let mut edit = IndexEdit::new(index);
    let how = refresh::Options::default();
    refresh::refresh(repository, &prepared, &mut edit, &how, watch)?;
    if let Some(made) = made {
        edit.set_cached_tree(Some(made));
    }
    if !edit.is_empty() {
        let bytes = prepared.encode(edit.content(), watch)?;
        lock.commit(&bytes).map_err(from_index)?;
    }
    Ok(Some(id))
}

/// Writes `COMMIT_EDITMSG`, the file that an editor would open, because other programs read it.
fn write_edit_message(repository: &Repository, text: &BStr) -> Result<()> {
    let path = repository.git_path("COMMIT_EDITMSG");
    let written = std::fs::File::create(&path).and_then(|mut file| file.write_all(text));
    written.map_err(|error| {
        let reason = pronto_io::error::reason(&error);
        let message = format!(
            "could not open '{}'",
            repository.display_path(&path).display()
        );
        Error::new(ErrorKind::Io, message).because(reason)
    })
}

fn move_to(
    repository: &Repository,
    id: ObjectId,
    head: Option<ObjectId>,
    text: &BStr,
) -> Result<()> {
    let action = match (repository.environment().bytes("GIT_REFLOG_ACTION"), head) {
        (Some(action), _) => action,
        (None, Some(_)) => b"commit",
        (None, None) => b"commit (initial)",
    };
    let title = text.lines().next().unwrap_or_default();
    let log = [action, b": ", title].concat();
    let mut transaction = repository.transaction();
    let expected = head.map_or(ExpectedValue::Missing, ExpectedValue::Object);
    transaction.update("HEAD", id, expected, log);
    transaction.commit()
}

fn lacks(what: &str) -> Error {
    let message = format!("{what} is not implemented natively");
    Error::new(ErrorKind::Unsupported, message)
}
