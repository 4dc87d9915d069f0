//! Fuzzes a bitmap file: opens it, and reads every bitmap and every name hash.

use std::path::Path;

use pronto_hash::Kind;
use pronto_io::view::FileView;
use pronto_pack::bitmap::BitmapFile;
use pronto_pack::idx::IndexPosition;

/// The number of objects in the pack of the bitmaps.
const OBJECTS: u32 = 200;

pub(crate) fn run(data: &[u8]) {
    let view = FileView::from_bytes(data.to_vec());
    let Ok(bitmaps) = BitmapFile::from_view(view, Path::new("fuzzed"), Kind::Sha1, OBJECTS) else {
        return;
    };
    for position in (0..OBJECTS).map(IndexPosition) {
        if let Ok(Some(bits)) = bitmaps.reachable_from(position) {
            assert!(bits.iter().all(|bit| bit < OBJECTS));
        }
        let _ = bitmaps.name_hash(position);
    }
}
