//! Selects the refs to fetch, their local names, and the branch to check out.

use std::collections::HashSet;

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_wire::advertisement::{LsRefs, RemoteRef};

use super::{CloneRun, CloneWarning};
use crate::refs::RefName;
use crate::remote::{Refspec, local_name};
use crate::{Error, ErrorKind, Result, init, refs};

/// A ref of the remote and its local name, if it has one.
#[derive(Clone, Debug)]
pub(super) struct ClonedRef<'a> {
    pub(super) theirs: &'a RemoteRef,
    pub(super) id: ObjectId,
    pub(super) ours: Option<RefName>,
}

/// The selected refs and the branch or commit to check out.
pub(super) struct ClonedHeads<'a> {
    pub(super) refs: &'a [RemoteRef],
    pub(super) mapped: Vec<ClonedRef<'a>>,
    /// The `HEAD` of the remote.
    pub(super) remote_head: Option<&'a RemoteRef>,
    /// The branch that the `HEAD` of the remote points to.
    pub(super) remote_branch: Option<&'a RemoteRef>,
    /// The ref to check out.
    pub(super) chosen: Option<&'a RemoteRef>,
    /// A commit to check out that no ref points to (`--revision` with an object id).
    pub(super) exact: Option<ObjectId>,
    /// The text by which the user named `exact`.
    pub(super) exact_name: Option<BString>,
    /// The full name of the unborn branch that `HEAD` points to.
    pub(super) unborn: Option<RefName>,
    pub(super) is_empty: bool,
    pub(super) warnings: Vec<CloneWarning>,
}

/// Returns the refs to request from the remote.
///
/// # Errors
/// Fails if a configured refspec is malformed.
pub(super) fn request(work: &CloneRun<'_>) -> Result<LsRefs> {
    let options = work.options;
    let mut prefixes: Vec<BString> = Vec::new();
    if let Some(revision) = &options.revision {
        if pronto_hash::parse_hex(revision).is_err() {
            prefixes.extend(refs::name::candidates(revision.as_bstr()));
        }
    } else if options.mirror {
        prefixes.push("refs/".into());
    } else {
        prefixes.push("refs/heads/".into());
    }
    if options.takes_tags() || options.branch.is_some() {
        prefixes.push("refs/tags/".into());
    }
    if let Some(branch) = &options.branch {
        prefixes.extend(refs::name::candidates(branch.as_bstr()));
    }
    if options.revision.is_none() || prefixes.is_empty() {
        prefixes.push("HEAD".into());
    }
    for spec in configured(work)? {
        spec.add_prefixes(&mut prefixes);
    }
    Ok(LsRefs {
        prefixes,
        server_options: options.server_options.clone(),
    })
}

/// The refspecs that the user's configuration or `-c` sets for the new remote
/// (`remote.NAME.fetch`).
fn configured(work: &CloneRun<'_>) -> Result<Vec<Refspec>> {
    let options = work.options;
    if options.takes_one_branch() || options.revision.is_some() {
        return Ok(Vec::new());
    }
    let key = [b"remote.", work.origin.as_bytes(), b".fetch"].concat();
    let specs = work.config.strings(key);
    specs.map(Refspec::parse).collect()
}

impl<'a> ClonedHeads<'a> {
    pub(super) fn choose(refs: &'a [RemoteRef], work: &CloneRun<'_>) -> Result<Self> {
        let options = work.options;
        let head = refs.iter().find(|found| found.name == "HEAD");
        let mut heads = ClonedHeads {
            refs,
            mapped: Vec::new(),
            remote_head: head.filter(|head| head.id.is_some()),
            remote_branch: None,
            chosen: None,
            exact: None,
            exact_name: None,
            unborn: None,
            is_empty: false,
            warnings: Vec::new(),
        };
        heads.remote_branch = heads.guess_branch(work)?;
        if let Some(revision) = &options.revision {
            heads.choose_revision(revision.as_bstr(), work)?;
            return Ok(heads);
        }
        if let Some(branch) = &options.branch {
            heads.chosen = heads.find_branch(branch.as_bstr());
        }
        heads.map(work);
        heads.map_configured(work)?;
        heads.is_empty = heads.mapped.is_empty();
        if let Some(branch) = &options.branch {
            if heads.chosen.is_none() {
                let (branch, origin) = (branch.as_bstr(), work.origin.as_bstr());
                let message = format!("Remote branch {branch} not found in upstream {origin}");
                return Err(Error::new(ErrorKind::UnknownRevision, message));
            }
        } else if heads.remote_branch.is_some() {
            heads.chosen = heads.remote_branch;
        } else if heads.remote_head.is_none() {
            heads.choose_unborn(head, work)?;
        }
        Ok(heads)
    }

