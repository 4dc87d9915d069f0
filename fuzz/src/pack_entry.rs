//! Fuzzes the header of a pack entry and its deflated content.

use pronto_hash::Kind;

pub(crate) fn run(data: &[u8]) {
    if let Ok(entry) = pronto_pack::entry::Entry::parse(data, Kind::Sha1) {
        let mut out = Vec::new();
        let content = &data[entry.header_len..];
        let _ = pronto_pack::inflate::Inflater::new().inflate(content, entry.size_bytes, &mut out);
    }
}
