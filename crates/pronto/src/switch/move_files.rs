//! Files and index, from one commit to another.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_index::{Content, EntryRef, Index, Lock, Rules, Writer};
use pronto_io::dir::Directory;
use pronto_io::error::IoContext;
use pronto_io::interrupt::Interrupt;
use pronto_io::progress::Progress;
use pronto_odb::Store;
use pronto_worktree::attributes::{
    Attributes, Directories, Files, FromIndex, FromWorktree, Growing,
};
use pronto_worktree::checkout::{self, Context, Plan};
use pronto_worktree::diff::Difference;
use pronto_worktree::filter::{ATTRIBUTES, SafeCrlf, Settings, ToGit};
use pronto_worktree::ignore::{Patterns, Stack};
use pronto_worktree::sparse::Sparse;
use pronto_worktree::unpack::{self, Checker, Decision, MayGo, Refusals, Situation, Unpacked};

use super::merge_files::Merging;
use super::{Destination, Options};
use crate::checkout_tree::{tree_of, write_files};
use crate::merge::lacking;
use crate::status::{self, ignore_patterns, read_ignore_file};
use crate::worktree::{from_index, from_worktree};
use crate::{Error, ErrorKind, Repository, Result};

/// What came of it.
pub(crate) enum MovedFiles {
    Done(checkout::Outcome),
    Refused(Refusals),
    Unmerged(Vec<BString>),
}

/// Everything that is needed to change files and the index.
pub(crate) struct Prepared<'r> {
    pub(crate) repository: &'r Repository,
    pub(crate) objects: &'r Store,
    pub(crate) top: Directory,
    pub(crate) index: Index,
    pub(crate) settings: Arc<Settings>,
    pub(crate) options: checkout::Options,
    files: Files,
    pub(crate) rules: Rules,
    pub(crate) sparse: Option<Sparse>,
    /// Paths, in order, of files that may be overwritten though they were changed.
    pub(super) given_up: Vec<BString>,
    /// What holds for files that are there now.
    present: Attributes,
}

impl<'r> Prepared<'r> {
    /// Takes the lock of the index and reads it.
    pub(crate) fn new(repository: &'r Repository) -> Result<(Self, Lock)> {
        let (prepared, lock) = Self::try_new(repository)?;
        Ok((prepared, lock?))
    }

    /// As [`new`](Self::new), for whoever may not have to write: the lock may be someone else's.
    pub(crate) fn try_new(repository: &'r Repository) -> Result<(Self, Result<Lock>)> {
        Self::with_index(repository, || repository.index())
    }

    /// As [`new`](Self::new), for whoever takes entries of a sparse index for the directories for
    /// which they stand.
    pub(crate) fn as_it_lies(repository: &'r Repository) -> Result<(Self, Lock)> {
        let (prepared, lock) = Self::with_index(repository, || repository.index_for_looking())?;
        Ok((prepared, lock?))
    }

    /// Filters are told that files come from there.
    pub(crate) fn write_as_of(&mut self, reference: Option<&BString>, treeish: Option<ObjectId>) {
        let settings = Arc::make_mut(&mut self.settings);
        settings.ref_name = reference.cloned();
        settings.treeish = treeish;
    }

    /// With an entry for each file.
    pub(crate) fn expanded(self) -> Result<Self> {
        let index = self.repository.expand_index(self.index)?;
        Ok(Prepared { index, ..self })
    }

    /// As [`try_new`](Self::try_new), with an index that `read` reads once the lock is there.
    pub(crate) fn with_index(
        repository: &'r Repository,
        read: impl FnOnce() -> Result<Index>,
    ) -> Result<(Self, Result<Lock>)> {
        repository.require_work_tree()?;
        let lock = repository.lock_index();
        Ok((Self::without_lock(repository, read)?, lock))
    }

