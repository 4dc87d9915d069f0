//! Determines the refs that a push without refspecs would match, without a connection.

use bstr::BString;
use pronto_hash::ObjectId;
use pronto_wire::advertisement::RemoteRef;

use super::matching::{self, Matching, Mode};
use super::{LocalRef, PushRemote, PushSpec, PushedRef};
use crate::{Repository, Result};

/// A remote ref and the value that would be pushed to it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Preview {
    /// The full name of the remote ref.
    pub name: BString,
    /// The current value; null if the ref does not exist.
    pub old: ObjectId,
    /// The local ref or object that would be pushed.
    pub peer: LocalRef,
    /// Whether the refspec allows updates that are not fast-forwards (`+`).
    pub force: bool,
}

/// Matches the local refs with `refs`, the refs of the remote, by the push refspecs of
/// `destination`; without any, refs of the same name match. Refspecs without a match are left out.
/// Costs an iteration over the local refs; sends nothing.
///
/// # Errors
/// Fails if the local refs cannot be read.
pub fn preview(
    repository: &Repository,
    destination: &PushRemote,
    refs: &[RemoteRef],
) -> Result<Vec<Preview>> {
    let local = matching::local_refs(repository)?;
    let specs = match destination.push.is_empty() {
        true => vec![PushSpec::parse(":".into())?],
        false => destination.push.clone(),
    };
    let remote = refs.iter().filter_map(PushedRef::of).collect();
    let mut matching = Matching::new(repository, &local, remote);
    matching.run(&specs, Mode::default())?;
    let matched = matching.remote.into_iter().filter_map(|found| {
        Some(Preview {
            name: found.name,
            old: found.old,
            peer: found.peer?,
            force: found.force,
        })
    });
    Ok(matched.collect())
}
