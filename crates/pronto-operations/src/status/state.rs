//! Reads the operation in progress: merge, rebase, cherry-pick, revert, am, bisect; and the origin
//! of a detached `HEAD`.

use crate::refs::name::candidates;
use crate::{Repository, Result};
use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_index::{Flags, Index};
use pronto_object::TagRef;
use pronto_odb::{PrefixMatches, Store};
use pronto_repository::in_progress::{BISECT_START_FILE, InProgress, RebaseBackend};

/// The operation in progress.
#[derive(Clone, Debug, Default)]
pub struct OperationInProgress {
    /// A merge is in progress (`MERGE_HEAD`).
    pub merge: bool,
    /// An `am` session is in progress.
    pub am: bool,
    /// The current patch of the `am` session is empty.
    pub am_empty_patch: bool,
    /// The rebase in progress.
    pub rebase: Option<RebaseInProgress>,
    /// The cherry-pick in progress (`CHERRY_PICK_HEAD`).
    pub cherry_pick: Option<PickInProgress>,
    /// A commit is being cherry-picked (`CHERRY_PICK_HEAD`), also by a rebase.
    pub has_picked_commit: bool,
    /// The revert in progress (`REVERT_HEAD`).
    pub revert: Option<PickInProgress>,
    /// A bisection is in progress (`BISECT_LOG`).
    pub bisect: bool,
    /// The branch from which the bisection started.
    pub bisecting_from: Option<BString>,
    /// The ref name or abbreviated id at which `HEAD` was detached.
    pub detached_from: Option<BString>,
    /// Whether `HEAD` still is at `detached_from`.
    pub is_detached_there: bool,
    /// The share of files that are present, if this is a sparse checkout.
    pub sparse_checkout: Option<SparseCheckout>,
}

/// A cherry-pick or a revert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PickInProgress {
    /// The abbreviated id of the current commit; `None`, as in Git, between the commits of a
    /// series.
    pub commit: Option<BString>,
}

/// A rebase.
#[derive(Clone, Debug, Default)]
pub struct RebaseInProgress {
    /// Whether the rebase has a todo list (`--interactive`).
    pub interactive: bool,
    /// The branch that is rebased.
    pub branch: Option<BString>,
    /// The ref name or abbreviated id of the new base (`--onto`).
    pub onto: Option<BString>,
    /// The commands that are done.
    pub done: Vec<BString>,
    /// The remaining commands; `None` if the todo file is missing.
    pub left: Option<Vec<BString>>,
    /// Whether a message for the next commit is prepared.
    pub has_message: bool,
    /// Whether a commit is being split.
    pub splitting: bool,
}

/// Reads the state of one repository.
pub(super) struct Reader<'a> {
    pub(super) repository: &'a Repository,
    pub(super) store: &'a Store,
}