    /// As [`with_index`](Self::with_index), for whoever will not write it, or holds its lock.
    pub(crate) fn without_lock(
        repository: &'r Repository,
        read: impl FnOnce() -> Result<Index>,
    ) -> Result<Self> {
        let path = repository.require_work_tree()?;
        let cannot_open = "cannot open";
        let top = Directory::open(path).context(ErrorKind::Io, cannot_open, path)?;
        let files = repository.attribute_files()?;
        let mut settings = repository.filter_settings()?;
        // Nothing is added here, so nobody needs to be warned.
        settings.safe_crlf = SafeCrlf::Ignore;
        let options = repository.checkout_options()?;
        let rules = repository.stat_rules()?;
        let sparse = repository.sparse_checkout()?;
        let index = repository.with_present_files(read()?)?;
        let source = FromWorktree {
            top: top.try_clone().context(ErrorKind::Io, cannot_open, path)?,
            otherwise: Directories::new(),
        };
        let present =
            Attributes::new(&ATTRIBUTES, &files, Box::new(source)).map_err(from_worktree)?;
        Ok(Prepared {
            repository,
            objects: repository.objects()?,
            top,
            index,
            settings: Arc::new(settings),
            options,
            files,
            rules,
            sparse,
            given_up: Vec::new(),
            present,
        })
    }

    /// Calls `work` with what is there now.
    pub(crate) fn with_situation<T>(
        &self,
        interrupt: &Interrupt,
        work: impl FnOnce(&Situation<'_>) -> Result<T>,
    ) -> Result<T> {
        let to_git = || self.to_git();
        work(&Situation {
            index: &self.index,
            objects: self.objects,
            top: &self.top,
            protect: self.repository.protection()?,
            rules: self.rules,
            facts_decide: false,
            file_mode: self.repository.trusts_file_mode()?,
            symlinks: self.options.symlinks,
            to_git: &to_git,
            sparse: self.sparse.as_ref(),
            workers: self.options.workers,
            given_up: &self.given_up,
            keep_directory: self.options.keep_directory.as_ref(),
            interrupt,
        })
    }

    /// What makes blobs of files that are there now.
    pub(super) fn to_git(&self) -> ToGit {
        ToGit::new(self.present.stack(), Arc::clone(&self.settings))
    }

    /// Writes files. `entries` are all of the index that is to be, where attributes are read.
    pub(crate) fn write_files<'a>(
        &self,
        plan: &Plan,
        entries: impl IntoIterator<Item = EntryRef<'a>>,
        progress: &dyn Progress,
        interrupt: &Interrupt,
    ) -> Result<checkout::Outcome> {
        if plan.write.is_empty() && plan.remove.is_empty() {
            return Ok(checkout::Outcome::default());
        }
        let path = self.repository.require_work_tree()?;
        let worktree = self.top.try_clone();
        let worktree = worktree.context(ErrorKind::Io, "cannot open", path)?;
        let going = plan.remove.iter().map(|removal| removal.path.as_bstr());
        let source = FromIndex {
            blobs: FromIndex::<Store>::find_in_index(entries),
            objects: self.objects.clone(),
            worktree: Some(Growing::new(worktree).without(going)),
        };
        let attributes =
            Attributes::new(&ATTRIBUTES, &self.files, Box::new(source)).map_err(from_worktree)?;
        self.carry_out(plan, &attributes, progress, interrupt)
    }

    /// Writes files by what the attributes files of the work tree say now, and where there are
    /// none, those of the index.
    pub(crate) fn write_as_they_are(
        &self,
        plan: &Plan,
        progress: &dyn Progress,
        interrupt: &Interrupt,
    ) -> Result<checkout::Outcome> {
        let attributes = self.repository.attributes_of_files(&self.index)?;
        self.carry_out(plan, &attributes, progress, interrupt)
    }

    fn carry_out(
        &self,
        plan: &Plan,
        attributes: &Attributes,
        progress: &dyn Progress,
        interrupt: &Interrupt,
    ) -> Result<checkout::Outcome> {
        let context = Context {
            top: &self.top,
            objects: self.objects,
            attributes,
            settings: &self.settings,
            progress,
            interrupt,
        };
        let outcome = write_files(plan, self.objects, &context, &self.options);
        if outcome.interrupted {
            return Err(Error::new(ErrorKind::Interrupted, "interrupted"));
        }
        Ok(outcome)
    }

    /// The bytes of the index that holds `content`.
    pub(crate) fn encode(&self, content: Content<'_>, interrupt: &Interrupt) -> Result<Vec<u8>> {
        self.encode_with(&self.repository.index_writer()?, content, interrupt)
    }

