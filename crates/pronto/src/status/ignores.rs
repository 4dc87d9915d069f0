//! Where ignore patterns come from.

use crate::{Repository, Result, path};
use bstr::{BStr, ByteSlice};
use pronto_index::{Flags, Index};
use pronto_io::dir::Directory;
use pronto_odb::Store;
use pronto_worktree::ignore::Patterns;
use std::io::Read;
use std::path::PathBuf;

/// `core.excludesFile` (or its default place) and `info/exclude` of `repository`.
///
/// # Errors
/// Configuration is not well formed.
pub fn ignore_patterns(repository: &Repository) -> Result<Patterns> {
    let config = repository.config();
    let mut patterns = Patterns::new(config.bool_or("core.ignoreCase", false)?);
    let home = repository.environment().home();
    let excludes = match config.path("core.excludesFile", home)? {
        Some(path) => Some(path),
        None => default_excludes(repository),
    };
    // Paths are relative to where Git would be: the top of the worktree.
    let top = repository.work_tree().unwrap_or(repository.git_dir());
    let info = repository.git_path("info/exclude");
    let spoken = repository.spoken(&info);
    let excludes = excludes.map(|path| (top.join(&path), path));
    for (file, name) in excludes.into_iter().chain([(info, spoken)]) {
        if let Ok(content) = std::fs::read(&file) {
            patterns.add_file(path::as_bytes(&name), content);
        }
    }
    Ok(patterns)
}

fn default_excludes(repository: &Repository) -> Option<PathBuf> {
    let environment = repository.environment();
    match environment.path("XDG_CONFIG_HOME") {
        Some(base) if !base.as_os_str().is_empty() => Some(base.join("git/ignore")),
        _ => Some(environment.home()?.join(".config/git/ignore")),
    }
}

/// The ignore file `name` of `directory` (empty for the top): from the worktree, or from the index
/// if it is not checked out there. Links are not followed.
pub(crate) fn read_ignore_file(
    root: &Directory,
    name: &[u8],
    (index, store): (&Index, Option<&Store>),
    directory: &BStr,
) -> Option<Vec<u8>> {
    let opened = if directory.is_empty() {
        root.open_file(name)
    } else {
        root.open_beneath(directory)
            .and_then(|directory| directory.open_file(name))
    };
    if let Ok(mut file) = opened {
        let mut content = Vec::new();
        return file.read_to_end(&mut content).is_ok().then_some(content);
    }
    let path = path::as_bytes(&path::borrow(directory).join(path::borrow(name))).to_owned();
    let entry = index.entry(index.find(path.as_bstr(), 0).ok()?);
    if !entry.flags.contains(Flags::SKIP_WORKTREE) {
        return None;
    }
    let mut content = Vec::new();
    store?.find(entry.id, &mut content).ok()??;
    Some(content)
}
