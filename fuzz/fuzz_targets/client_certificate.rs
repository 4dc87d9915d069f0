//! The subject of client certificates.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pronto_server::certificate::{common_name, fingerprint};

fuzz_target!(|data: &[u8]| {
    if let Some(name) = common_name(data) {
        assert!(name.len() <= data.len());
    }
    assert_eq!(fingerprint(data).len(), 64);
});
