//! The relation between a remote and this repository: `git remote show`.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;

use bstr::{BString, ByteSlice};
use pronto_io::watch::Watch;
use pronto_wire::advertisement::RemoteRef;

use super::branches::{self, Branch, short};
use super::pushes::{self, Pushed};
use super::{head, server};
use crate::push::Destination;
use crate::refs::name::{self, Form};
use crate::remote::{Refspec, Remote, local_name};
use crate::{Repository, Result};

/// The standing of a branch of a remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Standing {
    /// The next fetch creates its tracking ref.
    New,
    /// The branch has a tracking ref.
    Tracked,
    /// A negative refspec leaves it out.
    Skipped,
    /// This tracking ref is left of a branch that is gone.
    Stale,
}

/// A branch of a remote.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counterpart {
    /// Its name without `refs/heads/`; the full name of the tracking ref if it is stale.
    pub name: BString,
    /// Its standing; `None` if the remote was not asked.
    pub standing: Option<Standing>,
}

/// A remote in relation to this repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct State {
    /// The URLs that are pushed to.
    pub push_urls: Vec<BString>,
    /// The branches that its `HEAD` may point to; `None` if the remote was not asked.
    pub heads: Option<Vec<BString>>,
    /// Its branches, sorted by name.
    pub branches: Vec<Counterpart>,
    /// The local branches that a pull changes from it, sorted by name.
    pub pulls: Vec<Branch>,
    /// The refs that a push changes there, sorted by name.
    pub pushes: Vec<Pushed>,
}

/// Collects the relation of `remote` to this repository. Without `asks`, the remote is not contacted.
///
/// # Errors
/// The remote cannot be reached, a setting is malformed, or a ref cannot be read.
pub fn state(
    repository: &Repository,
    remote: &Remote,
    asks: bool,
    watch: &Watch<'_>,
) -> Result<State> {
    let destination = Destination::of(repository, remote.clone())?;
    let name = &remote.name;
    let mut state = State {
        push_urls: destination.urls.clone(),
        ..State::default()
    };
    let branches = branches::read(repository)?;
    let follows = |branch: &Branch| branch.remote.as_ref() == Some(name);
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

/// The branches that tracking refs are known of, without asking the remote.
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
    let mut add = |name: &[u8], standing: Standing| {
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
            _ if is_skipped => Standing::Skipped,
            Some(peer) if is_there(peer) => Standing::Tracked,
            _ => Standing::New,
        };
        add(&entry.name, standing);
    }
    for name in stale(repository, remote, &mapped)? {
        add(&name, Standing::Stale);
    }
    let found = found.into_iter().map(|(name, standing)| Counterpart {
        name,
        standing: Some(standing),
    });
    Ok(found.collect())
}

/// A ref of a remote that a refspec takes.
pub(super) struct Mapped {
    /// Its full name.
    name: BString,
    /// Its tracking ref.
    peer: Option<BString>,
}

/// The refs of `remote`, among `refs`, that its refspecs take.
pub(super) fn mapped(remote: &Remote, refs: &[RemoteRef]) -> Vec<Mapped> {
    let mut mapped = Vec::new();
    for spec in remote.fetch.iter().filter(|spec| !spec.negative) {
        if spec.is_pattern() {
            for theirs in refs {
                if let Some(peer) = spec.expand(theirs.name.as_bstr()) {
                    let name = theirs.name.clone();
                    mapped.push(Mapped { name, peer });
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
            mapped.push(Mapped { name, peer });
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

/// The tracking refs that the refspecs of `remote` make of refs that are not among `mapped`.
pub(super) fn stale(
    repository: &Repository,
    remote: &Remote,
    mapped: &[Mapped],
) -> Result<Vec<BString>> {
    let theirs: HashSet<&BString> = mapped.iter().map(|entry| &entry.name).collect();
    crate::remote::stale_refs(repository, &remote.fetch, &theirs)
}