impl Reader<'_> {
    /// Reads the operation in progress. `head` is the commit of `HEAD` if it is detached.
    pub(super) fn read(
        &self,
        head: Option<ObjectId>,
        detached_from: bool,
    ) -> Result<OperationInProgress> {
        let present = self.repository.in_progress();
        let picked = self.operation("CHERRY_PICK_HEAD")?;
        let mut state = OperationInProgress {
            has_picked_commit: picked.is_some(),
            ..OperationInProgress::default()
        };
        if present.merge() {
            state.merge = true;
            self.read_rebase(&present, &mut state, head)?;
        } else if !self.read_rebase(&present, &mut state, head)? {
            state.cherry_pick = picked;
        }
        if present.bisect() {
            state.bisect = true;
            state.bisecting_from = self.branch(BISECT_START_FILE)?;
        }
        state.revert = self.operation("REVERT_HEAD")?;
        match self.sequenced() {
            Some(b'p') => {
                let unknown = PickInProgress { commit: None };
                state.cherry_pick.get_or_insert(unknown);
            }
            Some(b'r') => {
                let unknown = PickInProgress { commit: None };
                state.revert.get_or_insert(unknown);
            }
            _ => {}
        }
        if detached_from && let Some(head) = head {
            self.read_detached(&mut state, head)?;
        }
        Ok(state)
    }

    fn text(&self, name: &str) -> Option<BString> {
        let mut text = pronto_io::untrusted::content(self.repository.git_path(name)).ok()?;
        while text.last() == Some(&b'\n') {
            text.pop();
        }
        Some(text.into())
    }

    fn operation(&self, name: &str) -> Result<Option<PickInProgress>> {
        let id = self.repository.refs().id_of(name)?;
        id.map(|id| {
            Ok(PickInProgress {
                commit: Some(self.abbreviate(id)?),
            })
        })
        .transpose()
    }

    /// Returns the first letter of the command that the sequencer executes.
    fn sequenced(&self) -> Option<u8> {
        let todo = self.text("sequencer/todo")?;
        let line = todo
            .lines()
            .map(ByteSlice::trim_start)
            .find(|line| !line.is_empty())?;
        let word = line.split(|byte| b" \t".contains(byte)).next()?;
        match word {
            b"pick" | b"p" => Some(b'p'),
            b"revert" => Some(b'r'),
            _ => None,
        }
    }

    fn read_rebase(
        &self,
        present: &InProgress<'_>,
        state: &mut OperationInProgress,
        head: Option<ObjectId>,
    ) -> Result<bool> {
        if present.am() {
            state.am = true;
            let patch = self.repository.git_path("rebase-apply/patch");
            state.am_empty_patch = patch.metadata().is_ok_and(|metadata| metadata.len() == 0);
            return Ok(true);
        }
        state.rebase = match present.rebase() {
            None => return Ok(false),
            Some(RebaseBackend::Apply) => Some(RebaseInProgress {
                branch: self.branch("rebase-apply/head-name")?,
                onto: self.branch("rebase-apply/onto")?,
                has_message: true,
                ..RebaseInProgress::default()
            }),
            Some(RebaseBackend::Merge { interactive }) => Some(RebaseInProgress {
                interactive,
                branch: self.branch("rebase-merge/head-name")?,
                onto: self.branch("rebase-merge/onto")?,
                done: self.commands("rebase-merge/done")?.unwrap_or_default(),
                left: self.commands("rebase-merge/git-rebase-todo")?,
                has_message: present.has("MERGE_MSG"),
                splitting: self.is_splitting(head)?,
            }),
        };
        Ok(true)
    }

    /// Returns the branch that a state file of rebase or bisect names.
    fn branch(&self, name: &str) -> Result<Option<BString>> {
        let Some(text) = self.text(name).filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        if let Some(branch) = text.strip_prefix(b"refs/heads/") {
            return Ok(Some(branch.into()));
        }
        match pronto_hash::parse_hex(&text) {
            Ok(id) => Ok(Some(self.abbreviate(id)?)),
            Err(_) if text == "detached HEAD" => Ok(None),
            Err(_) => Ok(Some(text)),
        }
    }

    /// Returns the commands in a state file of an interactive rebase, with abbreviated ids.
    fn commands(&self, name: &str) -> Result<Option<Vec<BString>>> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let mut commands = Vec::new();
        for line in text.lines() {
            let line = line.trim();
            if !line.is_empty() && line[0] != b'#' {
                commands.push(self.abbreviate_command(line.as_bstr())?);
            }
        }
        Ok(Some(commands))
    }

    fn abbreviate_command(&self, line: &BStr) -> Result<BString> {
        let other = [&b"exec "[..], b"x ", b"label ", b"l "];
        let mut words = line.splitn(3, |&byte| byte == b' ');
        let (Some(command), Some(word)) = (words.next(), words.next()) else {
            return Ok(line.to_owned());
        };
        let plausible = word.len() >= 4 && word.iter().all(u8::is_ascii_hexdigit);
        if !plausible || other.iter().any(|command| line.starts_with(command)) {
            return Ok(line.to_owned());
        }
        let id = match pronto_hash::parse_hex(word) {
            Ok(id) => Some(id),
            Err(_) => match pronto_hash::Prefix::from_hex(&word.to_str_lossy()) {
                Ok(prefix) => match self.store.prefix(prefix).map_err(super::tree::objects)? {
                    PrefixMatches::One(id) => Some(id),
                    _ => None,
                },
                Err(_) => None,
            },
        };
        let Some(id) = id else {
            return Ok(line.to_owned());
        };
        let mut short = BString::from(command);
        short.push(b' ');
        short.extend_from_slice(&self.abbreviate(id)?);
        if let Some(rest) = words.next() {
            short.push(b' ');
            short.extend_from_slice(rest);
        }
        Ok(short)
    }

    fn is_splitting(&self, head: Option<ObjectId>) -> Result<bool> {
        let Some(head) = head else { return Ok(false) };
        let line = |name| {
            self.text(name)
                .and_then(|text| Some(text.lines().next()?.to_owned()))
        };
        let original = self.repository.refs().id_of("ORIG_HEAD")?;
        let (Some(original), Some(amend), Some(start)) = (
            original,
            line("rebase-merge/amend"),
            line("rebase-merge/orig-head"),
        ) else {
            return Ok(false);
        };
        Ok(if amend == start {
            head.to_string().as_bytes() != amend
        } else {
            original.to_string().as_bytes() != start
        })
    }

    /// Reads from the reflog of `HEAD` at which ref or commit `HEAD` was detached.
    fn read_detached(&self, state: &mut OperationInProgress, head: ObjectId) -> Result<()> {
        let Some(log) = self.repository.refs().log("HEAD")? else {
            return Ok(());
        };
        let switch = log.newest_first().find_map(|line| {
            let rest = line.message.strip_prefix(b"checkout: moving from ")?;
            let at = rest.find(" to ")?;
            Some((BString::from(&rest[at + 4..]), line.new))
        });
        let Some((target, id)) = switch else {
            return Ok(());
        };
        let name = if target == "HEAD" {
            None
        } else {
            self.name_of(target.as_bstr(), id)?
        };
        state.detached_from = Some(match name {
            Some(name) => name,
            None => self.abbreviate(id)?,
        });
        state.is_detached_there = head == id;
        Ok(())
    }

    /// Returns the shortened ref that `name` resolves to, if it is unique and points to `id`.
    fn name_of(&self, name: &BStr, id: ObjectId) -> Result<Option<BString>> {
        let mut found = None;
        for candidate in candidates(name) {
            let Some(resolved) = self.repository.refs().resolve(&candidate)? else {
                continue;
            };
            let Some(target) = resolved.id else { continue };
            if found.is_some() {
                return Ok(None);
            }
            let peeled = self.peel(target)?;
            found = Some((resolved.name, target == id || peeled == id));
        }
        let Some((full, true)) = found else {
            return Ok(None);
        };
        let short = full
            .strip_prefix(b"refs/tags/")
            .or_else(|| full.strip_prefix(b"refs/remotes/"))
            .unwrap_or(&full);
        Ok(Some(short.into()))
    }

    /// Peels a tag.
    fn peel(&self, id: ObjectId) -> Result<ObjectId> {
        let (mut id, mut content) = (id, Vec::new());
        for _ in 0..16 {
            let kind = self
                .store
                .find(&id, &mut content)
                .map_err(super::tree::objects)?;
            if kind != Some(gix_object::Kind::Tag) {
                break;
            }
            match TagRef::new(&content).target() {
                Some(target) => id = target,
                None => break,
            }
        }
        Ok(id)
    }

    fn abbreviate(&self, id: ObjectId) -> Result<BString> {
        Ok(self.repository.abbreviate(&id)?.into())
    }
}

/// The share of tracked files in a sparse checkout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SparseCheckout {
    /// The percentage of the files that are present.
    Percent(usize),
    /// The number is unknown, because the index has sparse directory entries.
    Uncounted,
}

/// Returns the share of entries of `index` that are inside the patterns, or `present` in the
/// worktree although they have the skip-worktree bit.
pub(super) fn sparse_checkout(
    repository: &Repository,
    index: &Index,
    present: usize,
) -> Result<Option<SparseCheckout>> {
    if index.is_empty() || !repository.config().bool_or("core.sparseCheckout", false)? {
        return Ok(None);
    }
    if index.is_sparse() {
        return Ok(Some(SparseCheckout::Uncounted));
    }
    let absent = index
        .iter()
        .filter(|entry| entry.flags.contains(Flags::SKIP_WORKTREE))
        .count()
        .saturating_sub(present);
    Ok(Some(SparseCheckout::Percent(
        100 - 100 * absent / index.len(),
    )))
}
