//! Fetches objects without changing refs: `git fetch-pack`.

mod verbose;

use std::collections::HashSet;

use bstr::{BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_io::watch::Watch;
use pronto_wire::advertisement::{LsRefs, ProtocolVersion, RemoteRef};
use pronto_wire::client::FetchClient;

use super::map::{FetchHeadKind, FetchedRef};
use super::{FetchRun, Options, Outcome, ReceivedPack, download};
use crate::refs::name::{self, Form};
use crate::remote::Remote;
use crate::remote::connection::from_wire;
use crate::support::{self, Operation};
use crate::{Error, ErrorKind, Repository, Result};

/// A requested ref or object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sought {
    /// The name of the ref, or the id of the object in hexadecimal digits.
    pub name: BString,
    /// The object id, if it is known.
    pub id: Option<ObjectId>,
}

impl Sought {
    /// Parses `<id>`, `<ref>` or `<id> <ref>`.
    pub fn parse(text: &[u8]) -> Self {
        let (id, name) = match text.split_once_str(" ") {
            Some((id, name)) => (pronto_hash::parse_hex(id).ok(), name),
            None => (pronto_hash::parse_hex(text).ok(), text),
        };
        Sought {
            name: match id {
                Some(_) => name.into(),
                None => text.into(),
            },
            id,
        }
    }

    /// Returns the object id, if the object is requested by its id alone.
    fn exact(&self) -> Option<ObjectId> {
        let id = pronto_hash::parse_hex(&self.name).ok()?;
        (self.id == Some(id)).then_some(id)
    }
}

/// The refs and objects that [`fetch_pack`] requests.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FetchSelection {
    /// The requested refs and objects.
    pub sought: Vec<Sought>,
    /// Request all refs, too (`--all`).
    pub all: bool,
}

impl FetchSelection {
    /// Returns the requested refs and objects without duplicates, sorted by name.
    pub fn distinct(&self) -> Vec<&Sought> {
        let mut sought: Vec<&Sought> = self.sought.iter().collect();
        sought.sort_by(|one, other| one.name.cmp(&other.name));
        sought.dedup_by(|one, other| one.name == other.name);
        sought
    }
}

/// Rules for the packs that [`fetch_pack`] receives.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FetchRules {
    /// The content of the `.promisor` file, if the pack is a promisor pack (`--from-promisor`).
    pub promised: Option<Vec<u8>>,
    /// Create a `.keep` file for a [kept](Options::keep) pack even if all objects would be unpacked
    /// otherwise (`--keep` twice).
    pub lock_kept: bool,
    /// Check whether the pack is self-contained (`--check-self-contained-and-connected`).
    pub checks_links: bool,
    /// Report the decisions to the progress (`-v`).
    pub is_verbose: bool,
}

/// A fetched ref or object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tip {
    /// The name of the ref, or the id of the object.
    pub name: BString,
    /// The object id.
    pub id: ObjectId,
}

/// The result of a [`fetch_pack`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchedPack {
    /// The fetched refs and objects, in the order in which the server advertises them.
    pub refs: Vec<Tip>,
    /// The received packs that were not unpacked.
    pub packs: Vec<ReceivedPack>,
    /// Whether the pack was [found](FetchRules::checks_links) to be self-contained.
    pub is_self_contained: bool,
    /// The names of the requested refs that the remote lacks.
    pub missing: Vec<BString>,
    /// The ids of the requested objects that the server does not allow.
    pub refused: Vec<BString>,
}

/// Fetches the objects of `selection` from `remote`. Changes no refs, but may change the shallow
/// boundary.
///
/// # Errors
/// Fails with [`ErrorKind::Transport`] if the remote cannot be reached or refuses, and with other
/// kinds if the pack is invalid or a file cannot be written.
pub fn fetch_pack(
    repository: &Repository,
    remote: &Remote,
    selection: &FetchSelection,
    options: &Options,
    watch: &Watch<'_>,
) -> Result<FetchedPack> {
    support::require(repository, Operation::FetchPack)?;
    let work = FetchRun::prepare(repository, remote, options, watch)?;
    let mut client = work.connect()?;
    let request = LsRefs {
        prefixes: Vec::new(),
        server_options: Vec::new(),
    };
    let refs = client.refs(&request).map_err(from_wire)?;
    if refs.is_empty() && client.version() != ProtocolVersion::V2 {
        let _ = client.close();
        return Err(Error::new(ErrorKind::Transport, "no matching remote head"));
    }
    let is_verbose = options.rules.as_ref().is_some_and(|rules| rules.is_verbose);
    if is_verbose && client.version() != ProtocolVersion::V2 {
        verbose::report_capabilities(client.capabilities(), watch.progress());
    }
    let mut packed = FetchedPack::default();
    let mut entries = select(&work, &client, &refs, selection, &mut packed);
    let mut client = Some(client);
    if is_verbose {
        verbose::report_refs(&work, &refs, &entries)?;
    }
    let mut fetched = download::Fetched::begin(&work)?;
    fetched.take(&work, &mut client, &refs, &mut entries)?;
    fetched.check_cuts(&work, &mut entries, &mut Outcome::default())?;
    packed.packs.clone_from(&fetched.packs);
    packed.is_self_contained = fetched.is_self_contained;
    fetched.publish(&work)?;
    if let Some(client) = client {
        client.close().map_err(from_wire)?;
    }
    let tips = entries.into_iter().map(|entry| Tip {
        name: entry.name,
        id: entry.id,
    });
    packed.refs = tips.collect();
    Ok(packed)
}

/// Selects the requested refs among `refs`, and the requested objects that the server allows.
fn select(
    work: &FetchRun<'_>,
    client: &FetchClient,
    refs: &[RemoteRef],
    selection: &FetchSelection,
    packed: &mut FetchedPack,
) -> Vec<FetchedRef> {
    let sought = selection.distinct();
    let mut unmatched: Vec<&Sought> = sought.clone();
    let names: HashSet<&BString> = sought.iter().map(|sought| &sought.name).collect();
    let deepens = !work.deepen.is_none();
    let mut entries = Vec::new();
    for theirs in refs {
        let name = theirs.name.as_bstr();
        let is_trash = name.starts_with(b"refs/") && !name::is_valid(name, Form::Full);
        let Some(id) = theirs.id.filter(|_| !is_trash) else {
            continue;
        };
        let is_sought = names.contains(&theirs.name);
        let is_any = selection.all && !(deepens && name.starts_with(b"refs/tags/"));
        if is_sought || is_any {
            entries.push(entry(theirs.name.clone(), id));
        }
        if is_sought {
            unmatched.retain(|sought| sought.name != theirs.name);
        }
    }
    let allows = client.version() == ProtocolVersion::V2
        || ["allow-tip-sha1-in-want", "allow-reachable-sha1-in-want"]
            .iter()
            .any(|ability| client.capabilities().has(ability));
    let tips: HashSet<ObjectId> = refs.iter().flat_map(|theirs| theirs.id).collect();
    for sought in unmatched {
        match sought.exact() {
            Some(id) if allows || tips.contains(&id) => {
                entries.push(entry(sought.name.clone(), id));
            }
            Some(_) => packed.refused.push(sought.name.clone()),
            None => packed.missing.push(sought.name.clone()),
        }
    }
    entries
}

fn entry(name: BString, id: ObjectId) -> FetchedRef {
    FetchedRef {
        name,
        id,
        local: None,
        merge: FetchHeadKind::NotForMerge,
        needs_cut: false,
    }
}
