//! A repository in memory: commits that are bytes, and refs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pronto_hash::{Kind, ObjectId, digest};
use pronto_netsync::message::{PublishedRef, Resume, SegmentKind, StoreResult, TransferPlan};
use pronto_netsync::repository::{
    OfferedRef, OutgoingSegment, Request, SegmentContent, SyncRepository, TransferProgress,
};
use pronto_netsync::{Error, ErrorKind};

/// A commit with its date, its parents, and some bytes in place of its objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Commit {
    pub(crate) date: u64,
    pub(crate) parents: Vec<ObjectId>,
    pub(crate) payload: Vec<u8>,
}

#[derive(Clone, Default)]
pub(crate) struct Memory {
    pub(crate) commits: BTreeMap<ObjectId, Commit>,
    /// Received commits that have not landed, in order, and the position of the transfer.
    pub(crate) quarantine: BTreeMap<ObjectId, Commit>,
    pub(crate) resume: Option<Resume>,
    pub(crate) refs: BTreeMap<String, ObjectId>,
    pub(crate) tracking: BTreeMap<String, ObjectId>,
    pub(crate) segment_bytes: usize,
    /// Whether segments are streamed.
    pub(crate) streams: bool,
    incoming: Vec<u8>,
    outgoing: Vec<ObjectId>,
    sent: u64,
    /// The number of calls of each expensive method.
    pub(crate) listed: usize,
    pub(crate) walked: usize,
}

fn failed(message: &str) -> Error {
    Error::new(ErrorKind::Repository, message)
}

impl Commit {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.date.to_be_bytes());
        out.push(self.parents.len() as u8);
        for parent in &self.parents {
            out.extend_from_slice(parent.as_slice());
        }
        out.extend_from_slice(&(self.payload.len() as u32).to_be_bytes());
        out.extend_from_slice(&self.payload);
    }

    fn read(bytes: &mut &[u8]) -> Option<Commit> {
        let (date, rest) = bytes.split_first_chunk::<8>()?;
        let (count, mut rest) = rest.split_first()?;
        let mut parents = Vec::new();
        for _ in 0..*count {
            let (id, after) = rest.split_first_chunk::<20>()?;
            parents.push(ObjectId::from(*id));
            rest = after;
        }
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let (payload, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        *bytes = rest;
        Some(Commit {
            date: u64::from_be_bytes(*date),
            parents,
            payload: payload.to_vec(),
        })
    }

    pub(crate) fn id(&self) -> ObjectId {
        let mut bytes = Vec::new();
        self.write(&mut bytes);
        digest(Kind::Sha1, &[&bytes]).expect("no attack")
    }
}

impl Memory {
    pub(crate) fn new() -> Self {
        Memory {
            segment_bytes: 4096,
            ..Memory::default()
        }
    }

    /// Adds a commit to a branch.
    pub(crate) fn commit(&mut self, branch: &str, date: u64, payload: &[u8]) -> ObjectId {
        let parents = self.refs.get(branch).copied().into_iter().collect();
        self.merge(branch, date, parents, payload)
    }

    pub(crate) fn merge(
        &mut self,
        branch: &str,
        date: u64,
        parents: Vec<ObjectId>,
        payload: &[u8],
    ) -> ObjectId {
        let commit = Commit {
            date,
            parents,
            payload: payload.to_vec(),
        };
        let id = commit.id();
        self.commits.insert(id, commit);
        self.refs.insert(branch.to_owned(), id);
        id
    }

    /// Returns the commits reachable from `tips` but not from `without`. Missing commits are
    /// skipped.
    pub(crate) fn closure(
        &self,
        tips: &[ObjectId],
        without: &BTreeSet<ObjectId>,
    ) -> BTreeSet<ObjectId> {
        let mut seen = BTreeSet::new();
        let mut left = tips.to_vec();
        while let Some(id) = left.pop() {
            let found = self.commits.get(&id).or_else(|| self.quarantine.get(&id));
            if let Some(commit) = found.filter(|_| !without.contains(&id) && seen.insert(id)) {
                left.extend(&commit.parents);
            }
        }
        seen
    }

