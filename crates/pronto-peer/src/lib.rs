//! Synchronising with a peer: the repository below a netsync session, and its streams. See
//! `docs/design/netsync.md`.
//!
//! Objects of a peer stay in `objects/netsync/PEER` until all of them are received, so that an interrupted
//! session resumes where it stopped. The refs of the peer become `refs/remotes/PEER/*`. No other refs change,
//! except branches that [`Options::fast_forward`] fast-forwards.
//!
//! Cost: one lookup for each ref, a walk over the commits that are new to one side, and reading the trees
//! that differ along them. A stored delta is reused, unless its base is in another segment. The memory holds
//! a window of objects (without large blobs) and the ids of all sent objects.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod address;
mod bases;
mod connect;
mod dial;
mod hosted;
mod identity;
mod incoming;
mod keys;
mod known;
mod meet;
mod names;
mod nonce;
mod outgoing;
mod pace;
mod publish;
mod sequence;
pub mod server;
mod state;
mod stream;
mod tls;
mod walk;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use bstr::{BString, ByteSlice};
use gix_object::Kind as ObjectKind;
use pronto_hash::{Kind, ObjectId};
use pronto_io::interrupt::Interrupt;
use pronto_netsync::message::{
    MAX_HELD, ObjectFormat, PublishedRef, Resume, SegmentKind, TransferPlan,
};
use pronto_netsync::repository::{
    OfferedRef, OutgoingSegment, Request, SyncRepository, TransferProgress,
};
use pronto_netsync::{Error, ErrorKind};

use pronto::objects::from_odb;
use pronto::upload_pack::hidden::Hidden;
use pronto::{Result, refs, refs::RefTarget, support};
use pronto_object::TagRef;

pub use address::{DEFAULT_PORT, NetsyncAddress};
pub use dial::{
    ProcessAddress, ProcessPeer, TLS_PROTOCOL, check_protocol, connect_process, host_of,
};
pub use hosted::RefRules;
pub use identity::forget_peer;
pub use keys::{KeyPair, KeyPaths, PublicKey};
pub use known::{KnownPeer, KnownPeers, Roles};
pub use meet::{TlsPeer, connect_tls};
pub use names::{is_peer_name, peer_name_of};
pub use nonce::nonce;
pub use publish::{BranchRelation, Moved};
pub use stream::{DuplexStream, Ends, PipePair, SessionWatch, drive};
pub use tls::TlsLink;

/// The options of a session with a peer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The local name of the peer, which must satisfy [`is_peer_name`].
    pub peer: String,
    /// Fast-forward local branches to the peer's of the same name, unless checked out (`--ff`).
    pub fast_forward: bool,
    /// The largest number of bytes that a session receives.
    pub budget_bytes: u64,
    /// The number of threads that create and index segments, or 0 for the number of cores.
    pub threads: usize,
}

impl Options {
    /// Returns the options for a session with `peer` that receives at most `budget_bytes`.
    pub fn new(peer: impl Into<String>, budget_bytes: u64) -> Self {
        Options {
            peer: peer.into(),
            fast_forward: false,
            budget_bytes,
            threads: 0,
        }
    }
}

/// A repository as one peer sees it.
pub struct PeerRepository {
    repository: Arc<pronto::Repository>,
    options: Options,
    /// Whether a segment is stored in a file until it is complete.
    spools: bool,
    /// The local refs that no peer sees or updates.
    hidden: Hidden,
    interrupt: Interrupt,
    /// The commits of refs that the peer may see or sent before, which both sides have.
    known: Vec<ObjectId>,
    /// The tags of those refs and their nested tags, with the commits to which they peel.
    known_tags: HashMap<ObjectId, ObjectId>,
    /// The commits of the peer whose history was complete here before the session.
    complete: HashSet<ObjectId>,
    incoming: Option<incoming::IncomingObjects>,
    outgoing: Option<outgoing::OutgoingObjects>,
    moved: Vec<Moved>,
    /// The rules of a server, whose refs the peer updates.
    rules: Option<Box<dyn RefRules>>,
}

