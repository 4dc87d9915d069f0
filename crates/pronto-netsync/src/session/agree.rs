//! Determines the common commits, the wanted refs, and the objects to send.

use std::sync::Arc;

use pronto_hash::ObjectId;

use super::conversation::{SessionCore, SessionPhase};
use super::greet::ALLOWS_UNRELATED;
use crate::error::malformed;
use crate::frame::FrameType;
use crate::message::{CompleteTips, ObjectFormat, WantMessage, is_ref_name};
use crate::reconcile::{self, Reconciler, SetBuilder};
use crate::repository::{OfferedRef, RefMatcher, Request, SyncRepository};
use crate::{Error, ErrorKind};

/// The approximate memory in bytes of a commit in a compared set.
const COMMIT_BYTES: u64 = 96;

impl<R: SyncRepository> SessionCore<R> {
    pub(super) fn ref_range(&mut self, body: &[u8]) -> Result<(), Error> {
        let SessionPhase::Refs(reconciler) = &mut self.stage else {
            return Ok(());
        };
        let answer = reconciler.receive(body)?;
        let learned = reconciler.learned_bytes() as u64;
        self.closed_refs = answer.is_some();
        let is_done = reconciler.is_done();
        if let Some(answer) = answer {
            self.waiting.push_back((FrameType::RefRange, answer));
        }
        self.hold()?;
        if is_done {
            // Each learned ref becomes an offer.
            self.set_bytes += learned;
            self.refs_are_known()
        } else {
            Ok(())
        }
    }

    /// Sends the peer marks of the differing refs that are complete here, and of the wanted refs.
    pub(super) fn refs_are_known(&mut self) -> Result<(), Error> {
        let stage = std::mem::replace(&mut self.stage, SessionPhase::Cut);
        let receives = self.directions().receives;
        let (SessionPhase::Refs(mut reconciler), Some(admission)) = (stage, &mut self.admission)
        else {
            return Ok(());
        };
        self.lacked_by_peer = reconciler.lacking().to_vec();
        let format = admission.object_format;
        let theirs: Vec<OfferedRef> = (reconciler.into_learned().into_iter())
            .map(|entry| offer(format, entry))
            .collect::<Result<_, _>>()?;
        let repository = &mut admission.repository;
        self.complete = repository.complete(&theirs)?;
        let wish = RefMatcher::new(self.options.globs.clone());
        let eligible: Vec<bool> = (theirs.iter().zip(&self.complete))
            .map(|(offer, complete)| {
                let name = &offer.name;
                receives && !complete && admission.limits.matches(name) && wish.matches(name)
            })
            .collect();
        let mut progress = repository.prepare(&theirs, &eligible)?;
        progress.wanted.resize(theirs.len(), false);
        for (wanted, eligible) in progress.wanted.iter_mut().zip(&eligible) {
            *wanted &= eligible;
        }
        self.wanted.clone_from(&progress.wanted);
        self.report.ours = self
            .lacked_by_peer
            .iter()
            .map(|&at| self.own[at].clone())
            .collect();
        self.report.incoming.clone_from(&progress.wanted);
        self.report.theirs = theirs;
        let cut = CompleteTips {
            tips: self.complete.clone(),
        };
        self.put(FrameType::Cut, |out| cut.write(out));
        progress.held.sort_unstable();
        progress.held.dedup();
        progress.held.truncate(crate::message::MAX_HELD);
        self.receiving.budget_bytes = progress.budget_bytes;
        let want = WantMessage {
            tips: progress.wanted,
            held: progress
                .held
                .iter()
                .flat_map(|id| id.as_slice().to_vec())
                .collect(),
            budget_bytes: progress.budget_bytes,
            resume: progress.resume,
        };
        self.put(FrameType::Want, |out| want.write(format, out));
        Ok(())
    }

