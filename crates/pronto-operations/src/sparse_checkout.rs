//! Sparse checkouts: only a part of the tracked files is in the worktree (`git sparse-checkout`).
//!
//! Changes are made in Git's order: configuration of the worktree, files, index, and
//! `info/sparse-checkout` last. An interrupted change therefore leaves the old patterns in effect.

use std::collections::BTreeSet;
use std::path::Path;

use bstr::{BStr, ByteSlice};
use pronto_index::{Cover, EntryRef, Index};
use pronto_io::watch::Watch;
use pronto_worktree::checkout::{CheckoutFailure, CheckoutWarning};
use pronto_worktree::pathspec::{Pathspec, PathspecDefaults};
use pronto_worktree::sparse::{Leftover, Sparse, SparseDefinition, outside};
use pronto_worktree::unpack;

use crate::config::Config;
use crate::config::edit::{self, EditRefusal};
use crate::errors::{from_index, from_worktree};
use crate::lock::{Lock, PATIENCE};
use crate::session::WorktreeSession;
use crate::status::{self, UntrackedSearch, ignore_patterns};
use crate::support::{self, Operation};
use crate::{Error, ErrorKind, Repository, Result, path};

pub use pronto_worktree::sparse;

/// The settings to record before a sparse checkout changes. `None` keeps a setting.
#[derive(Clone, Copy, Debug, Default)]
pub struct Modes {
    /// Use cone mode (`--cone`, `core.sparseCheckoutCone`).
    pub cone: Option<bool>,
    /// Use a sparse index (`--sparse-index`, `index.sparse`).
    pub sparse_index: Option<bool>,
}

/// The result of applying sparse-checkout patterns to the worktree.
#[derive(Debug, Default)]
#[must_use]
#[non_exhaustive]
pub struct Applied {
    /// The paths that could not be adapted to the patterns.
    pub leftover: Leftover,
    /// Warnings about other problems.
    pub warnings: Vec<CheckoutWarning>,
    /// The files that could not be written. If there are any, the index and the patterns are
    /// unchanged.
    pub failed: Vec<CheckoutFailure>,
}

/// Enables the sparse checkout with `modes`, in the configuration of the worktree. A new sparse
/// checkout uses cone mode unless `modes` disables it.
///
/// # Errors
/// Fails if the configuration cannot be read or written.
pub fn record_modes(repository: &mut Repository, modes: Modes) -> Result<()> {
    support::require(repository, Operation::SparseCheckout)?;
    write_modes(repository, modes)
}

fn write_modes(repository: &mut Repository, modes: Modes) -> Result<()> {
    let is_sparse = repository.is_sparse_checkout()?;
    if modes.cone.is_some() || !is_sparse {
        set_for_work_tree(repository, "core.sparseCheckout", true)?;
        set_for_work_tree(
            repository,
            "core.sparseCheckoutCone",
            modes.cone != Some(false),
        )?;
    }
    if let Some(sparse_index) = modes.sparse_index {
        set_for_work_tree(repository, "index.sparse", sparse_index)?;
    }
    repository.reload_config()
}

/// Enables a sparse checkout of the files in the top directory, in an empty worktree
/// (`git clone --sparse`).
///
/// # Errors
/// Fails if the configuration or the patterns cannot be written.
pub fn begin(repository: &mut Repository) -> Result<()> {
    write_modes(repository, Modes::default())?;
    let lock = Lock::acquire(repository.git_path("info/sparse-checkout"), PATIENCE)?;
    let mut lock = lock.recorded(repository.config());
    lock.write_and_close(&SparseDefinition::Directories(BTreeSet::new()).to_text())?;
    lock.commit()
}

/// Sets a key in `config.worktree`, after enabling the per-worktree configuration.
fn set_for_work_tree(repository: &mut Repository, key: &str, value: bool) -> Result<()> {
    give_work_tree_config(repository)?;
    let file = repository.git_dir().join("config.worktree");
    let value = if value { "true" } else { "false" };
    edit::set_in_file(&file, key, value.into(), repository.config())
}

