//! Nonces of signed pushes (`receive.certNonceSeed`): the time, and an HMAC over the service and the time.

use pronto_hash::Kind;
use ring::hmac::{self, HMAC_SHA1_FOR_LEGACY_USE_ONLY, HMAC_SHA256};

/// Makes nonces, and recognises those that it has made, or that another process with the same seed has.
#[derive(Clone, Debug)]
pub struct Nonces {
    key: hmac::Key,
    service: Vec<u8>,
}

impl Nonces {
    /// Nonces with this seed, for the service of this name or path. `hash` is the hash function of the
    /// repository.
    pub fn new(seed: &[u8], service: impl Into<Vec<u8>>, hash: Kind) -> Self {
        let algorithm = match hash {
            Kind::Sha256 => HMAC_SHA256,
            // The one that Git's nonces use there.
            _ => HMAC_SHA1_FOR_LEGACY_USE_ONLY,
        };
        Nonces {
            key: hmac::Key::new(algorithm, seed),
            service: service.into(),
        }
    }

    /// Returns the nonce of a time, in seconds since 1970.
    pub fn at(&self, seconds: u64) -> String {
        let tag = hmac::sign(&self.key, &self.text(seconds));
        let mut nonce = format!("{seconds}-");
        for byte in tag.as_ref() {
            nonce.push_str(&format!("{byte:02x}"));
        }
        nonce
    }

    /// Returns the time of a nonce; `None` if it was not made with this seed for this service. The
    /// comparison takes the same time wherever the two differ.
    pub fn time_of(&self, nonce: &[u8]) -> Option<u64> {
        let end = nonce.iter().position(|byte| *byte == b'-')?;
        let (digits, rest) = nonce.split_at_checked(end)?;
        let is_plain = digits.iter().all(u8::is_ascii_digit) && !digits.starts_with(b"0");
        let seconds = std::str::from_utf8(digits).ok().filter(|_| is_plain)?;
        let seconds: u64 = seconds.parse().ok()?;
        let tag = bytes_of(rest.get(1..)?)?;
        hmac::verify(&self.key, &self.text(seconds), &tag).ok()?;
        Some(seconds)
    }

    fn text(&self, seconds: u64) -> Vec<u8> {
        let mut text = self.service.clone();
        text.extend_from_slice(format!(":{seconds}").as_bytes());
        text
    }
}

/// The bytes that lower-case hexadecimal digits stand for.
fn bytes_of(digits: &[u8]) -> Option<Vec<u8>> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let pairs = digits.chunks(2).map(|pair| match pair {
        [high, low] => Some(value(*high)? << 4 | value(*low)?),
        _ => None,
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonces_are_those_of_git() {
        // git 2.55: `git -c receive.certNonceSeed=sekrit receive-pack dst` at that time.
        let nonces = Nonces::new(b"key", "", Kind::Sha256);
        assert_eq!(nonces.at(1).len(), 2 + 64);
        let nonces = Nonces::new(b"sekrit", "dst", Kind::Sha1);
        let nonce = nonces.at(1_700_000_000);
        assert_eq!(nonce.len(), 11 + 40);
        assert_eq!(nonces.time_of(nonce.as_bytes()), Some(1_700_000_000));
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
