//! Adds remotes, and chooses the branches that they track (`git remote add`,
//! `git remote set-branches`).

use bstr::{BStr, BString, ByteSlice};

use super::file::{self, SetValue};
use super::key;
use crate::refs::RefName;
use crate::remote::{Remote, Tags, is_valid_name};
use crate::{Error, ErrorKind, Repository, Result};

/// The direction in which a remote is a mirror (`--mirror`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mirror {
    /// All refs of the remote are fetched under their own names (`--mirror=fetch`).
    Fetch,
    /// All refs of this repository are pushed to the remote under their own names
    /// (`--mirror=push`).
    Push,
    /// The remote is a mirror for fetches and for pushes (`--mirror`).
    Both,
}

impl Mirror {
    fn is_fetched(self) -> bool {
        matches!(self, Mirror::Fetch | Mirror::Both)
    }

    fn is_pushed(self) -> bool {
        matches!(self, Mirror::Push | Mirror::Both)
    }
}

/// The remote to add, with the options of `git remote add`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AddRemoteOptions {
    /// The name of the new remote.
    pub name: BString,
    /// The URL of the new remote.
    pub url: BString,
    /// The branches to track (`-t`); if empty, all branches.
    pub branches: Vec<BString>,
    /// Make the remote a mirror (`--mirror`).
    pub mirror: Option<Mirror>,
    /// The tags that a fetch takes (`--tags`, `--no-tags`); unset, those that point into fetched
    /// history.
    pub tags: Option<Tags>,
}

impl AddRemoteOptions {
    /// Returns options for a remote whose branches are all fetched.
    pub fn new(name: impl Into<BString>, url: impl Into<BString>) -> Self {
        AddRemoteOptions {
            name: name.into(),
            url: url.into(),
            branches: Vec::new(),
            mirror: None,
            tags: None,
        }
    }
}

/// Adds a remote to the configuration. The caller has checked with [`find`](super::find) that no
/// remote of this name exists.
///
/// # Errors
/// Fails with [`ErrorKind::InvalidInput`] if the name is invalid or conflicts with the name of
/// another remote, or if options contradict each other, and with `ErrorKind::Config` if the
/// configuration file cannot be changed.
pub fn add(repository: &Repository, options: &AddRemoteOptions) -> Result<()> {
    check(repository, options)?;
    let name = options.name.as_bstr();
    let (url, tag_option) = (key(name, "url"), key(name, "tagOpt"));
    let failure = file::cannot_set(url.as_bstr(), options.url.as_bstr());
    file::edit(repository, &failure, |document| {
        let mut set = |key: &BString, value: &BStr| {
            let change = SetValue {
                key: key.as_bstr(),
                value,
            };
            file::set(repository, document, &change, |_| true)
        };
        set(&url, options.url.as_bstr())?;
        let is_mirror = options.mirror.is_some();
        if options.mirror.is_none_or(Mirror::is_fetched) {
            let all = [BString::from("*")];
            let branches = match &options.branches[..] {
                [] => &all[..],
                branches => branches,
            };
            for branch in branches {
                append_branch(repository, document, name, &spec(name, branch, is_mirror))?;
            }
        }
        let mut set = |key: &BString, value: &str| {
            let change = SetValue {
                key: key.as_bstr(),
                value: value.into(),
            };
            file::set(repository, document, &change, |_| true)
        };
        if options.mirror.is_some_and(Mirror::is_pushed) {
            set(&key(name, "mirror"), "true")?;
        }
        match options.tags {
            Some(Tags::All) => set(&tag_option, "--tags")?,
            Some(Tags::None) => set(&tag_option, "--no-tags")?,
            _ => {}
        }
        Ok(())
    })
}

fn append_branch(
    repository: &Repository,
    document: &mut crate::config::edit::Document,
    name: &BStr,
    spec: &BString,
) -> Result<()> {
    let key = key(name, "fetch");
    let change = SetValue {
        key: key.as_bstr(),
        value: spec.as_bstr(),
    };
    file::append(repository, document, &change)
}

/// The refspec that fetches `branch` from the remote `name`.
fn spec(name: &BStr, branch: &BString, is_mirror: bool) -> BString {
    match is_mirror {
        true => format!("+refs/{branch}:refs/{branch}").into(),
        false => format!("+refs/heads/{branch}:refs/remotes/{name}/{branch}").into(),
    }
}

fn check(repository: &Repository, options: &AddRemoteOptions) -> Result<()> {
    let name = &options.name;
    let fail = |message: String| Err(Error::new(ErrorKind::InvalidInput, message));
    if options.mirror == Some(Mirror::Push) && !options.branches.is_empty() {
        let message = "specifying branches to track makes sense only with fetch mirrors";
        return fail(message.into());
    }
    if !is_valid_name(name.as_bstr()) {
        return fail(format!("'{name}' is not a valid remote name"));
    }
    for other in repository.config().subsections("remote") {
        let is_below = |inner: &BStr, outer: &BStr| {
            let rest = inner.strip_prefix(outer.as_bytes());
            rest.is_some_and(|rest| rest.starts_with(b"/"))
        };
        if is_below(name.as_bstr(), other) {
            let message = "is a subset of existing remote";
            return fail(format!("remote name '{name}' {message} '{other}'"));
        }
        if is_below(other, name.as_bstr()) {
            let message = "is a superset of existing remote";
            return fail(format!("remote name '{name}' {message} '{other}'"));
        }
    }
    Ok(())
}

/// Sets the branches that a fetch from `remote` takes (`git remote set-branches`). With `keep`, the
/// branches are added to the current ones (`--add`). Returns false, without a change, if there are
/// no refspecs to replace.
///
/// # Errors
/// Fails if the configuration file cannot be changed.
pub fn track_branches(
    repository: &Repository,
    remote: &Remote,
    branches: &[BString],
    keep: bool,
) -> Result<bool> {
    let name = remote.name.as_bstr();
    let fetch = key(name, "fetch");
    let failure = match branches.first() {
        Some(first) if keep => {
            let spec = spec(name, first, remote.is_mirror);
            file::cannot_set(fetch.as_bstr(), spec.as_bstr())
        }
        _ => file::cannot_unset(fetch.as_bstr()),
    };
    file::edit(repository, &failure, |document| {
        if !keep && !file::unset_all(document, fetch.as_bstr(), |_| true)? {
            return Ok(false);
        }
        for branch in branches {
            let spec = spec(name, branch, remote.is_mirror);
            append_branch(repository, document, name, &spec)?;
        }
        Ok(true)
    })
}

/// The name of the remote-tracking ref of `branch` of the remote `name`.
pub(super) fn tracking_ref(name: &BStr, branch: &BStr) -> BString {
    [b"refs/remotes/", name.as_bytes(), b"/", branch.as_bytes()]
        .concat()
        .into()
}

/// The name of the remote-tracking ref as a checked [`RefName`]; `None` if the name is invalid.
pub(super) fn tracking_name(name: &BStr, branch: &BStr) -> Option<RefName> {
    RefName::new(tracking_ref(name, branch)).ok()
}
