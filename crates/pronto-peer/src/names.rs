//! Local names of peers and their refs.

use std::path::Path;

use bstr::{BStr, BString, ByteSlice, ByteVec};

use pronto::refs::name;
use pronto::{Repository, Result};

/// The largest length of the name of a peer in bytes.
const MAX_PEER_BYTES: usize = 64;

/// Returns whether a name of a peer is valid: letters, digits, `.`, `_` and `-`, the first of them
/// a letter or digit, without `.lock` or a dot at the end. The name is a part of file names and ref
/// names.
pub fn is_peer_name(peer: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    peer.len() <= MAX_PEER_BYTES
        && peer.bytes().all(is_plain)
        && peer.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name::is_valid(
            tracking_prefix(peer).trim_end_with(|end| end == '/').into(),
            name::Form::Full,
        )
}

/// Returns the default name of a peer at `address`: the last component of a path without `.git`, or
/// the name of a host. Special characters become dashes.
pub fn peer_name_of(address: &BStr) -> Option<String> {
    let mut rest = address.trim_end_with(|end| end == '/').as_bstr();
    for suffix in [&b"/.git"[..], b".git"] {
        rest = rest.strip_suffix(suffix).unwrap_or(rest).as_bstr();
    }
    let last = rest.rsplit(|&byte| byte == b'/').next()?;
    let plain = |&byte: &u8| match byte.is_ascii_alphanumeric() || b"._".contains(&byte) {
        true => char::from(byte),
        false => '-',
    };
    let name: String = last.iter().map(plain).collect();
    let name = name.trim_start_matches(['.', '_', '-']);
    let name = &name[..name.len().min(MAX_PEER_BYTES)];
    is_peer_name(name).then(|| name.to_owned())
}

/// Returns the prefix of the remote-tracking refs of the peer.
pub(super) fn tracking_prefix(peer: &str) -> BString {
    format!("refs/remotes/{peer}/").into()
}

/// Returns the reason for which `refs/remotes/PEER` does not belong to this peer: a remote uses
/// this name or prefix, or refs existed there before the directory `kept` of a first session.
pub(super) fn taken(
    repository: &Repository,
    peer: &str,
    kept: &Path,
) -> Result<Option<&'static str>> {
    let (prefix, section) = (tracking_prefix(peer), format!("remote.{peer}."));
    for entry in repository.config().iter() {
        let key = entry.key.as_bytes();
        if key.starts_with(section.as_bytes()) {
            return Ok(Some("is the name of a remote"));
        }
        if !key.starts_with(b"remote.") || !key.ends_with(b".fetch") {
            continue;
        }
        let value: &[u8] = entry.value.map_or(b"", |value| value);
        let (_, target) = value.split_once_str(":").unwrap_or_default();
        let is_above = match target.split_once_str("*") {
            Some((start, _)) => prefix.starts_with(start) || start.starts_with(&prefix),
            None => target.starts_with(&prefix),
        };
        if is_above {
            return Ok(Some("names refs that a remote fetches to"));
        }
    }
    let is_taken = !kept.exists() && !repository.refs().all(&prefix)?.is_empty();
    Ok(is_taken.then_some("names a place that already contains refs"))
}

/// Returns whether the ref may be shared with peers. Refs that were received from remotes or peers,
/// and refs of internal use, are excluded.
pub(super) fn is_shared(name: &BStr) -> bool {
    !name.starts_with(b"refs/remotes/") && !name::is_per_worktree(name) && name != "refs/stash"
}

/// Returns the tracking ref here for the peer's ref `name`: directly below the prefix for branches,
/// and in a subdirectory for each other kind. Returns `None` if the name cannot be tracked.
pub(super) fn tracking(peer: &str, name: &[u8]) -> Option<BString> {
    let rest = name.strip_prefix(b"refs/")?;
    let short = rest.strip_prefix(b"heads/").unwrap_or(rest);
    let mut tracking = tracking_prefix(peer);
    tracking.push_str(short);
    let is_sound = is_shared(name.as_bstr())
        && fits(name)
        && short != b"HEAD"
        && name::is_valid(name.as_bstr(), name::Form::Full)
        && name::is_valid(tracking.as_bstr(), name::Form::Full);
    is_sound.then_some(tracking)
}

/// Returns whether the ref and its lock file can have valid file names, so that no component is too
/// long for a file system.
pub(super) fn fits(name: &[u8]) -> bool {
    const LONGEST_COMPONENT: usize = 255 - ".lock".len();
    name.split(|byte| *byte == b'/')
        .all(|component| component.len() <= LONGEST_COMPONENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_no_file_can_have_are_refused() {
        let name = |count: usize| format!("refs/heads/{}/y", "x".repeat(count)).into_bytes();
        assert!(fits(&name(250)) && tracking("p", &name(250)).is_some());
        assert!(!fits(&name(251)) && tracking("p", &name(251)).is_none());
    }

    #[test]
    fn names_stay_in_their_place() {
        for (name, expected) in [
            ("refs/heads/main", Some("refs/remotes/p/main")),
            ("refs/heads/a/b", Some("refs/remotes/p/a/b")),
            ("refs/tags/v1", Some("refs/remotes/p/tags/v1")),
            ("refs/heads/../x", None),
            ("refs/heads/HEAD", None),
            ("refs/heads/a.lock", None),
            ("refs/remotes/x/y", None),
            ("refs/bisect/bad", None),
            ("HEAD", None),
        ] {
            let found = tracking("p", name.as_bytes());
            assert_eq!(
                found.as_ref().map(|name| name.as_bstr()),
                expected.map(BStr::new)
            );
        }
    }

    #[test]
    fn peers_have_plain_names() {
        for name in ["a", "laptop", "a.b-c_d", "0"] {
            assert!(is_peer_name(name), "{name}");
        }
        for name in [
            "",
            ".",
            "..",
            "-a",
            "a/b",
            "a b",
            "a.lock",
            "a..b",
            "é",
            "a.",
            &"a".repeat(65),
        ] {
            assert!(!is_peer_name(name), "{name}");
        }
        for (address, expected) in [
            ("/home/me/project", Some("project")),
            ("/home/me/project/.git/", Some("project")),
            ("../x.git", Some("x")),
            ("host", Some("host")),
            ("/", None),
            ("/a/..", None),
        ] {
            assert_eq!(
                peer_name_of(address.into()).as_deref(),
                expected,
                "{address}"
            );
        }
    }
}
