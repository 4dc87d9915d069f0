//! Git's packet lines and side bands.

use std::io::Read;

use super::Result;

/// A packet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LoadPacket {
    Data(Vec<u8>),
    Flush,
    /// A delimiter (0001) or the end of a response (0002).
    Special,
}

pub(crate) const FLUSH: &[u8] = b"0000";
pub(crate) const DELIMITER: &[u8] = b"0001";

/// Appends a packet with `text`.
pub(crate) fn write(to: &mut Vec<u8>, text: &[u8]) {
    to.extend_from_slice(format!("{:04x}", text.len() + 4).as_bytes());
    to.extend_from_slice(text);
}

/// Reads a packet into `buffer`, and returns the length of its data.
pub(crate) fn read_into(stream: &mut dyn Read, buffer: &mut [u8]) -> Result<Option<usize>> {
    let failed = |error| format!("the connection is lost: {error}");
    let mut digits = [0; 4];
    stream.read_exact(&mut digits).map_err(failed)?;
    let text = std::str::from_utf8(&digits).ok();
    let length = text.and_then(|digits| usize::from_str_radix(digits, 16).ok());
    let length =
        length.ok_or_else(|| format!("no packet: {:?}", digits.escape_ascii().to_string()))?;
    if length < 4 {
        return match length {
            0 => Ok(None),
            _ => Ok(Some(0)),
        };
    }
    let data = buffer.get_mut(..length - 4).ok_or("a packet is too long")?;
    stream.read_exact(data).map_err(failed)?;
    Ok(Some(data.len()))
}

/// Reads a packet.
pub(crate) fn read(stream: &mut dyn Read) -> Result<LoadPacket> {
    let mut buffer = vec![0; 65_536];
    match read_into(stream, &mut buffer)? {
        None => Ok(LoadPacket::Flush),
        Some(0) => Ok(LoadPacket::Special),
        Some(length) => {
            buffer.truncate(length);
            if let Some(text) = buffer.strip_prefix(b"ERR ") {
                return Err(format!("the server says: {}", text.escape_ascii()));
            }
            Ok(LoadPacket::Data(buffer))
        }
    }
}
