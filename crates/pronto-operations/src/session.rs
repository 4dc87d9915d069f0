//! The state for changing the worktree: the locked index, the settings and the attributes.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::{Arc, Mutex, PoisonError};

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_index::{EntryRef, Index, IndexContent, IndexLock, StatRules, Writer};
use pronto_io::dir::Directory;
use pronto_io::error::IoContext;
use pronto_io::watch::Watch;
use pronto_odb::Store;
use pronto_worktree::attributes::{
    Attributes, AttributesByDirectory, Files, FromIndex, FromWorktree, Growing,
};
use pronto_worktree::checkout::{self, CheckoutContext, CheckoutPlan};
use pronto_worktree::filter::{ATTRIBUTES, FilterPrograms, SafeCrlf, Settings, ToGit, Warnings};
use pronto_worktree::ignore::{IgnoreStack, Patterns};
use pronto_worktree::sparse::Sparse;
use pronto_worktree::unpack::{ContentChecker, IsExpendable, UnpackPlan, WorktreeView};

use crate::checkout_tree::write_files;
use crate::errors::from_worktree;
use crate::ignores::{ignore_patterns, read_ignore_file};
use crate::remote::Exact;
use crate::{Error, ErrorKind, Repository, Result, attributes, index};
use pronto_repository::Notice;

/// The index, the worktree and the settings that an operation on files needs.
pub(crate) struct WorktreeSession<'r> {
    pub(crate) repository: &'r Repository,
    pub(crate) objects: &'r Store,
    pub(crate) top: Directory,
    pub(crate) index: Index,
    pub(crate) settings: Arc<Settings>,
    pub(crate) options: checkout::Options,
    files: Files,
    pub(crate) rules: StatRules,
    pub(crate) sparse: Option<Sparse>,
    /// The attributes of the current files.
    present: Attributes,
    /// The filter processes that were started while files were written.
    programs: Mutex<Option<FilterPrograms>>,
}

impl<'r> WorktreeSession<'r> {
    /// Locks the index and reads it.
    pub(crate) fn new(repository: &'r Repository) -> Result<(Self, IndexLock)> {
        let (prepared, lock) = Self::try_new(repository)?;
        Ok((prepared, lock?))
    }

    /// Does the same as [`new`](Self::new) for a caller that may not have to write: a lock held by
    /// another process is an inner error.
    pub(crate) fn try_new(repository: &'r Repository) -> Result<(Self, Result<IndexLock>)> {
        Self::with_index(repository, || repository.index())
    }

    /// Does the same as [`new`](Self::new) for a caller that accepts sparse directory entries: the
    /// index is not expanded.
    pub(crate) fn with_sparse_index(repository: &'r Repository) -> Result<(Self, IndexLock)> {
        let (prepared, lock) = Self::with_index(repository, || repository.index_for_looking())?;
        Ok((prepared, lock?))
    }

    /// Sets the ref and the tree-ish that filters receive as metadata.
    pub(crate) fn write_as_of(&mut self, reference: Option<&BString>, treeish: Option<ObjectId>) {
        let settings = Arc::make_mut(&mut self.settings);
        settings.ref_name = reference.cloned();
        settings.treeish = treeish;
    }

    /// Expands all sparse directory entries of the index.
    pub(crate) fn expanded(self) -> Result<Self> {
        let index = self.repository.expand_index(self.index)?;
        Ok(WorktreeSession { index, ..self })
    }

    /// Does the same as [`try_new`](Self::try_new) with an index that `read` reads after the lock
    /// was requested.
    pub(crate) fn with_index(
        repository: &'r Repository,
        read: impl FnOnce() -> Result<Index>,
    ) -> Result<(Self, Result<IndexLock>)> {
        repository.require_work_tree()?;
        let lock = index::lock(repository);
        Ok((Self::without_lock(repository, read)?, lock))
    }

