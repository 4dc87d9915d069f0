//! Fuzzes the identity of clients in certificates.

use pronto_server::certificate::CertificateNames;

pub(crate) fn run(data: &[u8]) {
    let names = CertificateNames::of(data);
    assert_eq!(names.fingerprint.len(), 64);
    assert_eq!(CertificateNames::of(data), names);
}