impl PeerRepository {
    /// Opens `repository` for a peer.
    ///
    /// # Errors
    /// Fails if the name of the peer is invalid or used by another repository, or the repository is shallow
    /// or a partial clone.
    pub fn new(
        repository: Arc<pronto::Repository>,
        options: Options,
        interrupt: Interrupt,
    ) -> Result<Self, Error> {
        if !is_peer_name(&options.peer) {
            let message = format!("invalid peer name '{}'", options.peer);
            let hint = "use letters, digits, '.', '_' and '-'; the first character must be a \
                        letter or a digit";
            return Err(Error::new(ErrorKind::Denied, message).with_hint(hint));
        }
        let kept = directory_of(&repository, &options.peer);
        let peer = PeerRepository::open(repository, options, interrupt)?;
        let name = &peer.options.peer;
        if let Some(why) = names::taken(&peer.repository, name, &kept).map_err(failed)? {
            let message = format!("invalid peer name '{name}': it {why}");
            let hint = "choose another name with --name, or for this repository with --as";
            return Err(Error::new(ErrorKind::Denied, message).with_hint(hint));
        }
        Ok(peer)
    }

    /// Opens a repository that can be synchronised.
    fn open(
        repository: Arc<pronto::Repository>,
        options: Options,
        interrupt: Interrupt,
    ) -> Result<Self, Error> {
        let unfit = |message: &str| Error::new(ErrorKind::NoRepository, message);
        support::require(&repository, support::Operation::WriteRefs).map_err(failed)?;
        if !repository.has_plain_history().map_err(failed)? {
            let hint = "fetch the whole history first: git fetch --unshallow";
            return Err(unfit("cannot sync a shallow repository").with_hint(hint));
        }
        if repository.has_promisor().map_err(failed)? {
            return Err(unfit("cannot sync a partial clone"));
        }
        let repository = without_replacements(repository).map_err(failed)?;
        Ok(PeerRepository {
            hidden: Hidden::from_peers(repository.config()),
            repository,
            options,
            spools: false,
            interrupt,
            known: Vec::new(),
            known_tags: HashMap::new(),
            complete: HashSet::new(),
            incoming: None,
            outgoing: None,
            moved: Vec::new(),
            rules: None,
        })
    }

    /// Stores each segment in a file until it is complete, so that the memory for indexing is needed only
    /// while this side works, and not while the peer sends.
    pub(crate) fn spooling(mut self) -> Self {
        self.spools = true;
        self
    }

    /// Returns the object format of the repository.
    pub fn object_format(&self) -> ObjectFormat {
        match self.repository.object_hash() {
            Kind::Sha256 => ObjectFormat::Sha256,
            _ => ObjectFormat::Sha1,
        }
    }

    /// Returns the results for local branches that differ from the peer's branches of the same name.
    pub fn moved(&self) -> &[Moved] {
        &self.moved
    }

    /// Returns the directory for the data of the peer.
    fn directory(&self) -> PathBuf {
        directory_of(&self.repository, &self.options.peer)
    }

    fn store(&self) -> Result<pronto_odb::Store> {
        Ok(self.repository.objects()?.clone())
    }

