//! Replaces blobs by URIs of packs that the client downloads itself (`uploadpack.blobPackfileUri`).

use std::collections::BTreeMap;

use bstr::{BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_storage::pack_objects::SelectedObjects;

use crate::{Error, ErrorKind, Repository, Result};

/// A pack that contains a blob and can be downloaded by the client.
struct Elsewhere {
    blob: ObjectId,
    /// The checksum of the pack, a space and its URI.
    line: BString,
    protocol: BString,
}

/// Checks the configuration. Git does so for each pack.
///
/// # Errors
/// Fails if a setting is malformed.
pub(super) fn check(repository: &Repository) -> Result<()> {
    configured(repository).map(drop)
}

/// Removes the blobs from `selection` that are in packs which the client can download by one of
/// `protocols`. Returns a line for each of these packs, in the order of the blob ids.
///
/// # Errors
/// Fails if a setting is malformed.
pub(super) fn leave_out(
    repository: &Repository,
    protocols: &[BString],
    selection: &mut SelectedObjects,
) -> Result<Vec<BString>> {
    let mut elsewhere = configured(repository)?;
    elsewhere.retain(|_, pack| protocols.contains(&pack.protocol));
    let mut lines = BTreeMap::new();
    selection
        .members
        .retain(|member| match elsewhere.remove(&member.id) {
            Some(pack) => {
                lines.insert(member.id, pack.line);
                false
            }
            None => true,
        });
    Ok(lines.into_values().collect())
}

fn configured(repository: &Repository) -> Result<BTreeMap<ObjectId, Elsewhere>> {
    let hex_len = repository.object_hash().len_in_hex();
    let mut found = BTreeMap::new();
    for value in repository.config().strings("uploadpack.blobpackfileuri") {
        let fail = |what: &str| {
            let message = format!("{what} (got '{value}')");
            Error::new(ErrorKind::ConfigValue, message)
        };
        let pack = parse(value, hex_len).ok_or_else(|| {
            fail(
                "value of uploadpack.blobpackfileuri must be of the form '<object-hash> \
                 <pack-hash> <uri>'",
            )
        })?;
        if found.insert(pack.blob, pack).is_some() {
            let what = "object already configured in another uploadpack.blobpackfileuri";
            return Err(fail(what));
        }
    }
    Ok(found)
}

fn parse(value: &[u8], hex_len: usize) -> Option<Elsewhere> {
    let (id, rest) = value.split_at_checked(hex_len)?;
    let line = rest.strip_prefix(b" ")?;
    let (pack, uri) = line.split_at_checked(hex_len)?;
    pronto_hash::parse_hex(pack).ok()?;
    let uri = uri.strip_prefix(b" ")?;
    let protocol = uri.split_once_str(":").map_or(&b""[..], |(name, _)| name);
    Some(Elsewhere {
        blob: pronto_hash::parse_hex(id).ok()?,
        line: line.into(),
        protocol: protocol.into(),
    })
}
