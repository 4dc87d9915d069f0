//! Writes the first refs, `HEAD` and their reflogs.

use std::fs;

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_io::error::IoContext;
use pronto_odb::Store;

use super::heads::ClonedHeads;
use super::{CloneRun, CloneWarning};
use crate::objects::from_odb;
use crate::refs::{Edit, ExpectedValue, RefChangeKind, RefName, RefTarget, bad_name};
use crate::remote::NegotiationHistory;
use crate::repository::RefStorage;
use crate::{Error, ErrorKind, Repository, Result};

/// The initial `HEAD` of the new repository.
pub(super) struct InitialHead {
    /// The full name of the branch, or `HEAD` if it is detached.
    pub(super) name: BString,
    /// The commit of `HEAD`, if there is one.
    pub(super) id: Option<ObjectId>,
    /// The commit at which `HEAD` is detached; `None` if `HEAD` points to a branch.
    pub(super) detached: Option<ObjectId>,
    /// The warning that the requested object is a tag and not the commit itself.
    pub(super) warning: Option<CloneWarning>,
    /// Whether the remote has refs, but not the one that `HEAD` points to.
    pub(super) is_dangling: bool,
}

/// Writes all refs: first those of the remote in one transaction, then `HEAD`.
pub(super) fn write(
    work: &CloneRun<'_>,
    heads: &ClonedHeads<'_>,
    repository: &Repository,
    store: &Store,
) -> Result<InitialHead> {
    let mut first = repository.transaction();
    for mapped in &heads.mapped {
        let Some(ours) = &mapped.ours else {
            continue;
        };
        // A server advertises a broken ref with the null object id.
        if mapped.id.is_null() {
            let message = format!("'{ours}' has neither a valid OID nor a target");
            return Err(Error::new(ErrorKind::Reference, message));
        }
        first.push(Edit {
            name: ours.as_bstr().to_owned(),
            change: RefChangeKind::Set(RefTarget::Object(mapped.id)),
            expected: ExpectedValue::Anything,
            message: None,
            follow: false,
            create_log: false,
            peeled: mapped.theirs.peeled,
            log_from: None,
        });
    }
    // As in Git, `packed-refs` is written even if there are no refs.
    if !heads.is_empty {
        first.commit_initial()?;
    }
    let message = work.message.as_bstr();
    if work.options.takes_one_branch() && work.options.takes_tags() {
        write_followed_tags(heads, repository, store, message)?;
    }
    write_remote_head(work, heads, repository, message)?;
    write_head(work, heads, repository, store)
}

/// Writes the tags that point into the history of the only branch that was fetched.
fn write_followed_tags(
    heads: &ClonedHeads<'_>,
    repository: &Repository,
    store: &Store,
    message: &BStr,
) -> Result<()> {
    let mut tags = repository.transaction();
    let is_mapped = |name: &BString| {
        heads
            .mapped
            .iter()
            .any(|mapped| mapped.ours.as_ref().is_some_and(|ours| ours == name))
    };
    for found in heads.refs {
        let Some(id) = found.id else {
            continue;
        };
        if found.name.starts_with(b"refs/tags/")
            && !is_mapped(&found.name)
            && store.contains(&id).map_err(from_odb)?
        {
            tags.update(&found.name, id, ExpectedValue::Anything, message);
        }
    }
    tags.commit()
}

/// Writes the symref `refs/remotes/NAME/HEAD` of the new remote.
fn write_remote_head(
    work: &CloneRun<'_>,
    heads: &ClonedHeads<'_>,
    repository: &Repository,
    message: &BStr,
) -> Result<()> {
    if work.options.is_bare() || work.options.revision.is_some() {
        return Ok(());
    }
    let ours = heads.remote_branch.and_then(|branch| {
        let mapped = heads.mapped.iter();
        let mut same = mapped.filter(|mapped| std::ptr::eq(mapped.theirs, branch));
        same.find_map(|mapped| mapped.ours.clone())
    });
    let Some(ours) = ours else {
        return Ok(());
    };
    let name = [work.branch_top().as_slice(), b"HEAD"].concat();
    let mut transaction = repository.transaction();
    transaction.set_symbolic(name, ours, Some(message));
    transaction.commit()
}

fn write_head(
    work: &CloneRun<'_>,
    heads: &ClonedHeads<'_>,
    repository: &Repository,
    store: &Store,
) -> Result<InitialHead> {
    let message = work.message.as_bstr();
    let is_bare = work.options.is_bare();
    let mut transaction = repository.transaction();
    let commit = heads
        .exact
        .or(heads.chosen.and_then(|chosen| chosen.id))
        .or(heads.remote_head.and_then(|head| head.id));
    if let Some(branch) = heads.branch().filter(|_| heads.exact.is_none()) {
        let name = RefName::new([b"refs/heads/", branch.as_bytes()].concat()).map_err(bad_name)?;
        set_symbolic_head(repository, &name)?;
        let id = heads.chosen.and_then(|chosen| chosen.id);
        if let Some(id) = id.filter(|_| !is_bare) {
            transaction.update("HEAD", id, ExpectedValue::Anything, message);
            transaction.commit()?;
        }
        return Ok(InitialHead {
            name: name.into_inner(),
            is_dangling: id.is_none() && !heads.is_empty,
            id,
            detached: None,
            warning: None,
        });
    }
    let Some(id) = commit else {
        let message = "the remote has neither a HEAD nor a branch";
        return Err(Error::new(ErrorKind::Transport, message));
    };
    let cut = crate::remote::shallow::read(repository)?;
    let peeled = NegotiationHistory::new(store, &cut)
        .peel(&id)
        .map_err(from_odb)?;
    let given = id;
    let id = peeled.ok_or_else(|| {
        let reason = format!("object {id} is a tree, not a commit");
        let message = format!("could not parse {id}");
        Error::new(ErrorKind::Object, message).reported_after(reason)
    })?;
    transaction.detach("HEAD", id, ExpectedValue::Anything, message);
    transaction.commit()?;
    Ok(InitialHead {
        name: "HEAD".into(),
        id: Some(id),
        detached: Some(id).filter(|_| !is_bare),
        warning: (given != id).then(|| CloneWarning::NotACommit {
            name: match (&heads.exact_name, heads.chosen) {
                (Some(name), _) => name.clone(),
                (None, Some(chosen)) => chosen.name.clone(),
                (None, None) => "HEAD".into(),
            },
            id: given,
        }),
        is_dangling: false,
    })
}

/// Makes `HEAD` a symref to `name`, without a reflog entry.
fn set_symbolic_head(repository: &Repository, name: &RefName) -> Result<()> {
    if repository.format().ref_storage == RefStorage::Reftable {
        let mut transaction = repository.transaction();
        transaction.set_symbolic("HEAD", name.clone(), None);
        return transaction.commit();
    }
    let file = repository.git_dir().join("HEAD");
    let text = [b"ref: ", name.as_bytes(), b"\n"].concat();
    fs::write(&file, text).context(ErrorKind::Io, "could not write", &file)
}
