//! A staging index with all its extensions.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pronto_hash::Kind;

fuzz_target!(|data: &[u8]| {
    let Ok(index) = pronto_index::Index::from_bytes(data.to_vec(), Kind::Sha1) else { return };
    for number in 0..index.len() {
        let _ = index.entry(number);
    }
    let _ = index.cached_tree();
});
