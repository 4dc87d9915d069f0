//! Describes an index file by its version, entries and extensions, without stat data.

use std::fmt::Write as _;

/// The number of bytes of stat data before the id of an entry. They include the mode.
const STAT_BYTES: usize = 40;
const MODE: usize = 24;

/// The flag of an entry with extended flags of two more bytes.
const EXTENDED: u16 = 0x4000;

/// The extensions whose presence is part of the state: resolve-undo, split index and sparse index.
const COMPARED: [&str; 3] = ["REUC", "link", "sdir"];

/// Returns a line for the version, each entry, and each compared extension.
pub(super) fn describe(bytes: &[u8]) -> String {
    let described = parse(bytes, 20).or_else(|| parse(bytes, 32));
    described.unwrap_or_else(|| format!("unreadable: {}", String::from_utf8_lossy(bytes)))
}

/// Returns `bytes` in hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Parses an index with ids of `id_bytes`. Returns `None` if `bytes` are not such an index.
fn parse(bytes: &[u8], id_bytes: usize) -> Option<String> {
    let mut reader = Reader { bytes, position: 4 };
    let version = reader.number()?;
    let count = reader.number()?;
    let mut text = format!("version {version}\n");
    let mut path = Vec::new();
    for _ in 0..count {
        let start = reader.position;
        let stat = reader.take(STAT_BYTES)?;
        let mode = u32::from_be_bytes(stat[MODE..MODE + 4].try_into().ok()?);
        let id = hex(reader.take(id_bytes)?);
        let flags = reader.short()?;
        let extended = if flags & EXTENDED != 0 {
            reader.short()?
        } else {
            0
        };
        match version {
            4 => reader.compressed_path(&mut path)?,
            _ => reader.padded_path(&mut path, start)?,
        }
        let flags = flags >> 12;
        let name = String::from_utf8_lossy(&path);
        let _ = writeln!(text, "{mode:o} {id} {flags:x} {extended:x} {name}");
    }
    while reader.position + id_bytes < bytes.len() {
        let signature = String::from_utf8_lossy(reader.take(4)?).into_owned();
        let len = reader.number()? as usize;
        reader.take(len)?;
        if COMPARED.contains(&signature.as_str()) {
            let _ = writeln!(text, "extension {signature}");
        }
        if signature == "link" {
            // The entries are in the shared index, and replaced entries have no path.
            return Some(format!("version {version}\nsplit index\n"));
        }
    }
    (reader.position + id_bytes == bytes.len()).then_some(text)
}

struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let taken = self
            .bytes
            .get(self.position..self.position.checked_add(len)?)?;
        self.position += len;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn short(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    fn until_nul(&mut self) -> Option<&'a [u8]> {
        let rest = self.bytes.get(self.position..)?;
        let len = rest.iter().position(|byte| *byte == 0)?;
        let text = self.take(len)?;
        self.take(1)?;
        Some(text)
    }

    /// Reads a path of version 4: the number of bytes to remove from the previous path, and the
    /// text to append.
    fn compressed_path(&mut self, path: &mut Vec<u8>) -> Option<()> {
        let mut byte = self.take(1)?[0];
        let mut removed = usize::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = self.take(1)?[0];
            removed = (removed + 1).checked_mul(128)? + usize::from(byte & 0x7f);
        }
        path.truncate(path.len().checked_sub(removed)?);
        path.extend_from_slice(self.until_nul()?);
        Some(())
    }

    /// Reads a path of versions 2 and 3. The entry that began at `start` is padded to a multiple of
    /// 8 bytes.
    fn padded_path(&mut self, path: &mut Vec<u8>, start: usize) -> Option<()> {
        *path = self.until_nul()?.to_vec();
        let padding = (8 - (self.position - start) % 8) % 8;
        self.take(padding)?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str) -> Vec<u8> {
        let mut bytes = vec![0; STAT_BYTES];
        bytes[MODE..MODE + 4].copy_from_slice(&0o100_644_u32.to_be_bytes());
        bytes.extend([0xab; 20]);
        bytes.extend((name.len() as u16).to_be_bytes());
        bytes.extend(name.bytes());
        bytes.push(0);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }

    #[test]
    fn entries_and_extensions_are_listed() {
        let mut bytes = b"DIRC\0\0\0\x02\0\0\0\x02".to_vec();
        bytes.extend(entry("a"));
        bytes.extend(entry("longer/name"));
        bytes.extend(b"REUC\0\0\0\x01x");
        bytes.extend(b"TREE\0\0\0\0");
        bytes.extend([0; 20]);
        let id = "ab".repeat(20);
        let expected =
            format!("version 2\n100644 {id} 0 0 a\n100644 {id} 0 0 longer/name\nextension REUC\n");
        assert_eq!(describe(&bytes), expected);
    }

    #[test]
    fn other_bytes_are_unreadable() {
        assert_eq!(describe(b"DIRCxx"), "unreadable: DIRCxx");
    }
}
