//! The refs that lead to a commit, as Git lists them beside it.

use std::ops::ControlFlow;

use bstr::{BString, ByteSlice};
use gix_object::Kind;
use pronto_hash::ObjectId;

use super::super::unsupported;
use crate::refs::Head;
use crate::{Repository, Result};

/// Returns the list of the commit `id`: `HEAD` and its branch, then other refs, the last name first.
///
/// # Errors
/// Refs cannot be read. [`Unsupported`](crate::ErrorKind::Unsupported) where objects are replaced.
pub(super) fn of(repository: &Repository, id: &ObjectId) -> Result<BString> {
    let mut names = Vec::new();
    let mut are_replaced = false;
    repository.refs().for_each("refs/", |reference| {
        are_replaced |= reference.name.starts_with(b"refs/replace/");
        names.push((reference.name.to_owned(), reference.id));
        Ok(ControlFlow::Continue(()))
    })?;
    if are_replaced {
        return Err(unsupported("names of refs beside replaced objects"));
    }
    let head = repository.refs().head()?;
    let branch = match &head {
        Head::Branch { name, id: at } if at == id => Some(name),
        _ => None,
    };
    let is_detached_here = matches!(&head, Head::Detached { id: at } if at == id);
    let mut shown = Vec::new();
    match branch {
        Some(branch) => shown.push(format!("HEAD -> {}", short(branch))),
        None if is_detached_here => shown.push("HEAD".to_owned()),
        None => {}
    }
    for (name, found) in names.into_iter().rev() {
        if Some(&name) == branch || !leads_to(repository, found, id)? {
            continue;
        }
        let tag = if name.starts_with(b"refs/tags/") {
            "tag: "
        } else {
            ""
        };
        shown.push(format!("{tag}{}", short(&name)));
    }
    Ok(shown.join(", ").into())
}

fn leads_to(repository: &Repository, from: ObjectId, commit: &ObjectId) -> Result<bool> {
    Ok(from == *commit || repository.peel_to(from, Kind::Commit)? == Some(*commit))
}

/// Returns a name without the directory of its kind.
fn short(name: &BString) -> &bstr::BStr {
    let kinds: [&[u8]; 3] = [b"refs/heads/", b"refs/tags/", b"refs/remotes/"];
    let rest = kinds.iter().find_map(|kind| name.strip_prefix(*kind));
    rest.unwrap_or(name).as_bstr()
}
