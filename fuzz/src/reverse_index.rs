//! Fuzzes a reverse index: opens it and reads every entry.

use std::path::Path;

use pronto_hash::Kind;
use pronto_io::view::FileView;
use pronto_pack::rev::ReverseIndex;

pub(crate) fn run(data: &[u8]) {
    let view = FileView::from_bytes(data.to_vec());
    // The largest number of objects that fits into the size.
    let count = (data.len().saturating_sub(52) / 4) as u32;
    let Ok(index) = ReverseIndex::from_view(view, Path::new("fuzzed"), Kind::Sha1, count) else {
        return;
    };
    let _ = index.pack_checksum();
    for place in 0..=count {
        if let Ok(row) = index.row_at(place) {
            assert!(row.0 < count);
        }
    }
}
