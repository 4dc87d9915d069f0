//! Reads the sources of ignore patterns.

use crate::{Repository, Result, path};
use bstr::{BStr, ByteSlice};
use pronto_index::{Flags, Index, Stat};
use pronto_io::dir::Directory;
use pronto_io::untrusted::{self, LARGEST_TEXT_BYTES, SymlinkPolicy};
use pronto_odb::Store;
use pronto_worktree::ignore::Patterns;
use std::path::PathBuf;

/// Returns the patterns of `core.excludesFile` (or its default path) and `info/exclude` of
/// `repository`.
///
/// # Errors
/// Fails if a setting is malformed.
pub fn ignore_patterns(repository: &Repository) -> Result<Patterns> {
    exclude_contents(repository)?.into_patterns(repository)
}

/// A file with patterns.
pub(crate) struct ExcludeContent {
    name: PathBuf,
    pub(crate) content: Vec<u8>,
    pub(crate) stat: Stat,
}

/// The files with patterns for the whole worktree, with content and stat data if they exist.
pub(crate) struct ExcludeContents {
    /// The file `core.excludesFile`, by its configured path.
    pub(crate) file: Option<ExcludeContent>,
    /// The file `info/exclude`.
    pub(crate) info: Option<ExcludeContent>,
}

impl ExcludeContents {
    /// Returns the patterns of the ignore files.
    ///
    /// # Errors
    /// Fails if `core.ignoreCase` is not a boolean.
    pub(crate) fn into_patterns(self, repository: &Repository) -> Result<Patterns> {
        let ignore_case = repository.config().bool_or("core.ignoreCase", false)?;
        let mut patterns = Patterns::new(ignore_case);
        for file in self.file.into_iter().chain(self.info) {
            patterns.add_file(path::as_bytes(&file.name), file.content);
        }
        Ok(patterns)
    }
}

/// Reads `core.excludesFile` (or its default path) and `info/exclude`.
///
/// # Errors
/// Fails if a setting is malformed.
pub(crate) fn exclude_contents(repository: &Repository) -> Result<ExcludeContents> {
    let home = repository.environment().home();
    let excludes = match repository.config().path("core.excludesFile", home)? {
        Some(path) => Some(path),
        None => default_excludes(repository),
    };
    let read = |path: PathBuf, name: PathBuf| {
        let file = untrusted::open(&path, SymlinkPolicy::Follow).ok()?;
        let stat = Stat::from_metadata(&file.metadata().ok()?);
        let content = untrusted::read_open(&file, LARGEST_TEXT_BYTES).ok()?;
        Some(ExcludeContent {
            name,
            content,
            stat,
        })
    };
    let info = repository.git_path("info/exclude");
    let display_path = repository.display_path(&info);
    Ok(ExcludeContents {
        file: excludes.and_then(|path| read(repository.environment().resolve(&path), path)),
        info: read(info, display_path),
    })
}

fn default_excludes(repository: &Repository) -> Option<PathBuf> {
    let environment = repository.environment();
    match environment.path("XDG_CONFIG_HOME") {
        Some(base) if !base.as_os_str().is_empty() => Some(base.join("git/ignore")),
        _ => Some(environment.home()?.join(".config/git/ignore")),
    }
}

/// Reads the ignore file `name` of `directory` (empty for the top): from the worktree, or from the
/// index if the file is not checked out. Symbolic links are not followed.
pub(crate) fn read_ignore_file(
    root: &Directory,
    name: &[u8],
    index: &Index,
    store: Option<&Store>,
    directory: &BStr,
) -> Option<Vec<u8>> {
    let opened = if directory.is_empty() {
        root.open_file(name)
    } else {
        root.open_file_beneath(&[directory.as_bytes(), b"/", name].concat())
    };
    if let Ok(file) = opened {
        return untrusted::read_open(&file, LARGEST_TEXT_BYTES).ok();
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