    /// As [`encode`](Self::encode), by a writer of the caller's.
    pub(crate) fn encode_with(
        &self,
        writer: &Writer,
        mut content: Content<'_>,
        interrupt: &Interrupt,
    ) -> Result<Vec<u8>> {
        self.with_situation(interrupt, |situation| {
            let mut checker = Checker::new(situation);
            content.smudge(|entry| checker.is_quietly_modified(entry).unwrap_or(true));
            Ok(())
        })?;
        self.repository
            .encode_index(writer, content, self.sparse.as_ref())
    }

    /// The bytes of the index after the changes.
    pub(crate) fn encode_changed(
        &self,
        unpacked: &Unpacked,
        interrupt: &Interrupt,
    ) -> Result<Vec<u8>> {
        let mut content = Content::new(self.index.kind(), unpacked.entries(&self.index));
        content.version = Some(self.index.version()).filter(|version| *version != 0);
        content.timestamp = self.index.timestamp();
        content.tree = unpacked.cached_tree.as_ref().map(Cow::Borrowed);
        content.keep_caches(&self.index);
        self.encode(content, interrupt)
    }
}

impl Repository {
    pub(super) fn move_files(
        &self,
        (old, to): (Option<ObjectId>, &Destination),
        options: &Options,
        progress: &dyn Progress,
        interrupt: &Interrupt,
    ) -> Result<MovedFiles> {
        let read = || self.index_as_checked_out();
        let (mut prepared, lock) = Prepared::with_index(self, read)?;
        let lock = lock?;
        if options.merge.is_some() {
            prepared = prepared.expanded()?;
        }
        prepared.write_as_of(to.reference.as_ref(), to.commit);
        let new_tree = match to.commit {
            Some(commit) => tree_of(prepared.objects, commit)?,
            None => ObjectId::empty_tree(self.object_hash()),
        };
        // Without an index nothing has been checked out yet: everything is new.
        let old = old.filter(|_| prepared.index.identity().is_some());
        let old_tree = old
            .map(|commit| old_tree_of(prepared.objects, commit))
            .transpose()?;
        let unmerged = unmerged(&prepared.index);
        if !unmerged.is_empty() && !options.discard {
            return Ok(MovedFiles::Unmerged(unmerged));
        }
        let mut decision = prepared.decide((old_tree, new_tree), options, interrupt)?;
        if matches!(decision, Decision::Expand) {
            prepared = prepared.expanded()?;
            decision = prepared.decide((old_tree, new_tree), options, interrupt)?;
        }
        let mut merging = None;
        if let (Decision::Refused(refusals), Some(style), Some(old)) =
            (&decision, options.merge, old)
        {
            prepared.given_up = self.to_merge(&prepared, refusals, old)?;
            decision = prepared.decide((old_tree, new_tree), options, interrupt)?;
            let Decision::Plan(unpacked) = &mut decision else {
                return Err(lacking("merging local changes with what takes their place"));
            };
            prepared.require_present(&unpacked.plan, interrupt)?;
            let names = self.names_of_sides(to, old)?;
            merging = Some(Merging::new(&prepared, style, &names, unpacked)?);
        }
        let mut unpacked = match decision {
            Decision::Plan(unpacked) => unpacked,
            Decision::Refused(refusals) => return Ok(MovedFiles::Refused(refusals)),
            Decision::Expand => return Err(lacking("moving files by this sparse index")),
        };
        let mut outcome = {
            let entries = unpacked.entries(&prepared.index);
            prepared.write_files(&unpacked.plan, entries, progress, interrupt)?
        };
        unpacked.record(&outcome);
        if let Some(merging) = merging {
            merging.record(&mut unpacked);
        }
        let said = unpacked.leftover.lines().into_iter();
        outcome.warnings.splice(..0, said);
        let is_news = !unpacked.changes.is_empty()
            || prepared.index.cached_tree() != unpacked.cached_tree
            || prepared.index.identity().is_none();
        if is_news {
            let bytes = prepared.encode_changed(&unpacked, interrupt)?;
            lock.commit(&bytes).map_err(from_index)?;
        }
        Ok(MovedFiles::Done(outcome))
    }

