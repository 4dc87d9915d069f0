//! Digests one stream at a time.

use sha2::Digest as _;

use crate::{Collision, Kind, ObjectId};

/// Computes the object id of one stream of bytes, with detection of SHA-1 collision attacks.
///
/// Uses the SHA instructions of the processor if it has them. Does not allocate.
#[derive(Clone)]
pub struct Digester(CheckedHasher);

#[derive(Clone)]
enum CheckedHasher {
    Sha1(sha1dc::Hasher),
    Sha256(sha2::Sha256),
}

impl Digester {
    /// Creates a digester with an empty stream.
    ///
    /// # Panics
    ///
    /// Panics if this crate was built without the hash function `kind`. All hash functions are
    /// built at present.
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        Digester(match kind {
            Kind::Sha1 => CheckedHasher::Sha1(sha1dc::Hasher::new()),
            Kind::Sha256 => CheckedHasher::Sha256(sha2::Sha256::new()),
            other => panic!("unsupported hash function {other}"),
        })
    }

    /// Appends `bytes` to the stream.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            CheckedHasher::Sha1(hasher) => hasher.update(bytes),
            CheckedHasher::Sha256(hasher) => hasher.update(bytes),
        }
    }

    /// Returns the id of the stream.
    ///
    /// # Errors
    ///
    /// Fails with [`Collision`] if a SHA-1 stream contains a block of a known type of collision
    /// attack.
    pub fn finish(self) -> Result<ObjectId, Collision> {
        match self.0 {
            CheckedHasher::Sha1(hasher) => match hasher.finalize() {
                Ok(digest) => Ok(ObjectId::Sha1(digest.to_bytes())),
                Err(collision) => Err(Collision::new(ObjectId::Sha1(
                    collision.digest().to_bytes(),
                ))),
            },
            CheckedHasher::Sha256(hasher) => Ok(ObjectId::Sha256(hasher.finalize().into())),
        }
    }
}

impl std::fmt::Debug for Digester {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self.0 {
            CheckedHasher::Sha1(_) => "Digester(Sha1)",
            CheckedHasher::Sha256(_) => "Digester(Sha256)",
        })
    }
}

/// Returns the id of the concatenation of `parts`.
///
/// # Errors
///
/// Fails with [`Collision`] if the content contains a block of a known type of SHA-1 collision
/// attack.
pub fn digest(kind: Kind, parts: &[&[u8]]) -> Result<ObjectId, Collision> {
    let mut digester = Digester::new(kind);
    for part in parts {
        digester.update(part);
    }
    digester.finish()
}
