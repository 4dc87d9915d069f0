//! Negotiates the missing objects, and receives them into a quarantine.

mod wants;

use std::collections::{BTreeSet, HashSet};

use pronto_hash::ObjectId;
use pronto_io::progress::ProgressMessage;
use pronto_odb::{Quarantine, Store};
use pronto_pack::bundle::BundleHeader;
use pronto_pack::indexer::Inspect;
use pronto_storage::fsck::{FsckInspector, InspectionScope, Levels};
use pronto_wire::advertisement::RemoteRef;
use pronto_wire::client::FetchClient;
use pronto_wire::fetch::{Deepen, Negotiator, Nothing, Request, WantedRef};

use self::wants::{check_advertised, settle};
use super::keep::{keep_from, keep_text};
use super::map::FetchedRef;
use super::{FetchRun, FetchWarning, Outcome};
use crate::Result;
use crate::objects::from_odb;
use crate::remote::connection::{check_session_id, from_wire};
use crate::remote::{
    Both, FROM_BUNDLE, FetchedTips, checks_objects, incomplete, keep_linked_objects, receive_pack,
    require, shallow, unpack_limit, unusable,
};
use crate::remote::{
    Cuts, NegotiationHistory, PackLinks, Receive, Unpack, alternate_tips, is_connected, negotiator,
};

/// Received packs in a quarantine, which other processes do not see yet.
pub(super) struct Fetched {
    store: Store,
    quarantine: Option<Quarantine>,
    /// The shallow boundary after the fetch.
    cut: BTreeSet<ObjectId>,
    /// Whether the server sent shallow commits that were not requested.
    foreign_cut: bool,
    /// The received packs that are not unpacked.
    pub(super) packs: Vec<ReceivedPack>,
    /// Whether the last pack is self-contained: no object links to an object outside of the pack.
    pub(super) is_self_contained: bool,
}

/// A received pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedPack {
    /// The checksum, which is part of the names of the pack's files.
    pub checksum: ObjectId,
    /// Whether the pack has a `.keep` file.
    pub is_locked: bool,
}

/// Returns the content of the `.promisor` file of the pack, if it is a promisor pack.
fn promisor_text(
    work: &FetchRun<'_>,
    request: &Request,
    bundle: Option<&BundleHeader>,
) -> Option<Vec<u8>> {
    let is_promised = match (bundle, &work.options.rules) {
        (Some(header), _) => return header.filter.as_ref().map(|_| FROM_BUNDLE.to_vec()),
        (None, Some(rules)) => return rules.promised.clone(),
        (None, None) => request.filter.is_some() || work.remote.promisor,
    };
    is_promised.then(Vec::new)
}

impl Fetched {
    pub(super) fn begin(work: &FetchRun<'_>) -> Result<Self> {
        Ok(Fetched {
            store: work.repository.objects()?.clone(),
            quarantine: None,
            cut: work.cut.clone(),
            foreign_cut: false,
            packs: Vec::new(),
            is_self_contained: false,
        })
    }

    /// Returns the store with the existing and the received objects.
    pub(super) fn store(&self) -> &Store {
        match &self.quarantine {
            Some(quarantine) => quarantine.store(),
            None => &self.store,
        }
    }

    /// Fetches the objects reachable from `entries`, unless all of them exist.
    pub(super) fn take(
        &mut self,
        work: &FetchRun<'_>,
        client: &mut Option<FetchClient>,
        refs: &[RemoteRef],
        entries: &mut [FetchedRef],
    ) -> Result<()> {
        let deepens = !work.deepen.is_none();
        if entries.is_empty()
            || (!deepens && !work.options.refetch && self.is_here(work, entries)?)
        {
            return Ok(());
        }
        let request = self.request(work, client, entries, work.deepen.clone())?;
        let Some(client) = client else {
            return Ok(());
        };
        if request.wants.is_empty() && request.wanted_refs.is_empty() {
            return Ok(());
        }
        check_advertised(client, refs, &request)?;
        let store = self.store.clone();
        let commits = NegotiationHistory::new(&store, &work.cut);
        let commits = commits.with_graph(work.repository.commit_graph()?);
        let mut negotiator = negotiator(work.repository.config(), commits);
        // A bundle always contains all its objects.
        if work.options.refetch || client.bundle().is_some() {
            let found = self.receive(work, client, &request, &mut Nothing)?;
            settle(entries, &found);
            return Ok(());
        }
        let known: HashSet<&ObjectId> = work.ours.values().collect();
        let mut history = NegotiationHistory::new(&store, &work.cut);
        // Deepening needs commits below the common ones.
        let of_theirs = refs.iter().filter_map(|theirs| theirs.id);
        for id in of_theirs.filter(|_| !deepens) {
            if known.contains(&id)
                && let Some(commit) = history.peel(&id).map_err(from_odb)?
            {
                negotiator.add_known_common(&commit).map_err(from_wire)?;
            }
        }
        let head = work.repository.refs().head()?.id();
        let borrowed = alternate_tips(work.repository)?;
        let all = work.ours.values().chain(&head).chain(&borrowed);
        let tips: Vec<&ObjectId> = match work.offer.tips.as_ref() {
            Some(chosen) => chosen.iter().collect(),
            None => all.collect(),
        };
        for id in tips {
            if let Some(id) = history.peel(id).map_err(from_odb)? {
                negotiator.add_tip(&id).map_err(from_wire)?;
            }
        }
        work.offer.begin(&mut *negotiator)?;
        let found = self.receive(work, client, &request, &mut *negotiator)?;
        settle(entries, &found);
        Ok(())
    }

