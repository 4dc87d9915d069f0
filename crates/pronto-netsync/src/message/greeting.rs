//! Messages of the greeting: hello, accept, error and credit.

use super::{MAX_GLOBS, MAX_NAME_BYTES, MAX_TEXT_BYTES, choice, write_slice};
use crate::Error;
use crate::error::malformed;
use crate::frame::Channel;
use crate::varint::{self, Cursor};

/// The largest number of versions in a greeting.
pub const MAX_VERSIONS: usize = 8;

/// The largest length in bytes of the identity of a repository.
pub const MAX_IDENTITY_BYTES: usize = 64;

/// The object format of a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectFormat {
    /// SHA-1, with ids of 20 bytes.
    Sha1 = 1,
    /// SHA-256, with ids of 32 bytes.
    Sha256 = 2,
}

impl ObjectFormat {
    fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(ObjectFormat::Sha1),
            2 => Some(ObjectFormat::Sha256),
            _ => None,
        }
    }

    /// Returns the length of an object id in bytes.
    pub fn id_bytes(self) -> usize {
        match self {
            ObjectFormat::Sha1 => 20,
            ObjectFormat::Sha256 => 32,
        }
    }
}

/// The direction of the transfer, from the view of the side that states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferRole {
    /// This side sends.
    Source = 1,
    /// This side receives.
    Sink = 2,
    /// This side sends and receives.
    Both = 3,
}

impl TransferRole {
    fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(TransferRole::Source),
            2 => Some(TransferRole::Sink),
            3 => Some(TransferRole::Both),
            _ => None,
        }
    }

    /// Returns whether a side with this role sends.
    pub fn sends(self) -> bool {
        self != TransferRole::Sink
    }

    /// Returns whether a side with this role receives.
    pub fn receives(self) -> bool {
        self != TransferRole::Source
    }

    /// Returns whether a peer with the role `peer` can exchange history with a side of this role.
    pub fn fits(self, peer: TransferRole) -> bool {
        self == TransferRole::Both || peer == TransferRole::Both || self != peer
    }
}

/// The globs that select the refs to synchronise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Globs {
    /// The globs of included names.
    pub include: Vec<Vec<u8>>,
    /// The globs of excluded names, which take precedence.
    pub exclude: Vec<Vec<u8>>,
}

impl Globs {
    fn write(&self, out: &mut Vec<u8>) {
        for globs in [&self.include, &self.exclude] {
            varint::write(out, globs.len() as u64);
            for glob in globs {
                write_slice(out, glob);
            }
        }
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self, Error> {
        let mut read = || -> Result<Vec<Vec<u8>>, Error> {
            let count = cursor.length(MAX_GLOBS)?;
            (0..count)
                .map(|_| cursor.slice(MAX_NAME_BYTES).map(<[u8]>::to_vec))
                .collect()
        };
        Ok(Globs {
            include: read()?,
            exclude: read()?,
        })
    }
}

/// The greeting: the first frame of either side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The protocol versions that the sender supports, in ascending order.
    pub versions: Vec<u64>,
    /// The object format of the sender's repository.
    pub object_format: ObjectFormat,
    /// The requested role of the sender.
    pub role: TransferRole,
    /// Further capabilities as bits; unknown ones are ignored.
    pub capabilities: u64,
    /// The name of the requested repository, or an empty name if there is only one.
    pub repository: Vec<u8>,
    /// The identity of the sender's repository, or an empty one.
    pub identity: Vec<u8>,
    /// The refs that the sender wants to synchronise.
    pub globs: Globs,
    /// The number of bytes that each channel may send before the first credit.
    pub window_bytes: u64,
    /// Thirty-two random bytes.
    pub nonce: [u8; 32],
}

