//! Fetches the objects of a clone.

use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::thread::JoinHandle;

use pronto_hash::ObjectId;
use pronto_io::error::IoContext;
use pronto_io::progress::ProgressMessage;
use pronto_io::sync::SyncMethod;
use pronto_io::watch::Watch;
use pronto_odb::Store;
use pronto_pack::indexer::Inspect;
use pronto_wire::client::FetchClient;
use pronto_wire::fetch::{Deepen, Request};
use pronto_wire::negotiate::Consecutive;

use super::CloneRun;
use super::heads::ClonedHeads;
use crate::durability::Component;
use crate::remote::connection::{check_session_id, from_wire};
use crate::remote::{Cuts, FetchedTips, incomplete, require, unusable};
use crate::remote::{
    Exact, NegotiationHistory, PackLinks, Receive, alternate_tips, receive_pack, shallow,
};
use crate::{Error, ErrorKind, Repository, Result};

/// Threads that flush received files to disk.
pub(super) struct ArrivingFiles(Vec<JoinHandle<Result<()>>>);

impl ArrivingFiles {
    /// Starts to flush `paths` to disk, in parallel to other work.
    fn flush(files: impl IntoIterator<Item = (PathBuf, SyncMethod)>) -> Self {
        let waited_for = files.into_iter().filter(|(_, how)| !how.is_no());
        let threads = waited_for.map(|(path, how)| {
            std::thread::spawn(move || {
                let synced = File::open(&path).and_then(|file| how.apply(&file));
                synced.context(ErrorKind::Io, "fsync error on", &path)
            })
        });
        ArrivingFiles(threads.collect())
    }

    /// Waits until all files are flushed.
    pub(super) fn wait_for_disk(self) -> Result<()> {
        for thread in self.0 {
            thread
                .join()
                .map_err(|_| Error::new(ErrorKind::Io, "fsync was interrupted"))??;
        }
        Ok(())
    }
}

/// Opens the objects of the new repository and of its alternates.
pub(super) fn open(repository: &Repository) -> Result<Store> {
    let mut options = pronto_odb::Options::default();
    options.kind = repository.object_hash();
    Store::open(repository.objects_dir(), options).map_err(crate::objects::from_odb)
}

/// Fetches the objects of the selected refs. Requests nothing if no ref is selected.
pub(super) fn fetch(
    work: &CloneRun<'_>,
    mut client: FetchClient,
    heads: &ClonedHeads<'_>,
    repository: &Repository,
) -> Result<Option<ArrivingFiles>> {
    let store = open(repository)?;
    let mut seen = HashSet::new();
    let mapped = heads.mapped.iter().map(|mapped| mapped.id);
    let wants: Vec<ObjectId> = mapped
        .chain(heads.exact)
        .filter(|id| seen.insert(*id))
        .collect();
    let bundled = bundled_tips(repository)?;
    let has_objects = !store.alternates().is_empty() || !bundled.is_empty();
    let wants = match has_objects {
        true => missing(&wants, &store)?,
        false => wants,
    };
    if wants.is_empty() {
        client.close().map_err(from_wire)?;
        return Ok(None);
    }
    check_session_id(repository.config())?;
    let filter = work.filter(&client);
    if work.options.filter.is_some() && filter.is_none() && client.bundle().is_none() {
        let message = "filtering not recognized by server, ignoring";
        work.watch
            .progress()
            .message(ProgressMessage::Warning(message));
    }
    let request = Request {
        wants,
        deepen: match client.bundle() {
            // As in Git, depth limits do not apply to a bundle.
            Some(_) => Deepen::default(),
            None => work.options.deepen.clone(),
        },
        // As in Git, although only a clone that starts from bundles has base objects for a thin
        // pack.
        thin_pack: true,
        include_tag: work.options.takes_one_branch(),
        no_progress: !work.options.show_progress,
        filter,
        server_options: work.options.server_options.clone(),
        ..Request::default()
    };
    let received = receive(work, &mut client, &request, heads, repository)?;
    client.close().map_err(from_wire)?;
    Ok(Some(received))
}