    /// Fetches tags that point into the received history.
    pub(super) fn take_more(
        &mut self,
        work: &FetchRun<'_>,
        client: &mut Option<FetchClient>,
        entries: &[FetchedRef],
    ) -> Result<()> {
        let ids: Vec<ObjectId> = entries.iter().map(|entry| entry.id).collect();
        if self.missing(ids)?.is_empty() {
            return Ok(());
        }
        // A server of protocol version 0 or 1 ends the connection after the pack.
        if let Some(used) = client.take() {
            let _ = used.close();
        }
        let mut again = Some(work.connect()?);
        // The tags that point to received objects are requested by their ids.
        let mut request = self.request(work, &again, entries, Deepen::default())?;
        request.wanted_refs.clear();
        request.wants = entries.iter().map(|entry| entry.id).collect();
        if let Some(client) = &mut again {
            let store = self.store().clone();
            let cut = self.cut.clone();
            let commits = NegotiationHistory::new(&store, &cut);
            let commits = commits.with_graph(work.repository.commit_graph()?);
            let mut negotiator = negotiator(work.repository.config(), commits);
            for id in work.ours.values() {
                negotiator.add_tip(id).map_err(from_wire)?;
            }
            self.receive(work, client, &request, &mut *negotiator)?;
        }
        *client = again;
        Ok(())
    }

    fn missing(&self, mut ids: Vec<ObjectId>) -> Result<Vec<ObjectId>> {
        // With no ids, no pack need be opened.
        if ids.is_empty() {
            return Ok(ids);
        }
        ids.sort_unstable();
        ids.dedup();
        let found = self.store().contains_batch(&ids).map_err(from_odb)?;
        let missing = ids.into_iter().zip(found).filter(|(_, found)| !found);
        Ok(missing.map(|(id, _)| id).collect())
    }

    /// Whether all wanted objects exist and are connected.
    fn is_here(&self, work: &FetchRun<'_>, entries: &[FetchedRef]) -> Result<bool> {
        let known: HashSet<&ObjectId> = work.ours.values().collect();
        let new: Vec<ObjectId> = entries
            .iter()
            .map(|entry| entry.id)
            .filter(|id| !known.contains(id))
            .collect();
        if new.is_empty() {
            return Ok(true);
        }
        self.store().begin_writing().map_err(from_odb)?;
        if !self.missing(new.clone())?.is_empty() {
            return Ok(false);
        }
        let known: Vec<ObjectId> = known.into_iter().copied().collect();
        is_connected(&self.store, &new, &known, Cuts::unchanged(&work.cut))
    }