    /// Returns the offer of a ref: its commit, and its tag if it points to one. Returns `None` if the ref
    /// does not peel to a commit, or is a branch that points to a tag.
    fn offer(&self, name: &[u8], id: ObjectId) -> Result<Option<OfferedRef>> {
        let store = self.store()?;
        let kind = |id: &ObjectId| -> Result<Option<ObjectKind>> {
            let header = store.header(id).map_err(from_odb)?;
            Ok(header.map(|header| header.kind))
        };
        let peeled = match kind(&id)? {
            Some(ObjectKind::Commit) => None,
            Some(ObjectKind::Tag) if !name.starts_with(b"refs/heads/") => {
                match self.repository.peel_tag(id)? {
                    Some(peeled) if kind(&peeled)? == Some(ObjectKind::Commit) => Some(peeled),
                    _ => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
        Ok(Some(OfferedRef {
            name: name.to_vec(),
            id,
            peeled,
        }))
    }

    fn list(
        &mut self,
        matches: &dyn Fn(&[u8]) -> bool,
        each: &mut dyn FnMut(&OfferedRef),
    ) -> Result<()> {
        let mut found: Vec<(BString, ObjectId)> = Vec::new();
        let tracking = names::tracking_prefix(&self.options.peer);
        let mut given = Vec::new();
        (self.repository.refs()).for_each("refs/", |reference: refs::ReferenceRef<'_>| {
            if reference.symbolic.is_none() {
                if reference.name.starts_with(tracking.as_bytes()) {
                    given.push(reference.id);
                } else if names::is_shared(reference.name)
                    && !self.hidden.hides(reference.name)
                    && matches(reference.name)
                {
                    found.push((reference.name.to_owned(), reference.id));
                }
            }
            Ok(std::ops::ControlFlow::Continue(()))
        })?;
        self.known.clear();
        self.known_tags.clear();
        for (name, id) in &found {
            if let Some(offer) = self.offer(name, *id)? {
                self.know(&offer)?;
                each(&offer);
            }
        }
        for id in given {
            if let Some(offer) = self.offer(b"", id)? {
                self.know(&offer)?;
            }
        }
        self.known.sort_unstable();
        self.known.dedup();
        Ok(())
    }

    /// Records the commit and the tags of a ref that the peer may see.
    fn know(&mut self, offer: &OfferedRef) -> Result<()> {
        let commit = offer.commit();
        self.known.push(commit);
        let (store, mut content) = (self.store()?, Vec::new());
        let mut id = offer.id;
        while id != commit && self.known_tags.insert(id, commit).is_none() {
            store.find(&id, &mut content).map_err(from_odb)?;
            let malformed = || pronto::Error::new(pronto::ErrorKind::Corrupt, "malformed tag");
            let target = TagRef::new(&content).target();
            id = target.ok_or_else(|| malformed().on_object(id))?;
        }
        Ok(())
    }

    /// Returns whether both sides have the offered object: a commit, or a tag that peels to the stated
    /// commit. Fails if the tag peels to another commit.
    fn is_known(&self, offer: &OfferedRef) -> Result<bool, Error> {
        let leads_to = match self.known_tags.get(&offer.id) {
            Some(commit) => *commit,
            None if self.known.binary_search(&offer.id).is_ok() => offer.id,
            None if self.complete.contains(&offer.id) => offer.id,
            None => return Ok(false),
        };
        match leads_to == offer.commit() && offer.peeled.is_some() == (leads_to != offer.id) {
            true => Ok(true),
            false => Err(misled(offer)),
        }
    }

    /// Returns the commits that the wanted offers had when the peer sent them last. Their history is present,
    /// whether it was merged or not. Older commits are added, because the peer ignores commits that are no
    /// longer reachable from its refs.
    fn given_before(&self, offers: &[OfferedRef], wanted: &[bool]) -> Result<Vec<ObjectId>> {
        let mut before = Vec::new();
        for (offer, _) in offers.iter().zip(wanted).filter(|(_, wanted)| **wanted) {
            let Some(name) = names::tracking(&self.options.peer, &offer.name) else {
                continue;
            };
            let found = self.repository.refs().find(&name)?;
            if let Some(RefTarget::Object(id)) = found.map(|found| found.target) {
                before.push(self.repository.peel_tag(id)?.unwrap_or(id));
            }
            if before.len() == MAX_HELD {
                break;
            }
        }
        for at in 0..before.len() {
            let room = MAX_HELD - before.len();
            let further = walk::further_back(&self.repository, before[at], room)?;
            before.extend(further);
        }
        Ok(before)
    }

    /// Returns which of `offers` are complete. A tag is complete only if it is known here, whatever the peer
    /// states, so that naming a hidden object does not make it visible.
    fn find_complete(&mut self, offers: &[OfferedRef]) -> Result<Vec<bool>, Error> {
        let store = self.store().map_err(failed)?;
        let mut wanted = Vec::new();
        let mut is_here = Vec::with_capacity(offers.len());
        for offer in offers {
            let here = self.is_known(offer)?;
            is_here.push(here);
            if !here && offer.peeled.is_none() {
                let header = store.header(&offer.id).map_err(from_odb).map_err(failed)?;
                if header.is_some_and(|header| header.kind == ObjectKind::Commit) {
                    wanted.push(offer.id);
                }
            }
        }
        let reached = walk::reached(&self.repository, &wanted, &self.known).map_err(failed)?;
        for (offer, here) in offers.iter().zip(&mut is_here) {
            *here |= offer.peeled.is_none() && reached.contains(&offer.id);
        }
        self.complete.extend(reached);
        Ok(is_here)
    }
}

/// Returns the repository without replacements (`refs/replace/`): peers receive original objects, and
/// histories are compared as they were written.
fn without_replacements(repository: Arc<pronto::Repository>) -> Result<Arc<pronto::Repository>> {
    if !repository.objects()?.has_replacements() {
        return Ok(repository);
    }
    let mut environment = repository.environment().clone();
    environment.set("GIT_NO_REPLACE_OBJECTS", "1");
    pronto::Repository::open(repository.git_dir(), &environment).map(Arc::new)
}

/// Returns the directory for the data of a peer, which is never removed and marks the name as taken.
fn directory_of(repository: &pronto::Repository, peer: &str) -> PathBuf {
    repository.objects_dir().join("netsync").join(peer)
}

/// Converts a failure of the repository, whose details are not sent to the peer.
fn failed(error: pronto::Error) -> Error {
    error.map_kind(|_| ErrorKind::Repository)
}

/// Returns an error that the peer has caused, which is reported to the peer.
fn refused(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Malformed, message)
}

/// Returns the error for a ref that does not peel to the stated commit.
fn misled(offer: &OfferedRef) -> Error {
    let name = offer.name.as_bstr();
    refused(format!("{name} does not lead to {}", offer.commit()))
}

impl SyncRepository for PeerRepository {
    fn identity(&mut self) -> Result<Vec<u8>, Error> {
        Ok(identity::own(&self.repository))
    }

