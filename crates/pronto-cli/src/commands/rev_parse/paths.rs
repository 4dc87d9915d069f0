//! Paths of the repository, and of the current directory in it.

use std::io::Write;
use std::path::{Component, Path, PathBuf};

use bstr::{BStr, BString, ByteSlice};
use pronto::{Repository, path};

use super::ArgumentParser;
use crate::CliError;

/// The form of printed paths (`--path-format`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathFormat {
    /// The default form of each option.
    Default,
    /// Absolute paths without symbolic links (`absolute`).
    Absolute,
    /// Paths relative to the current directory (`relative`).
    Relative,
}

impl ArgumentParser<'_> {
    /// Handles options that query a path or a state of the repository.
    pub(super) fn answer_place(&mut self, option: &BStr) -> Result<bool, CliError> {
        let repository = self.repository()?;
        let say = |truth: bool| if truth { "true" } else { "false" };
        let answer = match option.as_bytes() {
            b"--show-toplevel" => {
                // The path is printed even if the worktree does not exist.
                let top = match repository.work_tree() {
                    Some(top) => top.to_owned(),
                    None => repository.require_work_tree()?.to_owned(),
                };
                self.show_path(&top, &top)?;
                return Ok(true);
            }
            b"--git-dir" => {
                let display_path = repository.display_git_dir();
                let is_below = display_path == Path::new(".git") && repository.prefix().is_some();
                let display_path = if is_below {
                    repository.git_dir()
                } else {
                    display_path
                };
                self.show_path(repository.git_dir(), display_path)?;
                return Ok(true);
            }
            b"--absolute-git-dir" => {
                let real = real(repository.git_dir());
                return self.print(path::as_bytes(&real)).map(|()| true);
            }
            b"--git-common-dir" => {
                let common = repository.common_dir();
                let display_path = if common == repository.git_dir() {
                    repository.display_git_dir()
                } else {
                    common
                };
                self.show_shared_path(common, display_path)?;
                return Ok(true);
            }
            b"--show-prefix" => {
                let prefix = match &self.prefix {
                    Some(prefix) => prefix.clone(),
                    None => repository.prefix_or_empty(),
                };
                return self.print(prefix.as_bstr()).map(|()| true);
            }
            b"--show-cdup" => {
                self.show_way_up(&repository)?;
                return Ok(true);
            }
            b"--is-inside-git-dir" => say(repository.is_inside_git_dir()),
            b"--is-inside-work-tree" => say(repository.is_inside_work_tree()),
            b"--is-bare-repository" => say(repository.is_bare()),
            b"--is-shallow-repository" => say(repository.is_shallow()),
            b"--show-ref-format" => repository.format().ref_storage.name(),
            _ => return Ok(false),
        };
        self.print(answer.into())?;
        Ok(true)
    }

    fn show_way_up(&mut self, repository: &Repository) -> Result<(), CliError> {
        if !repository.is_inside_work_tree() {
            if let Some(top) = repository.work_tree() {
                self.print(path::as_bytes(top))?;
            }
            return Ok(());
        }
        let prefix = repository.prefix_or_empty();
        let depth = prefix.iter().filter(|&&byte| byte == b'/').count();
        writeln!(self.context.out, "{}", "../".repeat(depth))?;
        Ok(())
    }

    pub(super) fn show_git_path(&mut self, name: &BStr) -> Result<(), CliError> {
        let repository = self.repository()?;
        let name = name.to_str().map_err(|_| {
            CliError::unsupported("'rev-parse --git-path' with a path that is not UTF-8")
        })?;
        let display_path = repository.display_git_path(name);
        if self.path_format == PathFormat::Default {
            let prefix = repository.prefix_or_empty();
            return self.print(from_prefix(display_path.as_bstr(), prefix.as_bstr()).as_bstr());
        }
        let full = repository.working_dir().join(path::borrow(&display_path));
        self.show_shared_path(&full, &full)
    }

    /// Prints a path as Git spells it, unless `--path-format` requests another form.
    fn show_path(&mut self, full: &Path, display_path: &Path) -> Result<(), CliError> {
        let shown = match self.path_format {
            PathFormat::Default => display_path.to_owned(),
            PathFormat::Absolute => real(full),
            PathFormat::Relative => self.relative(full)?,
        };
        self.print(path::as_bytes(&shown))
    }

    /// Prints a path relative to the current directory, if both paths are relative to the top of
    /// the worktree.
    fn show_shared_path(&mut self, full: &Path, display_path: &Path) -> Result<(), CliError> {
        let repository = self.repository()?;
        let shown = match (self.path_format, repository.prefix()) {
            (PathFormat::Default, Some(prefix)) if display_path.is_relative() => {
                relative_text(display_path, path::borrow(prefix))
            }
            (PathFormat::Default, _) => display_path.to_owned(),
            (PathFormat::Absolute, _) => real(full),
            (PathFormat::Relative, _) => self.relative(full)?,
        };
        self.print(path::as_bytes(&shown))
    }

    fn relative(&mut self, full: &Path) -> Result<PathBuf, CliError> {
        let repository = self.repository()?;
        let here = repository.environment().current_dir();
        Ok(path::relative(&real(full), &real(here)))
    }
}

/// Returns the relative path from the directory `base` to `path`. Both are below a common
/// directory.
fn relative_text(path: &Path, base: &Path) -> PathBuf {
    let root = Path::new("/");
    let rooted = |path: &Path| -> PathBuf {
        let parts = path.components().filter(|part| *part != Component::CurDir);
        root.iter().chain(parts.map(Component::as_os_str)).collect()
    };
    path::relative(&rooted(path), &rooted(base))
}

/// Converts `text`, a path relative to the top of the worktree, into a path relative to the
/// directory `prefix`. Only the common part changes.
fn from_prefix(text: &BStr, prefix: &BStr) -> BString {
    if text.starts_with(b"/") || (prefix.is_empty() && !text.is_empty()) {
        return text.to_owned();
    }
    let mut names = prefix
        .split_str("/")
        .filter(|name| !name.is_empty())
        .peekable();
    let mut rest = text.as_bytes();
    while let Some(name) = names.peek()
        && let Some(after) = rest.strip_prefix(*name)
        && (after.is_empty() || after.starts_with(b"/"))
    {
        rest = after.trim_start_with(|c| c == '/');
        names.next();
    }
    let mut shown = BString::from("../".repeat(names.count()));
    shown.extend_from_slice(rest);
    match shown.is_empty() {
        true => "./".into(),
        false => shown,
    }
}

/// Resolves the symbolic links of the existing part of the path.
fn real(path: &Path) -> PathBuf {
    let mut rest = Vec::new();
    let mut known = path;
    loop {
        if let Ok(real) = std::fs::canonicalize(known) {
            return rest.iter().rev().fold(real, |path, name| path.join(name));
        }
        match (known.parent(), known.file_name()) {
            (Some(parent), Some(name)) => {
                rest.push(name);
                known = parent;
            }
            _ => return path::normalize(path),
        }
    }
}