    fn known(&self) -> BTreeSet<ObjectId> {
        let tips: Vec<ObjectId> = self
            .refs
            .values()
            .chain(self.tracking.values())
            .copied()
            .collect();
        self.closure(&tips, &BTreeSet::new())
    }

    /// Returns the commits in topological order, parents first, then by age, so that the order is
    /// deterministic.
    fn sequence(&self, ids: &BTreeSet<ObjectId>) -> Vec<ObjectId> {
        let mut left: Vec<(u64, ObjectId)> =
            ids.iter().map(|id| (self.commits[id].date, *id)).collect();
        left.sort_unstable();
        let (mut out, mut done) = (Vec::new(), BTreeSet::new());
        while !left.is_empty() {
            let ready = |(_, id): &(u64, ObjectId)| {
                let parents = &self.commits[id].parents;
                parents
                    .iter()
                    .all(|parent| !ids.contains(parent) || done.contains(parent))
            };
            let at = left.iter().position(ready).expect("no circles");
            let (_, id) = left.remove(at);
            done.insert(id);
            out.push(id);
        }
        out
    }

    fn mark(ids: &[ObjectId]) -> [u8; 32] {
        let mut mark = [0; 32];
        let bytes: Vec<u8> = ids.iter().flat_map(|id| id.as_slice().to_vec()).collect();
        mark[..20].copy_from_slice(digest(Kind::Sha1, &[&bytes]).expect("no attack").as_slice());
        mark
    }
}

impl SyncRepository for Memory {
    fn refs(
        &mut self,
        matches: &dyn Fn(&[u8]) -> bool,
        each: &mut dyn FnMut(&OfferedRef),
    ) -> Result<(), Error> {
        self.listed += 1;
        for (name, id) in &self.refs {
            if matches(name.as_bytes()) {
                each(&OfferedRef {
                    name: name.as_bytes().to_vec(),
                    id: *id,
                    peeled: None,
                });
            }
        }
        Ok(())
    }

    fn complete(&mut self, offers: &[OfferedRef]) -> Result<Vec<bool>, Error> {
        let known = self.known();
        Ok(offers
            .iter()
            .map(|offer| known.contains(&offer.id))
            .collect())
    }

    fn commits(
        &mut self,
        tips: &[ObjectId],
        common: &[ObjectId],
        each: &mut dyn FnMut(u64, &ObjectId),
    ) -> Result<(), Error> {
        self.walked += 1;
        let common = self.closure(common, &BTreeSet::new());
        for id in self.closure(tips, &common) {
            each(self.commits[&id].date, &id);
        }
        Ok(())
    }

    fn prepare(
        &mut self,
        _offers: &[OfferedRef],
        eligible: &[bool],
    ) -> Result<TransferProgress, Error> {
        let heads = self
            .quarantine
            .keys()
            .filter(|id| !(self.quarantine.values()).any(|commit| commit.parents.contains(id)));
        Ok(TransferProgress {
            wanted: eligible.to_vec(),
            held: heads.copied().collect(),
            resume: self.resume,
            budget_bytes: 1 << 30,
        })
    }

    fn begin_segment(
        &mut self,
        _kind: SegmentKind,
        _objects: u64,
        _bytes: u64,
    ) -> Result<(), Error> {
        self.incoming.clear();
        Ok(())
    }

    fn segment_data(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.incoming.extend_from_slice(bytes);
        Ok(())
    }