    fn request(
        &self,
        work: &FetchRun<'_>,
        client: &Option<FetchClient>,
        entries: &[FetchedRef],
        deepen: Deepen,
    ) -> Result<Request> {
        let everything = !deepen.is_none() || work.options.refetch;
        let known: HashSet<&ObjectId> = work.ours.values().collect();
        let mut seen = HashSet::new();
        // If the shallow boundary moves, up-to-date refs matter only if all refs are up to date.
        let is_old = |entry: &&FetchedRef| {
            let local = entry.local.as_ref();
            local.is_some_and(|local| local.old == Some(entry.id))
        };
        let all_old = entries.iter().all(|entry| is_old(&entry));
        let wants = entries.iter().filter(|entry| all_old || !is_old(entry));
        let wanted = wants.filter(|entry| everything || !known.contains(&entry.id));
        let accepts_refs = client.as_ref().is_some_and(FetchClient::accepts_refs);
        let (mut wants, mut wanted_refs) = (Vec::new(), Vec::new());
        let mut seen_names = HashSet::new();
        for entry in wanted {
            match accepts_refs && !entry.is_id() {
                true if seen_names.insert(&entry.name) => wanted_refs.push(entry.name.clone()),
                true => {}
                false => wants.extend(seen.insert(entry.id).then_some(entry.id)),
            }
        }
        let configured = work.remote.partial_clone_filter.as_ref();
        let configured = configured.filter(|_| !work.options.no_filter);
        let filter = work.options.filter.as_ref().or(configured).cloned();
        let can_filter = client.as_ref().is_some_and(FetchClient::can_filter);
        let is_server = client
            .as_ref()
            .is_some_and(|client| client.bundle().is_none());
        if work.options.filter.is_some() && !can_filter && is_server {
            let message = ProgressMessage::Warning("filtering not recognized by server, ignoring");
            work.watch.progress().message(message);
            // Git checks the connectivity again when it requests objects.
            let ids = entries.iter().map(|entry| entry.id).collect();
            if !self.missing(ids)?.is_empty() {
                work.watch.progress().message(message);
            }
        }
        Ok(Request {
            wants,
            wanted_refs,
            includes: work.offer.includes.clone(),
            shallow: work.cut.iter().copied().collect(),
            deepen,
            filter: filter.filter(|_| can_filter),
            include_tag: work.tags == crate::remote::Tags::Follow,
            thin_pack: work.options.thin_pack,
            no_progress: !work.options.show_progress,
            server_options: work.server_options(),
            reports_steps: work
                .options
                .rules
                .as_ref()
                .is_some_and(|rules| rules.is_verbose),
        })
    }

    fn receive(
        &mut self,
        work: &FetchRun<'_>,
        client: &mut FetchClient,
        request: &Request,
        negotiator: &mut dyn Negotiator,
    ) -> Result<Vec<WantedRef>> {
        let bundle = client.bundle().cloned();
        if let Some(header) = &bundle {
            require(work.repository, header)?;
        }
        let mut response = client
            .fetch(request, negotiator, work.watch.progress())
            .map_err(from_wire)?;
        let wanted_refs = std::mem::take(&mut response.fetch_info.wanted_refs);
        let before = self.cut.clone();
        self.cut = shallow::updated(std::mem::take(&mut self.cut), &response.fetch_info.shallow);
        self.foreign_cut |= request.deepen.is_none() && self.cut != before;
        let quarantine = match self.quarantine.take() {
            Some(quarantine) => quarantine,
            None => Quarantine::begin(&self.store).map_err(from_odb)?,
        };
        let promisor = promisor_text(work, request, bundle.as_ref());
        let unpack = self.unpack(work, quarantine.store())?;
        let unpack = unpack.filter(|_| promisor.is_none() && bundle.is_none());
        let links = PackLinks::new(work.repository.object_hash(), &self.cut);
        let (is_promised, levels) = (promisor.is_some(), Levels::strict());
        let surroundings = self.surroundings(work, &levels);
        let both = Both {
            one: is_promised.then_some(&links as &dyn Inspect),
            other: surroundings.as_ref().map(|found| found as &dyn Inspect),
        };
        let directory = quarantine.pack_directory();
        let received = receive_pack(
            &mut response.pack,
            &Receive {
                directory: &directory,
                repository: work.repository,
                existing: Some(&self.store),
                inspect: both.is_needed().then_some(&both as &dyn Inspect),
                unpack,
                promisor,
                keep: keep_text(work)?,
                keep_from: keep_from(work)?,
                sync: true,
                watch: work.watch,
            },
        )
        .map_err(|error| match bundle {
            Some(_) => unusable(error),
            None => error,
        })?;
        let is_self_contained = surroundings.is_some_and(|found| found.foreign_links() == 0);
        if received.pack.file_name().is_some() {
            self.is_self_contained = is_self_contained;
            self.packs.push(ReceivedPack {
                checksum: received.checksum,
                is_locked: received.keep.is_some(),
            });
        }
        quarantine.store().refresh().map_err(from_odb)?;
        if is_promised {
            let (store, quiet) = (quarantine.store(), work.watch.quiet());
            let ids = links.into_ids();
            keep_linked_objects(work.repository, store, &ids, &directory, &quiet)?;
            store.refresh().map_err(from_odb)?;
        }
        self.quarantine = Some(quarantine);
        Ok(wanted_refs)
    }