    fn choose_revision(&mut self, revision: &BStr, work: &CloneRun<'_>) -> Result<()> {
        if let Ok(id) = pronto_hash::parse_hex(revision) {
            self.exact = Some(id);
            self.exact_name = Some(revision.to_owned());
            return Ok(());
        }
        let found = refs::name::candidates(revision)
            .find_map(|name| self.refs.iter().find(|found| found.name == name));
        let id = found.and_then(|found| found.id).ok_or_else(|| {
            let origin = &work.origin;
            let message = format!("Remote revision {revision} not found in upstream {origin}");
            Error::new(ErrorKind::UnknownRevision, message)
        })?;
        self.exact = Some(id);
        self.exact_name = found.map(|found| found.name.clone());
        Ok(())
    }

    /// Chooses the unborn branch if the remote has no `HEAD` that resolves to a commit.
    fn choose_unborn(&mut self, head: Option<&RemoteRef>, work: &CloneRun<'_>) -> Result<()> {
        if self.is_empty {
            self.warnings.push(CloneWarning::EmptyRepository);
        }
        let advertised = head
            .and_then(|head| head.symref_target.clone())
            .filter(|name| name.starts_with(b"refs/heads/"));
        let name = match advertised {
            Some(name) => name,
            None => {
                let branch = init::default_branch(&work.config, work.environment)?.name;
                RefName::new([b"refs/heads/", branch.as_bytes()].concat())
                    .map_err(refs::bad_name)?
            }
        };
        self.chosen = self.refs.iter().find(|found| name == found.name);
        self.unborn = Some(name);
        Ok(())
    }

    /// The branch that the remote `HEAD` points to. If an old server does not advertise the target,
    /// a branch with the same commit is guessed.
    fn guess_branch(&self, work: &CloneRun<'_>) -> Result<Option<&'a RemoteRef>> {
        let Some(head) = self.remote_head else {
            return Ok(None);
        };
        let named = |name: &BStr| self.refs.iter().find(|found| found.name == name);
        if let Some(target) = &head.symref_target {
            return Ok(named(target));
        }
        if head_is_advertised(self.refs) || work.options.revision.is_some() {
            return Ok(None);
        }
        let configured = work.config.string("init.defaultbranch")?;
        let likely = configured
            .into_iter()
            .chain(["master".into()])
            .map(|branch| BString::from([b"refs/heads/", branch.as_bytes()].concat()));
        let same = |found: &&RemoteRef| found.id == head.id;
        let mut found = likely.filter_map(|name| named(name.as_bstr())).filter(same);
        Ok(found.next().or_else(|| {
            self.refs
                .iter()
                .filter(|found| found.name.starts_with(b"refs/heads/"))
                .find(same)
        }))
    }

    fn find_branch(&self, branch: &BStr) -> Option<&'a RemoteRef> {
        let find = |kind: &[u8]| {
            let name = [kind, branch.as_bytes()].concat();
            self.refs.iter().find(|found| found.name == name.as_bstr())
        };
        find(b"refs/heads/").or_else(|| find(b"refs/tags/"))
    }

    fn map(&mut self, work: &CloneRun<'_>) {
        let options = work.options;
        let one_branch = options.takes_one_branch();
        let only = match (one_branch, &options.branch) {
            (true, Some(_)) => self.chosen,
            (true, None) => self.remote_branch,
            (false, _) => None,
        };
        for theirs in self.refs {
            let Some(id) = theirs.id else {
                continue;
            };
            let name = theirs.name.as_bstr();
            let is_only = only.is_some_and(|only| std::ptr::eq(only, theirs));
            let is_tag = name.starts_with(b"refs/tags/");
            let is_wanted = match one_branch {
                true => is_only,
                false => !is_tag || options.mirror || options.takes_tags(),
            };
            let ours = if !is_wanted || !name.starts_with(b"refs/") {
                None
            } else if options.mirror || is_tag {
                RefName::new(name).ok()
            } else {
                name.strip_prefix(b"refs/heads/").and_then(|branch| {
                    RefName::new([work.branch_top().as_slice(), branch].concat()).ok()
                })
            };
            // The remote `HEAD` is requested even if no branch has the same commit.
            let is_head = name == "HEAD" && !(one_branch && options.branch.is_some());
            if ours.is_some() || is_head {
                self.mapped.push(ClonedRef { theirs, id, ours });
            }
        }
    }

