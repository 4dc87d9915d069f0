//! Copies the repositories of submodules for a new worktree.
//!
//! A linked worktree has the repositories of its submodules below its own git directory
//! (`worktrees/ID/modules/NAME`). The copies share the objects of the originals by hard links.
//! `git submodule update` connects them with their worktrees, and needs no remote for commits that
//! exist already.

use std::fs;
use std::io;
use std::path::Path;

use bstr::{BStr, ByteSlice};
use pronto_io::error::IoContext;
use pronto_io::watch::Watch;
use pronto_storage::local::{copy_file, link_objects, objects_of};

use super::make::leave_out_place;
use crate::config::Config;
use crate::gitmodules::Gitmodules;
use crate::objects::from_odb;
use crate::{Error, ErrorKind, Repository, Result, path};

/// The limit for the nesting of submodules.
const MAX_DEPTH: usize = 16;
/// The directory, in a git directory, for the repositories of submodules.
const MODULES: &str = "modules";

/// Copies the repositories of the submodules in the worktree of `inside`, including nested ones, if
/// the current or the main worktree has them. Returns whether there are submodules, copied or not.
///
/// # Errors
/// Fails with [`ErrorKind::Io`] if a file cannot be read or written, and also if a symbolic link is
/// among the objects.
pub(super) fn share_submodules(
    repository: &Repository,
    inside: &Repository,
    watch: &Watch<'_>,
) -> Result<bool> {
    let modules = Gitmodules::read(inside.require_work_tree()?);
    let names = modules.names();
    for name in &names {
        let relative = path::borrow(name);
        let target = inside.git_dir().join(MODULES).join(relative);
        let places = [repository.git_dir(), repository.common_dir()];
        let is_there = |place: &&Path| is_module(&place.join(MODULES), name);
        if let Some(place) = places.into_iter().find(is_there)
            && !is_repository(&target)
        {
            let share = CopyOptions {
                may_link: true,
                watch,
                config: repository.config(),
            };
            share.repository(&place.join(MODULES).join(relative), &target, 0)?;
        }
    }
    Ok(!names.is_empty())
}

/// Whether `modules` contains the repository of the submodule `name`, which is not inside the
/// repository of another submodule.
fn is_module(modules: &Path, name: &BStr) -> bool {
    let place = modules.join(path::borrow(name));
    let mut above = place.ancestors().skip(1);
    is_repository(&place)
        && !above
            .by_ref()
            .take_while(|above| *above != modules)
            .any(is_repository)
}

fn is_repository(place: &Path) -> bool {
    place.join("HEAD").is_file() && place.join("objects").is_dir()
}

/// Options for copying repositories.
struct CopyOptions<'a> {
    may_link: bool,
    watch: &'a Watch<'a>,
    config: &'a Config,
}

impl CopyOptions<'_> {
    /// Copies one repository without its index, reflogs and hooks, and its nested repositories.
    fn repository(&self, source: &Path, target: &Path, depth: usize) -> Result<()> {
        (self.watch.interrupt().check())
            .map_err(|reason| Error::new(ErrorKind::Interrupted, reason.to_string()))?;
        let objects = objects_of(source);
        let store = pronto_odb::Store::open(&objects, pronto_odb::Options::default());
        // Pruning processes wait until the objects are linked.
        let _turn = store
            .and_then(|store| store.turn_of_writing())
            .map_err(from_odb)?;
        make_directory(target)?;
        // Refs are copied before `packed-refs`, into which another process may move them, and both
        // are copied before the objects.
        for name in ["refs", "reftable"] {
            copy_directory(&source.join(name), &target.join(name), 0)?;
        }
        for name in ["packed-refs", "shallow", "config", "HEAD"] {
            copy_if_there(&source.join(name), &target.join(name))?;
        }
        leave_out_place(&target.join("config"), self.config)?;
        link_objects(&objects, &target.join("objects"), self.may_link)?;
        self.nested(&source.join(MODULES), &target.join(MODULES), depth)
    }

    /// Copies the repositories below `source`, whose names may have several components.
    fn nested(&self, source: &Path, target: &Path, depth: usize) -> Result<()> {
        if depth == MAX_DEPTH {
            return Ok(());
        }
        for (name, kind) in entries(source)? {
            let (from, to) = (source.join(&name), target.join(&name));
            if !kind.is_dir() {
                continue;
            }
            match is_repository(&from) {
                true => self.repository(&from, &to, depth + 1)?,
                false => self.nested(&from, &to, depth + 1)?,
            }
        }
        Ok(())
    }
}

/// Copies the regular files of a directory, except lock files.
fn copy_directory(source: &Path, target: &Path, depth: usize) -> Result<()> {
    let entries = entries(source)?;
    if entries.is_empty() && !source.is_dir() || depth == MAX_DEPTH {
        return Ok(());
    }
    make_directory(target)?;
    for (name, kind) in entries {
        let (from, to) = (source.join(&name), target.join(&name));
        if kind.is_dir() {
            copy_directory(&from, &to, depth + 1)?;
        } else if kind.is_file() && !name.as_encoded_bytes().ends_with_str(".lock") {
            copy_if_there(&from, &to)?;
        }
    }
    Ok(())
}

/// Returns the entries of a directory; none if the directory does not exist.
fn entries(directory: &Path) -> Result<Vec<(std::ffi::OsString, fs::FileType)>> {
    let failed = "cannot read";
    let list = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        list => list.context(ErrorKind::Io, failed, directory)?,
    };
    let entry = |entry: io::Result<fs::DirEntry>| {
        let entry = entry?;
        Ok((entry.file_name(), entry.file_type()?))
    };
    list.map(entry)
        .collect::<io::Result<_>>()
        .context(ErrorKind::Io, failed, directory)
}

fn copy_if_there(from: &Path, to: &Path) -> Result<()> {
    match copy_file(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        copied => copied.context(ErrorKind::Io, "failed to copy file to", to),
    }
}

fn make_directory(path: &Path) -> Result<()> {
    fs::create_dir_all(path).context(ErrorKind::Io, "failed to create directory", path)
}
