//! A repository whose operations wait for a permit, so that it uses memory only while this side
//! works.

use std::sync::Arc;

use pronto_hash::ObjectId;
use pronto_io::interrupt::Interrupt;
use pronto_netsync::message::{PublishedRef, Resume, SegmentKind, TransferPlan};
use pronto_netsync::repository::{
    OfferedRef, OutgoingSegment, Request, SyncRepository, TransferProgress,
};
use pronto_netsync::{Error, ErrorKind};

use super::gate::{Gate, Permit};
use super::session_slots::SessionSlot;
use crate::PeerRepository;

/// The memory in bytes for the id of a sent object.
const OBJECT_BYTES: u64 = 48;

/// The memory in bytes for a commit to send: its id, its date and its parents.
const COMMIT_BYTES: u64 = 160;

/// The repository of a session, and the slot of the session.
pub(super) struct Gated {
    inner: PeerRepository,
    place: SessionSlot,
    gate: Arc<Gate>,
    name: String,
    stop: Interrupt,
    /// The memory in bytes of the session, and the memory for sending.
    held_bytes: u64,
    sent_bytes: u64,
}

impl Gated {
    pub(super) fn new(
        inner: PeerRepository,
        name: String,
        place: SessionSlot,
        gate: Arc<Gate>,
        stop: Interrupt,
    ) -> Self {
        Gated {
            inner: inner.spooling(),
            place,
            gate,
            name,
            stop,
            held_bytes: 0,
            sent_bytes: 0,
        }
    }

    fn enter(&self) -> Result<Permit, Error> {
        self.place.work()?;
        let is_over = || self.stop.is_triggered() || self.place.work().is_err();
        let permit = self.gate.enter(&self.name, &is_over);
        permit.ok_or_else(|| Error::new(ErrorKind::Busy, "the server is too busy for this session"))
    }

    /// Records that sending uses additional memory.
    fn sending(&mut self, bytes: u64) -> Result<(), Error> {
        self.sent_bytes += bytes;
        self.place.hold(self.held_bytes + self.sent_bytes)
    }
}

impl SyncRepository for Gated {
    fn identity(&mut self) -> Result<Vec<u8>, Error> {
        self.inner.identity()
    }

    fn meet(&mut self, identity: &[u8]) -> Result<(), Error> {
        self.inner.meet(identity)
    }

    fn hold(&mut self, bytes: u64) -> Result<(), Error> {
        self.held_bytes = bytes;
        self.place.hold(self.held_bytes + self.sent_bytes)
    }

    fn refs(
        &mut self,
        matches: &dyn Fn(&[u8]) -> bool,
        each: &mut dyn FnMut(&OfferedRef),
    ) -> Result<(), Error> {
        let _permit = self.enter()?;
        self.inner.refs(matches, each)
    }

    fn complete(&mut self, offers: &[OfferedRef]) -> Result<Vec<bool>, Error> {
        let _permit = self.enter()?;
        self.inner.complete(offers)
    }

    fn commits(
        &mut self,
        tips: &[ObjectId],
        common: &[ObjectId],
        each: &mut dyn FnMut(u64, &ObjectId),
    ) -> Result<(), Error> {
        let _permit = self.enter()?;
        self.inner.commits(tips, common, each)
    }

    fn prepare(
        &mut self,
        offers: &[OfferedRef],
        eligible: &[bool],
    ) -> Result<TransferProgress, Error> {
        // This call waits without a permit, because it may wait for another session of the same
        // peer to end.
        self.place.work()?;
        self.inner.prepare(offers, eligible)
    }

    fn begin_segment(&mut self, kind: SegmentKind, objects: u64, bytes: u64) -> Result<(), Error> {
        self.inner.begin_segment(kind, objects, bytes)
    }

    fn segment_data(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.inner.segment_data(bytes)
    }

    fn end_segment(&mut self, checksum: &ObjectId, resume: Resume) -> Result<(), Error> {
        let _permit = self.enter()?;
        self.inner.end_segment(checksum, resume)
    }

    fn publish(
        &mut self,
        offers: &[OfferedRef],
        arrived: &[bool],
    ) -> Result<Vec<PublishedRef>, Error> {
        let _permit = self.enter()?;
        self.inner.publish(offers, arrived)
    }

    fn plan(&mut self, request: Request) -> Result<TransferPlan, Error> {
        let permit = self.enter()?;
        let plan = self.inner.plan(request)?;
        drop(permit);
        self.sending(plan.commits.saturating_mul(COMMIT_BYTES))?;
        Ok(plan)
    }

    fn next_segment(&mut self) -> Result<Option<OutgoingSegment>, Error> {
        let permit = self.enter()?;
        let segment = self.inner.next_segment()?;
        drop(permit);
        let objects = segment.as_ref().map_or(0, |segment| segment.objects);
        self.sending(objects.saturating_mul(OBJECT_BYTES))?;
        Ok(segment)
    }
}
