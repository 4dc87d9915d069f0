//! Checks the commands of a push before its pack is read (`gitprotocol-pack(5)`, "Pushing Data To a
//! Server").

mod packet_buffer;
mod reading;
mod report;

use std::collections::BTreeMap;
use std::io::Read;

use bstr::{BString, ByteSlice as _};
use pronto_io::budget::RequestBudget;
use pronto_wire::pktline::Packet;
use pronto_wire::reader::PacketReader;

use super::PushPolicy;
use crate::{Error, ErrorKind, Result};

use packet_buffer::PacketBuffer;
use reading::CommandReader;
use report::report;

/// The decision about a push.
pub(super) enum Judged<'a> {
    /// The whole push is refused. The value is the report for the client.
    Refused(Vec<u8>),
    /// The push may proceed.
    Allowed(AllowedPush<'a>),
}

/// A push that may proceed.
pub(super) struct AllowedPush<'a> {
    /// The bytes that were read before the decision.
    read: PacketBuffer<'a>,
    /// The refs of the push that accept only fast-forwards, with the reasons.
    pub(super) fast_forward_only: BTreeMap<BString, String>,
    /// The memory that the decisions use.
    charged: u64,
    budget: &'a RequestBudget,
    /// The nonce of the push certificate.
    pub(super) nonce: Option<BString>,
    changes: Vec<Judgment>,
    features: Vec<u8>,
}

/// A ref update with the decision about it.
struct Judgment {
    name: BString,
    deletes: bool,
    /// The reason of the refusal, if the update is refused.
    refusal: Option<String>,
}

impl Judgment {
    /// Returns the reason for the report of a refused push.
    fn reason(&self) -> &str {
        let others = "another ref update of this push was rejected";
        self.refusal.as_deref().unwrap_or(others)
    }
}

impl<'a> AllowedPush<'a> {
    /// Returns the bytes that were read, and releases the memory of the decisions.
    pub(super) fn into_input(self) -> PacketBuffer<'a> {
        drop(self.changes);
        self.budget.give_back(self.charged);
        self.read
    }

    /// Returns the names of the refs that the push creates or updates.
    pub(super) fn set_refs(&self) -> impl Iterator<Item = &BString> {
        let set = self.changes.iter().filter(|change| !change.deletes);
        set.map(|change| &change.name)
    }

    /// Returns whether the client has requested a capability.
    pub(super) fn has_feature(&self, name: &str) -> bool {
        has_feature(&self.features, name)
    }

    /// Refuses the whole push after it was allowed. Returns the report for the client.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Malformed`] if a ref name is too long for a packet.
    pub(super) fn refuse(mut self, reason: &str) -> Result<Vec<u8>> {
        for change in &mut self.changes {
            change.refusal = Some(reason.to_owned());
        }
        report(&self.changes, &self.features, self.budget)
    }
}

/// The properties of the repository and its limits for checking a push.
pub(super) struct PushReceiver<'a> {
    /// Returns the target of a symbolic ref. An update of the symbolic ref also changes its target.
    pub(super) target_of: &'a dyn Fn(&[u8]) -> Option<BString>,
    /// The memory budget for the commands.
    pub(super) budget: &'a RequestBudget,
    /// The largest size in bytes of the commands, or of the push certificate (`command_bytes`).
    pub(super) most_bytes: u64,
    /// Whether a push certificate may replace the commands.
    pub(super) takes_certificates: bool,
    /// Whether every ref can be protected from updates that are not fast-forwards. git protects
    /// only branches (`receive.denyNonFastForwards`), so other refs that need the protection cannot
    /// be updated there.
    pub(super) protects_all_refs: bool,
}

/// Reads the commands of a push and checks each one. If one command is refused, the whole push is
/// refused. Memory is charged to the budget before it is allocated.
///
/// # Errors
/// Fails if the commands are malformed or exceed the limits, or a push certificate replaces them
/// and is not allowed.
pub(super) fn judge_request<'b>(
    input: &mut dyn Read,
    judge: &dyn PushPolicy,
    receiver: &PushReceiver<'b>,
) -> Result<Judged<'b>> {
    let mut packets = PacketReader::new(input);
    let mut reading = CommandReader::new(judge, receiver);
    loop {
        match packets.next_or_end().map_err(malformed_packet)? {
            Some(Packet::Data(payload)) => reading.take(payload)?,
            Some(Packet::Flush) => {
                reading.read.flush()?;
                break;
            }
            None if reading.read.is_empty() => break,
            _ => {
                return Err(malformed(
                    "the list of ref updates ends without a flush packet",
                ));
            }
        }
    }
    reading.finish()?;
    let changes = &reading.changes;
    if changes.iter().any(|change| change.refusal.is_some()) {
        return report(changes, &reading.features, receiver.budget).map(Judged::Refused);
    }
    let mut read = reading.read;
    if packets.has_buffered() {
        let rest = packets.raw().map_err(malformed_packet)?;
        read.rest(rest)?;
    }
    Ok(Judged::Allowed(AllowedPush {
        read,
        fast_forward_only: reading.fast_forward_only,
        charged: reading.charged,
        budget: receiver.budget,
        nonce: reading.nonce,
        changes: reading.changes,
        features: reading.features,
    }))
}

fn has_feature(features: &[u8], name: &str) -> bool {
    let mut features = features.fields();
    features.any(|feature| feature == name.as_bytes())
}

fn malformed(message: &str) -> Error {
    Error::new(ErrorKind::Malformed, message)
}

fn malformed_packet(error: pronto_wire::Error) -> Error {
    error.map_kind(|_| ErrorKind::Malformed)
}

#[cfg(test)]
mod tests;
