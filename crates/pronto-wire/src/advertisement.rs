//! The refs of the remote side: the ref advertisement of versions 0 and 1, the capability advertisement
//! of version 2, and its `ls-refs` command (`gitprotocol-pack(5)`, `gitprotocol-v2(5)`).

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::{Kind, ObjectId};
use pronto_refs::RefName;

use crate::bounds::{ByteAllowance, MOST_REF_BYTES};
use crate::capabilities::{AGENT, Capabilities};
use crate::error::{Error, malformed};
use crate::pktline::{self, Packet};

/// The version of the protocol (`protocol.version`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum ProtocolVersion {
    /// A ref advertisement, then one negotiation.
    V0,
    /// Like [`V0`](Self::V0), with an additional first line.
    V1,
    /// A capability advertisement, then commands.
    #[default]
    V2,
}

/// One ref of the remote side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteRef {
    /// The full name of the ref, for example `HEAD` or `refs/heads/main`.
    pub name: BString,
    /// The object to which the ref points; `None` for a `HEAD` that points to an unborn branch.
    pub id: Option<ObjectId>,
    /// The peeled object, if the ref points to an annotated tag.
    pub peeled: Option<ObjectId>,
    /// The target of a symref, if the remote side reports it. An invalid name is ignored.
    pub symref_target: Option<RefName>,
}

/// The first message of the remote side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerGreeting {
    /// The version that the remote side chose.
    pub version: ProtocolVersion,
    /// The capabilities.
    pub capabilities: Capabilities,
    /// The hash function of the remote repository (`object-format`).
    pub object_format: Kind,
    /// The refs of the remote side; always empty in version 2.
    pub refs: Vec<RemoteRef>,
    /// The shallow commits of the remote side (versions 0 and 1).
    pub shallow: Vec<ObjectId>,
    /// Objects that the remote side has without a visible ref (`.have`).
    pub haves: Vec<ObjectId>,
}

/// The maximum length of all capabilities together. Version 2 sends a few hundred bytes.
const MOST_CAPABILITY_BYTES: usize = 1 << 20;

/// The maximum number of capabilities. In version 0 they are searched for the symref target of each
/// ref.
const MOST_CAPABILITIES: usize = 1024;

/// Parses the first message packet by packet.
#[derive(Debug)]
pub struct GreetingParser {
    room: ByteAllowance,
    capability_room: ByteAllowance,
    seen_service: bool,
    started: bool,
    /// Whether the parser is in the line `# service=…`, which HTTP sends first, or before the flush
    /// packet after it.
    in_service: bool,
    version: Option<ProtocolVersion>,
    capabilities: Option<Capabilities>,
    object_format: Option<Kind>,
    refs: Vec<RemoteRef>,
    shallow: Vec<ObjectId>,
    haves: Vec<ObjectId>,
}

impl Default for GreetingParser {
    fn default() -> Self {
        GreetingParser {
            room: ByteAllowance::new(MOST_REF_BYTES, "references"),
            capability_room: ByteAllowance::new(MOST_CAPABILITY_BYTES, "capabilities"),
            seen_service: false,
            started: false,
            in_service: false,
            version: None,
            capabilities: None,
            object_format: None,
            refs: Vec::new(),
            shallow: Vec::new(),
            haves: Vec::new(),
        }
    }
}

impl GreetingParser {
    /// Takes one packet. Returns the message after its last packet.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) if the packet is not valid at
    /// its position or limits are exceeded.
    pub fn push(&mut self, packet: Packet<'_>) -> Result<Option<ServerGreeting>, Error> {
        let line = match packet {
            Packet::Flush if self.in_service => {
                self.in_service = false;
                self.started = false;
                return Ok(None);
            }
            Packet::Flush => return self.complete().map(Some),
            Packet::Data(_) => packet.text().unwrap_or_default(),
            _ => {
                return Err(malformed(
                    "protocol error: unexpected packet in the greeting",
                ));
            }
        };
        let first = !std::mem::replace(&mut self.started, true);
        match line {
            _ if self.in_service => return Err(unexpected(line)),
            _ if first && !self.seen_service && line.starts_with(b"# service=") => {
                self.in_service = true;
                self.seen_service = true;
            }
            b"version 2" if first => self.version = Some(ProtocolVersion::V2),
            b"version 1" if first => self.version = Some(ProtocolVersion::V1),
            b"version 0" if first => self.version = Some(ProtocolVersion::V0),
            _ if self.version == Some(ProtocolVersion::V2) => {
                if line.starts_with(b"version ") {
                    return Err(unexpected(line));
                }
                self.capability_room.take(line.len())?;
                let capabilities = self.capabilities.get_or_insert_default();
                capabilities.push(line);
                check_count(capabilities)?;
            }
            _ => self.push_ref(line)?,
        }
        Ok(None)
    }

