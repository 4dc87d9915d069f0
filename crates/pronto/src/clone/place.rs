//! The directories of a new repository. They are missing or empty before the clone and complete
//! after it; in between they do not look like a repository.

use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::path::{Path, PathBuf};

use bstr::ByteSlice;
use pronto_io::cleanup::Guard;
use pronto_io::error::IoContext;

use super::Options;
use crate::environment::Environment;
use crate::{Error, ErrorKind, Repository, Result, path};

/// The path of the new repository, and its temporary path.
pub(super) struct ClonePaths {
    pub(super) work_tree: Option<PathBuf>,
    pub(super) git_dir: PathBuf,
    pub(super) partial: PathBuf,
    guards: Vec<Guard>,
    /// Empty directories that existed before. A failed clone keeps them.
    existed: Vec<PathBuf>,
}

impl ClonePaths {
    /// Checks that the directories of the worktree and the repository are missing or empty.
    pub(super) fn check(
        directory: &Path,
        options: &Options,
        environment: &Environment,
    ) -> Result<Self> {
        let top = environment.absolute(directory);
        let mut existed = Vec::new();
        let taken = |path: &Path, what: &str, shown: &Path| {
            let message = format!(
                "{what} path '{}' already exists and is not an empty directory.",
                shown.display()
            );
            match is_free(path) {
                Some(true) => Ok(path.exists()),
                _ => Err(Error::new(ErrorKind::AlreadyExists, message)),
            }
        };
        if taken(&top, "destination", directory)? {
            existed.push(top.clone());
        }
        let (work_tree, git_dir) = match (&options.separate_git_dir, options.is_bare()) {
            (None, true) => (None, top),
            (None, false) => (Some(top.clone()), top.join(".git")),
            (Some(separate), _) => {
                let git_dir = environment.absolute(separate);
                if taken(&git_dir, "repository", separate)? {
                    existed.push(git_dir.clone());
                }
                (Some(top), git_dir)
            }
        };
        Ok(ClonePaths {
            work_tree,
            partial: partial_name(&git_dir),
            git_dir,
            guards: Vec::new(),
            existed,
        })
    }

    /// Creates the temporary directory in which the new repository is built, and the worktree.
    pub(super) fn occupy(mut self) -> Result<Self> {
        if let Some(work_tree) = &self.work_tree {
            let existed = self.existed.contains(work_tree);
            if let Some(parent) = work_tree.parent() {
                let message = "could not create leading directories of";
                fs::create_dir_all(parent).context(ErrorKind::Io, message, work_tree)?;
            }
            self.guards.push(Guard::new(work_tree));
            if !existed {
                let message = "could not create work tree dir";
                fs::create_dir(work_tree).context(ErrorKind::Io, message, work_tree)?;
            }
        }
        self.guards.push(Guard::new(&self.partial));
        let message = "could not create leading directories of";
        fs::create_dir_all(&self.partial).context(ErrorKind::Io, message, &self.git_dir)?;
        Ok(self)
    }

    /// Opens the repository at its temporary path.
    pub(super) fn open_partial(&self, environment: &Environment) -> Result<Repository> {
        let Some(work_tree) = &self.work_tree else {
            return Repository::open(&self.partial, environment);
        };
        let mut environment = environment.clone();
        environment.set("GIT_DIR", &self.partial);
        environment.set("GIT_WORK_TREE", work_tree);
        Repository::discover(work_tree, &environment)
    }

    /// Renames the temporary directory to the final path: from then on the repository exists.
    pub(super) fn name(&mut self) -> Result<()> {
        let message = "could not put the new repository at";
        fs::rename(&self.partial, &self.git_dir).context(ErrorKind::Io, message, &self.git_dir)?;
        if let Some(work_tree) = &self.work_tree
            && self.git_dir != work_tree.join(".git")
        {
            let link = [b"gitdir: ", path::as_bytes(&self.git_dir).as_bytes(), b"\n"].concat();
            let file = work_tree.join(".git");
            fs::write(&file, link).context(ErrorKind::Io, "could not write", &file)?;
        }
        for guard in self.guards.drain(..) {
            guard.keep();
        }
        Ok(())
    }

    /// Removes everything that the clone created.
    pub(super) fn give_up(mut self) {
        self.guards.clear();
        for path in &self.existed {
            // The directory existed before, and was empty.
            let _ = fs::create_dir_all(path);
        }
    }
}

/// Returns an unpredictable path beside `git_dir`. If the name were known, a checked out tree could
/// contain files for it.
fn partial_name(git_dir: &Path) -> PathBuf {
    let random = std::hash::RandomState::new();
    let (first, second) = (random.hash_one(0), random.build_hasher().finish());
    let name = git_dir.file_name().unwrap_or_default().to_string_lossy();
    let name = name.trim_start_matches('.');
    git_dir.with_file_name(format!(".{name}.{first:016x}{second:016x}"))
}

/// Returns whether `path` is missing or an empty directory; `None` if that cannot be determined.
fn is_free(path: &Path) -> Option<bool> {
    match fs::read_dir(path) {
        Ok(mut entries) => Some(entries.next().is_none()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Some(path.symlink_metadata().is_err())
        }
        Err(_) => Some(false),
    }
}
