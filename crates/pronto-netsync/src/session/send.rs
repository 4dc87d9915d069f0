//! Sends segments.

use std::io::Read as _;
use std::sync::Arc;

use super::Report;
use crate::error::malformed;
use crate::frame::{Channel, FrameType, FrameWriter};
use crate::message::{SegmentAck, SegmentEnd, SegmentStart, Sent};
use crate::repository::{OutgoingSegment, SegmentContent, SyncRepository};
use crate::{Error, ErrorKind};

/// The largest number of unacknowledged segments.
const MAX_UNCONFIRMED: u64 = 8;

/// The smallest size in bytes of a piece of a segment, except the last one.
const LEAST_PIECE: usize = 32 * 1024;

/// The state of sending.
#[derive(Default)]
pub(super) struct SendState {
    is_active: bool,
    is_dry_run: bool,
    budget_bytes: u64,
    current: Option<SegmentInTransfer>,
    started: u64,
    confirmed: u64,
    was_all_sent: bool,
}

struct SegmentInTransfer {
    segment: OutgoingSegment,
    was_announced: bool,
    sent_bytes: u64,
}

impl SendState {
    pub(super) fn begin(&mut self, budget_bytes: u64, is_dry_run: bool) {
        self.is_active = true;
        self.is_dry_run = is_dry_run;
        self.budget_bytes = budget_bytes;
    }

    /// Returns whether segments have to be sent or acknowledged.
    pub(super) fn is_under_way(&self) -> bool {
        self.is_active && !(self.was_all_sent && self.confirmed == self.started)
    }

    /// Queues frames as far as there is room and credit.
    pub(super) fn run(
        &mut self,
        repository: &mut impl SyncRepository,
        writer: &mut FrameWriter,
        report: &mut Report,
    ) -> Result<(), Error> {
        while self.is_active && !self.was_all_sent {
            if self.current.is_none() && !self.next(repository, writer)? {
                return Ok(());
            }
            if !self.step(writer, report)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Starts the next segment. Returns `false` if no segment is available yet, or all were sent.
    fn next(
        &mut self,
        repository: &mut impl SyncRepository,
        writer: &mut FrameWriter,
    ) -> Result<bool, Error> {
        if self.started - self.confirmed >= MAX_UNCONFIRMED
            || writer.ready_bytes(Channel::Transfer).is_none()
        {
            return Ok(false);
        }
        let next = match self.is_dry_run {
            true => None,
            false => repository.next_segment()?,
        };
        let Some(segment) = next else {
            let mut body = Vec::new();
            let sent = Sent {
                segments: self.started,
            };
            sent.write(&mut body);
            self.was_all_sent = writer.send(FrameType::Sent, &body)?;
            return Ok(false);
        };
        let rest = self.budget_bytes.checked_sub(segment.bytes);
        self.budget_bytes = rest.ok_or_else(|| {
            Error::new(
                ErrorKind::Quota,
                "the transfer is larger than the peer accepts in one session",
            )
        })?;
        self.current = Some(SegmentInTransfer {
            segment,
            was_announced: false,
            sent_bytes: 0,
        });
        Ok(true)
    }

    /// Queues one frame of the current segment. Returns `false` if there is no room or credit.
    fn step(&mut self, writer: &mut FrameWriter, report: &mut Report) -> Result<bool, Error> {
        let Some(outgoing) = &mut self.current else {
            return Ok(false);
        };
        let segment = &mut outgoing.segment;
        let mut body = Vec::new();
        if !outgoing.was_announced {
            let message = SegmentStart {
                id: self.started,
                kind: segment.kind,
                objects: segment.objects,
                bytes: segment.bytes,
            };
            message.write(&mut body);
            outgoing.was_announced = writer.send(FrameType::Segment, &body)?;
            return Ok(outgoing.was_announced);
        }
        let left = segment.bytes - outgoing.sent_bytes;
        if left == 0 {
            let message = SegmentEnd {
                id: self.started,
                checksum: segment.checksum.as_slice().to_vec(),
                resume: segment.resume,
            };
            message.write(&mut body);
            if !writer.send(FrameType::SegmentEnd, &body)? {
                return Ok(false);
            }
            self.started += 1;
            self.current = None;
            return Ok(true);
        }
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        let ready = writer.ready_bytes(Channel::Transfer).unwrap_or(0);
        let count = left.min(ready);
        if count < left.min(LEAST_PIECE) {
            return Ok(false);
        }
        let queued = match &mut segment.content {
            SegmentContent::Memory(bytes) => {
                let start = outgoing.sent_bytes as usize;
                let range = start..start + count;
                writer.send_shared(FrameType::Data, Arc::clone(bytes), range)?
            }
            SegmentContent::Stream(stream) => {
                let mut piece = vec![0; count];
                stream.read_exact(&mut piece).map_err(|error| {
                    Error::new(ErrorKind::Repository, "cannot read a segment").because(error)
                })?;
                writer.send_shared(FrameType::Data, Arc::new(piece), 0..count)?
            }
        };
        if !queued {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "a piece of a segment does not fit into a frame",
            ));
        }
        outgoing.sent_bytes += count as u64;
        report.sent_bytes += count as u64;
        Ok(true)
    }

    pub(super) fn acknowledged(&mut self, body: &[u8], report: &mut Report) -> Result<(), Error> {
        let ack = SegmentAck::read(body)?;
        if ack.id != self.confirmed || ack.id >= self.started {
            return Err(malformed(format!(
                "the peer confirms segment {} out of turn",
                ack.id
            )));
        }
        self.confirmed += 1;
        report.confirmed_segments = self.confirmed;
        Ok(())
    }
}
