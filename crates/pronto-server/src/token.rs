//! Tokens: random secrets that authenticate a user. The server stores only their hashes.

use std::fmt;

use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::{Error, ErrorKind, Result};

/// The prefix of every token, by which scanners for leaked secrets recognise a token.
const PREFIX: &str = "pronto_";

/// The number of random bytes of a token.
const SECRET_BYTES: usize = 32;

/// The SHA-256 of a token. A token has 256 random bits, so that a fast hash is sufficient, and the
/// time of a lookup reveals nothing about the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// Returns the hash of a received token.
    pub fn of(token: &[u8]) -> Self {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, token).as_ref());
        TokenHash(hash)
    }

    /// Parses 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let mut hash = [0; 32];
        let digits = text.as_bytes();
        if digits.len() != 2 * hash.len() {
            return None;
        }
        for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
            let [high, low] = pair else { return None };
            *byte = hex_value(*high)? << 4 | hex_value(*low)?;
        }
        Some(TokenHash(hash))
    }
}

impl fmt::Display for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

/// Generates a token.
///
/// # Errors
/// Fails with `ErrorKind::Io` if the system provides no random bytes.
pub fn generate() -> Result<String> {
    let mut secret = [0; SECRET_BYTES];
    SystemRandom::new()
        .fill(&mut secret)
        .map_err(|_| Error::new(ErrorKind::Io, "cannot get random bytes from the system"))?;
    Ok(format!("{PREFIX}{}", hex(&secret)))
}

/// Returns `text` with dots in place of the secrets of tokens, which clients may send in unexpected
/// fields, such as in the path of a URL.
pub(crate) fn redacted(text: &str) -> std::borrow::Cow<'_, str> {
    if !text.contains(PREFIX) {
        return text.into();
    }
    let mut parts = text.split(PREFIX);
    let mut clean = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_hexdigit).count();
        clean.push_str(PREFIX);
        match digits >= SECRET_BYTES {
            true => {
                clean.push_str("...");
                clean.push_str(part.get(digits..).unwrap_or_default());
            }
            false => clean.push_str(part),
        }
    }
    clean.into()
}

/// Returns the value of a hexadecimal digit.
pub(crate) fn hex_value(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}

/// Returns `bytes` as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_redacted() {
        let token = generate().expect("random bytes");
        assert_eq!(redacted(&format!("a {token}/b")), "a pronto_.../b");
        assert_eq!(redacted("pronto_x is no token"), "pronto_x is no token");
    }

    #[test]
    fn hashes_are_parsed_as_written() {
        let token = generate().expect("random bytes");
        assert_eq!(token.len(), PREFIX.len() + 2 * SECRET_BYTES);
        assert_ne!(token, generate().expect("random bytes"));
        let hash = TokenHash::of(token.as_bytes());
        assert_eq!(TokenHash::parse(&hash.to_string()), Some(hash));
        for broken in ["", "0", &"g".repeat(64), &"0".repeat(63), &"é".repeat(32)] {
            assert_eq!(TokenHash::parse(broken), None);
        }
    }
}
