//! Fuzzes the mtimes of a cruft pack: opens the file and reads every time.

use std::path::Path;

use pronto_hash::Kind;
use pronto_io::view::FileView;
use pronto_pack::mtimes::Mtimes;

pub(crate) fn run(data: &[u8]) {
    let view = FileView::from_bytes(data.to_vec());
    // The largest number of objects that fits into the size.
    let count = (data.len().saturating_sub(52) / 4) as u32;
    let Ok(times) = Mtimes::from_view(view, Path::new("fuzzed"), Kind::Sha1, count) else {
        return;
    };
    for row in 0..count {
        times.at(row).expect("it has so many rows");
    }
    assert!(times.at(count).is_err());
}