    /// Returns the inspector that finds links to objects outside of the pack, if the rules request
    /// that.
    fn surroundings<'a>(
        &'a self,
        work: &FetchRun<'_>,
        levels: &'a Levels,
    ) -> Option<FsckInspector<'a>> {
        let rules = work.options.rules.as_ref()?;
        let scope = InspectionScope {
            links: true,
            shallow: Some(&self.cut),
            store: Some(&self.store),
            ..InspectionScope::default()
        };
        let hash = work.repository.object_hash();
        rules
            .checks_links
            .then(|| FsckInspector::new(hash, levels, scope))
    }

    /// Returns the options for unpacking small packs, unless packs are kept.
    fn unpack<'a>(&self, work: &FetchRun<'a>, store: &'a Store) -> Result<Option<Unpack<'a>>> {
        let config = work.repository.config();
        let limit = unpack_limit(config)?;
        check_session_id(config)?;
        if work.options.keep || checks_objects(config)? {
            return Ok(None);
        }
        Ok(Some(Unpack {
            store,
            limit,
            progress: match work.options.show_unpacking {
                true => work.watch.progress(),
                false => &(),
            },
        }))
    }

    /// Checks the connectivity of the received objects. Marks the refs that need new shallow
    /// commits of the remote.
    pub(super) fn check_cuts(
        &mut self,
        work: &FetchRun<'_>,
        entries: &mut [FetchedRef],
        outcome: &mut Outcome,
    ) -> Result<()> {
        if self.quarantine.is_none() {
            return Ok(());
        }
        // The existing objects must not be pruned until refs point to them.
        self.store().begin_writing().map_err(from_odb)?;
        let known: Vec<ObjectId> = work.ours.values().copied().collect();
        // Promised objects may be missing.
        let rules = work.options.rules.as_ref();
        let is_promised = rules.is_some_and(|rules| rules.promised.is_some());
        if work.remote.promisor || work.options.filter.is_some() || is_promised {
            let tips: Vec<ObjectId> = entries.iter().map(|entry| entry.id).collect();
            let is_whole = self.missing(tips.clone())?.is_empty();
            return self.refuse(work, is_whole, &tips);
        }
        let mut tips: Vec<ObjectId> = entries.iter().map(|entry| entry.id).collect();
        if self.foreign_cut && !work.options.update_shallow {
            for entry in entries {
                let tip = [entry.id];
                let cuts = Cuts::unchanged(&work.cut);
                entry.needs_cut = !is_connected(self.store(), &tip, &known, cuts)?;
                if entry.needs_cut {
                    let name = match &entry.local {
                        Some(local) => &local.name,
                        None => &entry.name,
                    };
                    outcome
                        .warnings
                        .push(FetchWarning::ShallowRoots(name.clone()));
                }
            }
            self.cut.clone_from(&work.cut);
            return Ok(());
        }
        if self.foreign_cut {
            self.drop_unused_cuts(work)?;
        }
        // The known history ends at the old shallow boundary. Beyond that boundary, everything must
        // have been received.
        let mut history = NegotiationHistory::new(self.store(), &self.cut);
        for id in work.cut.difference(&self.cut) {
            let links = history.links(id).map_err(from_odb)?;
            tips.extend(links.into_iter().flat_map(|links| links.parents));
        }
        let cuts = Cuts {
            old: &work.cut,
            new: &self.cut,
        };
        let whole = is_connected(self.store(), &tips, &known, cuts)?;
        self.refuse(work, whole, &tips)
    }

    /// Drops the shallow commits of the remote that were not received.
    fn drop_unused_cuts(&mut self, work: &FetchRun<'_>) -> Result<()> {
        let new = self.cut.difference(&work.cut).copied().collect();
        for id in self.missing(new)? {
            self.cut.remove(&id);
        }
        Ok(())
    }

    /// Fails with the missing object that is reachable from `tips`, unless `is_whole` is true.
    fn refuse(&self, work: &FetchRun<'_>, is_whole: bool, tips: &[ObjectId]) -> Result<()> {
        if is_whole {
            return Ok(());
        }
        let known: Vec<ObjectId> = work.ours.values().copied().collect();
        let cuts = Cuts {
            old: &work.cut,
            new: &self.cut,
        };
        let source = work.source.to_string();
        let fetched = FetchedTips {
            source: &source,
            store: self.store(),
            tips,
            known: &known,
            cuts,
        };
        Err(incomplete(&fetched, work.watch)?)
    }

    /// Moves the received objects from the quarantine to the repository.
    pub(super) fn publish(self, work: &FetchRun<'_>) -> Result<()> {
        if let Some(quarantine) = self.quarantine {
            quarantine.publish().map_err(from_odb)?;
        }
        if self.cut != work.cut {
            shallow::write(work.repository, &self.cut)?;
        }
        Ok(())
    }
}