    fn push_ref(&mut self, line: &[u8]) -> Result<(), Error> {
        let line = match line.find_byte(0) {
            Some(end) if self.capabilities.is_none() => {
                let capabilities = Capabilities::from_words(&line[end + 1..]);
                check_count(&capabilities)?;
                self.object_format = Some(capabilities.object_format()?);
                self.capabilities = Some(capabilities);
                &line[..end]
            }
            _ => line,
        };
        self.room.take(size_of::<RemoteRef>() + line.len())?;
        let format = self.object_format.unwrap_or(Kind::Sha1);
        if let Some(id) = line.strip_prefix(b"shallow ") {
            self.shallow.push(parse_id(id, format)?);
            return Ok(());
        }
        let (id, name) = line.split_once_str(" ").ok_or_else(|| unexpected(line))?;
        let id = parse_id(id, format)?;
        if name == b".have" {
            self.haves.push(id);
            return Ok(());
        }
        if name == b"capabilities^{}" {
            return Ok(());
        }
        if let Some(name) = name.strip_suffix(b"^{}") {
            if let Some(tag) = self.refs.last_mut().filter(|last| last.name == name) {
                tag.peeled = Some(id);
            }
            return Ok(());
        }
        let symref_target = self
            .capabilities
            .iter()
            .flat_map(|capabilities| capabilities.values("symref"))
            .filter_map(|value| value.split_once_str(":"))
            .find(|(source, _)| *source == name)
            .and_then(|(_, target)| RefName::new(target).ok());
        self.refs.push(RemoteRef {
            name: name.into(),
            id: Some(id),
            peeled: None,
            symref_target,
        });
        Ok(())
    }

    fn complete(&mut self) -> Result<ServerGreeting, Error> {
        let capabilities = self.capabilities.take().unwrap_or_default();
        let object_format = capabilities.object_format()?;
        Ok(ServerGreeting {
            version: self.version.unwrap_or(ProtocolVersion::V0),
            capabilities,
            object_format,
            refs: std::mem::take(&mut self.refs),
            shallow: std::mem::take(&mut self.shallow),
            haves: std::mem::take(&mut self.haves),
        })
    }
}

fn check_count(capabilities: &Capabilities) -> Result<(), Error> {
    match capabilities.len() <= MOST_CAPABILITIES {
        true => Ok(()),
        false => Err(malformed("protocol error: too many capabilities")),
    }
}

/// The arguments of the command `ls-refs`.
#[derive(Clone, Debug, Default)]
pub struct LsRefs {
    /// Request only refs whose names start with one of these prefixes (`ref-prefix`); all refs if the
    /// list is empty. The remote side may send others as well.
    pub prefixes: Vec<BString>,
    /// Options for the server (`--server-option`).
    pub server_options: Vec<BString>,
}

impl LsRefs {
    /// Appends the command to `out`, for a server that sent `capabilities`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) if a value is longer than a
    /// packet.
    pub fn write(&self, capabilities: &Capabilities, out: &mut Vec<u8>) -> Result<(), Error> {
        write_command("ls-refs", capabilities, &self.server_options, None, out)?;
        pktline::write(out, b"peel\n")?;
        pktline::write(out, b"symrefs\n")?;
        if capabilities.has_feature("ls-refs", "unborn") {
            pktline::write(out, b"unborn\n")?;
        }
        for prefix in &self.prefixes {
            pktline::write_parts(out, &[b"ref-prefix ", prefix, b"\n"])?;
        }
        pktline::write_flush(out);
        Ok(())
    }
}

/// Appends the start of a version 2 command, including the delimiter packet.
pub(crate) fn write_command(
    name: &str,
    capabilities: &Capabilities,
    server_options: &[BString],
    session: Option<&BStr>,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    pktline::write_parts(out, &[b"command=", name.as_bytes(), b"\n"])?;
    if capabilities.has("agent") {
        pktline::write_parts(out, &[b"agent=", AGENT.as_bytes(), b"\n"])?;
    }
    if let Some(id) = session.filter(|_| capabilities.has("session-id")) {
        pktline::write_parts(out, &[b"session-id=", id, b"\n"])?;
    }
    if let Some(format) = capabilities.value("object-format") {
        pktline::write_parts(out, &[b"object-format=", format, b"\n"])?;
    }
    if capabilities.has("server-option") {
        for option in server_options {
            pktline::write_parts(out, &[b"server-option=", option, b"\n"])?;
        }
    }
    pktline::write_delimiter(out);
    Ok(())
}

/// Parses one line of the response to `ls-refs`.
///
/// # Errors
/// Fails with [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) if `line` is not a valid ref line.
pub fn parse_ref_line(line: &[u8], format: Kind) -> Result<RemoteRef, Error> {
    let mut fields = line.split_str(" ");
    let id = match fields.next() {
        Some(b"unborn") => None,
        Some(id) => Some(parse_id(id, format)?),
        None => return Err(unexpected(line)),
    };
    let name = fields
        .next()
        .filter(|name| !name.is_empty())
        .ok_or_else(|| unexpected(line))?;
    let mut parsed = RemoteRef {
        name: name.into(),
        id,
        peeled: None,
        symref_target: None,
    };
    for attribute in fields {
        if let Some(target) = attribute.strip_prefix(b"symref-target:") {
            parsed.symref_target = RefName::new(target).ok();
        } else if let Some(id) = attribute.strip_prefix(b"peeled:") {
            parsed.peeled = Some(parse_id(id, format)?);
        }
    }
    Ok(parsed)
}

/// Parses a full hexadecimal object id of the hash function `format`.
pub(crate) fn parse_id(hex: &[u8], format: Kind) -> Result<ObjectId, Error> {
    pronto_hash::parse_hex(hex)
        .ok()
        .filter(|id| id.kind() == format)
        .ok_or_else(|| {
            malformed(format!(
                "protocol error: expected an object id, got '{}'",
                hex[..hex.len().min(80)].escape_ascii()
            ))
        })
}

pub(crate) fn unexpected(line: &[u8]) -> Error {
    malformed(format!(
        "protocol error: unexpected line '{}'",
        line[..line.len().min(200)].escape_ascii()
    ))
}
