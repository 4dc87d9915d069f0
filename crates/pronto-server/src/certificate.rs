//! Reads the identity of a client from its certificate: the common name of the subject, and the
//! fingerprint. TLS checks signatures, not this module.

use pronto_wire::tls::CertificateDetails;
use ring::digest::{SHA256, digest};

use crate::token::hex;

/// The properties of a certificate that identify a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateNames {
    /// The SHA-256 of the certificate in hexadecimal digits.
    pub fingerprint: String,
    /// The last common name of the subject. `None` if the subject has no common name, or the
    /// certificate is malformed.
    pub subject: Option<String>,
}

impl CertificateNames {
    /// Reads the properties of `certificate`.
    pub fn of(certificate: &[u8]) -> Self {
        CertificateNames {
            fingerprint: hex(digest(&SHA256, certificate).as_ref()),
            subject: CertificateDetails::of(certificate).and_then(|found| found.common_name),
        }
    }
}