    /// Files that differ from `commit`: Git's letter and the path, in order.
    pub(super) fn local_changes(
        &self,
        commit: ObjectId,
        interrupt: &Interrupt,
    ) -> Result<Vec<(u8, BString)>> {
        let options = status::Options {
            untracked: status::Untracked::No,
            renames: None,
            state: false,
            detached_from: false,
            ..status::Options::default()
        };
        let report = self.status(&options, interrupt)?;
        let in_worktree = report.entries.iter().filter_map(|entry| {
            let letter = if entry.stages.is_some() {
                Some(b'U')
            } else {
                entry.worktree
            };
            Some((entry.path.clone(), (None, Some(letter?))))
        });
        let mut paths: BTreeMap<BString, (Option<Difference>, Option<u8>)> = in_worktree.collect();
        for difference in self.staged_against(commit)? {
            let path = difference.path.clone();
            paths.entry(path).or_default().0 = Some(difference);
        }
        let changes = paths.into_iter();
        Ok(changes
            .filter_map(|(path, (staged, file))| Some((letter(staged.as_ref(), file)?, path)))
            .collect())
    }

    pub(super) fn staged_against(&self, commit: ObjectId) -> Result<Vec<Difference>> {
        let tree = tree_of(self.objects()?, commit)?;
        let index = self.sparse_index()?;
        self.differences(&tree, &index)
    }
}

/// Paths with conflicts.
fn unmerged(index: &Index) -> Vec<BString> {
    let entries = index.iter().filter(|entry| entry.stage() != 0);
    let mut paths: Vec<BString> = entries.map(|entry| entry.path.to_owned()).collect();
    paths.dedup();
    paths
}

/// Git's letter for a path that differs from a commit, in the index or as a file.
fn letter(staged: Option<&Difference>, file: Option<u8>) -> Option<u8> {
    let Some(staged) = staged else {
        return file;
    };
    match (&staged.old, &staged.new, file) {
        // A local change that was merged with conflicts: Git names it as any other.
        _ if staged.unmerged => Some(b'M'),
        (None, _, Some(b'D')) => None,
        (None, ..) => Some(b'A'),
        (Some(_), None, _) | (_, _, Some(b'D')) => Some(b'D'),
        (Some(_), Some(_), _) => Some(staged.letter()),
    }
}

impl Prepared<'_> {
    fn decide(
        &self,
        (old, new): (Option<ObjectId>, ObjectId),
        options: &Options,
        interrupt: &Interrupt,
    ) -> Result<Decision> {
        self.with_untracked(options.keep_ignored, |may_go| {
            self.with_situation(interrupt, |situation| {
                match (options.discard, options.overwrite_untracked) {
                    (false, _) => unpack::two_way(old, new, situation, may_go),
                    (true, false) => unpack::one_way(new, situation, Some(may_go)),
                    (true, true) => unpack::one_way(new, situation, None),
                }
                .map_err(from_worktree)
            })
        })
    }

    /// Calls `work` with a way to tell which untracked files may go: those that are ignored,
    /// unless they are kept.
    pub(crate) fn with_untracked<T>(
        &self,
        keep_ignored: bool,
        work: impl FnOnce(&mut MayGo<'_>) -> Result<T>,
    ) -> Result<T> {
        let patterns: OnceCell<Patterns> = OnceCell::new();
        let read = |directory: &BStr| {
            read_ignore_file(
                &self.top,
                b".gitignore",
                (&self.index, Some(self.objects)),
                directory,
            )
        };
        let mut stack: Option<Stack<'_>> = None;
        let mut may_go = |path: &BStr, is_directory: bool| {
            if keep_ignored {
                return Ok(false);
            }
            let patterns =
                patterns.get_or_init(|| ignore_patterns(self.repository).unwrap_or_default());
            let stack = stack.get_or_insert_with(|| Stack::new(patterns, Some(&read)));
            let end = path.rfind_byte(b'/').unwrap_or(0);
            stack.enter(path[..end].as_bstr());
            Ok(stack.is_directory_ignored() || stack.is_ignored(path, is_directory))
        };
        work(&mut may_go)
    }
}

/// The tree of the commit that `HEAD` was at; a `HEAD` of zeros is at none.
fn old_tree_of(objects: &Store, commit: ObjectId) -> Result<ObjectId> {
    match commit.is_null() {
        true => Ok(ObjectId::empty_tree(commit.kind())),
        false => tree_of(objects, commit),
    }
}
