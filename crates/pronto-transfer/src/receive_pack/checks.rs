//! Checks each command: ref names, worktrees, fast-forwards, and the hook `update`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use bstr::{BStr, BString, ByteSlice};
use gix_object::Kind as ObjectKind;
use pronto_hash::ObjectId;
use pronto_io::untrusted::{self, LARGEST_POINTER_BYTES, SymlinkPolicy};

use super::settings::Deny;
use super::{ReceivedPush, RefCommand, messages};
use crate::objects::from_odb;
use crate::refs::name::{self, Form};
use crate::{Error, ErrorKind, Repository, Result, path};
use pronto_repository::Notice;

/// A worktree that has a branch checked out.
pub(super) struct CheckedOut {
    /// The git directory of the worktree.
    pub(super) git_dir: PathBuf,
    /// The top directory of the worktree; `None` for a bare repository.
    pub(super) top: Option<PathBuf>,
}

/// The decision whether a command may be executed.
pub(super) enum Judgement {
    Accepted,
    /// The command is refused, with the reason for the report.
    Refused(BString),
}

fn refused(reason: &str) -> Result<Judgement> {
    Ok(Judgement::Refused(reason.into()))
}

impl ReceivedPush<'_> {
    /// Checks one command, and runs the hook `update`. Updates the worktree that has the branch
    /// checked out, if the settings request that (`receive.denyCurrentBranch=updateInstead`).
    pub(super) fn judge(&self, command: &RefCommand) -> Result<Judgement> {
        let name = command.name.as_bstr();
        if !is_acceptable(name, command.deletes()) {
            let text = format!("refusing to update funny ref '{name}' remotely");
            self.bands.error(&text);
            return refused("funny refname");
        }
        let full = self.full_name(name);
        let worktree = self.checked_out(name);
        let has_files = worktree.as_ref().filter(|found| found.top.is_some());
        if has_files.is_some()
            && let Some(reason) = self.refuse_current(name)
        {
            return refused(reason);
        }
        if !command.deletes() && !self.has_object(&command.new)? {
            let id = command.new;
            let text = format!("unpack should have generated {id}, but I can't find it!");
            let error = Error::new(ErrorKind::MissingObject, text);
            self.repository.notify(Notice::Failure(error));
            return refused("bad pack");
        }
        if !command.creates() && command.deletes() {
            let is_current = worktree.is_some() || self.head.as_ref() == Some(&full);
            if let Some(reason) = self.refuse_deletion(name, is_current) {
                return refused(reason);
            }
        }
        if let Some(reason) = self.refuse_rewind(command)? {
            return refused(reason);
        }
        if !self.run_update_hook(command)? {
            self.bands.error(&format!("hook declined to update {name}"));
            return refused("hook declined");
        }
        if let Some(worktree) = has_files
            && self.settings.deny_current_branch == Deny::UpdateInstead
            && let Some(reason) = self.deploy(&command.new, worktree)?
        {
            return refused(reason);
        }
        Ok(Judgement::Accepted)
    }

    /// Returns the worktree that has the branch `full` checked out. The worktrees are read once for
    /// all commands.
    fn checked_out(&self, full: &BStr) -> Option<CheckedOut> {
        let places = self.occupied.get_or_init(|| occupied(self.repository));
        let holds = |place: &&Occupied| place.branches.iter().any(|branch| branch == full);
        let git_dir = places.iter().find(holds)?.git_dir.clone();
        Some(CheckedOut {
            top: top_of(self.repository, &git_dir),
            git_dir,
        })
    }

    /// Returns the reason why a checked out branch must not change (`receive.denyCurrentBranch`).
    fn refuse_current(&self, name: &BStr) -> Option<&'static str> {
        let setting = self.settings.deny_current_branch;
        match setting {
            Deny::Ignore | Deny::UpdateInstead => None,
            Deny::Warn => {
                self.bands.warning("updating the current branch");
                None
            }
            Deny::Refuse | Deny::Unconfigured => {
                let text = format!("refusing to update checked out branch: {name}");
                self.bands.error(&text);
                if setting == Deny::Unconfigured {
                    self.bands.error(messages::CURRENT_BRANCH);
                }
                Some("branch is currently checked out")
            }
        }
    }

    /// Returns the reason why a ref must not be deleted (`receive.denyDeletes`,
    /// `receive.denyDeleteCurrent`).
    fn refuse_deletion(&self, name: &BStr, is_current: bool) -> Option<&'static str> {
        if self.settings.deny_deletes && name.starts_with(b"refs/heads/") {
            self.bands
                .error(&format!("denying ref deletion for {name}"));
            return Some("deletion prohibited");
        }
        if !is_current {
            return None;
        }
        let setting = self.settings.deny_delete_current;
        match setting {
            Deny::Ignore => None,
            Deny::Warn => {
                self.bands.warning("deleting the current branch");
                None
            }
            Deny::Refuse | Deny::Unconfigured | Deny::UpdateInstead => {
                if setting == Deny::Unconfigured {
                    self.bands.error(messages::DELETE_CURRENT);
                }
                let text = format!("refusing to delete the current branch: {name}");
                self.bands.error(&text);
                Some("deletion of the current branch prohibited")
            }
        }
    }

    /// Returns the reason why an update that is not a fast-forward is refused
    /// (`receive.denyNonFastForwards`).
    fn refuse_rewind(&self, command: &RefCommand) -> Result<Option<&'static str>> {
        let (old, new, name) = (command.old, command.new, &command.name);
        let is_denied = self.options.fast_forward_only.contains_key(name)
            || self.settings.deny_non_fast_forwards && name.starts_with(b"refs/heads/");
        if !is_denied || command.creates() || command.deletes() {
            return Ok(None);
        }
        let is_commit = |id: &ObjectId| -> Result<bool> {
            let header = self.repository.objects()?.header(id).map_err(from_odb)?;
            Ok(header.is_some_and(|header| header.kind == ObjectKind::Commit))
        };
        if !is_commit(&old)? || !is_commit(&new)? {
            let text = format!("Bad sha1 objects {old} and {new} for {name}");
            let error = Error::new(ErrorKind::Object, text);
            self.repository.notify(Notice::Failure(error));
            return Ok(Some("bad ref"));
        }
        let cuts: BTreeSet<ObjectId> = self.own_cuts()?;
        if self.repository.is_ancestor(&old, &new, &cuts)? {
            return Ok(None);
        }
        let text = format!("denying non-fast-forward {name} (you should pull first)");
        self.bands.error(&text);
        Ok(Some("non-fast-forward"))
    }

    pub(super) fn has_object(&self, id: &ObjectId) -> Result<bool> {
        let store = self.repository.objects()?;
        store.contains(id).map_err(from_odb)
    }
}

