//! Matches local and remote refs by refspecs, to decide which refs are pushed.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use bstr::{BStr, BString, ByteSlice};
use gix_object::Kind as ObjectKind;
use pronto_hash::ObjectId;

use super::refspec::PushSpec;
use super::{LocalRef, PushedRef};
use crate::refs::name;
use crate::{Error, ErrorKind, Repository, Result};
use pronto_repository::{Notice, PushNotice, RefspecSide, SentKind};

/// The options of matching, beside the refspecs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mode {
    /// Push all branches (`--all`).
    pub(super) all: bool,
    /// Push all refs, and delete all others (`--mirror`).
    pub(super) mirror: bool,
    /// Delete remote refs that match and do not exist locally (`--prune`).
    pub(super) prune: bool,
    /// Push annotated tags, too (`--follow-tags`).
    pub(super) follow_tags: bool,
}

/// Returns the local refs.
pub(super) fn local_refs(repository: &Repository) -> Result<Vec<LocalRef>> {
    let mut found = Vec::new();
    repository.refs().for_each("refs/", |reference| {
        found.push(LocalRef {
            name: reference.name.into(),
            id: reference.id,
        });
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

/// Whether `source`, the source of a refspec, matches exactly one ref of `repository`.
///
/// # Errors
/// Fails if the refs cannot be read.
pub fn names_one_ref(repository: &Repository, source: &BStr) -> Result<bool> {
    let local = local_refs(repository)?;
    let names = local.iter().map(|found| found.name.as_bstr());
    Ok(matches!(meant(source, names), Meant::One(_)))
}

/// Whether `short` is a possible abbreviation of the ref name `full`.
pub(super) fn may_mean(short: &BStr, full: &BStr) -> bool {
    name::RULES.iter().any(|(before, after)| {
        let rest = full.strip_prefix(before.as_bytes());
        rest.and_then(|rest| rest.strip_suffix(after.as_bytes())) == Some(short.as_bytes())
    })
}

/// The result of matching an abbreviated name with refs.
pub(super) enum Meant {
    Nothing,
    One(usize),
    Many,
}

/// Finds the ref among `names` that `short` abbreviates. Refs other than branches and tags are
/// considered only if no other ref matches, unless the name is nearly complete.
pub(super) fn meant<'a>(short: &BStr, names: impl Iterator<Item = &'a BStr>) -> Meant {
    let (mut strong, mut weak) = (Vec::new(), Vec::new());
    for (at, name) in names.enumerate() {
        if !may_mean(short, name) {
            continue;
        }
        let is_weak = name.len() != short.len()
            && name.len() != short.len() + 5
            && !name.starts_with(b"refs/heads/")
            && !name.starts_with(b"refs/tags/");
        match is_weak {
            true => weak.push(at),
            false => strong.push(at),
        }
    }
    let found = if strong.is_empty() { weak } else { strong };
    match found[..] {
        [] => Meant::Nothing,
        [at] => Meant::One(at),
        _ => Meant::Many,
    }
}

/// The state of matching local and remote refs.
pub(super) struct Matching<'a> {
    pub(super) repository: &'a Repository,
    pub(super) local: &'a [LocalRef],
    pub(super) remote: Vec<PushedRef>,
    pub(super) by_name: HashMap<BString, usize>,
    /// Whether the remote has no refs. As in Git, several refspecs may then have one destination,
    /// and the server decides.
    is_empty: bool,
}

impl<'a> Matching<'a> {
    pub(super) fn new(
        repository: &'a Repository,
        local: &'a [LocalRef],
        remote: Vec<PushedRef>,
    ) -> Self {
        let names = remote.iter().enumerate();
        let by_name = names.map(|(at, it)| (it.name.clone(), at)).collect();
        let is_empty = remote.is_empty();
        Matching {
            is_empty,
            repository,
            local,
            remote,
            by_name,
        }
    }

    /// Checks that each refspec matches a local ref or object. Reports errors and returns whether
    /// there were none.
    pub(super) fn check_sources(&self, specs: &[PushSpec]) -> Result<bool> {
        let mut is_fine = true;
        for spec in specs.iter().filter(|spec| spec.is_explicit()) {
            is_fine &= self.source(spec)?.is_some();
        }
        Ok(is_fine)
    }

    /// Matches all refs. Reports errors and returns whether there were none.
    pub(super) fn run(&mut self, specs: &[PushSpec], mode: Mode) -> Result<bool> {
        let mut is_fine = true;
        for spec in specs.iter().filter(|spec| spec.is_explicit()) {
            is_fine &= self.match_explicit(spec)?;
        }
        let local = self.local;
        for peer in local {
            let Some(found) = chosen(specs, peer.name.as_bstr(), mode.mirror, RefspecSide::Source)
            else {
                continue;
            };
            match self.by_name.get(&found.name) {
                Some(at) => {
                    let at = *at;
                    let Some(remote) = self.remote.get_mut(at) else {
                        continue;
                    };
                    if remote.peer.is_some() {
                        continue;
                    }
                    remote.peer = Some(peer.clone());
                    remote.force = found.spec.force;
                }
                None if found.spec.matching && !mode.all && !mode.mirror => {}
                None => {
                    let at = self.create(found.name.clone());
                    self.link(at, peer.clone(), found.spec.force);
                }
            }
        }
        if mode.follow_tags {
            self.add_tags()?;
        }
        if mode.prune {
            self.prune(specs, mode.mirror)?;
        }
        let is_excluded = |name: &BString| specs.iter().any(|it| it.excludes(name.as_bstr()));
        self.remote.retain(|remote| !is_excluded(&remote.name));
        Ok(is_fine)
    }

    fn create(&mut self, name: BString) -> usize {
        let at = self.remote.len();
        let null = self.repository.object_hash().null();
        self.by_name.insert(name.clone(), at);
        self.remote.push(PushedRef::new(name, null));
        at
    }

    fn link(&mut self, at: usize, peer: LocalRef, force: bool) {
        if let Some(remote) = self.remote.get_mut(at) {
            remote.peer = Some(peer);
            remote.force = force;
        }
    }

    /// Returns the ref or object that an explicit refspec pushes; `None` if there is none, which is
    /// reported.
    fn source(&self, spec: &PushSpec) -> Result<Option<LocalRef>> {
        let name = spec.source.as_bstr();
        let names = self.local.iter().map(|peer| peer.name.as_bstr());
        let fail = |notice: PushNotice| {
            self.repository.notify(Notice::Push(notice));
            Ok(None)
        };
        match meant(name, names) {
            Meant::One(at) => Ok(self.local.get(at).cloned()),
            Meant::Many => fail(PushNotice::Ambiguous {
                side: RefspecSide::Source,
                name: name.to_owned(),
            }),
            Meant::Nothing if name.is_empty() => Ok(Some(LocalRef {
                name: "(delete)".into(),
                id: self.repository.object_hash().null(),
            })),
            Meant::Nothing => {
                let found = self.repository.try_resolve(name, Default::default());
                match found.ok().flatten() {
                    Some(id) => Ok(Some(LocalRef {
                        name: name.to_owned(),
                        id,
                    })),
                    None => fail(PushNotice::NoSource(name.to_owned())),
                }
            }
        }
    }

    fn match_explicit(&mut self, spec: &PushSpec) -> Result<bool> {
        let Some(source) = self.source(spec)? else {
            return Ok(false);
        };
        let wanted = match &spec.destination {
            Some(destination) => destination.clone(),
            None => self.own_destination(&source)?,
        };
        let known = if self.is_empty { &[] } else { &self.remote[..] };
        let names = known.iter().map(|remote| remote.name.as_bstr());
        let at = match meant(wanted.as_bstr(), names) {
            Meant::One(at) => at,
            Meant::Many => {
                self.repository.notify(Notice::Push(PushNotice::Ambiguous {
                    side: RefspecSide::Destination,
                    name: wanted,
                }));
                return Ok(false);
            }
            Meant::Nothing => match self.new_destination(&wanted, &source)? {
                Some(name) => self.create(name),
                None => return Ok(false),
            },
        };
        if let Some(remote) = self.remote.get(at).filter(|remote| remote.peer.is_some()) {
            let notice = PushNotice::SharedDestination(remote.name.clone());
            self.repository.notify(Notice::Push(notice));
            return Ok(false);
        }
        self.link(at, source, spec.force);
        Ok(true)
    }

    /// Returns the destination of a refspec without destination: the name of the ref itself.
    fn own_destination(&self, source: &LocalRef) -> Result<BString> {
        let resolved = self.repository.refs().resolve(&source.name);
        let resolved = resolved.ok().flatten().filter(|found| found.id.is_some());
        let fits =
            resolved.filter(|found| !found.is_symbolic || found.name.starts_with(b"refs/heads/"));
        fits.map(|found| found.name).ok_or_else(|| {
            let message = format!("{} cannot be resolved to branch", source.name);
            Error::new(ErrorKind::InvalidInput, message)
        })
    }

    /// Returns the full name of a new remote ref; `None` if the name cannot be guessed, which is
    /// reported.
    fn new_destination(&self, wanted: &BString, source: &LocalRef) -> Result<Option<BString>> {
        if wanted.starts_with(b"refs/") {
            return Ok(Some(wanted.clone()));
        }
        if source.id.is_null() {
            let notice = PushNotice::NothingToDelete(wanted.clone());
            self.repository.notify(Notice::Push(notice));
            return Ok(None);
        }
        let resolved = self.repository.refs().resolve(&source.name);
        let resolved = resolved.ok().flatten().filter(|found| found.id.is_some());
        let resolved = resolved.map(|found| found.name).unwrap_or_default();
        for place in [&b"refs/heads/"[..], b"refs/tags/"] {
            if resolved.starts_with(place) {
                return Ok(Some([place, wanted].concat().into()));
            }
        }
        self.report_unqualified(wanted.as_bstr(), source)?;
        Ok(None)
    }

    /// Reports that the full name of a new remote ref cannot be guessed, and suggests a name.
    fn report_unqualified(&self, wanted: &BStr, source: &LocalRef) -> Result<()> {
        let notify = |notice| self.repository.notify(Notice::Push(notice));
        notify(PushNotice::Unqualified {
            destination: wanted.to_owned(),
            source: source.name.clone(),
        });
        if self.repository.advice("pushunqualifiedrefname")? == Some(false) {
            return Ok(());
        }
        let kind = match self.repository.kind_of(source.id)? {
            Some(ObjectKind::Commit) => SentKind::Commit,
            Some(ObjectKind::Tag) => SentKind::Tag,
            Some(ObjectKind::Tree) => SentKind::Tree,
            Some(ObjectKind::Blob) => SentKind::Blob,
            None => return Ok(()),
        };
        notify(PushNotice::Proposal {
            kind,
            destination: wanted.to_owned(),
            source: source.name.clone(),
        });
        Ok(())
    }

    /// Adds the annotated tags that point into the pushed or existing remote history.
    fn add_tags(&mut self) -> Result<()> {
        let sent = |remote: &PushedRef| match &remote.peer {
            Some(peer) => Some(peer.id),
            None => Some(remote.old),
        };
        let mut tips: HashSet<ObjectId> = self.remote.iter().filter_map(sent).collect();
        tips.retain(|id| !id.is_null());
        let mut wanted = Vec::new();
        for peer in self.local {
            let is_tag = peer.name.starts_with(b"refs/tags/");
            if !is_tag || self.by_name.contains_key(&peer.name) {
                continue;
            }
            if self.repository.kind_of(peer.id)? != Some(ObjectKind::Tag) {
                continue;
            }
            let target = self.repository.peel_tag(peer.id)?;
            if let Some(target) = target
                && self.repository.kind_of(target)? == Some(ObjectKind::Commit)
            {
                wanted.push((peer.clone(), target));
            }
        }
        for (peer, target) in wanted {
            if self.is_reachable(&target, &tips)? {
                let at = self.create(peer.name.clone());
                self.link(at, peer, false);
            }
        }
        Ok(())
    }

    fn is_reachable(&self, target: &ObjectId, tips: &HashSet<ObjectId>) -> Result<bool> {
        let cuts = self.repository.shallow_commits()?.iter().copied().collect();
        for tip in tips {
            let commit = match self.repository.kind_of(*tip)? {
                Some(ObjectKind::Commit) => *tip,
                Some(ObjectKind::Tag) => match self.repository.peel_tag(*tip)? {
                    Some(id) => id,
                    None => continue,
                },
                _ => continue,
            };
            if self.repository.is_ancestor(target, &commit, &cuts)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Adds deletions of the remote refs that match and do not exist locally.
    fn prune(&mut self, specs: &[PushSpec], mirror: bool) -> Result<()> {
        let here: HashSet<&BStr> = self.local.iter().map(|peer| peer.name.as_bstr()).collect();
        let null = self.repository.object_hash().null();
        for remote in self.remote.iter_mut().filter(|it| it.peer.is_none()) {
            let found = chosen(
                specs,
                remote.name.as_bstr(),
                mirror,
                RefspecSide::Destination,
            );
            if found.is_some_and(|found| !here.contains(found.name.as_bstr())) {
                remote.peer = Some(LocalRef {
                    name: "(delete)".into(),
                    id: null,
                });
            }
        }
        Ok(())
    }
}

/// The refspec that matches a ref, and the name of the ref on the remote.
struct MatchingSpec<'a> {
    name: BString,
    spec: &'a PushSpec,
}

fn chosen<'a>(
    specs: &'a [PushSpec],
    name: &BStr,
    mirror: bool,
    side: RefspecSide,
) -> Option<MatchingSpec<'a>> {
    let mut matching: Option<&PushSpec> = None;
    if specs
        .iter()
        .any(|spec| side == RefspecSide::Source && spec.excludes(name))
    {
        return None;
    }
    for spec in specs.iter().filter(|spec| !spec.negative) {
        if spec.matching {
            if matching.is_none() || spec.force {
                matching = Some(spec);
            }
            continue;
        }
        if !spec.is_pattern() {
            continue;
        }
        let expanded = match side {
            RefspecSide::Source => spec.expand(name),
            RefspecSide::Destination => spec.expand_back(name),
        };
        if let Some(name) = expanded {
            return Some(MatchingSpec { name, spec });
        }
    }
    let spec = matching?;
    let fits = mirror || name.starts_with(b"refs/heads/");
    fits.then(|| MatchingSpec {
        name: name.to_owned(),
        spec,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_mean_branches_and_tags_first() {
        let names = [
            "refs/heads/a",
            "refs/remotes/o/a",
            "refs/tags/b",
            "refs/x/a",
        ];
        let at = |short: &str| match meant(short.into(), names.iter().map(|it| BStr::new(*it))) {
            Meant::One(at) => Some(at),
            _ => None,
        };
        assert_eq!(at("a"), Some(0));
        assert_eq!(at("o/a"), Some(1));
        assert_eq!(at("tags/b"), Some(2));
        assert_eq!(at("refs/x/a"), Some(3));
        assert_eq!(at("c"), None);
    }
}
