//! The parser of the commands of a push, which stores their bytes and decides about each command.

use std::collections::BTreeMap;

use bstr::{BString, ByteSlice as _};

use super::packet_buffer::PacketBuffer;
use super::{Judgment, PushReceiver, malformed};
use crate::access::RequestedRefChange;
use crate::error::without_room;
use crate::service::PushPolicy;
use crate::{Error, ErrorKind, Result};

/// The length in bytes of the pkt-line header.
const LENGTH_BYTES: u64 = 4;

/// The memory that an entry of a map uses besides its strings.
const ENTRY_BYTES: usize = 96;

/// The commands that were read, and the decisions about them.
pub(super) struct CommandReader<'a, 'b> {
    judge: &'a dyn PushPolicy,
    receiver: &'a PushReceiver<'b>,
    /// The bytes that were read.
    pub(super) read: PacketBuffer<'b>,
    /// The number of these bytes.
    bytes: u64,
    /// The memory that the decisions use.
    pub(super) charged: u64,
    pub(super) features: Vec<u8>,
    /// The text of the push certificate, which is sent in several packets.
    certificate: Option<Vec<u8>>,
    is_in_certificate: bool,
    pub(super) nonce: Option<BString>,
    pub(super) changes: Vec<Judgment>,
    pub(super) fast_forward_only: BTreeMap<BString, String>,
}

impl<'a, 'b> CommandReader<'a, 'b> {
    pub(super) fn new(judge: &'a dyn PushPolicy, receiver: &'a PushReceiver<'b>) -> Self {
        CommandReader {
            judge,
            receiver,
            read: PacketBuffer::new(receiver.budget),
            bytes: 0,
            charged: 0,
            features: Vec::new(),
            certificate: None,
            is_in_certificate: false,
            nonce: None,
            changes: Vec::new(),
            fast_forward_only: BTreeMap::new(),
        }
    }

    /// Processes a packet.
    ///
    /// # Errors
    /// Fails if the packet is malformed, or the budget has no room.
    pub(super) fn take(&mut self, payload: &[u8]) -> Result<()> {
        let most = self.receiver.most_bytes;
        let bytes = self.bytes + payload.len() as u64;
        self.bytes = bytes + LENGTH_BYTES;
        if bytes > most {
            let message = format!(
                "the ref updates of the push have more than {most} bytes (limits.command_bytes of \
                 the server)"
            );
            return Err(malformed(&message).with_hint("push fewer refs at a time"));
        }
        self.read.packet(payload)?;
        if self.is_in_certificate && self.certificate.is_some() {
            // The text buffer grows by doubling.
            self.charge(2 * payload.len())?;
        }
        if let Some(text) = self.certificate.as_mut().filter(|_| self.is_in_certificate) {
            match payload {
                b"push-cert-end\n" => self.is_in_certificate = false,
                _ => text.extend_from_slice(payload),
            }
            return Ok(());
        }
        let line = payload.strip_suffix(b"\n").unwrap_or(payload);
        if line.starts_with(b"shallow ") {
            return Ok(());
        }
        let (line, words) = line.split_once_str("\0").unwrap_or((line, b""));
        if self.features.is_empty() {
            self.features = words.to_vec();
        }
        if line == b"push-cert" {
            return self.begin_certificate();
        }
        self.judge(&parse(line)?)
    }

    /// Charges the memory of the decisions to the budget.
    fn charge(&mut self, bytes: usize) -> Result<()> {
        let bytes = bytes as u64;
        self.receiver.budget.charge(bytes).map_err(without_room)?;
        self.charged += bytes;
        Ok(())
    }

    fn begin_certificate(&mut self) -> Result<()> {
        if !self.receiver.takes_certificates {
            let message =
                "this repository does not accept signed pushes: receive.certNonceSeed is not set";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        if self.certificate.is_some() {
            return Err(malformed("the push has more than one push certificate"));
        }
        self.certificate = Some(Vec::new());
        self.is_in_certificate = true;
        Ok(())
    }

    /// Decides about the commands of the push certificate, which are the lines after the empty
    /// line. The signature contains no commands, so the start of the signature does not matter.
    ///
    /// # Errors
    /// Fails if the certificate is malformed.
    pub(super) fn finish(&mut self) -> Result<()> {
        let Some(text) = self.certificate.take() else {
            return Ok(());
        };
        if text.contains(&0) || self.is_in_certificate {
            return Err(malformed("the push certificate is incomplete"));
        }
        let Some((head, body)) = text.split_once_str("\n\n") else {
            return Err(malformed("the push certificate contains no ref updates"));
        };
        let nonce = head.lines().find_map(|line| line.strip_prefix(b"nonce "));
        self.nonce = nonce.map(BString::from);
        let mut is_signature = false;
        for line in body.lines() {
            is_signature |= line.starts_with(b"-----BEGIN ");
            match (parse(line), is_signature) {
                (Ok(change), false) => self.judge(&change)?,
                (Ok(_), true) => {
                    return Err(malformed(
                        "the signature in the push certificate contains a line that looks like a \
                         ref update",
                    ));
                }
                (Err(_), true) => {}
                (Err(error), false) => return Err(error),
            }
        }
        Ok(())
    }

    fn judge(&mut self, change: &RequestedRefChange<'_>) -> Result<()> {
        // The list grows by doubling.
        self.charge(change.name.len() + 2 * size_of::<Judgment>())?;
        let target = (self.receiver.target_of)(change.name);
        let changed = [
            Some(change.name),
            target.as_ref().map(|name| name.as_slice()),
        ];
        let mut changed = changed.into_iter().flatten();
        let mut names = changed.clone();
        let mut refusal =
            changed.find_map(|name| self.judge.refusal(&RequestedRefChange { name, ..*change }));
        if let Some(reason) = names.find_map(|name| self.judge.forbids_force(name)) {
            let is_protected =
                self.receiver.protects_all_refs || change.name.starts_with(b"refs/heads/");
            if !is_protected && !change.creates && !change.deletes {
                refusal = refusal.or_else(|| Some(reason.clone()));
            }
            // The entry is kept longer than the decisions.
            let entry = change.name.len() + reason.len() + ENTRY_BYTES;
            let charged = self.receiver.budget.charge(entry as u64);
            charged.map_err(without_room)?;
            self.fast_forward_only.insert(change.name.into(), reason);
        }
        self.charge(refusal.as_ref().map_or(0, String::len))?;
        self.changes.push(Judgment {
            name: change.name.into(),
            deletes: change.deletes,
            refusal,
        });
        Ok(())
    }
}

/// Parses `OLD NEW NAME`.
fn parse(line: &[u8]) -> Result<RequestedRefChange<'_>> {
    let mut parts = line.splitn_str(3, " ");
    let (old, new, name) = (parts.next(), parts.next(), parts.next());
    let is_id = |id: &&[u8]| matches!(id.len(), 40 | 64) && id.iter().all(u8::is_ascii_hexdigit);
    let (Some(old), Some(new), Some(name)) = (old.filter(is_id), new.filter(is_id), name) else {
        return Err(malformed("malformed ref update: expected 'OLD NEW REF'"));
    };
    let is_null = |id: &[u8]| id.iter().all(|digit| *digit == b'0');
    Ok(RequestedRefChange {
        name,
        creates: is_null(old),
        deletes: is_null(new),
    })
}