    /// Does the same as [`with_index`](Self::with_index) for a caller that does not write the
    /// index, or holds its lock.
    pub(crate) fn without_lock(
        repository: &'r Repository,
        read: impl FnOnce() -> Result<Index>,
    ) -> Result<Self> {
        let path = repository.require_work_tree()?;
        let cannot_open = "cannot open";
        let top = Directory::open(path).context(ErrorKind::Io, cannot_open, path)?;
        let files = repository.attribute_files()?;
        let mut settings = repository.filter_settings()?;
        // No files are added here, so that no warning about line endings is needed.
        settings.safe_crlf = SafeCrlf::Ignore;
        settings.tolerates_encodings = true;
        let options = repository.checkout_options()?;
        let rules = repository.stat_rules()?;
        let sparse = repository.sparse_checkout()?;
        let index = repository.with_present_files(read()?)?;
        let same = top.try_clone().context(ErrorKind::Io, cannot_open, path)?;
        let source = FromWorktree::new(same, AttributesByDirectory::new());
        let present =
            Attributes::new(&ATTRIBUTES, &files, Box::new(source)).map_err(from_worktree)?;
        Ok(WorktreeSession {
            repository,
            objects: repository.objects()?,
            top,
            index,
            settings: Arc::new(settings),
            options,
            files,
            rules,
            sparse,
            present,
            programs: Mutex::default(),
        })
    }

