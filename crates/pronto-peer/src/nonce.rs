//! Random numbers that are used once.

use crate::Result;

/// Returns thirty-two unpredictable bytes for a session.
///
/// # Errors
/// Fails if the system provides no random bytes.
pub fn nonce() -> Result<[u8; 32]> {
    use pronto_io::error::IoContext as _;
    use std::io::Read as _;
    let (path, mut nonce) = ("/dev/urandom", [0; 32]);
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut nonce));
    read.context(pronto::ErrorKind::Io, "cannot read", path)?;
    Ok(nonce)
}
