//! Finds the ignore pattern that decides about a path: `git check-ignore`.

use crate::ignores::{ignore_patterns, read_ignore_file};
use crate::support::{self, Operation};
use crate::{Error, ErrorKind, Repository, Result, path};
use bstr::{BStr, BString, ByteSlice};
use pronto_index::{Index, mode};
use pronto_io::dir::Directory;
use pronto_io::error::IoContext;
use pronto_io::short::Short as _;
use pronto_worktree::ignore::{IgnoreStack, PatternSource};
use pronto_worktree::pathspec::Pathspec;
use rustix::io::Errno;

/// The ignore pattern that decides about a path, with its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoreRule {
    /// The path of the file with the pattern, as Git prints it.
    pub source: BString,
    /// The line number, starting at one.
    pub line: usize,
    /// The text of the pattern.
    pub text: BString,
    /// Whether the pattern is negated (`!`), so that the path is not ignored.
    pub is_negative: bool,
}

/// Looks up the deciding pattern of one path after another. Lookups are cheapest if the paths of a
/// directory are consecutive.
pub struct IgnoreCheck<'a> {
    repository: &'a Repository,
    index: &'a Index,
    root: &'a Directory,
    stack: IgnoreStack<'a>,
    /// The directory of the last path, and its handle if the directory exists.
    open: Option<(BString, Option<Directory>)>,
}

