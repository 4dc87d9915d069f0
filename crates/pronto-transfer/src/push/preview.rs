//! The refs that a push without refspecs would match, without a connection.

use bstr::BString;
use pronto_hash::ObjectId;
use pronto_wire::advertisement::RemoteRef;

use super::matching::{self, Matching, Mode};
use super::{Destination, Peer, PushSpec, PushedRef};
use crate::{Repository, Result};

/// A ref of the other side and the value that would be sent to it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Preview {
    /// Its full name.
    pub name: BString,
    /// Its value; null if it does not exist.
    pub old: ObjectId,
    /// The ref or object that is sent to it.
    pub peer: Peer,
    /// Whether its refspec forces the change.
    pub force: bool,
}

/// Matches the refs here with `refs`, those of the other side, by the refspecs of `destination`, or those of the
/// same name if it has none. Refspecs that match nothing are left out. Costs a pass over the refs here; nothing is sent.
///
/// # Errors
/// The refs here cannot be read.
pub fn preview(
    repository: &Repository,
    destination: &Destination,
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
