//! Nonces of signed pushes (`receive.certNonceSeed`). A nonce is the time, and an HMAC of the seed
//! with a key made from the service and the time, as in git 2.55.

use pronto_hash::Kind;
use ring::hmac::{self, Algorithm, HMAC_SHA1_FOR_LEGACY_USE_ONLY, HMAC_SHA256};

/// Creates and verifies nonces. Processes with the same seed accept each other's nonces. `Send +
/// Sync`.
#[derive(Clone, Debug)]
pub struct Nonces {
    algorithm: Algorithm,
    seed: Vec<u8>,
    service: Vec<u8>,
}

impl Nonces {
    /// Creates nonces with the seed `seed`, for the service with this name or path. `hash` is the
    /// hash function of the repository.
    pub fn new(seed: &[u8], service: impl Into<Vec<u8>>, hash: Kind) -> Self {
        let algorithm = match hash {
            Kind::Sha256 => HMAC_SHA256,
            // Git uses this algorithm for repositories with SHA-1.
            _ => HMAC_SHA1_FOR_LEGACY_USE_ONLY,
        };
        Nonces {
            algorithm,
            seed: seed.to_vec(),
            service: service.into(),
        }
    }

    /// Returns the nonce for a time in seconds since the epoch. Costs one HMAC.
    pub fn at(&self, seconds: u64) -> String {
        let tag = hmac::sign(&self.key(seconds), &self.seed);
        let mut nonce = format!("{seconds}-");
        for byte in tag.as_ref() {
            nonce.push_str(&format!("{byte:02x}"));
        }
        nonce
    }

    /// Returns the time of a nonce, or `None` if the nonce was not made with this seed for this
    /// service. The comparison takes constant time. Costs two HMACs.
    pub fn time_of(&self, nonce: &[u8]) -> Option<u64> {
        let end = nonce.iter().position(|byte| *byte == b'-')?;
        let (digits, rest) = nonce.split_at_checked(end)?;
        let seconds: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
        // The tag has the length of an object id.
        let tag = pronto_hash::parse_hex(rest.get(1..)?).ok()?;
        hmac::verify(&self.key(seconds), &self.seed, tag.as_bytes()).ok()?;
        // Accept only the canonical spelling of the number and the tag.
        (self.at(seconds).as_bytes() == nonce).then_some(seconds)
    }

    fn key(&self, seconds: u64) -> hmac::Key {
        let mut text = self.service.clone();
        text.extend_from_slice(format!(":{seconds}").as_bytes());
        hmac::Key::new(self.algorithm, &text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonces_are_those_of_git() {
        // Printed by git 2.55: `git -c receive.certNonceSeed=sekrit receive-pack dst`, and `dst2` with SHA-256.
        let printed = "1795725324-6c07bfea0dc344c9a0e0d29da6d0df08b16c3b8e";
        let nonces = Nonces::new(b"sekrit", "dst", Kind::Sha1);
        assert_eq!(nonces.at(1_795_725_324), printed);
        assert_eq!(nonces.time_of(printed.as_bytes()), Some(1_795_725_324));
        let printed = "1795725324-e9e0d5c6e315758f40137c9129cd283b3070c1b36ef6e2ba70b5f76c45861c98";
        let nonces = Nonces::new(b"sekrit", "dst2", Kind::Sha256);
        assert_eq!(nonces.at(1_795_725_324), printed);
        assert_eq!(nonces.time_of(printed.as_bytes()), Some(1_795_725_324));
    }

    #[test]
    fn other_nonces_are_not_recognised() {
        let nonces = Nonces::new(b"seed", "a", Kind::Sha1);
        let nonce = nonces.at(1_700_000_000);
        let other = Nonces::new(b"seed", "b", Kind::Sha1);
        assert_eq!(other.time_of(nonce.as_bytes()), None);
        let other = Nonces::new(b"seed", "a", Kind::Sha256);
        assert_eq!(other.time_of(nonce.as_bytes()), None);
        let upper = nonce.to_ascii_uppercase();
        for broken in [
            "",
            "-",
            "1",
            "1-",
            "1-0",
            "x-00",
            "99999999999999999999999-00",
            &nonce[..nonce.len() - 1],
            &format!("0{nonce}"),
            &format!("+{nonce}"),
            &format!("{nonce}0"),
            &upper,
        ] {
            assert_eq!(nonces.time_of(broken.as_bytes()), None, "{broken}");
        }
    }
}
