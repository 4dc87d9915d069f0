//! Fuzzes the subject of client certificates.

use pronto_server::certificate::{common_name, fingerprint};

pub(crate) fn run(data: &[u8]) {
    if let Some(name) = common_name(data) {
        assert!(name.len() <= data.len());
    }
    assert_eq!(fingerprint(data).len(), 64);
}