    fn end_segment(&mut self, checksum: &ObjectId, resume: Resume) -> Result<(), Error> {
        if digest(Kind::Sha1, &[&self.incoming]).expect("no attack") != *checksum {
            return Err(failed("a segment is damaged"));
        }
        let known = self.known();
        let mut bytes = &self.incoming[..];
        while let Some(commit) = Commit::read(&mut bytes) {
            let is_here = |id: &ObjectId| known.contains(id) || self.quarantine.contains_key(id);
            if !commit.parents.iter().all(is_here) {
                return Err(failed("a segment is not closed"));
            }
            self.quarantine.insert(commit.id(), commit);
        }
        if !bytes.is_empty() {
            return Err(failed("a segment is malformed"));
        }
        self.resume = Some(resume);
        Ok(())
    }

    fn publish(
        &mut self,
        offers: &[OfferedRef],
        arrived: &[bool],
    ) -> Result<Vec<PublishedRef>, Error> {
        let here =
            |id: &ObjectId| self.commits.contains_key(id) || self.quarantine.contains_key(id);
        let mut both = offers.iter().zip(arrived);
        if both.any(|(offer, arrived)| *arrived && !here(&offer.id)) {
            return Err(failed("the peer did not send all"));
        }
        self.commits.append(&mut self.quarantine);
        self.resume = None;
        let mut published = Vec::new();
        for (offer, arrived) in offers.iter().zip(arrived) {
            let name = String::from_utf8(offer.name.clone()).expect("of a test");
            let before = self.tracking.get(&name).copied();
            if before == Some(offer.id) {
                continue;
            }
            let is_forward = before.is_none_or(|before| {
                self.closure(&[offer.id], &BTreeSet::new())
                    .contains(&before)
            });
            let stored = match (arrived, before) {
                (false, _) => StoreResult::Refused,
                (true, None) => StoreResult::New,
                (true, Some(_)) if is_forward => StoreResult::FastForward,
                (true, Some(_)) => StoreResult::Divergent,
            };
            if *arrived {
                self.tracking.insert(name.clone(), offer.id);
            }
            published.push(PublishedRef {
                name: offer.name.clone(),
                stored,
                stored_as: match arrived {
                    true => name
                        .replace("refs/heads/", "refs/remotes/peer/")
                        .into_bytes(),
                    false => Vec::new(),
                },
            });
        }
        Ok(published)
    }

    fn plan(&mut self, request: Request) -> Result<TransferPlan, Error> {
        let common = self.closure(&request.common, &BTreeSet::new());
        let mut ids = self.closure(&request.tips, &common);
        if let Some(lacking) = &request.lacking {
            ids.retain(|id| lacking.binary_search(id).is_ok());
        }
        let mut all = self.sequence(&ids);
        self.sent = 0;
        match request.resume {
            Some(resume)
                if all.len() as u64 >= resume.objects
                    && Memory::mark(&all[..resume.objects as usize]) == resume.mark =>
            {
                self.sent = resume.objects;
            }
            _ => {
                let held = self.closure(&request.held, &BTreeSet::new());
                all.retain(|id| !held.contains(id));
            }
        }
        self.outgoing = all;
        Ok(TransferPlan {
            commits: self.outgoing.len() as u64 - self.sent,
            objects: 0,
            bytes: 0,
        })
    }

    fn next_segment(&mut self) -> Result<Option<OutgoingSegment>, Error> {
        let (mut bytes, start) = (Vec::new(), self.sent);
        while bytes.len() < self.segment_bytes && (self.sent as usize) < self.outgoing.len() {
            self.commits[&self.outgoing[self.sent as usize]].write(&mut bytes);
            self.sent += 1;
        }
        if bytes.is_empty() {
            return Ok(None);
        }
        Ok(Some(OutgoingSegment {
            kind: SegmentKind::Pack,
            objects: self.sent - start,
            bytes: bytes.len() as u64,
            checksum: digest(Kind::Sha1, &[&bytes]).expect("no attack"),
            resume: Resume {
                objects: self.sent,
                mark: Memory::mark(&self.outgoing[..self.sent as usize]),
            },
            content: match self.streams {
                true => SegmentContent::Stream(Box::new(std::io::Cursor::new(bytes))),
                false => SegmentContent::Memory(Arc::new(bytes)),
            },
        }))
    }
}
