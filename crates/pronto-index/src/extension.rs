//! The extensions after the entries: their positions, and the known signatures.

use crate::bytes::{take, take_u32};
use crate::error::{Error, ErrorKind, corrupt};
use std::ops::Range;

pub(crate) type ExtensionSignature = [u8; 4];

pub(crate) const TREE: ExtensionSignature = *b"TREE";
pub(crate) const RESOLVE_UNDO: ExtensionSignature = *b"REUC";
pub(crate) const LINK: ExtensionSignature = *b"link";
pub(crate) const UNTRACKED: ExtensionSignature = *b"UNTR";
pub(crate) const FSMONITOR: ExtensionSignature = *b"FSMN";
pub(crate) const END_OF_ENTRIES: ExtensionSignature = *b"EOIE";
pub(crate) const OFFSET_TABLE: ExtensionSignature = *b"IEOT";
pub(crate) const SPARSE_DIRECTORIES: ExtensionSignature = *b"sdir";

const KNOWN: [ExtensionSignature; 8] = [
    TREE,
    RESOLVE_UNDO,
    LINK,
    UNTRACKED,
    FSMONITOR,
    END_OF_ENTRIES,
    OFFSET_TABLE,
    SPARSE_DIRECTORIES,
];

/// The positions of the extensions of a file.
#[derive(Debug, Default)]
pub(crate) struct Extensions {
    known: Vec<(ExtensionSignature, Range<usize>)>,
    ignored: Vec<ExtensionSignature>,
    /// The start of the header of each extension.
    starts: Vec<usize>,
}

impl Extensions {
    /// Locates the extensions in `bytes[from..to]` without parsing them.
    pub(crate) fn locate(bytes: &[u8], from: usize, to: usize) -> Result<Extensions, Error> {
        let mut found = Extensions::default();
        let mut rest = bytes
            .get(from..to)
            .ok_or_else(|| corrupt("index file corrupt"))?;
        // Like Git, treats fewer bytes than an extension header as padding.
        while rest.len() >= 8 {
            let at = to - rest.len();
            let cut = || corrupt("truncated index extension").at_offset(at as u64);
            let signature = *take(&mut rest, 4)
                .and_then(<[u8]>::first_chunk)
                .ok_or_else(cut)?;
            let size = take_u32(&mut rest).ok_or_else(cut)? as usize;
            take(&mut rest, size).ok_or_else(cut)?;
            found.starts.push(at);
            if KNOWN.contains(&signature) {
                found.known.push((signature, at + 8..at + 8 + size));
            } else if signature[0].is_ascii_uppercase() {
                found.ignored.push(signature);
            } else {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    format!(
                        "index uses {} extension, which we do not understand",
                        signature.escape_ascii()
                    ),
                ));
            }
        }
        Ok(found)
    }

    /// Returns the concatenated headers of all extensions that start before `end`, whose hash is
    /// stored in the `EOIE` extension.
    pub(crate) fn headers(&self, bytes: &[u8], end: usize) -> Vec<u8> {
        let before = self.starts.iter().filter(|start| **start < end);
        let headers = before.filter_map(|&start| bytes.get(start..start + 8));
        headers.flatten().copied().collect()
    }

    pub(crate) fn range(&self, signature: ExtensionSignature) -> Option<Range<usize>> {
        self.known
            .iter()
            .find(|(known, _)| *known == signature)
            .map(|(_, range)| range.clone())
    }

    pub(crate) fn ignored(&self) -> &[ExtensionSignature] {
        &self.ignored
    }
}
