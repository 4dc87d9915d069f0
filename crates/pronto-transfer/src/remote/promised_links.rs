//! Keeps local objects that objects of a promisor remote link to.
//!
//! For Git, all objects that an object of a promisor pack links to are promised, and a repack may
//! drop them. As in Git, a local object to which a fetched object links is therefore also stored in
//! a promisor pack.

use std::collections::HashSet;
use std::path::Path;

use gix_object::Kind as ObjectKind;
use pronto_hash::{ObjectId, oid};
use pronto_io::error::IoContext as _;
use pronto_io::watch::Watch;
use pronto_odb::Store;
use pronto_odb::packing::{PackContents, PackMember};
use pronto_pack::idx::PackIndex;
use pronto_storage::pack_objects;

use crate::objects::from_odb;
use crate::packs::{from_pack, writer_options};
use crate::{ErrorKind, Repository, Result};
use pronto_object::{CommitLinks, TagRef, TreeEntries};

/// Creates a promisor pack in `directory`, with the local objects that are in no promisor pack and
/// are reachable from `links`, the links of a received promisor pack. `store` has the received and
/// the local objects.
///
/// Costs a lookup of each link, and reading the objects that are packed.
///
/// # Errors
/// Fails if an object cannot be read, or with [`ErrorKind::Io`] if the pack cannot be written.
pub fn keep(
    repository: &Repository,
    store: &Store,
    links: &[ObjectId],
    directory: &Path,
    watch: &Watch<'_>,
) -> Result<()> {
    let found = store.contains_batch(links).map_err(from_odb)?;
    let present = links.iter().zip(found).filter(|(_, found)| *found);
    let mut stack: Vec<ObjectId> = present.map(|(id, _)| *id).collect();
    if stack.is_empty() {
        return Ok(());
    }
    let promised = PromisorPacks::open(store)?;
    let mut local = HashSet::new();
    let mut members = Vec::new();
    let mut content = Vec::new();
    while let Some(id) = stack.pop() {
        if local.contains(&id) || promised.has(&id)? {
            continue;
        }
        let Some(kind) = store.find(&id, &mut content).map_err(from_odb)? else {
            continue;
        };
        local.insert(id);
        members.push(PackMember { id, name_hash: 0 });
        add_links(kind, &content, id.kind().len_in_bytes(), &mut stack);
    }
    if members.is_empty() {
        return Ok(());
    }
    let contents = PackContents {
        members: &members,
        ..PackContents::default()
    };
    let files = writer_options(repository.config(), repository.object_hash())?;
    let options = pack_objects::packing_options(repository)?;
    let made = store.pack_into(&contents, &options, directory, files, watch);
    let mark = made.map_err(from_odb)?.0.pack.with_extension("promisor");
    std::fs::write(&mark, b"").context(ErrorKind::Io, "could not write", &mark)
}

/// The promisor packs of a store.
struct PromisorPacks(Vec<PackIndex>);

impl PromisorPacks {
    fn open(store: &Store) -> Result<Self> {
        let access = store.options().access;
        let packs = store.promisor_packs().map_err(from_odb)?;
        let open = |path: std::path::PathBuf| {
            let opened = PackIndex::open(path.with_extension("idx"), store.kind(), access);
            opened.map_err(from_pack)
        };
        packs
            .into_iter()
            .map(open)
            .collect::<Result<_>>()
            .map(PromisorPacks)
    }

    fn has(&self, id: &oid) -> Result<bool> {
        for index in &self.0 {
            if index.find(id).map_err(from_pack)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Adds the ids that an object links to.
fn add_links(kind: ObjectKind, content: &[u8], id_len: usize, links: &mut Vec<ObjectId>) {
    match kind {
        ObjectKind::Blob => {}
        ObjectKind::Tag => links.extend(TagRef::new(content).target()),
        ObjectKind::Commit => {
            if let Some(commit) = CommitLinks::parse(content) {
                links.push(commit.tree);
                links.extend(commit.parents);
            }
        }
        ObjectKind::Tree => {
            let entries = TreeEntries::new(content, id_len).filter(|entry| !entry.is_submodule());
            links.extend(entries.filter_map(|entry| ObjectId::try_from(entry.id).ok()));
        }
    }
}
