//! Resolves a revision on the command line of `git switch` and `git checkout`.

use bstr::{BString, ByteSlice};
use gix_object::Kind;
use pronto_hash::ObjectId;

use crate::refs::name;
use crate::revision::{ExpectedType, FullName};
use crate::{Error, ErrorKind, Repository, Result};

/// A named commit or tree, with the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartPoint {
    /// The name, with `@{-1}` and similar forms resolved.
    pub name: BString,
    /// The full name of the branch, if a branch was named.
    pub branch: Option<BString>,
    /// The full name of the ref, if a ref was named.
    pub reference: Option<BString>,
    /// The commit; `None` if a tree was named.
    pub commit: Option<ObjectId>,
    /// The tree.
    pub tree: ObjectId,
}

/// Resolves `spec`. Returns `None` if `spec` cannot be resolved. `A...B` is the single merge base.
///
/// # Errors
/// Fails with [`ErrorKind::Object`] if the object has no tree, and with other kinds if an object or
/// a ref is broken.
pub fn start_at(repository: &Repository, spec: impl AsRef<[u8]>) -> Result<Option<StartPoint>> {
    let spec = spec.as_ref().as_bstr();
    let spec = if spec == "-" {
        b"@{-1}".as_bstr()
    } else {
        spec
    };
    let whole = repository.full_id(spec);
    let id = match whole {
        Some(id) => Some(id),
        None => resolve_or_merge_base(repository, spec)?,
    };
    let Some(mut id) = id else {
        return Ok(None);
    };
    let name = repository
        .interpret_branch_name(spec)?
        .unwrap_or_else(|| spec.to_owned());
    let found = repository.find_reference(&name).ok().flatten();
    if whole.is_some() && found.is_some() && repository.warns_of_ambiguity()? {
        repository.warn_of_ambiguity(spec);
    }
    let local = name
        .strip_prefix(b"refs/heads/")
        .map_or(name.clone(), BString::from);
    let full: BString = [b"refs/heads/", local.as_slice()].concat().into();
    let mut branch = None;
    if name::is_valid(full.as_bstr(), name::Form::Full)
        && let Some(tip) = tip_of(repository, &full, found.as_ref())?
        && (local == name || spec != name)
    {
        (branch, id) = (Some(full), tip);
    }
    let found = match branch.is_some() && local != name {
        true => repository.find_reference(&local).ok().flatten(),
        false => found,
    };
    let name = match branch {
        Some(_) => local,
        // The remote-tracking branch of `@{upstream}` is shown as the caller wrote it.
        None if name.starts_with(b"refs/remotes/") => spec.to_owned(),
        None => name,
    };
    let reference = found.map(|found| found.name);
    let commit = repository.peel_to(id, Kind::Commit).ok().flatten();
    let tree = repository
        .peel_to(commit.unwrap_or(id), Kind::Tree)?
        .ok_or_else(|| {
            let message = format!("unable to read tree ({id})");
            Error::new(ErrorKind::Object, message)
        })?;
    Ok(Some(StartPoint {
        name,
        branch,
        reference,
        commit,
        tree,
    }))
}

/// Returns the commit of the branch `full`, given the ref that its short name was `found` to
/// resolve to.
fn tip_of(
    repository: &Repository,
    full: &BString,
    found: Option<&FullName>,
) -> Result<Option<ObjectId>> {
    match found {
        None => Ok(None),
        Some(found) if found.direct == *full => Ok(Some(found.id)),
        // The name resolved to a ref that takes precedence over branches. The branch may exist,
        // too.
        Some(_) => repository.refs().id_of(full),
    }
}

fn resolve_or_merge_base(repository: &Repository, spec: &bstr::BStr) -> Result<Option<ObjectId>> {
    let range = repository.split_range(spec);
    if let Some(range) = range.filter(|range| range.is_symmetric) {
        let (Some(one), Some(two)) = (
            repository.try_resolve(range.from, ExpectedType::Committish)?,
            repository.try_resolve(range.to, ExpectedType::Committish)?,
        ) else {
            return Ok(None);
        };
        let bases = repository.merge_bases(one, two)?;
        return Ok(match bases.as_slice() {
            [base] => Some(*base),
            _ => None,
        });
    }
    repository.try_resolve(spec, ExpectedType::Anything)
}