    /// Calls `work` with a view of the current index and worktree.
    pub(crate) fn with_worktree_view<T>(
        &self,
        watch: &Watch<'_>,
        work: impl FnOnce(&WorktreeView<'_>) -> Result<T>,
    ) -> Result<T> {
        let problems = Arc::<Warnings>::default();
        let to_git = || self.to_git().with_collected(Arc::clone(&problems));
        let result = work(&WorktreeView {
            index: &self.index,
            objects: self.objects,
            top: &self.top,
            protect: self.repository.protection()?,
            rules: self.rules,
            stat_decides: false,
            file_mode: self.repository.trusts_file_mode()?,
            symlinks: self.options.symlinks,
            to_git: &to_git,
            sparse: self.sparse.as_ref(),
            workers: self.options.workers,
            keep_directory: self.options.keep_directory.as_ref(),
            interrupt: watch.interrupt(),
        });
        for problem in problems.take() {
            self.repository.notify(Notice::Conversion(problem));
        }
        result
    }

    /// Returns the converter of current files to blobs.
    pub(crate) fn to_git(&self) -> ToGit {
        let programs = self.programs.lock();
        let programs = programs.unwrap_or_else(PoisonError::into_inner).take();
        ToGit::new(self.present.stack(), Arc::clone(&self.settings)).with_programs(programs)
    }

    /// Executes `plan`: writes and removes files. `entries` are those of the new index, from which
    /// attributes are read.
    pub(crate) fn write_files<'a>(
        &self,
        plan: &CheckoutPlan,
        entries: impl IntoIterator<Item = EntryRef<'a>>,
        watch: &Watch<'_>,
    ) -> Result<checkout::Outcome> {
        if plan.write.is_empty() && plan.remove.is_empty() {
            self.repository.check_parallel_checkout()?;
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
        self.carry_out(plan, &attributes, watch)
    }

    /// Executes `plan` with the current attributes files of the worktree, or of the index for files
    /// that the worktree lacks.
    pub(crate) fn write_as_they_are(
        &self,
        plan: &CheckoutPlan,
        watch: &Watch<'_>,
    ) -> Result<checkout::Outcome> {
        let attributes = attributes::attributes_of_files(self.repository, &self.index)?;
        self.carry_out(plan, &attributes, watch)
    }

    fn carry_out(
        &self,
        plan: &CheckoutPlan,
        attributes: &Attributes,
        watch: &Watch<'_>,
    ) -> Result<checkout::Outcome> {
        let mut settings = self.repository.check_parallel_checkout();
        if blobs_of(plan).next().is_some() {
            settings = settings.and_then(|()| self.settings.check_drivers().map_err(from_worktree));
        }
        let removals;
        let plan = match settings {
            Ok(()) => plan,
            Err(_) => {
                removals = CheckoutPlan {
                    remove: plan.remove.clone(),
                    write: Vec::new(),
                };
                &removals
            }
        };
        let exact = Exact {
            repository: self.repository,
            watch,
        };
        exact.fetch_promised(blobs_of(plan).map(|item| item.id), self.objects)?;
        let context = CheckoutContext {
            top: &self.top,
            objects: self.objects,
            attributes,
            settings: &self.settings,
            progress: watch.progress(),
            interrupt: watch.interrupt(),
        };
        let mut outcome = write_files(plan, self.objects, &context, &self.options);
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        *programs = outcome.programs.take().map(|boxed| *boxed);
        drop(programs);
        if outcome.interrupted {
            return Err(Error::new(ErrorKind::Interrupted, "interrupted"));
        }
        settings.map(|()| outcome)
    }

    /// Encodes an index with `content` in the configured format.
    pub(crate) fn encode(&self, content: IndexContent<'_>, watch: &Watch<'_>) -> Result<Vec<u8>> {
        self.encode_with(&index::writer(self.repository)?, content, watch)
    }

    /// Does the same as [`encode`](Self::encode) with the writer `writer`.
    pub(crate) fn encode_with(
        &self,
        writer: &Writer,
        mut content: IndexContent<'_>,
        watch: &Watch<'_>,
    ) -> Result<Vec<u8>> {
        self.with_worktree_view(watch, |worktree_view| {
            let mut checker = ContentChecker::new(worktree_view);
            content.smudge(|entry| checker.is_quietly_modified(entry).unwrap_or(true));
            Ok(())
        })?;
        index::encode(self.repository, writer, content, self.sparse.as_ref())
    }

    /// Encodes the index after the changes `unpacked`.
    pub(crate) fn encode_changed(
        &self,
        unpacked: &UnpackPlan,
        watch: &Watch<'_>,
    ) -> Result<Vec<u8>> {
        let mut content = IndexContent::new(self.index.kind(), unpacked.entries(&self.index));
        content.version = Some(self.index.version()).filter(|version| *version != 0);
        content.timestamp = self.index.timestamp();
        content.tree = unpacked.cached_tree.as_ref().map(Cow::Borrowed);
        content.keep_caches(&self.index);
        self.encode(content, watch)
    }
}

/// Returns the files that `plan` writes: all items except submodules.
fn blobs_of(plan: &CheckoutPlan) -> impl Iterator<Item = &checkout::CheckoutItem> {
    plan.write.iter().filter(|item| !item.is_submodule())
}

impl WorktreeSession<'_> {
    /// Calls `work` with a predicate for untracked files that may be overwritten or removed:
    /// ignored files, unless `keep_ignored` is set.
    pub(crate) fn with_untracked<T>(
        &self,
        keep_ignored: bool,
        work: impl FnOnce(&mut IsExpendable<'_>) -> Result<T>,
    ) -> Result<T> {
        let patterns: OnceCell<Patterns> = OnceCell::new();
        let read = |directory: &BStr| {
            read_ignore_file(
                &self.top,
                b".gitignore",
                &self.index,
                Some(self.objects),
                directory,
            )
        };
        let mut stack: Option<IgnoreStack<'_>> = None;
        let mut is_expendable = |path: &BStr, is_directory: bool| {
            if keep_ignored {
                return Ok(false);
            }
            let patterns =
                patterns.get_or_init(|| ignore_patterns(self.repository).unwrap_or_default());
            let stack = stack.get_or_insert_with(|| IgnoreStack::new(patterns, Some(&read)));
            let end = path.rfind_byte(b'/').unwrap_or(0);
            stack.enter(path[..end].as_bstr());
            Ok(stack.is_directory_ignored() || stack.is_ignored(path, is_directory))
        };
        work(&mut is_expendable)
    }
}