    /// Adds the refs that match configured refspecs, if their local names are unused.
    fn map_configured(&mut self, work: &CloneRun<'_>) -> Result<()> {
        let specs = configured(work)?;
        let mut taken: HashSet<RefName> = match specs.is_empty() {
            true => HashSet::new(),
            false => self
                .mapped
                .iter()
                .filter_map(|it| it.ours.clone())
                .collect(),
        };
        for spec in specs.iter().filter(|spec| !spec.negative) {
            for theirs in self.refs {
                let (Some(id), Some(ours)) = (theirs.id, destination(spec, theirs)) else {
                    continue;
                };
                if let Ok(ours) = RefName::new(ours)
                    && taken.insert(ours.clone())
                {
                    let ours = Some(ours);
                    self.mapped.push(ClonedRef { theirs, id, ours });
                }
            }
        }
        Ok(())
    }

    /// The refspec for later fetches (`remote.NAME.fetch`).
    pub(super) fn refspec(&self, work: &CloneRun<'_>) -> Option<BString> {
        let options = work.options;
        if options.revision.is_some() || (options.is_bare() && !options.mirror) {
            return None;
        }
        let top = work.branch_top();
        // As in Git, later fetches fetch only `HEAD` if it is detached.
        let is_detached = self.chosen.is_none() && self.remote_head.is_some();
        if options.takes_one_branch() && is_detached && !options.mirror {
            return None;
        }
        if !options.takes_one_branch() || self.chosen.is_none() || options.mirror {
            let prefix: &[u8] = if options.mirror {
                b"refs/"
            } else {
                b"refs/heads/"
            };
            let spec = [b"+", prefix, b"*:", &top, b"*"].concat();
            return Some(spec.into());
        }
        let only = match options.branch {
            Some(_) => self.chosen?,
            None => self.remote_branch?,
        };
        let name = only.name.as_slice();
        let destination = match name.strip_prefix(b"refs/heads/") {
            Some(branch) => [&top, branch].concat(),
            None => name.to_vec(),
        };
        Some([b"+", name, b":", &destination].concat().into())
    }

    /// The name, without `refs/heads/`, of the branch that `HEAD` will point to.
    pub(super) fn branch(&self) -> Option<&BStr> {
        let full = match self.chosen {
            Some(chosen) => chosen.name.as_bstr(),
            None => self.unborn.as_ref()?,
        };
        full.strip_prefix(b"refs/heads/").map(ByteSlice::as_bstr)
    }
}

/// The local name that `spec` gives to a ref of the remote, if the refspec matches and has a
/// destination.
fn destination(spec: &Refspec, theirs: &RemoteRef) -> Option<BString> {
    if spec.is_pattern() {
        return spec.expand(theirs.name.as_bstr())?;
    }
    let mut names = refs::name::candidates(spec.source.as_bstr());
    let is_meant = names.any(|name| name == theirs.name);
    let ours = spec.destination.as_ref().filter(|_| is_meant)?;
    Some(local_name(ours.as_bstr()))
}

/// Returns whether the remote advertises which refs are symbolic. If so, all other refs are not
/// symbolic.
fn head_is_advertised(refs: &[RemoteRef]) -> bool {
    refs.iter().any(|found| found.symref_target.is_some())
}

/// Whether an advertised ref name is valid.
pub(super) fn is_usable(name: &BStr) -> bool {
    name == "HEAD"
        || (name.starts_with(b"refs/") && refs::name::is_valid(name, refs::name::Form::Full))
}

impl CloneRun<'_> {
    /// Returns the namespace of branches in the new repository.
    pub(super) fn branch_top(&self) -> Vec<u8> {
        if self.options.mirror {
            b"refs/".to_vec()
        } else if self.options.bare {
            b"refs/heads/".to_vec()
        } else {
            [b"refs/remotes/", self.origin.as_bytes(), b"/"].concat()
        }
    }
}