/// Returns the objects that the refs of downloaded bundles (`refs/bundles/`) point to.
fn bundled_tips(repository: &Repository) -> Result<Vec<ObjectId>> {
    let mut tips = Vec::new();
    repository.refs().for_each("refs/bundles/", |found| {
        tips.push(found.id);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(tips)
}

fn missing(wants: &[ObjectId], store: &Store) -> Result<Vec<ObjectId>> {
    let mut wants = wants.to_vec();
    wants.sort_unstable();
    let found = store
        .contains_batch(&wants)
        .map_err(crate::objects::from_odb)?;
    let missing = wants.iter().zip(found).filter(|(_, found)| !found);
    Ok(missing.map(|(id, _)| *id).collect())
}

fn receive(
    work: &CloneRun<'_>,
    client: &mut FetchClient,
    request: &Request,
    heads: &ClonedHeads<'_>,
    repository: &Repository,
) -> Result<ArrivingFiles> {
    let server_shallow: Vec<ObjectId> = client.shallow().to_vec();
    let store = open(repository)?;
    let mut offered = bundled_tips(repository)?;
    if !store.alternates().is_empty() {
        offered.extend(alternate_tips(repository)?);
    }
    let uncut = BTreeSet::new();
    let mut negotiator = Consecutive::new(NegotiationHistory::new(&store, &uncut));
    for id in &offered {
        negotiator.add_tip(id).map_err(from_wire)?;
    }
    let is_bundle = client.bundle().is_some();
    if let Some(header) = client.bundle() {
        require(repository, header)?;
    }
    let mut response = client
        .fetch(request, &mut negotiator, work.watch.progress())
        .map_err(from_wire)?;
    let mut cut: BTreeSet<ObjectId> =
        shallow::updated(BTreeSet::new(), &response.fetch_info.shallow);
    if request.deepen.is_none() {
        cut.extend(server_shallow);
        if !cut.is_empty() && work.rejects_shallow()? {
            let message = "source repository is shallow, reject to clone.";
            return Err(Error::new(ErrorKind::Refused, message));
        }
    }
    let links = PackLinks::new(repository.object_hash(), &cut);
    // Objects that the filter leaves out must not be reported as missing.
    let inspect: Option<&dyn Inspect> = match request.filter {
        None => Some(&links),
        Some(_) => None,
    };
    let directory = repository.objects_dir().join("pack");
    let outcome = receive_pack(
        &mut response.pack,
        &Receive {
            directory: &directory,
            repository,
            // The pack of a bundle may need objects of the alternates.
            existing: (is_bundle || !offered.is_empty()).then_some(&store),
            inspect,
            promisor: request.filter.as_ref().map(|_| promised(heads)),
            keep: None,
            keep_from: None,
            sync: false,
            unpack: None,
            watch: work.watch,
        },
    )
    .map_err(|error| match is_bundle {
        true => unusable(error),
        false => error,
    })?;
    write_cut(&cut, repository)?;
    check(links, request, repository, &cut, work.watch)?;
    let fsync = repository.fsync()?;
    Ok(ArrivingFiles::flush([
        (outcome.pack, fsync.of(Component::Pack)),
        (outcome.index, fsync.of(Component::PackMetadata)),
    ]))
}

/// Records the shallow boundary in the `shallow` file, if there is one.
fn write_cut(cut: &BTreeSet<ObjectId>, repository: &Repository) -> Result<()> {
    if cut.is_empty() {
        return Ok(());
    }
    let file = repository.shallow_path();
    let written = std::fs::write(&file, shallow::text(cut));
    written.context(ErrorKind::Io, "could not write", &file)
}

/// Checks that all objects reachable from the fetched refs exist, and names the first missing one.
fn check(
    links: PackLinks<'_>,
    request: &Request,
    repository: &Repository,
    cut: &BTreeSet<ObjectId>,
    watch: &Watch<'_>,
) -> Result<()> {
    let _region = pronto_io::region!("clone", "check_connected");
    let store = open(repository)?;
    let is_whole =
        missing(&request.wants, &store)?.is_empty() && links.first_missing(&store)?.is_none();
    match is_whole {
        true => Ok(()),
        false => {
            let fetched = FetchedTips {
                source: "remote",
                store: &store,
                tips: &request.wants,
                known: &[],
                cuts: Cuts::unchanged(cut),
            };
            Err(incomplete(&fetched, watch)?)
        }
    }
}

/// The content of the `.promisor` file: the refs that were requested.
fn promised(heads: &ClonedHeads<'_>) -> Vec<u8> {
    let lines = heads
        .mapped
        .iter()
        .map(|mapped| format!("{} {}\n", mapped.id, mapped.theirs.name));
    lines.collect::<String>().into_bytes()
}

/// Fetches exactly the objects `ids` from the promisor remote, without the objects reachable from
/// them.
pub(super) fn fetch_exactly(
    work: &CloneRun<'_>,
    ids: Vec<ObjectId>,
    repository: &Repository,
) -> Result<()> {
    let request = Request {
        wants: ids,
        no_progress: !work.options.show_progress,
        server_options: work.options.server_options.clone(),
        ..Request::default()
    };
    let exact = Exact {
        repository,
        watch: work.watch,
    };
    exact.fetch(work.connect()?, request)
}
