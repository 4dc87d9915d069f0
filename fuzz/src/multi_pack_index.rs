//! Fuzzes a multi-pack-index: opens and searches it, and reads every entry. The same bytes are also
//! parsed as the list of a chain.

use std::path::Path;

use pronto_hash::{Kind, ObjectId};
use pronto_io::view::FileView;
use pronto_pack::idx::IndexPosition;
use pronto_pack::midx::{MultiIndex, chain};

pub(crate) fn run(data: &[u8]) {
    let _ = chain::parse(data, Path::new("fuzzed"), Kind::Sha1);
    let view = FileView::from_bytes(data.to_vec());
    let Ok(index) = MultiIndex::from_view(view, Path::new("fuzzed"), Kind::Sha1) else {
        return;
    };
    let _ = index.find(&ObjectId::null(Kind::Sha1));
    let _ = (index.checksum(), index.checksum_holds());
    for position in (0..index.len().min(64)).map(IndexPosition) {
        let _ = (index.id_at(position), index.location_at(position));
        let _ = index.position_at_place(position.0);
    }
}