impl Hello {
    /// Appends the encoded body to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        varint::write(out, self.versions.len() as u64);
        for version in &self.versions {
            varint::write(out, *version);
        }
        out.push(self.object_format as u8);
        out.push(self.role as u8);
        varint::write(out, self.capabilities);
        write_slice(out, &self.repository);
        write_slice(out, &self.identity);
        self.globs.write(out);
        varint::write(out, self.window_bytes);
        out.extend_from_slice(&self.nonce);
    }

    /// Decodes the body.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Malformed` if `body` is not a valid `Hello` frame.
    pub fn read(body: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(body);
        let count = cursor.length(MAX_VERSIONS)?;
        let versions: Vec<u64> = (0..count)
            .map(|_| cursor.varint())
            .collect::<Result<_, _>>()?;
        if versions.is_empty() || !versions.is_sorted_by(|before, after| before < after) {
            return Err(malformed("the versions are not sorted").at_offset(0));
        }
        let hello = Hello {
            versions,
            object_format: choice(&mut cursor, "object format", ObjectFormat::from_byte)?,
            role: choice(&mut cursor, "role", TransferRole::from_byte)?,
            capabilities: cursor.varint()?,
            repository: cursor.slice(MAX_NAME_BYTES)?.to_vec(),
            identity: cursor.slice(MAX_IDENTITY_BYTES)?.to_vec(),
            globs: Globs::read(&mut cursor)?,
            window_bytes: cursor.varint()?,
            nonce: {
                let mut nonce = [0; 32];
                nonce.copy_from_slice(cursor.take(32)?);
                nonce
            },
        };
        cursor.finish()?;
        Ok(hello)
    }

    /// Returns the highest version that both sides support.
    pub fn common_version(&self, peer: &Hello) -> Option<u64> {
        self.versions
            .iter()
            .rev()
            .find(|version| peer.versions.contains(version))
            .copied()
    }
}

/// The acceptance of a greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accept {
    /// The version in use.
    pub version: u64,
}

impl Accept {
    /// Appends the encoded body to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        varint::write(out, self.version);
    }

    /// Decodes the body.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Malformed` if `body` is not a valid `Accept` frame.
    pub fn read(body: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(body);
        let version = cursor.varint()?;
        cursor.finish()?;
        Ok(Accept { version })
    }
}

/// The reason for which a side ends the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRefusal {
    /// The error code, for programs.
    pub code: u64,
    /// The error message, of at most [`MAX_TEXT_BYTES`](super::MAX_TEXT_BYTES).
    pub text: String,
}

impl SessionRefusal {
    /// Appends the encoded body to `out`, with a truncated text if it is too long.
    pub fn write(&self, out: &mut Vec<u8>) {
        varint::write(out, self.code);
        let end = floor_char_boundary(&self.text, MAX_TEXT_BYTES);
        write_slice(out, &self.text.as_bytes()[..end]);
    }

    /// Decodes the body. Control characters in the text become question marks, so that a peer
    /// cannot control the terminal.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Malformed` if `body` is not a valid `Error` frame.
    pub fn read(body: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(body);
        let code = cursor.varint()?;
        let text = cursor.slice(MAX_TEXT_BYTES)?;
        cursor.finish()?;
        let text = String::from_utf8_lossy(text);
        let text = text
            .chars()
            .map(|each| if each.is_control() { '?' } else { each });
        Ok(SessionRefusal {
            code,
            text: text.collect(),
        })
    }
}

fn floor_char_boundary(text: &str, limit: usize) -> usize {
    let mut places = (0..=limit.min(text.len())).rev();
    places.find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

/// Additional bytes that may be sent on a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credit {
    /// The channel, which is never [`Channel::Control`].
    pub channel: Channel,
    /// The number of additional bytes.
    pub bytes: u64,
}

impl Credit {
    /// Appends the encoded body to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(self.channel as u8);
        varint::write(out, self.bytes);
    }

    /// Decodes the body.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Malformed` if `body` is not a valid `Credit` frame.
    pub fn read(body: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(body);
        let with_credit =
            |byte| Channel::from_byte(byte).filter(|&channel| channel != Channel::Control);
        let credit = Credit {
            channel: choice(&mut cursor, "channel", with_credit)?,
            bytes: cursor.varint()?,
        };
        cursor.finish()?;
        Ok(credit)
    }
}
