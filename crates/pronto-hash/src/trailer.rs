//! Computes the checksums at the end of files.

use sha2::Digest as _;

use crate::{Kind, ObjectId};

/// Computes the trailing checksum of a file, without collision detection.
///
/// The checksum of a pack or an index protects against accidental corruption. An attacker who can
/// forge the file can also forge the checksum. SHA-1 is considerably faster without the detection.
#[derive(Clone)]
pub struct TrailerDigester(TrailerHasher);

#[derive(Clone)]
enum TrailerHasher {
    Sha1(sha1::Sha1),
    Sha256(sha2::Sha256),
}

impl TrailerDigester {
    /// Creates a digester for an empty file.
    ///
    /// # Panics
    ///
    /// Panics if this crate was built without the hash function `kind`. All hash functions are
    /// built at present.
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        TrailerDigester(match kind {
            Kind::Sha1 => TrailerHasher::Sha1(sha1::Sha1::new()),
            Kind::Sha256 => TrailerHasher::Sha256(sha2::Sha256::new()),
            other => panic!("unsupported hash function {other}"),
        })
    }

    /// Appends `bytes` to the file.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            TrailerHasher::Sha1(hasher) => hasher.update(bytes),
            TrailerHasher::Sha256(hasher) => hasher.update(bytes),
        }
    }

    /// Returns the checksum of the file.
    #[must_use]
    pub fn finish(self) -> ObjectId {
        match self.0 {
            TrailerHasher::Sha1(hasher) => ObjectId::Sha1(hasher.finalize().into()),
            TrailerHasher::Sha256(hasher) => ObjectId::Sha256(hasher.finalize().into()),
        }
    }
}

impl std::fmt::Debug for TrailerDigester {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self.0 {
            TrailerHasher::Sha1(_) => "TrailerDigester(Sha1)",
            TrailerHasher::Sha256(_) => "TrailerDigester(Sha256)",
        })
    }
}