    fn meet(&mut self, identity: &[u8]) -> Result<(), Error> {
        match self.rules {
            Some(_) => Ok(()),
            None => identity::compare(&self.directory(), &self.options.peer, identity),
        }
    }

    fn refs(
        &mut self,
        matches: &dyn Fn(&[u8]) -> bool,
        each: &mut dyn FnMut(&OfferedRef),
    ) -> Result<(), Error> {
        self.list(matches, each).map_err(failed)
    }

    fn complete(&mut self, offers: &[OfferedRef]) -> Result<Vec<bool>, Error> {
        self.find_complete(offers)
    }

    fn commits(
        &mut self,
        tips: &[ObjectId],
        common: &[ObjectId],
        each: &mut dyn FnMut(u64, &ObjectId),
    ) -> Result<(), Error> {
        let found = walk::above(&self.repository, tips, common).map_err(failed)?;
        for commit in found {
            each(u64::try_from(commit.time).unwrap_or(0), &commit.id);
        }
        Ok(())
    }

    fn prepare(
        &mut self,
        offers: &[OfferedRef],
        eligible: &[bool],
    ) -> Result<TransferProgress, Error> {
        let hash = self.repository.object_hash();
        let wanted = offers.iter().zip(eligible).map(|(offer, eligible)| {
            Ok(*eligible && offer.id.kind() == hash && self.may_receive(offer)?)
        });
        let mut progress = TransferProgress {
            wanted: wanted.collect::<Result<_, Error>>()?,
            budget_bytes: self.options.budget_bytes,
            ..TransferProgress::default()
        };
        if progress.wanted.contains(&true) {
            let incoming = incoming::IncomingObjects::open(
                &self.repository,
                &self.directory(),
                &self.known,
                incoming::SegmentLimits {
                    budget_bytes: self.options.budget_bytes,
                    threads: self.options.threads,
                    spools: self.spools,
                },
            )?;
            progress.held = incoming.held();
            progress.resume = incoming.resume();
            let before = self.given_before(offers, &progress.wanted);
            progress.held.extend(before.map_err(failed)?);
            progress.held.truncate(MAX_HELD);
            self.incoming = Some(incoming);
        }
        Ok(progress)
    }

    fn begin_segment(&mut self, kind: SegmentKind, objects: u64, bytes: u64) -> Result<(), Error> {
        self.incoming()?.begin(kind, objects, bytes)
    }

    fn segment_data(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.interrupt
            .check()
            .map_err(|reason| Error::new(ErrorKind::Repository, reason.to_string()))?;
        self.incoming()?.data(bytes)
    }

    fn end_segment(&mut self, checksum: &ObjectId, resume: Resume) -> Result<(), Error> {
        self.incoming()?.end(checksum, resume)
    }

    fn publish(
        &mut self,
        offers: &[OfferedRef],
        arrived: &[bool],
    ) -> Result<Vec<PublishedRef>, Error> {
        publish::publish(self, offers, arrived)
    }

    fn plan(&mut self, request: Request) -> Result<TransferPlan, Error> {
        let threads = self.options.threads;
        let planned = outgoing::OutgoingObjects::plan(&self.repository, threads, &request);
        let (outgoing, plan) = planned.map_err(failed)?;
        self.outgoing = Some(outgoing);
        Ok(plan)
    }

    fn next_segment(&mut self) -> Result<Option<OutgoingSegment>, Error> {
        let Some(outgoing) = &mut self.outgoing else {
            return Ok(None);
        };
        outgoing.next_segment(&self.interrupt).map_err(failed)
    }
}

impl PeerRepository {
    fn incoming(&mut self) -> Result<&mut incoming::IncomingObjects, Error> {
        let closed = || Error::new(ErrorKind::Repository, "unrequested segment from the peer");
        self.incoming.as_mut().ok_or_else(closed)
    }
}