/// Calls `work` with a lookup of ignore patterns. With `use_index`, tracked paths are never
/// ignored; without it, they are checked, too (`--no-index`).
///
/// # Errors
/// Fails with [`ErrorKind::NoWorkTree`] if there is no worktree, with [`ErrorKind::Worktree`] if
/// the index cannot be read, and with [`ErrorKind::ConfigValue`] if a setting is malformed.
pub fn check_ignored<T>(
    repository: &Repository,
    use_index: bool,
    work: impl FnOnce(&mut IgnoreCheck<'_>) -> T,
) -> Result<T> {
    support::require(repository, Operation::CheckIgnore)?;
    let top = repository.require_work_tree()?;
    let index = match use_index {
        true => repository.index()?,
        false => Index::empty(repository.object_hash()),
    };
    let root = Directory::open(top).context(ErrorKind::Io, "could not open directory", top)?;
    let store = repository.objects()?;
    let patterns = ignore_patterns(repository)?;
    let read =
        |directory: &BStr| read_ignore_file(&root, b".gitignore", &index, Some(store), directory);
    let mut check = IgnoreCheck {
        repository,
        index: &index,
        root: &root,
        stack: IgnoreStack::new(&patterns, Some(&read)),
        open: None,
    };
    Ok(work(&mut check))
}

impl IgnoreCheck<'_> {
    /// Returns the pattern that decides about `spec`, a path relative to the caller's current
    /// directory. Returns `None` if no pattern matches or the path is tracked. Costs one `open` for
    /// each directory that differs from the last, and one `lstat` if a pattern for directories
    /// decides.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::InvalidInput`] and Git's message if the path is outside of the
    /// worktree, in a submodule or beyond a symbolic link, and with [`ErrorKind::Unsupported`] for
    /// pathspec magic other than `top`.
    pub fn decide(&mut self, spec: &BStr) -> Result<Option<IgnoreRule>> {
        let magic = spec.strip_prefix(b":");
        if magic.is_some_and(|rest| !rest.starts_with(b"/") && !rest.starts_with(b"(top)")) {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "pathspec magic for 'check-ignore' is not implemented natively",
            ));
        }
        let pathspec = self.repository.pathspec([spec])?;
        let path = self.outside_of_submodules(spec, pathspec.path(0))?;
        let path = path.as_bstr();
        let end = path.last_position_of(b'/').unwrap_or(0);
        self.enter(spec, path[..end].as_bstr())?;
        if self.is_tracked(&pathspec, path) {
            return Ok(None);
        }
        self.stack.enter(path[..end].as_bstr());
        let is_directory = || {
            let directory = self
                .open
                .as_ref()
                .map_or(Some(self.root), |(_, open)| open.as_ref());
            let name = &path[path.last_position_of(b'/').map_or(0, |slash| slash + 1)..];
            if name.is_empty() {
                return directory.is_some();
            }
            let metadata = directory.and_then(|directory| directory.metadata(name).ok());
            metadata.is_some_and(|metadata| metadata.is_directory())
        };
        Ok(self
            .stack
            .decide(path, &is_directory)
            .map(|rule| IgnoreRule {
                source: match rule.source {
                    PatternSource::CommandLine => BString::default(),
                    PatternSource::File(name) => name.to_owned(),
                    PatternSource::Directory(directory) => {
                        path::as_bytes(&path::borrow(directory).join(".gitignore")).to_owned()
                    }
                },
                line: rule.line,
                text: rule.text.to_owned(),
                is_negative: rule.is_negative,
            }))
    }

    /// Opens the directory of a path and reads its ignore files.
    fn enter(&mut self, spec: &BStr, directory: &BStr) -> Result<()> {
        if directory.is_empty() {
            self.open = None;
            return Ok(());
        }
        if self
            .open
            .as_ref()
            .is_some_and(|(open, _)| open == directory)
        {
            return Ok(());
        }
        let opened = self.root.open_beneath(directory);
        if let Err(error) = &opened {
            let may_be_link = matches!(
                Errno::from_io_error(error),
                Some(Errno::LOOP | Errno::NOTDIR)
            );
            if may_be_link && self.has_link(directory) {
                let message = format!("pathspec '{spec}' is beyond a symbolic link");
                return Err(Error::new(ErrorKind::InvalidInput, message));
            }
        }
        self.open = Some((directory.to_owned(), opened.ok()));
        Ok(())
    }

    /// Whether a component of `directory` is a symbolic link.
    fn has_link(&self, directory: &BStr) -> bool {
        let ends = directory.positions_of_text(b"/").chain([directory.len()]);
        ends.map(|end| &directory[..end]).any(|above| {
            let slash = above.last_position_of(b'/').map_or(0, |slash| slash + 1);
            let parent = &above[..slash.saturating_sub(1)];
            let parent = self.root.open_beneath(parent);
            parent
                .and_then(|parent| parent.metadata(&above[slash..]))
                .is_ok_and(|metadata| metadata.is_symlink())
        })
    }

    /// Returns the path without a slash after a submodule. Fails if the path is inside a submodule.
    fn outside_of_submodules(&self, spec: &BStr, mut path: BString) -> Result<BString> {
        let slashes: Vec<usize> = path.positions_of_text(b"/").collect();
        for slash in slashes {
            let above = path[..slash].as_bstr();
            let found = self.index.find(above, 0);
            if !found.is_ok_and(|at| self.index.entry(at).mode == mode::GITLINK) {
                continue;
            }
            if slash + 1 < path.len() {
                let message = format!("Pathspec '{spec}' is in submodule '{above}'");
                return Err(Error::new(ErrorKind::InvalidInput, message));
            }
            path.truncate(slash);
        }
        Ok(path)
    }

    /// Whether the path is tracked: an index entry matches `pathspec`.
    fn is_tracked(&self, pathspec: &Pathspec, path: &BStr) -> bool {
        let index = self.index;
        let counts = |at: usize| pathspec.matches(index.path(at), false);
        match pathspec.literal(0) {
            Some(text) => {
                let below = index.below(text);
                let own = index.stages(text);
                own.chain(below).any(counts) || (path.is_empty() && (0..index.len()).any(counts))
            }
            None => (0..index.len()).any(counts),
        }
    }
}

impl std::fmt::Debug for IgnoreCheck<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IgnoreCheck").finish_non_exhaustive()
    }
}
