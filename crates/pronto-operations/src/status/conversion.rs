//! Converts file contents to blobs during a status. Attributes are read when the first file must be
//! compared by content.

use crate::errors::from_worktree;
use crate::{ErrorKind, Repository, Result};
use bstr::{BStr, BString, ByteSlice};
use pronto_hash::oid;
use pronto_io::dir::Directory;
use pronto_io::error::IoContext;
use pronto_odb::Store;
use pronto_repository::Notice;
use pronto_worktree::attributes::{Attributes, AttributesByDirectory, FromWorktree};
use pronto_worktree::filter::{ATTRIBUTES, SafeCrlf, Settings, ToGit, Warnings};
use pronto_worktree::status::{OnStatusPath, Outcome, StatusJob, ToBlob, walk_with_callback};
use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Converts files of the worktree to blobs: clean filters, `working-tree-encoding`, line endings.
/// Threads share a converter. When the converter is dropped, its warnings become notices of the
/// repository, in the order of paths.
pub(crate) struct Converter<'a> {
    repository: &'a Repository,
    store: &'a Store,
    shared: OnceLock<Result<(Attributes, Arc<Settings>), String>>,
    /// Converters that no thread uses at the moment.
    idle: Mutex<Vec<ToGit>>,
    problems: Arc<Warnings>,
    /// The first file, by path, that cannot be converted.
    failure: Mutex<Option<(BString, pronto_worktree::Error)>>,
}

impl Drop for Converter<'_> {
    fn drop(&mut self) {
        for problem in self.problems.take() {
            self.repository.notify(Notice::Conversion(problem));
        }
    }
}

impl<'a> Converter<'a> {
    pub(crate) fn new(repository: &'a Repository, store: &'a Store) -> Self {
        Converter {
            repository,
            store,
            shared: OnceLock::new(),
            idle: Mutex::default(),
            problems: Arc::default(),
            failure: Mutex::default(),
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut ToGit) -> io::Result<T>) -> io::Result<T> {
        let shared = self
            .shared
            .get_or_init(|| prepare(self.repository).map_err(|error| error.to_string()));
        let (attributes, settings) = shared
            .as_ref()
            .map_err(|message| io::Error::other(message.clone()))?;
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let known = idle().pop();
        let mut converter = known.unwrap_or_else(|| {
            ToGit::new(attributes.stack(), Arc::clone(settings))
                .with_collected(Arc::clone(&self.problems))
        });
        let result = work(&mut converter);
        idle().push(converter);
        result
    }
}

impl Converter<'_> {
    /// Compares the files of `job` with the index.
    ///
    /// # Errors
    /// The same as for [`walk_with_callback`] and [`finish`](Self::finish).
    pub(crate) fn walk(
        &self,
        job: &StatusJob<'_>,
        on_path: Option<&OnStatusPath<'_>>,
    ) -> Result<Outcome> {
        let outcome = walk_with_callback(job, on_path).map_err(from_worktree)?;
        self.finish()?;
        Ok(outcome)
    }

    /// Ends the comparison of files, and returns the first failure. Git ends a command at the first
    /// file that cannot be converted.
    ///
    /// # Errors
    /// Fails if a required filter failed, or the attributes of a file cannot be read.
    pub(crate) fn finish(&self) -> Result<()> {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        match failure.take() {
            Some((_, error)) => Err(from_worktree(error)),
            None => Ok(()),
        }
    }

    /// Records that the file `path` cannot be converted.
    fn fail(&self, path: &BStr, error: pronto_worktree::Error) -> io::Error {
        let reported = io::Error::other(error.to_string());
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if failure
            .as_ref()
            .is_none_or(|(first, _)| path < first.as_bstr())
        {
            *failure = Some((path.to_owned(), error));
        }
        reported
    }
}

impl ToBlob for Converter<'_> {
    fn is_identity(&self, path: &BStr) -> bool {
        self.with(|converter| converter.keeps(path).map_err(io::Error::other))
            .unwrap_or(false)
    }

    fn to_git(&self, path: &BStr, content: Vec<u8>, staged: &oid) -> io::Result<Vec<u8>> {
        self.with(|converter| {
            let mut in_index =
                |out: &mut Vec<u8>| Ok(matches!(self.store.find(staged, out), Ok(Some(_))));
            let converted = converter.convert(path, &content, &mut in_index);
            let converted = converted.map_err(|error| self.fail(path, error))?;
            Ok(converted.into_owned())
        })
    }
}

fn prepare(repository: &Repository) -> Result<(Attributes, Arc<Settings>)> {
    let work_tree = repository.require_work_tree()?;
    let top = Directory::open(work_tree).context(ErrorKind::Io, "cannot open", work_tree)?;
    let source = Box::new(FromWorktree::new(top, AttributesByDirectory::new()));
    let attributes = Attributes::new(&ATTRIBUTES, &repository.attribute_files()?, source)
        .map_err(from_worktree)?;
    let mut settings = repository.filter_settings()?;
    // No object is written, so that no warning about line endings is needed.
    settings.safe_crlf = SafeCrlf::Ignore;
    settings.tolerates_encodings = true;
    Ok((attributes, Arc::new(settings)))
}
