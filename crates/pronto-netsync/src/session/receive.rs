//! Receives segments, and the results of published refs.

use pronto_hash::ObjectId;

use super::Report;
use crate::error::malformed;
use crate::frame::FrameType;
use crate::message::{
    ObjectFormat, Publish, PublishedRef, SegmentAck, SegmentEnd, SegmentStart, Sent, StoreResult,
    TransferPlan,
};
use crate::repository::{OfferedRef, SyncRepository};
use crate::{Error, ErrorKind};

/// The state of receiving.
#[derive(Default)]
pub(super) struct Receiving {
    /// Whether the peer sends segments.
    pub(super) is_expected: bool,
    /// The number of bytes that may still be received.
    pub(super) budget_bytes: u64,
    has_plan: bool,
    current: Option<SegmentInReceipt>,
    segments: u64,
    was_all_sent: bool,
    /// The last ref of this side for which the peer has sent a result.
    last_published: Option<Vec<u8>>,
}

/// A received frame.
#[derive(Clone, Copy)]
pub(super) struct ReceivedFrame<'a> {
    pub(super) kind: FrameType,
    pub(super) body: &'a [u8],
}

struct SegmentInReceipt {
    segment: SegmentStart,
    bytes: u64,
}

/// The replies to a frame.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) ack: Option<SegmentAck>,
    /// Whether all segments were received.
    pub(super) is_complete: bool,
}

impl Receiving {
    /// Returns whether the peer has sent all segments.
    pub(super) fn is_over(&self) -> bool {
        !self.is_expected || self.was_all_sent
    }

    /// Processes a frame of the transfer. `format` is the format of its object ids.
    pub(super) fn frame<R: SyncRepository>(
        &mut self,
        frame: ReceivedFrame<'_>,
        repository: &mut R,
        format: ObjectFormat,
        report: &mut Report,
    ) -> Result<Outcome, Error> {
        let ReceivedFrame { kind, body } = frame;
        let out_of_turn = || malformed(format!("message {kind:?} out of turn"));
        if self.is_over() || (self.has_plan == (kind == FrameType::Plan)) {
            return Err(out_of_turn());
        }
        let mut outcome = Outcome::default();
        match (kind, &mut self.current) {
            (FrameType::Plan, None) => {
                report.incoming_plan = Some(TransferPlan::read(body)?);
                self.has_plan = true;
            }
            (FrameType::Segment, None) if !report.is_dry_run => {
                let segment = SegmentStart::read(body)?;
                self.check(&segment)?;
                repository.begin_segment(segment.kind, segment.objects, segment.bytes)?;
                self.current = Some(SegmentInReceipt { segment, bytes: 0 });
            }
            (FrameType::Data, Some(incoming)) => {
                incoming.bytes += body.len() as u64;
                if incoming.bytes > incoming.segment.bytes || body.is_empty() {
                    return Err(malformed(format!(
                        "received {} bytes of a segment of {} bytes",
                        incoming.bytes, incoming.segment.bytes
                    )));
                }
                report.received_bytes += body.len() as u64;
                repository.segment_data(body)?;
            }
            (FrameType::SegmentEnd, Some(incoming)) => {
                let end = SegmentEnd::read(format, body)?;
                let segment = incoming.segment;
                if end.id != segment.id || incoming.bytes != segment.bytes {
                    return Err(malformed(format!(
                        "the end of segment {} after {} bytes of segment {}, which has {}",
                        end.id, incoming.bytes, segment.id, segment.bytes
                    )));
                }
                let checksum = ObjectId::try_from(&end.checksum[..])
                    .map_err(|_| malformed("a malformed checksum"))?;
                repository.end_segment(&checksum, end.resume)?;
                self.current = None;
                self.segments += 1;
                report.received_segments = self.segments;
                outcome.ack = Some(SegmentAck { id: segment.id });
            }
            (FrameType::Sent, None) => {
                let sent = Sent::read(body)?;
                if sent.segments != self.segments {
                    return Err(malformed(format!(
                        "{} segments where {} were sent",
                        sent.segments, self.segments
                    )));
                }
                self.was_all_sent = true;
                outcome.is_complete = true;
            }
            _ => return Err(out_of_turn()),
        }
        Ok(outcome)
    }

    /// Checks whether a segment may start now. No memory is reserved for its declared sizes.
    fn check(&mut self, segment: &SegmentStart) -> Result<(), Error> {
        if segment.id != self.segments || segment.objects == 0 || segment.bytes == 0 {
            return Err(malformed(format!(
                "received segment {} of {} objects and {} bytes, but expected segment {}",
                segment.id, segment.objects, segment.bytes, self.segments
            )));
        }
        let rest = self.budget_bytes.checked_sub(segment.bytes);
        self.budget_bytes = rest.ok_or_else(|| {
            Error::new(
                ErrorKind::Quota,
                "the peer sends more than this side accepts",
            )
        })?;
        Ok(())
    }

    /// Processes the results for this side's refs at the peer. Returns the memory of these results.
    pub(super) fn published(
        &mut self,
        body: &[u8],
        own: &[OfferedRef],
        report: &mut Report,
    ) -> Result<u64, Error> {
        let mut bytes = 0;
        for published in Publish::read(body)?.refs {
            let is_in_order = self
                .last_published
                .as_ref()
                .is_none_or(|last| *last < published.name);
            // Only offered refs can have a result, so their number is bounded.
            let is_ours =
                |name: &[u8]| own.binary_search_by(|each| each.name[..].cmp(name)).is_ok();
            if !is_in_order || !is_ours(&published.name) {
                return Err(malformed("a result for a ref that was not offered"));
            }
            self.last_published = Some(published.name.clone());
            bytes += size_of::<PublishedRef>() + published.name.len() + published.stored_as.len();
            report.published_there.push(published);
        }
        Ok(bytes as u64)
    }
}

/// The format of the results of ref updates.
#[derive(Clone, Copy)]
pub(super) struct ResultLimits {
    /// The approximate largest size in bytes of a frame body.
    pub(super) limit_bytes: usize,
    /// Whether the peer accepts the reasons of refusals.
    pub(super) with_reasons: bool,
}

/// Returns the results of ref updates as bodies of frames.
pub(super) fn bodies(refs: &[PublishedRef], terms: ResultLimits) -> Vec<Vec<u8>> {
    let (mut bodies, mut publish, mut bytes) = (Vec::new(), Publish::default(), 0);
    for (at, published) in refs.iter().enumerate() {
        bytes += published.name.len() + published.stored_as.len() + 8;
        let mut published = published.clone();
        if published.stored == StoreResult::Refused && !terms.with_reasons {
            published.stored_as.clear();
        }
        publish.refs.push(published);
        if bytes >= terms.limit_bytes || at + 1 == refs.len() {
            let mut body = Vec::new();
            std::mem::take(&mut publish).write(&mut body);
            bodies.push(body);
            bytes = 0;
        }
    }
    bodies
}
