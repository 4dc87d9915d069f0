//! Fuzzes the details of certificates of servers.

use pronto_wire::tls::CertificateDetails;

pub(crate) fn run(data: &[u8]) {
    if let Some(details) = CertificateDetails::of(data) {
        assert_eq!(CertificateDetails::of(data), Some(details));
    }
}