    pub(super) fn want(&mut self, body: &[u8]) -> Result<(), Error> {
        let Some(format) = self.admission.as_ref().map(|each| each.object_format) else {
            return Ok(());
        };
        let want = WantMessage::read(format, body)?;
        let sends = self.directions().sends;
        let Some(cut) = &self.peer_cut else {
            return Ok(());
        };
        if cut.tips.len() != self.lacked_by_peer.len()
            || want.tips.len() != self.lacked_by_peer.len()
        {
            return Err(malformed(format!(
                "marks for {} and {} tips, but {} tips were offered",
                cut.tips.len(),
                want.tips.len(),
                self.lacked_by_peer.len()
            )));
        }
        let mut both = want.tips.iter().zip(&cut.tips);
        if both.any(|(&wanted, &held)| wanted && (held || !sends)) {
            return Err(malformed(
                "the peer wants a tip that it already has or that was not offered",
            ));
        }
        self.report.outgoing.clone_from(&want.tips);
        self.peer_want = Some(want);
        self.decide()
    }

    /// Returns the tips that both sides have.
    pub(super) fn common(&self) -> Vec<ObjectId> {
        let mut is_lacked = vec![false; self.own.len()];
        for &at in &self.lacked_by_peer {
            is_lacked[at] = true;
        }
        let same = (self.own.iter().zip(&is_lacked)).filter(|(_, is_lacked)| !**is_lacked);
        let held = self.report.theirs.iter().zip(&self.complete);
        let held = held.filter(|(_, is_complete)| **is_complete);
        let theirs = self.peer_cut.iter().flat_map(|cut| &cut.tips);
        let theirs = self
            .report
            .ours
            .iter()
            .zip(theirs)
            .filter(|(_, held)| **held);
        let offers = same.map(|(offer, _)| offer);
        let offers = offers.chain(held.map(|(offer, _)| offer));
        let offers = offers.chain(theirs.map(|(offer, _)| offer));
        let mut common: Vec<ObjectId> = offers.map(OfferedRef::commit).collect();
        common.sort_unstable();
        common.dedup();
        common
    }

    /// Compares commits if each side has commits that the other one lacks. Otherwise the objects to
    /// send are already determined.
    pub(super) fn decide(&mut self) -> Result<(), Error> {
        let is_any = |marks: &[bool], which| marks.contains(&which);
        let (Some(cut), Some(want)) = (&self.peer_cut, &self.peer_want) else {
            return Ok(());
        };
        let both_have_news = is_any(&cut.tips, false) && is_any(&self.complete, false);
        let any_wanted = is_any(&want.tips, true) || is_any(&self.wanted, true);
        if !both_have_news || !any_wanted {
            return self.begin_transfer(None);
        }
        let common = self.common();
        let tips: Vec<ObjectId> = (self.report.ours.iter().zip(&cut.tips))
            .filter(|(_, held)| !**held)
            .map(|(offer, _)| offer.commit())
            .collect();
        let (Some(admission), Some(key)) = (&mut self.admission, &self.key) else {
            return Ok(());
        };
        let (mut set, mut set_bytes) = (SetBuilder::default(), 0);
        (admission.repository).commits(&tips, &common, &mut |date, id| {
            let mut key = date.to_be_bytes().to_vec();
            key.extend_from_slice(id.as_slice());
            set.push(&key, &[]);
            set_bytes += COMMIT_BYTES;
        })?;
        self.set_bytes += set_bytes;
        admission.repository.hold(self.set_bytes)?;
        let set = Arc::new(set.finish(key)?);
        let options = reconcile::Options {
            keeps_learned: false,
            ..reconcile::Options::default()
        };
        let mut reconciler = Reconciler::new(set, key, options);
        // The side that did not send the last message about refs sends the first message about
        // commits, because it was the second side to learn the complete difference.
        if !self.closed_refs {
            let message = reconciler.start();
            self.waiting.push_back((FrameType::CommitRange, message));
        }
        self.stage = SessionPhase::Commits(reconciler);
        Ok(())
    }

    pub(super) fn commit_range(&mut self, body: &[u8]) -> Result<(), Error> {
        let SessionPhase::Commits(reconciler) = &mut self.stage else {
            return Ok(());
        };
        if let Some(answer) = reconciler.receive(body)? {
            self.waiting.push_back((FrameType::CommitRange, answer));
        }
        if !reconciler.is_done() {
            return Ok(());
        }
        let lacking = reconciler.lacking().to_vec();
        let set = reconciler.set();
        let ids = lacking
            .iter()
            .map(|&at| ObjectId::try_from(&set.key(at)[8..]));
        let mut ids: Vec<ObjectId> = ids
            .collect::<Result<_, _>>()
            .map_err(|_| malformed("a commit has no valid id"))?;
        ids.sort_unstable();
        if ids.len() == set.len() {
            self.check_related()?;
        }
        self.begin_transfer(Some(ids))
    }

