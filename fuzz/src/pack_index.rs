//! Fuzzes a pack index (version 1 or 2): opens and searches it, and reads every entry.

use std::path::Path;

use pronto_hash::{Kind, ObjectId};
use pronto_io::view::FileView;
use pronto_pack::idx::{IndexPosition, PackIndex};

pub(crate) fn run(data: &[u8]) {
    let view = FileView::from_bytes(data.to_vec());
    let Ok(index) = PackIndex::from_view(view, Path::new("fuzzed.idx"), Kind::Sha1) else {
        return;
    };
    let _ = index.find(&ObjectId::null(Kind::Sha1));
    for position in (0..index.len().min(64)).map(IndexPosition) {
        if let Ok(id) = index.id_at(position) {
            let _ = index.find_offset(&id);
        }
        let _ = (index.offset_at(position), index.crc_at(position));
    }
    let _ = (index.pack_checksum(), index.checksum());
}
