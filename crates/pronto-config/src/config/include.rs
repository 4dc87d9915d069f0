//! Evaluates the conditions of `includeIf.<condition>.path`.

use std::path::Path;

use bstr::{BStr, BString, ByteSlice, ByteVec};

use super::place::RepositoryPaths;
use super::{ConfigOrigin, OriginKind};
use crate::environment::Environment;
use crate::git_dir::HEAD_STUB;
use crate::glob::{self, MatchOptions};
use crate::{Error, ErrorKind, Result, path};

/// The prefix of a condition on the URL of any remote.
pub(super) const HAS_CONFIG: &[u8] = b"hasconfig:remote.*.url:";

const IN_COMPONENTS: MatchOptions = MatchOptions {
    in_components: true,
    fold_case: false,
};

/// Returns whether a condition other than [`HAS_CONFIG`] holds. An unknown condition does not hold.
pub(super) fn holds(
    condition: &BStr,
    origin: &ConfigOrigin,
    place: Option<&RepositoryPaths>,
    environment: &Environment,
) -> Result<bool> {
    let Some(place) = place else {
        return Ok(false);
    };
    if let Some(pattern) = condition.strip_prefix(b"gitdir:") {
        git_dir_matches(pattern, false, origin, place, environment)
    } else if let Some(pattern) = condition.strip_prefix(b"gitdir/i:") {
        git_dir_matches(pattern, true, origin, place, environment)
    } else if let Some(pattern) = condition.strip_prefix(b"onbranch:") {
        Ok(branch_matches(pattern, place))
    } else {
        Ok(false)
    }
}

/// Returns whether one of `urls` matches `pattern`.
pub(super) fn matches_any(pattern: &BStr, urls: &[BString]) -> bool {
    urls.iter()
        .any(|url| glob::matches(pattern, url, IN_COMPONENTS))
}

fn git_dir_matches(
    condition: &[u8],
    fold_case: bool,
    origin: &ConfigOrigin,
    place: &RepositoryPaths,
    environment: &Environment,
) -> Result<bool> {
    let mut pattern = match path::expand_user(condition, environment.home()) {
        Some(expanded) => path::as_bytes(&expanded).to_owned(),
        None => condition.into(),
    };
    let mut literal = 0;
    if let Some(rest) = pattern.strip_prefix(b"./") {
        let (OriginKind::File, Some(file)) = (origin.kind, &origin.path) else {
            let message = "relative config include conditionals must come from files";
            return Err(Error::new(ErrorKind::Config, message));
        };
        let file = std::fs::canonicalize(file).unwrap_or_else(|_| file.clone());
        let directory = path::as_bytes(file.parent().unwrap_or(Path::new("/")));
        literal = directory.len() + 1;
        pattern = [directory.as_bytes(), b"/", rest].concat().into();
    } else if !pattern.starts_with(b"/") {
        pattern.insert_str(0, b"**/");
    }
    add_stars(&mut pattern);
    let how = MatchOptions {
        fold_case,
        ..IN_COMPONENTS
    };
    let matches = |text: &BStr| {
        let Some(start) = text.get(..literal) else {
            return false;
        };
        let same = if fold_case {
            start.eq_ignore_ascii_case(&pattern[..literal])
        } else {
            start == &pattern[..literal]
        };
        same && glob::matches(&pattern[literal..], &text[literal..], how)
    };
    let real = std::fs::canonicalize(&place.git_dir);
    Ok(real.is_ok_and(|real| matches(path::as_bytes(&real)))
        || matches(logical(&place.display_git_dir, environment).as_bstr()))
}

/// Returns the absolute path of the repository with the name `display_path` in messages. Symbolic links
/// of the working directory are kept as in `PWD`.
fn logical(display_path: &Path, environment: &Environment) -> BString {
    if display_path.is_absolute() {
        return path::as_bytes(display_path).to_owned();
    }
    let here = environment.logical_dir(environment.working_dir());
    let mut text = path::as_bytes(here).to_owned();
    if !text.ends_with(b"/") && !text.is_empty() {
        text.push(b'/');
    }
    text.push_str(path::as_bytes(display_path));
    text
}

fn branch_matches(condition: &[u8], place: &RepositoryPaths) -> bool {
    let Ok(head) = pronto_io::untrusted::content(place.git_dir.join("HEAD")) else {
        return false;
    };
    let Some(target) = head.strip_prefix(b"ref:") else {
        return false;
    };
    let in_tables = match place.branch_in_tables {
        Some(read) if head == HEAD_STUB => read(&place.git_dir),
        _ => None,
    };
    let target = in_tables
        .as_ref()
        .map_or(target.trim_ascii(), |name| name.as_bytes());
    let Some(branch) = target.strip_prefix(b"refs/heads/") else {
        return false;
    };
    let mut pattern = BString::from(condition);
    add_stars(&mut pattern);
    glob::matches(&pattern, branch, IN_COMPONENTS)
}

fn add_stars(pattern: &mut BString) {
    if pattern.ends_with(b"/") {
        pattern.push_str(b"**");
    }
}
