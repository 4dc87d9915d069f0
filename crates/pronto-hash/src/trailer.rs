//! Digests for checksums at the end of files.

use sha2::Digest as _;

use crate::{Kind, ObjectId};

/// Digests a file for the checksum at its end, without collision detection.
///
/// The trailer of a pack or an index guards against accidents: an attacker who can forge the file
/// can forge the trailer. SHA-1 is considerably faster without the detection.
#[derive(Clone)]
pub struct TrailerDigester(State);

#[derive(Clone)]
enum State {
    Sha1(sha1::Sha1),
    Sha256(sha2::Sha256),
}

impl TrailerDigester {
    /// Begins an empty file.
    ///
    /// # Panics
    ///
    /// For a kind of hash this crate was not built with; there are none today.
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        TrailerDigester(match kind {
            Kind::Sha1 => State::Sha1(sha1::Sha1::new()),
            Kind::Sha256 => State::Sha256(sha2::Sha256::new()),
            other => panic!("no digest for {other}"),
        })
    }

    /// Appends `bytes`.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            State::Sha1(hasher) => hasher.update(bytes),
            State::Sha256(hasher) => hasher.update(bytes),
        }
    }

    /// Ends the file and gives the checksum.
    #[must_use]
    pub fn finish(self) -> ObjectId {
        match self.0 {
            State::Sha1(hasher) => ObjectId::Sha1(hasher.finalize().into()),
            State::Sha256(hasher) => ObjectId::Sha256(hasher.finalize().into()),
        }
    }
}

impl std::fmt::Debug for TrailerDigester {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self.0 {
            State::Sha1(_) => "TrailerDigester(Sha1)",
            State::Sha256(_) => "TrailerDigester(Sha256)",
        })
    }
}