/// Enables `extensions.worktreeConfig`, and moves settings that must not apply to all worktrees to
/// `config.worktree` of the main worktree.
fn give_work_tree_config(repository: &mut Repository) -> Result<()> {
    if repository.format().worktree_config {
        return Ok(());
    }
    let common = repository.common_dir().join("config");
    let config = repository.config();
    edit::set_in_file(&common, "extensions.worktreeConfig", "true".into(), config)?;
    let main = repository.common_dir().join("config.worktree");
    let local = repository.config_loader().local().load()?;
    if local.bool_or("core.bare", false)? {
        edit::set_in_file(&main, "core.bare", "true".into(), config)?;
        unset(&common, "core.bare", config)?;
    }
    if let Some(place) = local.string("core.worktree")? {
        edit::set_in_file(&main, "core.worktree", place, config)?;
        unset(&common, "core.worktree", config)?;
    }
    repository.enable_work_tree_config();
    Ok(())
}

/// Applies `definition`: updates the files and the index, then writes the patterns
/// (`git sparse-checkout set`). If a file cannot be written, the old patterns stay in effect.
///
/// # Errors
/// Fails with `ErrorKind::Locked` if the index or the patterns are locked, with
/// `ErrorKind::Interrupted` if the operation is interrupted, and with other kinds if the index, the
/// patterns or a tree cannot be read or written.
pub fn set(
    repository: &Repository,
    definition: &SparseDefinition,
    watch: &Watch<'_>,
) -> Result<Applied> {
    support::require(repository, Operation::SparseCheckout)?;
    let file = repository.git_path("info/sparse-checkout");
    let mut lock = Lock::acquire(file, PATIENCE)?.recorded(repository.config());
    // Git looks for the trees of the new index.
    repository.objects()?.use_alternates();
    let sparse = definition.to_sparse(repository.ignores_case()?);
    let mut applied = apply_sparsity(repository, sparse, watch)?;
    if applied.failed.is_empty() {
        lock.write_and_close(&definition.to_text())?;
        lock.commit()?;
    } else if let Some(before) = repository.sparse_checkout()? {
        let restored = apply_sparsity(repository, before, watch)?;
        applied.warnings.extend(restored.warnings);
    }
    Ok(applied)
}

/// Applies the recorded patterns to the files and the index (`git sparse-checkout reapply`). Does
/// nothing if there are no patterns.
///
/// # Errors
/// The same as for [`set`].
pub fn reapply(repository: &Repository, watch: &Watch<'_>) -> Result<Applied> {
    support::require(repository, Operation::SparseCheckout)?;
    match repository.sparse_definition()? {
        Some(definition) => {
            let sparse = definition.to_sparse(repository.ignores_case()?);
            apply_sparsity(repository, sparse, watch)
        }
        None => Ok(Applied::default()),
    }
}

/// Restores all files, and disables the sparse checkout (`git sparse-checkout disable`). The
/// patterns are kept for later.
///
/// # Errors
/// The same as for [`set`].
pub fn disable(repository: &mut Repository, watch: &Watch<'_>) -> Result<Applied> {
    support::require(repository, Operation::SparseCheckout)?;
    let everything = SparseDefinition::Patterns(vec!["/*".into()]);
    let everything = everything.to_sparse(repository.ignores_case()?);
    let applied = apply_sparsity(repository, everything, watch)?;
    if applied.failed.is_empty() {
        for key in [
            "core.sparseCheckout",
            "core.sparseCheckoutCone",
            "index.sparse",
        ] {
            set_for_work_tree(repository, key, false)?;
        }
        repository.reload_config()?;
    }
    Ok(applied)
}

fn apply_sparsity(repository: &Repository, sparse: Sparse, watch: &Watch<'_>) -> Result<Applied> {
    let (mut prepared, lock) =
        WorktreeSession::with_index(repository, || index_for(repository, &sparse))?;
    let lock = lock?;
    if prepared.index.identity().is_none() {
        return Ok(Applied::default());
    }
    prepared.sparse = Some(sparse);
    let mut unpacked = prepared.with_worktree_view(watch, |worktree_view| {
        let mut worktree_view = *worktree_view;
        worktree_view.stat_decides = true;
        unpack::sparsity(&worktree_view).map_err(from_worktree)
    })?;
    let entries = unpacked.entries(&prepared.index);
    let mut outcome = prepared.write_files(&unpacked.plan, entries, watch)?;
    let mut warnings = std::mem::take(&mut outcome.warnings);
    if outcome.failed.is_empty() {
        unpacked.record(&outcome);
        let bytes = prepared.encode_changed(&unpacked, watch)?;
        lock.commit(&bytes).map_err(from_index)?;
        let entries = unpacked.entries(&prepared.index);
        warnings.extend(clean_outside(repository, &prepared, &entries, watch)?);
    }
    Ok(Applied {
        leftover: unpacked.leftover,
        warnings,
        failed: outcome.failed,
    })
}

