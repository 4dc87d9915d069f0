//! A multi-pack-index: opened, searched, walked.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use pronto_hash::{Kind, ObjectId};
use pronto_io::view::View;
use pronto_pack::idx::IndexPosition;
use pronto_pack::midx::MultiIndex;

fuzz_target!(|data: &[u8]| {
    let view = View::from_bytes(data.to_vec());
    let Ok(index) = MultiIndex::from_view(view, Path::new("fuzzed"), Kind::Sha1) else { return };
    let _ = index.find(&ObjectId::null(Kind::Sha1));
    for position in (0..index.len().min(64)).map(IndexPosition) {
        let _ = (index.id_at(position), index.location_at(position));
    }
});
