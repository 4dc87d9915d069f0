//! The decorations of a commit: the names of the refs that point to it, in Git's format.

use std::ops::ControlFlow;

use bstr::{BString, ByteSlice};
use gix_object::Kind;
use pronto_hash::ObjectId;
use pronto_io::watch::Watch;
use pronto_transfer::upload_pack::hidden::Hidden;

use super::super::{check, unsupported};
use crate::refs::HeadValue;
use crate::{Repository, Result};

/// Returns the names of the refs that point to the commit `id`: `HEAD` and its branch, then other
/// refs in descending order of names. Refs that are `hidden` are left out. Costs an iteration over
/// all refs.
///
/// # Errors
/// Fails with [`Unsupported`](crate::ErrorKind::Unsupported) if there are replace refs, and with
/// other kinds if refs cannot be read or the operation is interrupted.
pub(super) fn of(
    repository: &Repository,
    id: &ObjectId,
    hidden: &Hidden,
    watch: &Watch<'_>,
) -> Result<BString> {
    let mut names = Vec::new();
    let mut are_replaced = false;
    repository.refs().for_each("refs/", |reference| {
        are_replaced |= reference.name.starts_with(b"refs/replace/");
        if !hidden.hides(reference.name.as_bstr()) {
            names.push((reference.name.to_owned(), reference.id));
        }
        Ok(match watch.interrupt().is_triggered() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        })
    })?;
    check(watch)?;
    if are_replaced {
        return Err(unsupported(
            "'export-subst' with ref names and replaced objects",
        ));
    }
    let head = repository.refs().head()?;
    let branch = match &head {
        HeadValue::Branch { name, id: at } if at == id => Some(name),
        _ => None,
    };
    let is_detached_here = matches!(&head, HeadValue::Detached { id: at } if at == id);
    let is_head_here = branch.is_some() || is_detached_here;
    let shows_head = is_head_here && !hidden.hides("HEAD".into());
    let branch = branch.filter(|name| shows_head && !hidden.hides(name.as_bstr()));
    let mut shown: Vec<BString> = Vec::new();
    if shows_head {
        shown.push(match branch {
            Some(branch) => [b"HEAD -> ", short(branch).as_bytes()].concat().into(),
            None => "HEAD".into(),
        });
    }
    for (name, found) in names.into_iter().rev() {
        check(watch)?;
        if Some(&name) == branch || !leads_to(repository, found, id)? {
            continue;
        }
        let kind: &[u8] = match name.starts_with(b"refs/tags/") {
            true => b"tag: ",
            false => b"",
        };
        shown.push([kind, short(&name)].concat().into());
    }
    Ok(bstr::join(", ", shown).into())
}

fn leads_to(repository: &Repository, from: ObjectId, commit: &ObjectId) -> Result<bool> {
    Ok(from == *commit || repository.peel_to(from, Kind::Commit)? == Some(*commit))
}

/// Returns a ref name without `refs/heads/` or a similar prefix.
fn short(name: &BString) -> &bstr::BStr {
    let kinds: [&[u8]; 3] = [b"refs/heads/", b"refs/tags/", b"refs/remotes/"];
    let rest = kinds.iter().find_map(|kind| name.strip_prefix(*kind));
    rest.unwrap_or(name).as_bstr()
}
