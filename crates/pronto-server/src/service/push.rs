//! Judges the commands of a push before its pack is read (`gitprotocol-pack(5)`, "Pushing Data To a
//! Server").

mod kept;
mod reading;
mod report;

use std::collections::BTreeMap;
use std::io::Read;

use bstr::{BString, ByteSlice as _};
use pronto_io::budget::Budget;
use pronto_wire::pktline::Packet;
use pronto_wire::reader::PacketReader;

use super::Judge;
use crate::{Error, ErrorKind, Result};

use kept::Kept;
use reading::Reading;
use report::report;

/// The decision about a push.
pub(super) enum Judged<'a> {
    /// Nothing of the push happens; the report for the client.
    Refused(Vec<u8>),
    /// The push may proceed.
    Allowed(Allowed<'a>),
}

/// A push that may proceed.
pub(super) struct Allowed<'a> {
    /// The bytes that were read.
    read: Kept<'a>,
    /// The refs of it that may only be fast-forwarded, with the reasons.
    pub(super) fast_forward_only: BTreeMap<BString, String>,
    /// The memory that the judgments have taken.
    charged: u64,
    budget: &'a Budget,
    /// The nonce of its certificate.
    pub(super) nonce: Option<BString>,
    changes: Vec<Judgment>,
    features: Vec<u8>,
}

/// A change that was judged.
struct Judgment {
    name: BString,
    deletes: bool,
    /// Why it is refused.
    refusal: Option<String>,
}

impl Judgment {
    /// Returns the reason for the report of a push that is refused.
    fn reason(&self) -> &str {
        let others = "another change of this push is refused";
        self.refusal.as_deref().unwrap_or(others)
    }
}

impl<'a> Allowed<'a> {
    /// Returns the bytes that were read, and gives the memory of the judgments back.
    pub(super) fn into_input(self) -> Kept<'a> {
        drop(self.changes);
        self.budget.give_back(self.charged);
        self.read
    }

    /// Returns the names of the refs that get a value.
    pub(super) fn set_refs(&self) -> impl Iterator<Item = &BString> {
        let set = self.changes.iter().filter(|change| !change.deletes);
        set.map(|change| &change.name)
    }

    /// Returns whether the client has chosen a feature.
    pub(super) fn has_feature(&self, name: &str) -> bool {
        has_feature(&self.features, name)
    }

    /// Refuses the whole push after all. Returns the report for the client.
    ///
    /// # Errors
    /// A name is too long for a packet.
    pub(super) fn refuse(mut self, reason: &str) -> Result<Vec<u8>> {
        for change in &mut self.changes {
            change.refusal = Some(reason.to_owned());
        }
        report(&self.changes, &self.features, self.budget)
    }
}

/// The repository's part in the judgment of a push.
pub(super) struct Receiver<'a> {
    /// Returns the ref that a symbolic ref leads to, which a change of it changes, too.
    pub(super) target_of: &'a dyn Fn(&[u8]) -> Option<BString>,
    /// The memory that the commands may take.
    pub(super) budget: &'a Budget,
    /// The most bytes of the commands, or of the certificate (`command_bytes`).
    pub(super) most_bytes: u64,
    /// Whether a certificate may take the place of the commands.
    pub(super) takes_certificates: bool,
    /// Whether every ref can be protected from changes that are no fast-forwards. git protects branches only
    /// (`receive.denyNonFastForwards`), so other refs that need it may not change there.
    pub(super) protects_all_refs: bool,
}

/// Reads the commands of a push and judges each. If one is refused, the whole push is. All that is kept of them is charged
/// before.
///
/// # Errors
/// The commands are malformed or too many, or a certificate takes their place and may not.
pub(super) fn judge_request<'b>(
    input: &mut dyn Read,
    judge: &dyn Judge,
    receiver: &Receiver<'b>,
) -> Result<Judged<'b>> {
    let mut packets = PacketReader::new(input);
    let mut reading = Reading::new(judge, receiver);
    loop {
        match packets.next_or_end().map_err(malformed_packet)? {
            Some(Packet::Data(payload)) => reading.take(payload)?,
            Some(Packet::Flush) => {
                reading.read.flush()?;
                break;
            }
            None if reading.read.is_empty() => break,
            _ => return Err(malformed("the list of changes has no end")),
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
    Ok(Judged::Allowed(Allowed {
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
