//! Adds the tags that point to selected objects.

use std::collections::HashSet;
use std::ops::ControlFlow;

use pronto_hash::ObjectId;
use pronto_object::TagRef;
use pronto_odb::packing::PackMember;
use pronto_repository::objects::from_odb;
use pronto_repository::{Error, ErrorKind, Repository, Result};

use super::SelectedObjects;

/// The objects of a selection.
struct ChosenObjects<'a> {
    selection: &'a SelectedObjects,
    members: HashSet<ObjectId>,
}

impl ChosenObjects<'_> {
    fn has(&self, id: &ObjectId) -> Result<bool> {
        let block = self.selection.block.as_ref();
        let in_block = block.map(|block| block.contains(id)).transpose();
        Ok(self.members.contains(id) || in_block.map_err(from_odb)?.unwrap_or(false))
    }
}

/// Adds the annotated tags that peel to selected objects (`--include-tag`).
///
/// # Errors
/// Fails with [`ErrorKind::Reference`] or [`ErrorKind::Io`] if refs cannot be read, or
/// [`ErrorKind::Object`] if a tag is malformed.
pub fn include_tags(repository: &Repository, selection: &mut SelectedObjects) -> Result<()> {
    let members = selection.members.iter().map(|member| member.id);
    let mut chosen = ChosenObjects {
        members: members.collect(),
        selection,
    };
    let mut tags = Vec::new();
    repository.refs().for_each("refs/tags/", |reference| {
        let peeled = match reference.peeled {
            Some(peeled) => Some(peeled),
            None => repository.peel_tag(reference.id)?,
        };
        if let Some(peeled) = peeled
            && chosen.has(&peeled)?
        {
            tags.push(reference.id);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let store = repository.objects()?;
    let mut buffer = Vec::new();
    let mut added = Vec::new();
    for mut id in tags {
        // Tags can point to tags: all of them are added, down to a selected object.
        while !chosen.has(&id)? {
            chosen.members.insert(id);
            added.push(PackMember { id, name_hash: 0 });
            store.find(&id, &mut buffer).map_err(from_odb)?;
            let malformed = || Error::new(ErrorKind::Corrupt, "malformed tag").on_object(id);
            id = TagRef::new(&buffer).target().ok_or_else(malformed)?;
        }
    }
    selection.members.extend(added);
    Ok(())
}