/// Whether a client may change the ref `name`.
fn is_acceptable(name: &BStr, deletes: bool) -> bool {
    let form = match deletes {
        true => Form::OneLevel,
        false => Form::Full,
    };
    let below = name.strip_prefix(b"refs/");
    below.is_some_and(|below| name::is_valid(below.as_bstr(), form))
}

/// The git directory of a worktree, and the branches that the worktree has checked out or in
/// progress.
pub(super) struct Occupied {
    git_dir: PathBuf,
    branches: Vec<BString>,
}

/// Returns the worktrees of a repository, the main one first.
fn occupied(repository: &Repository) -> Vec<Occupied> {
    let common = repository.common_dir();
    let mut places = vec![common.to_owned()];
    if let Ok(listing) = std::fs::read_dir(common.join("worktrees")) {
        places.extend(listing.flatten().map(|entry| entry.path()));
    }
    let read = |git_dir: PathBuf| {
        let mut branches = crate::linked::branches_in_progress(&git_dir);
        branches.extend(repository.branch_of(&git_dir));
        Occupied { git_dir, branches }
    };
    places.into_iter().map(read).collect()
}

/// Returns the top directory of the worktree with the git directory `git_dir`; `None` if the
/// repository is bare.
fn top_of(repository: &Repository, git_dir: &std::path::Path) -> Option<PathBuf> {
    if git_dir == repository.common_dir() {
        if repository.is_bare() {
            return None;
        }
        let top = repository.work_tree().map(std::path::Path::to_owned);
        return top.or_else(|| match git_dir.file_name() {
            Some(name) if name == ".git" => git_dir.parent().map(std::path::Path::to_owned),
            _ => Some(git_dir.to_owned()),
        });
    }
    let back = untrusted::read(
        &git_dir.join("gitdir"),
        SymlinkPolicy::Follow,
        LARGEST_POINTER_BYTES,
    )
    .ok()?;
    let file = path::normalize(&git_dir.join(path::borrow(back.trim_ascii_end())));
    file.parent().map(std::path::Path::to_owned)
}
