//! Fetching objects without changing refs: `git fetch-pack`.

mod verbose;

use std::collections::HashSet;

use bstr::{BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_io::watch::Watch;
use pronto_wire::advertisement::{LsRefs, RemoteRef, Version};
use pronto_wire::client::Client;

use super::map::{Mapped, Standing};
use super::{Options, Outcome, ReceivedPack, Work, download};
use crate::refs::name::{self, Form};
use crate::remote::Remote;
use crate::remote::connection::from_wire;
use crate::support::{self, Operation};
use crate::{Error, ErrorKind, Repository, Result};

/// A ref that is sought, or an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sought {
    /// The name of the ref, or the id of the object in hexadecimal digits.
    pub name: BString,
    /// The object, if it is known.
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

    /// Returns the object, if it is sought by its id alone.
    fn exact(&self) -> Option<ObjectId> {
        let id = pronto_hash::parse_hex(&self.name).ok()?;
        (self.id == Some(id)).then_some(id)
    }
}

/// The selection of a [`fetch_pack`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Selection {
    /// The refs and objects.
    pub sought: Vec<Sought>,
    /// Whether all refs are fetched, too.
    pub all: bool,
}

impl Selection {
    /// The refs and objects, each once, sorted by name.
    pub fn distinct(&self) -> Vec<&Sought> {
        let mut sought: Vec<&Sought> = self.sought.iter().collect();
        sought.sort_by(|one, other| one.name.cmp(&other.name));
        sought.dedup_by(|one, other| one.name == other.name);
        sought
    }
}

/// Rules for what a [`fetch_pack`] receives.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Rules {
    /// The content of the file that marks the pack as one whose links may be missing, if it is one.
    pub promised: Option<Vec<u8>>,
    /// Whether a pack that is [kept](Options::keep) gets a `.keep` file even if all objects that arrive
    /// are to become loose ones otherwise.
    pub lock_kept: bool,
    /// Whether to find out if the pack links to nothing outside of it.
    pub checks_links: bool,
    /// Whether the decisions are told to the progress.
    pub is_verbose: bool,
}

/// A fetched ref, or an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tip {
    /// The name of the ref, or the id of the object.
    pub name: BString,
    /// The object.
    pub id: ObjectId,
}

/// The result of a [`fetch_pack`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Packed {
    /// The fetched refs and objects, in the order of the other side.
    pub refs: Vec<Tip>,
    /// The received packs that stay packs.
    pub packs: Vec<ReceivedPack>,
    /// Whether the pack was [found](Rules::checks_links) to link to nothing outside of it.
    pub is_self_contained: bool,
    /// The refs that the other side does not have, by name.
    pub missing: Vec<BString>,
    /// The objects that the other side does not give out, by id.
    pub refused: Vec<BString>,
}

/// Fetches the objects of `selection` from `remote`. No ref changes; a shallow boundary does.
///
/// # Errors
/// The remote is missing or refuses, the pack is invalid, or something cannot be written.
pub fn fetch_pack(
    repository: &Repository,
    remote: &Remote,
    selection: &Selection,
    options: &Options,
    watch: &Watch<'_>,
) -> Result<Packed> {
    support::require(Operation::FetchPack, repository)?;
    let work = Work::prepare(repository, remote, options, watch)?;
    let mut client = work.connect()?;
    let request = LsRefs {
        prefixes: Vec::new(),
        server_options: Vec::new(),
    };
    let refs = client.refs(&request).map_err(from_wire)?;
    if refs.is_empty() && client.version() != Version::V2 {
        let _ = client.close();
        return Err(Error::new(ErrorKind::Transport, "no matching remote head"));
    }
    let is_verbose = options.rules.as_ref().is_some_and(|rules| rules.is_verbose);
    if is_verbose && client.version() != Version::V2 {
        verbose::tell_capabilities(client.capabilities(), watch.progress());
    }
    let mut packed = Packed::default();
    let mut entries = select(&work, &client, &refs, selection, &mut packed);
    let mut client = Some(client);
    if is_verbose {
        verbose::tell(&work, &refs, &entries)?;
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

/// Selects those of `refs` that are sought, and objects that the other side gives out.
fn select(
    work: &Work<'_>,
    client: &Client,
    refs: &[RemoteRef],
    selection: &Selection,
    packed: &mut Packed,
) -> Vec<Mapped> {
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
    let allows = client.version() == Version::V2
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

fn entry(name: BString, id: ObjectId) -> Mapped {
    Mapped {
        name,
        id,
        local: None,
        merge: Standing::NotForMerge,
        needs_cut: false,
    }
}
