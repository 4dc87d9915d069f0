//! The wants of a fetch that are not advertised, or are wanted by name.

use std::collections::{HashMap, HashSet};

use bstr::BString;
use pronto_hash::ObjectId;
use pronto_wire::advertisement::{ProtocolVersion, RemoteRef};
use pronto_wire::client::FetchClient;
use pronto_wire::fetch::{Request, WantedRef};

use crate::fetch::map::FetchedRef;
use crate::{Error, ErrorKind, Result};

/// Checks that the server allows wants that are not advertised as tips of refs, such as the target
/// of a tag. A server of version 2 checks that itself.
pub(super) fn check_advertised(
    client: &FetchClient,
    refs: &[RemoteRef],
    request: &Request,
) -> Result<()> {
    let allows = ["allow-tip-sha1-in-want", "allow-reachable-sha1-in-want"]
        .iter()
        .any(|ability| client.capabilities().has(ability));
    if client.version() == ProtocolVersion::V2 || client.bundle().is_some() || allows {
        return Ok(());
    }
    let advertised: HashSet<ObjectId> = refs.iter().filter_map(|theirs| theirs.id).collect();
    match request.wants.iter().find(|id| !advertised.contains(*id)) {
        Some(id) => {
            let message = format!("Server does not allow request for unadvertised object {id}");
            Err(Error::new(ErrorKind::Transport, message))
        }
        None => Ok(()),
    }
}

/// Sets the ids of refs that were wanted by name, which may have changed since they were listed.
pub(super) fn settle(entries: &mut [FetchedRef], found: &[WantedRef]) {
    let ids: HashMap<&BString, ObjectId> =
        found.iter().map(|found| (&found.name, found.id)).collect();
    for entry in entries {
        entry.id = ids.get(&entry.name).copied().unwrap_or(entry.id);
    }
}