    /// Checks that the histories are related: if no other commit is common, there must be a common
    /// tip.
    pub(super) fn check_related(&self) -> Result<(), Error> {
        let peer_allows =
            (self.peer.as_ref()).is_some_and(|peer| peer.capabilities & ALLOWS_UNRELATED != 0);
        if !self.common().is_empty() || (self.options.allows_unrelated && peer_allows) {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Unrelated,
            "the two repositories have no common commit",
        ))
    }

    pub(super) fn begin_transfer(&mut self, lacking: Option<Vec<ObjectId>>) -> Result<(), Error> {
        self.stage = SessionPhase::Transfer;
        let common = self.common();
        let Some(admission) = &mut self.admission else {
            return Ok(());
        };
        let want = self.peer_want.take().unwrap_or_default();
        self.receiving.is_expected = self.wanted.contains(&true);
        if want.tips.contains(&true) {
            let tips = self.report.ours.iter().zip(&want.tips);
            let tips = tips
                .filter(|(_, wanted)| **wanted)
                .map(|(offer, _)| offer.id);
            let id_bytes = admission.object_format.id_bytes();
            let held = (want.held.chunks_exact(id_bytes)).flat_map(ObjectId::try_from);
            let plan = admission.repository.plan(Request {
                tips: tips.collect(),
                common,
                lacking,
                held: held.collect(),
                resume: want.resume,
                is_dry_run: self.report.is_dry_run,
            })?;
            self.sending
                .begin(want.budget_bytes, self.report.is_dry_run);
            self.report.outgoing_plan = Some(plan);
            self.put(FrameType::Plan, |out| plan.write(out));
        }
        if !self.receiving.is_expected {
            self.publish()?;
        }
        Ok(())
    }

    /// Returns all refs of the peer that match, sorted by name, and marks of those that are
    /// complete here.
    pub(super) fn offers(&self) -> (Vec<OfferedRef>, Vec<bool>) {
        let mut is_lacked = vec![false; self.own.len()];
        for &at in &self.lacked_by_peer {
            is_lacked[at] = true;
        }
        let same = (self.own.iter().zip(is_lacked)).filter(|(_, is_lacked)| !is_lacked);
        let same = same.map(|(offer, _)| (offer.clone(), true));
        let limits = self.admission.as_ref().map(|admission| &admission.limits);
        let wish = RefMatcher::new(self.options.globs.clone());
        let may =
            |name: &[u8]| limits.is_some_and(|limits| limits.matches(name)) && wish.matches(name);
        let theirs = self.report.theirs.iter().enumerate().map(|(at, offer)| {
            let arrived = self.complete[at] || self.wanted[at];
            (offer.clone(), arrived && may(&offer.name))
        });
        let mut offers: Vec<(OfferedRef, bool)> = same.chain(theirs).collect();
        offers.sort_unstable_by(|one, other| one.0.name.cmp(&other.0.name));
        offers.into_iter().unzip()
    }
}

/// Parses an entry of the peer's set of refs.
fn offer(format: ObjectFormat, entry: reconcile::Entry) -> Result<OfferedRef, Error> {
    let broken = || malformed("an entry is not a ref");
    let reconcile::Entry { key: name, value } = entry;
    let (id, peeled) = value
        .split_at_checked(format.id_bytes())
        .ok_or_else(broken)?;
    // A branch points to a commit. For other refs, the repository checks the stated peeled commit.
    let may_be_peeled = peeled.len() == id.len() && !name.starts_with(b"refs/heads/");
    let is_sound = is_ref_name(&name) && (peeled.is_empty() || may_be_peeled);
    if !is_sound {
        return Err(broken());
    }
    let read = |bytes| ObjectId::try_from(bytes).map_err(|_| broken());
    Ok(OfferedRef {
        id: read(id)?,
        peeled: match peeled {
            [] => None,
            bytes => Some(read(bytes)?),
        },
        name,
    })
}
