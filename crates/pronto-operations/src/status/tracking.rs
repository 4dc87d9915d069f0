//! Finds the upstream of a branch, and counts the commits ahead and behind.

use crate::history::AheadBehind;
use crate::history::{Painting, Until};
use crate::{Repository, Result};
use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_io::watch::Watch;

/// The upstream of a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrackedUpstream {
    /// The full name of the upstream ref in this repository.
    pub name: BString,
    /// The shortest unambiguous name of the upstream.
    pub short_name: BString,
    /// The divergence; `None` if the upstream no longer exists.
    pub divergence: Option<Divergence>,
}

/// The divergence of two branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Divergence {
    /// Both are at the same commit.
    Same,
    /// The commits differ; the numbers were not requested.
    Different,
    /// The numbers of commits that only one of the branches has.
    Counted {
        /// The number of commits that only the branch has.
        ahead: usize,
        /// The number of commits that only the upstream has.
        behind: usize,
    },
}

/// Returns the upstream of the branch `branch` (a full name) with the commit `tip`, if one is
/// configured. With `count`, walks both histories as far as they differ.
///
/// # Errors
/// Fails if a ref or an object cannot be read.
pub fn upstream(
    repository: &Repository,
    branch: &BStr,
    tip: Option<ObjectId>,
    count: bool,
    watch: &Watch<'_>,
) -> Result<Option<TrackedUpstream>> {
    let Some(name) = upstream_name(repository, branch) else {
        return Ok(None);
    };
    let short_name = repository.shorten_reference(name.as_bstr(), false)?;
    let theirs = repository.refs().id_of(&name)?;
    let divergence = match (tip, theirs) {
        (Some(ours), Some(theirs)) if ours == theirs => Some(Divergence::Same),
        (Some(ours), Some(theirs)) if count => {
            let AheadBehind { ahead, behind } = ahead_behind(repository, ours, theirs, watch)?;
            Some(Divergence::Counted { ahead, behind })
        }
        (Some(_), Some(_)) => Some(Divergence::Different),
        _ => None,
    };
    Ok(Some(TrackedUpstream {
        name,
        short_name,
        divergence,
    }))
}

/// Returns the remote-tracking ref of `branch.<name>.merge` of the remote `branch.<name>.remote`.
fn upstream_name(repository: &Repository, branch: &BStr) -> Option<BString> {
    let short = branch.strip_prefix(b"refs/heads/")?;
    let config = repository.config();
    let key = |variable: &str| [b"branch.", short, b".", variable.as_bytes()].concat();
    let remote = config.raw(key("remote"))?;
    let merge = config.raw(key("merge"))?;
    if remote == "." {
        // A `branch.<name>.merge` with `@{upstream}` or the like is not resolved.
        let is_plain = !merge.contains_str("@{");
        let found = is_plain.then(|| repository.find_reference(merge).ok()?);
        let name = found.flatten().map(|found| found.name);
        return Some(name.unwrap_or_else(|| merge.to_owned()));
    }
    let fetch = [b"remote.", remote.as_bytes(), b".fetch"].concat();
    let specs = config.list(&fetch);
    let negative = |spec: &&&BStr| {
        spec.strip_prefix(b"^")
            .is_some_and(|pattern| expand(pattern, None, merge).is_some())
    };
    if specs.iter().any(|spec| negative(&spec)) {
        return None;
    }
    specs.iter().find_map(|spec| {
        let spec = spec.strip_prefix(b"+").unwrap_or(spec);
        let (from, to) = spec.split_once_str(":")?;
        expand(from, Some(to), merge).filter(|to| !to.is_empty())
    })
}

/// Returns the number of commits that only `ours` has, and the number that only `theirs` has. Walks
/// both histories as far as they differ.
///
/// # Errors
/// Fails if a commit cannot be read.
pub fn ahead_behind(
    repository: &Repository,
    ours: ObjectId,
    theirs: ObjectId,
    watch: &Watch<'_>,
) -> Result<AheadBehind> {
    let mut painting = Painting::new(repository, Until::Divided)?;
    painting.left(&ours)?;
    painting.right(&theirs)?;
    painting.run(watch)?;
    Ok(painting.counts())
}

/// Maps `name` by the refspec `from:to`.
fn expand(from: &[u8], to: Option<&[u8]>, name: &BStr) -> Option<BString> {
    let star = |pattern: &[u8]| pattern.find_byte(b'*');
    let Some(at) = star(from) else {
        return (from == name.as_bytes()).then(|| to.unwrap_or_default().into());
    };
    let middle = name
        .strip_prefix(&from[..at])?
        .strip_suffix(&from[at + 1..])?;
    let to = to.unwrap_or_default();
    let Some(at) = star(to) else {
        return Some(to.into());
    };
    Some([&to[..at], middle, &to[at + 1..]].concat().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refspecs_are_followed() {
        let name = BStr::new("refs/heads/a/b");
        assert_eq!(
            expand(b"refs/heads/*", Some(b"refs/remotes/o/*"), name),
            Some("refs/remotes/o/a/b".into())
        );
        assert_eq!(expand(b"refs/heads/x", Some(b"y"), name), None);
        assert_eq!(
            expand(b"refs/heads/a/b", Some(b"y"), name),
            Some("y".into())
        );
    }
}
