//! Removes remotes with their settings and remote-tracking refs (`git remote remove`).

use std::ops::ControlFlow;

use bstr::{BStr, BString, ByteSlice};

use super::{StaleDefault, branches, file};
use crate::remote::Remote;
use crate::support::{self, Operation};
use crate::{Error, ErrorKind, Repository, Result};

/// The refs and settings that remain after a remote was removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemovedRemote {
    /// The local branches, without `refs/heads/`, that a refspec of the remote updates. They are
    /// not deleted.
    pub kept_branches: Vec<BString>,
    /// The `remote.pushDefault` that names the remote in another file than the repository's.
    pub push_default: Option<StaleDefault>,
}

/// Removes `remote`: its remote-tracking refs, the settings of branches that name it, and its own
/// settings. Keeps the refs that are also remote-tracking refs of another remote.
///
/// # Errors
/// Fails with [`ErrorKind::Reference`] if a ref cannot be deleted, and with [`ErrorKind::Config`]
/// if the configuration file cannot be changed or the remote is configured in a file below
/// `remotes/` or `branches/`.
pub fn remove(repository: &Repository, remote: &Remote) -> Result<RemovedRemote> {
    support::require(repository, Operation::ManageRemotes)?;
    let name = remote.name.as_bstr();
    let mut removed = RemovedRemote::default();
    let gone = tracking_refs(repository, remote, &mut removed)?;
    let branches = branches::read(repository)?;
    if !gone.is_empty()
        && let Some(error) = repository.delete_refs(&gone)?
    {
        return Err(Error::new(ErrorKind::Reference, error.to_string()));
    }
    let section = BString::from([b"remote.", name.as_bytes()].concat());
    let failure = format!("Could not remove config section '{section}'");
    removed.push_default = file::edit(repository, &failure, |document| {
        for branch in &branches {
            let key = |variable: &str| format!("branch.{}.{variable}", branch.name);
            let is_it = |named: &Option<BString>| named.as_ref().is_some_and(|named| named == name);
            if is_it(&branch.remote) {
                file::unset(repository, document, key("remote").as_str().into())?;
                file::unset(repository, document, key("merge").as_str().into())?;
            }
            if is_it(&branch.push_remote) {
                file::unset(repository, document, key("pushremote").as_str().into())?;
            }
        }
        if document.rename_section(section.as_bstr(), None)? == 0 {
            return Err(Error::new(ErrorKind::Config, failure.clone()));
        }
        file::change_push_default(repository, document, name, None)
    })?;
    Ok(removed)
}

/// Returns the refs that are remote-tracking refs of `remote` and of no other remote.
fn tracking_refs(
    repository: &Repository,
    remote: &Remote,
    removed: &mut RemovedRemote,
) -> Result<Vec<BString>> {
    let config = repository.config();
    let mut others = Vec::new();
    for name in config.subsections("remote") {
        if name != remote.name {
            others.push(Remote::configured(config, name)?);
        }
    }
    let mut gone = Vec::new();
    repository.refs().for_each("refs/", |found| {
        if makes(remote, found.name) && !others.iter().any(|other| makes(other, found.name)) {
            if found.name.starts_with(b"refs/remotes/") {
                gone.push(found.name.to_owned());
            } else if let Some(branch) = found.name.strip_prefix(b"refs/heads/") {
                removed.kept_branches.push(branch.into());
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(gone)
}

/// Whether a refspec of `remote` has `name` as destination.
fn makes(remote: &Remote, name: &BStr) -> bool {
    let specs = remote.fetch.iter().filter(|spec| !spec.negative);
    specs
        .map(|spec| spec.source_of(name))
        .any(|source| source.is_some())
}
