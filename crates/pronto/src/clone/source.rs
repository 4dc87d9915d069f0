//! The source and the destination of a clone: paths, URLs, and names derived from them.

use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice};
use pronto_config::git_dir::is_git_dir;
use pronto_io::untrusted::{self, LARGEST_POINTER_BYTES, SymlinkPolicy};

use crate::environment::Environment;
use crate::{Error, ErrorKind, Result, path};

/// The source of a clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CloneSource {
    /// The URL to record as `remote.NAME.url`: a URL, or an absolute path in which the symbolic
    /// links of the caller's current directory are kept.
    pub(super) url: BString,
    /// The git directory of the source, if the source is a local path.
    pub(super) local: Option<PathBuf>,
    /// The path of the bundle, if the source is a file.
    pub(super) bundle: Option<PathBuf>,
}

impl CloneSource {
    pub(super) fn find(name: &BStr, environment: &Environment) -> Result<Self> {
        let given = environment.absolute_by_name(path::borrow(name));
        let local = repository_at(&given, environment);
        let bundle = match local {
            Some(_) => None,
            None => bundle_at(&given),
        };
        if local.is_some() || bundle.is_some() {
            return Ok(CloneSource {
                url: path::as_bytes(&given).into(),
                local,
                bundle,
            });
        }
        if name.contains(&b':') {
            return Ok(CloneSource {
                url: name.into(),
                local: None,
                bundle: None,
            });
        }
        let message = format!("repository '{name}' does not exist");
        Err(Error::new(ErrorKind::NotARepository, message))
    }
}

/// Checks that `name` can be the source of a clone: the path of a repository or a bundle, or a URL.
/// A URL is not contacted. Costs up to six file system lookups.
///
/// # Errors
/// Fails with [`ErrorKind::NotARepository`] if `name` is a path with neither a repository nor a
/// bundle.
pub fn check_source(name: &BStr, environment: &Environment) -> Result<()> {
    CloneSource::find(name, environment).map(drop)
}

/// Returns the git directory that `given` names: below the path (`/.git`), the path itself, or the
/// path with the ending `.git`.
pub(crate) fn repository_at(given: &Path, environment: &Environment) -> Option<PathBuf> {
    for ending in ["/.git", "", ".git/.git", ".git"] {
        let candidate = with_ending(given, ending);
        if is_git_dir(&candidate, environment) {
            return Some(candidate);
        }
        if candidate.is_file()
            && let Some(target) = linked(&candidate, environment)
        {
            return Some(target);
        }
    }
    None
}

/// Returns the file that `given` names: the path with the ending `.bundle`, or the path itself.
fn bundle_at(given: &Path) -> Option<PathBuf> {
    [".bundle", ""]
        .map(|ending| with_ending(given, ending))
        .into_iter()
        .find(|candidate| candidate.is_file())
}

/// Returns whether `name` is the path of a bundle, or of another file, and not of a repository.
pub fn is_bundle(name: &BStr, environment: &Environment) -> bool {
    let given = environment.absolute(path::borrow(name));
    repository_at(&given, environment).is_none() && bundle_at(&given).is_some()
}

fn with_ending(given: &Path, ending: &str) -> PathBuf {
    let mut path = given.as_os_str().to_owned();
    path.push(ending);
    PathBuf::from(path)
}

/// Follows a gitfile (`gitdir: PATH`) to the git directory.
fn linked(file: &Path, environment: &Environment) -> Option<PathBuf> {
    let text = untrusted::read(file, SymlinkPolicy::Follow, LARGEST_POINTER_BYTES).ok()?;
    let target = path::borrow(text.strip_prefix(b"gitdir: ")?.trim_end());
    let target = file.parent()?.join(target);
    is_git_dir(&target, environment).then_some(target)
}

/// Returns the default name of the directory for a clone of `name`, as `git clone` derives it from
/// the URL.
///
/// # Errors
/// Fails with [`ErrorKind::InvalidInput`] if no directory name can be derived from `name`.
pub fn guess_directory(name: &BStr, bare: bool) -> Result<BString> {
    guess(name, b".git", bare)
}

/// Returns the default name of the directory for a clone of the bundle `name`.
///
/// # Errors
/// Fails with [`ErrorKind::InvalidInput`] if no directory name can be derived from `name`.
pub fn guess_directory_of_bundle(name: &BStr, bare: bool) -> Result<BString> {
    guess(name, b".bundle", bare)
}

/// Returns the last component of `name`, without `ending`.
fn guess(name: &BStr, ending: &[u8], bare: bool) -> Result<BString> {
    let without_scheme = match name.find("://") {
        Some(at) => &name[at + 3..],
        None => name.as_bytes(),
    };
    // A login before the host is not part of the name.
    let host_end = without_scheme
        .find_byte(b'/')
        .unwrap_or(without_scheme.len());
    let start = match without_scheme[..host_end].rfind_byte(b'@') {
        Some(at) => at + 1,
        None => 0,
    };
    let mut rest = trimmed(&without_scheme[start..]);
    if let Some(shorter) = rest.strip_suffix(b"/.git") {
        rest = trimmed(shorter);
    }
    // `host:1234` alone is a host with a port, not a path.
    if !rest.contains(&b'/')
        && let Some(colon) = rest.rfind_byte(b':')
        && rest[colon + 1..].iter().all(u8::is_ascii_digit)
    {
        rest = trimmed(&rest[..colon]);
    }
    let begin = rest.rfind_byteset(b"/:").map_or(0, |at| at + 1);
    let base = &rest[begin..];
    let base = base
        .strip_suffix(ending)
        .filter(|shorter| !shorter.is_empty())
        .unwrap_or(base);
    if base.is_empty() || base == b"/" {
        let message = "No directory name could be guessed.\n\
                       Please specify a directory on the command line";
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    // Each run of control characters and white space becomes a single space.
    let mut clean = Vec::with_capacity(base.len() + 4);
    for &byte in base {
        let byte = if byte < b' ' { b' ' } else { byte };
        if byte != b' ' || clean.last().is_some_and(|&last| last != b' ') {
            clean.push(byte);
        }
    }
    while clean.last() == Some(&b' ') {
        clean.pop();
    }
    if bare {
        clean.extend_from_slice(b".git");
    }
    Ok(clean.into())
}

fn trimmed(text: &[u8]) -> &[u8] {
    text.trim_end_with(|c| c == '/' || c.is_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_guessed_as_git_guesses_them() {
        let cases = [
            ("https://host/a/repo.git/", "repo"),
            ("https://host/a/repo/.git", "repo"),
            ("host:foo", "foo"),
            ("ssh://user:pass@host:1234/", "host"),
            ("ssh://host/", "host"),
            ("git@host:me/repo.git", "repo"),
            ("/a/b c/", "b c"),
            ("../x", "x"),
        ];
        for (name, expected) in cases {
            let guessed = guess_directory(name.into(), false).expect("a name");
            assert_eq!(guessed, expected, "{name}");
        }
        assert_eq!(
            guess_directory("a/b".into(), true).expect("a name"),
            "b.git"
        );
        guess_directory("/".into(), false).expect_err("nothing is left");
    }
}
