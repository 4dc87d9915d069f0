//! Determines the object type of each entry of a pack.

use gix_object::Kind as ObjectKind;

use super::{PackOffset, PackOrder, PackPosition, PackReader};
use crate::entry::EntryHeader;
use crate::error::{Error, ErrorKind};
use crate::idx::PackIndex;

/// Returns the types of all objects of `pack`, in pack order. Reads the header of each entry once
/// and inflates nothing: the type of a delta is the type of its base.
///
/// # Errors
/// Fails with `ErrorKind::Corrupt` or `ErrorKind::Truncated` if an entry is damaged or its base is
/// invalid, with `ErrorKind::Missing` if a base named by id is not in the pack, and with
/// `ErrorKind::Io` if the files cannot be read.
pub fn kinds(
    pack: &PackReader,
    index: &PackIndex,
    order: &PackOrder,
) -> Result<Vec<ObjectKind>, Error> {
    let mut kinds: Vec<Option<ObjectKind>> = vec![None; order.len() as usize];
    let mut chain = Vec::new();
    for place in 0..order.len() {
        let mut place = place;
        let kind = loop {
            if let Some(kind) = kinds[place as usize] {
                break kind;
            }
            chain.push(place);
            if chain.len() > kinds.len() {
                let message = "corrupt pack: delta chain is a cycle";
                return Err(Error::new(ErrorKind::Corrupt, message).at_path(pack.path()));
            }
            match step(pack, index, order, place)? {
                KindStep::Kind(kind) => break kind,
                KindStep::Base(base) => place = base,
            }
        };
        for place in chain.drain(..) {
            kinds[place as usize] = Some(kind);
        }
    }
    Ok(kinds.into_iter().flatten().collect())
}

enum KindStep {
    Kind(ObjectKind),
    /// The position of the base.
    Base(u32),
}

fn step(
    pack: &PackReader,
    index: &PackIndex,
    order: &PackOrder,
    place: u32,
) -> Result<KindStep, Error> {
    let Some((offset, _)) = order.get(PackPosition(place)) else {
        return Err(Error::new(ErrorKind::Corrupt, "no such pack entry").at_path(pack.path()));
    };
    let entry = pack.entry(offset)?;
    let base: Option<PackOffset> = match &entry.header {
        EntryHeader::Object(kind) => return Ok(KindStep::Kind(*kind)),
        EntryHeader::OffsetDelta { .. } => pack.base_offset(offset, &entry.header)?,
        EntryHeader::RefDelta { base } => index.find_offset(base)?,
    };
    match base.and_then(|base| order.position(base)) {
        Some(base) => Ok(KindStep::Base(base.0)),
        None => Err(
            Error::new(ErrorKind::Missing, "delta base is not in the pack")
                .at_path(pack.path())
                .at_offset(offset.0),
        ),
    }
}
