//! Collects the state of a remote in relation to this repository: `git remote show`.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;

use bstr::{BString, ByteSlice};
use pronto_io::watch::Watch;
use pronto_wire::advertisement::RemoteRef;

use super::branches::{self, ConfiguredBranch, short};
use super::pushes::{self, ConfiguredPush};
use super::{head, server};
use crate::push::PushRemote;
use crate::refs::name::{self, Form};
use crate::remote::{Refspec, Remote, local_name};
use crate::{Repository, Result};

/// The tracking state of a branch of a remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum BranchState {
    /// The next fetch will create a remote-tracking ref for the branch.
    New,
    /// The branch has a remote-tracking ref.
    Tracked,
    /// A negative refspec excludes the branch.
    Skipped,
    /// The remote-tracking ref is stale: the remote no longer has the branch.
    Stale,
}

/// A branch of a remote.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counterpart {
    /// The name of the branch without `refs/heads/`; for a stale branch, the full name of its
    /// remote-tracking ref.
    pub name: BString,
    /// The tracking state; `None` if the remote was not queried (`-n`).
    pub standing: Option<BranchState>,
}

/// The state of a remote, as `git remote show` prints it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemoteState {
    /// The push URLs.
    pub push_urls: Vec<BString>,
    /// The branches to which `HEAD` of the remote may point; `None` if the remote was not queried
    /// (`-n`).
    pub heads: Option<Vec<BString>>,
    /// The branches of the remote, sorted by name.
    pub branches: Vec<Counterpart>,
    /// The local branches for which `git pull` fetches from the remote, sorted by name.
    pub pulls: Vec<ConfiguredBranch>,
    /// The refs of the remote that a push would update, sorted by name.
    pub pushes: Vec<ConfiguredPush>,
}

/// Collects the state of `remote`, like `git remote show`. If `asks` is false, the remote is not
/// contacted (`-n`).
///
/// # Errors
/// Fails if the remote cannot be reached, a setting is malformed, or a ref cannot be read.
pub fn state(
    repository: &Repository,
    remote: &Remote,
    asks: bool,
    watch: &Watch<'_>,
) -> Result<RemoteState> {
    let destination = PushRemote::of(repository, remote.clone())?;
    let name = &remote.name;
    let mut state = RemoteState {
        push_urls: destination.urls.clone(),
        ..RemoteState::default()
    };
    let branches = branches::read(repository)?;
    let follows = |branch: &ConfiguredBranch| branch.remote.as_ref() == Some(name);
    let pulled = branches
        .into_iter()
        .filter(|it| follows(it) && !it.merges.is_empty());
    state.pulls = pulled.collect();
    if !asks {
        state.branches = known_branches(repository, remote)?;
        if !remote.is_mirror {
            state.pushes = pushes::configured(&destination);
        }
        return Ok(state);
    }
    let refs = server::refs(repository, remote, watch)?;
    state.heads = Some(head::of_refs(&refs));
    state.branches = counterparts(repository, remote, &refs)?;
    if !remote.is_mirror {
        state.pushes = pushes::matched(repository, &destination, &refs)?;
    }
    Ok(state)
}

/// Returns the branches of the existing remote-tracking refs, without a query of the remote.
fn known_branches(repository: &Repository, remote: &Remote) -> Result<Vec<Counterpart>> {
    let mut names = Vec::new();
    repository.refs().for_each("refs/", |found| {
        let specs = remote.fetch.iter().filter(|spec| !spec.negative);
        let source = specs.filter_map(|spec| spec.source_of(found.name)).next();
        let is_meant = |source: &BString| {
            let excludes = |spec: &Refspec| spec.excludes(source.as_bstr());
            found.symbolic.is_none() && !remote.fetch.iter().any(excludes)
        };
        if let Some(source) = source.filter(is_meant) {
            names.push(BString::from(short(&source)));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    names.sort();
    names.dedup();
    let known = names.into_iter().map(|name| Counterpart {
        name,
        standing: None,
    });
    Ok(known.collect())
}

fn counterparts(
    repository: &Repository,
    remote: &Remote,
    refs: &[RemoteRef],
) -> Result<Vec<Counterpart>> {
    let mut found = BTreeMap::new();
    let mut add = |name: &[u8], standing: BranchState| {
        let known = found.entry(BString::from(short(name))).or_insert(standing);
        *known = standing.min(*known);
    };
    let mapped = mapped(remote, refs);
    for entry in &mapped {
        let is_there = |peer: &BString| repository.refs().id_of(peer).is_ok_and(|id| id.is_some());
        let is_skipped = remote
            .fetch
            .iter()
            .any(|spec| spec.excludes(entry.name.as_bstr()));
        let standing = match &entry.peer {
            _ if is_skipped => BranchState::Skipped,
            Some(peer) if is_there(peer) => BranchState::Tracked,
            _ => BranchState::New,
        };
        add(&entry.name, standing);
    }
    for name in stale(repository, remote, &mapped)? {
        add(&name, BranchState::Stale);
    }
    let found = found.into_iter().map(|(name, standing)| Counterpart {
        name,
        standing: Some(standing),
    });
    Ok(found.collect())
}

/// A ref of a remote that matches a fetch refspec.
pub(super) struct MappedRef {
    /// The full name of the ref of the remote.
    name: BString,
    /// The name of its remote-tracking ref.
    peer: Option<BString>,
}

/// Returns the refs among `refs` that match the fetch refspecs of `remote`.
pub(super) fn mapped(remote: &Remote, refs: &[RemoteRef]) -> Vec<MappedRef> {
    let mut mapped = Vec::new();
    for spec in remote.fetch.iter().filter(|spec| !spec.negative) {
        if spec.is_pattern() {
            for theirs in refs {
                if let Some(peer) = spec.expand(theirs.name.as_bstr()) {
                    let name = theirs.name.clone();
                    mapped.push(MappedRef { name, peer });
                }
            }
            continue;
        }
        let source = match spec.source.is_empty() {
            true => "HEAD".into(),
            false => spec.source.as_bstr(),
        };
        let named = match spec.exact_id() {
            Some(_) => Some(spec.source.clone()),
            None => name::candidates(source).find(|name| refs.iter().any(|it| it.name == *name)),
        };
        if let Some(name) = named {
            let peer = spec.destination.as_ref();
            let peer = peer.map(|peer| local_name(peer.as_bstr()));
            mapped.push(MappedRef { name, peer });
        }
    }
    mapped.retain(|entry| {
        let peer = entry.peer.as_ref();
        peer.is_none_or(|peer| {
            peer.starts_with(b"refs/") && name::is_valid(peer.as_bstr(), Form::Full)
        })
    });
    mapped
}

/// Returns the remote-tracking refs of `remote` that are not destinations of `mapped`.
pub(super) fn stale(
    repository: &Repository,
    remote: &Remote,
    mapped: &[MappedRef],
) -> Result<Vec<BString>> {
    let theirs: HashSet<&BString> = mapped.iter().map(|entry| &entry.name).collect();
    crate::remote::stale_refs(repository, &remote.fetch, &theirs)
}
