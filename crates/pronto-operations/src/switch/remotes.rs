//! Finds the remote-tracking branches for a branch name, and the remotes of remote-tracking
//! branches.

use bstr::{BStr, BString, ByteSlice};

use crate::{Repository, Result};

/// The remote-tracking branches that match a short name (`--guess`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Candidates {
    /// The full name of the chosen remote-tracking branch.
    pub chosen: Option<BString>,
    /// The number of matching remote-tracking branches.
    pub count: usize,
}

/// Returns the remote-tracking branches of all remotes for a branch called `short`. If there are
/// several, `checkout.defaultRemote` chooses.
///
/// # Errors
/// Fails if a ref cannot be read.
pub fn remote_branches_named(repository: &Repository, short: &BStr) -> Result<Candidates> {
    let full: BString = [b"refs/heads/", short.as_bytes()].concat().into();
    let preferred = repository.config().raw("checkout.defaultremote");
    let mut found = Vec::new();
    let mut chosen = None;
    for remote in repository.config().subsections("remote") {
        let Some(tracking) = repository.tracking_reference(remote, full.as_bstr()) else {
            continue;
        };
        if repository.refs().id_of(&tracking)?.is_none() {
            continue;
        }
        if Some(remote) == preferred {
            chosen = Some(tracking.clone());
        }
        found.push(tracking);
    }
    let count = found.len();
    if count == 1 {
        chosen = found.pop();
    }
    Ok(Candidates { chosen, count })
}

/// Returns the remotes, and the names of their branches, that are fetched into `reference`.
pub(super) fn remote_sources(repository: &Repository, reference: &BStr) -> Vec<(BString, BString)> {
    let mut sources = Vec::new();
    for remote in repository.config().subsections("remote") {
        let key: BString = [b"remote.", remote.as_bytes(), b".fetch"].concat().into();
        for spec in repository.config().strings(&key) {
            let spec = spec.strip_prefix(b"+").unwrap_or(spec);
            let Some((from, to)) = spec.split_once_str(":") else {
                continue;
            };
            if let Some(source) = reverse(from, to, reference) {
                sources.push((remote.to_owned(), source));
                break;
            }
        }
    }
    sources
}

/// Returns the source of `name` by the refspec `from:to`.
fn reverse(from: &[u8], to: &[u8], name: &BStr) -> Option<BString> {
    let Some(star) = to.find_byte(b'*') else {
        return (to == name.as_bytes()).then(|| from.into());
    };
    let middle = name
        .strip_prefix(&to[..star])?
        .strip_suffix(&to[star + 1..])?;
    let star = from.find_byte(b'*')?;
    Some([&from[..star], middle, &from[star + 1..]].concat().into())
}