/// Reads the index for a checkout, with the sparse directory entries expanded that contain files
/// inside the patterns.
///
/// # Errors
/// Fails if the index or a tree cannot be read.
pub(crate) fn index_as_checked_out(repository: &Repository) -> Result<Index> {
    match repository.sparse_checkout()? {
        Some(sparse) => index_for(repository, &sparse),
        None => repository.index(),
    }
}

/// Reads the index, with the sparse directory entries expanded that contain files inside the
/// patterns `sparse`.
fn index_for(repository: &Repository, sparse: &Sparse) -> Result<Index> {
    let index = repository.sparse_index()?;
    if !sparse.is_cone() || repository.has_present_directory(&index)? {
        return repository.expand_index(index);
    }
    if !index.is_sparse() {
        return Ok(index);
    }
    repository.expand_part(index, &mut |path| {
        let directory = path.strip_suffix(b"/").unwrap_or(path).as_bstr();
        sparse.cover(directory) != Cover::Nothing
    })
}

/// Removes directories outside of the patterns, with their ignored files. Directories with
/// untracked files are kept and reported.
fn clean_outside(
    repository: &Repository,
    prepared: &WorktreeSession<'_>,
    entries: &[EntryRef<'_>],
    watch: &Watch<'_>,
) -> Result<Vec<CheckoutWarning>> {
    // If files are expected outside of the patterns, tracked files may exist unnoticed. Git would
    // remove them with their content.
    let key = "sparse.expectFilesOutsideOfPatterns";
    let keeps = repository.config().bool_or(key, false)?;
    let Some(sparse) = prepared.sparse.as_ref().filter(|_| !keeps) else {
        return Ok(Vec::new());
    };
    let mut warnings = Vec::new();
    let mut patterns = None;
    for directory in outside(entries, sparse) {
        if !prepared
            .top
            .metadata(&directory)
            .is_ok_and(|it| it.is_directory())
        {
            continue;
        }
        if patterns.is_none() {
            patterns = Some(ignore_patterns(repository)?);
        }
        let Some(patterns) = &patterns else { continue };
        let literal = PathspecDefaults {
            literal: true,
            ..PathspecDefaults::default()
        };
        let top = repository.require_work_tree()?;
        let one = [directory.as_bstr()];
        let pathspec = Pathspec::parse(one, "".into(), top, literal).map_err(from_worktree)?;
        let search = UntrackedSearch {
            patterns,
            ignore_file: Some(".gitignore".into()),
            pathspec: &pathspec,
            ignored: false,
            directories: false,
            empty_directories: false,
        };
        let untracked = status::untracked_files(repository, &prepared.index, &search, watch)?;
        if !untracked.is_empty() {
            warnings.push(CheckoutWarning::UntrackedOutside { directory });
        } else if remove_directory(prepared, directory.as_bstr()).is_err() {
            warnings.push(CheckoutWarning::DirectoryStays { directory });
        }
    }
    Ok(warnings)
}

fn remove_directory(prepared: &WorktreeSession<'_>, directory: &BStr) -> std::io::Result<()> {
    let (above, name) = match directory.rfind_byte(b'/') {
        Some(slash) => (
            directory[..slash].as_bstr(),
            directory[slash + 1..].as_bstr(),
        ),
        None => (BStr::new(""), directory),
    };
    prepared.top.open_beneath(above)?.remove_all(name)
}

fn unset(file: &Path, key: &str, config: &Config) -> Result<()> {
    edit::edit_file(
        file,
        path::as_bytes(file),
        config,
        |document| match document.unset(key.into(), true, |_| true) {
            Ok(()) | Err(EditRefusal::NothingSet) => Ok(()),
            Err(_) => {
                let message = format!("cannot remove '{key}'");
                Err(Error::new(ErrorKind::Config, message))
            }
        },
    )
}
