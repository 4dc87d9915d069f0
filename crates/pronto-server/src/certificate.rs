//! Reads the identity of a client from its certificate: the common name of the subject, and the
//! fingerprint (X.509, RFC 5280). TLS checks signatures, not this module.

use pronto_wire::tls::DerElement;
use ring::digest::{SHA256, digest};

use crate::token::hex;

/// The DER tag of a sequence.
const SEQUENCE: u8 = 0x30;

/// The encoded object identifier of a common name, 2.5.4.3.
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];

/// The properties of a certificate that identify a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateNames {
    /// The SHA-256 of the certificate in hexadecimal digits.
    pub fingerprint: String,
    /// The last common name of the subject.
    pub subject: Option<String>,
}

impl CertificateNames {
    /// Reads the properties of `certificate`.
    pub fn of(certificate: &[u8]) -> Self {
        CertificateNames {
            fingerprint: fingerprint(certificate),
            subject: common_name(certificate),
        }
    }
}

/// Returns the SHA-256 of the certificate in hexadecimal digits.
pub fn fingerprint(certificate: &[u8]) -> String {
    hex(digest(&SHA256, certificate).as_ref())
}

/// Returns the last common name of the subject, or `None` if the subject has no common name, or the
/// certificate is malformed.
pub fn common_name(certificate: &[u8]) -> Option<String> {
    let outer = DerElement::read(&mut &*certificate)?.of(SEQUENCE)?;
    let mut fields = DerElement::read(&mut &*outer)?.of(SEQUENCE)?;
    let first = DerElement::read(&mut fields)?;
    // The version is optional. The serial number, signature algorithm, issuer and validity follow.
    let skipped = if first.tag == 0xa0 { 4 } else { 3 };
    for _ in 0..skipped {
        DerElement::read(&mut fields)?;
    }
    let mut subject = DerElement::read(&mut fields)?.of(SEQUENCE)?;
    let mut found = None;
    while !subject.is_empty() {
        let mut set = DerElement::read(&mut subject)?.of(0x31)?;
        while !set.is_empty() {
            let mut pair = DerElement::read(&mut set)?.of(SEQUENCE)?;
            let name = DerElement::read(&mut pair)?.of(0x06)?;
            let value = DerElement::read(&mut pair)?;
            if name == COMMON_NAME {
                found = Some(value.text()?);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(tag: u8, content: &[u8]) -> Vec<u8> {
        let length = u8::try_from(content.len()).expect("it is short");
        [&[tag, 0x81, length], content].concat()
    }

    fn certificate(subject: &[u8]) -> Vec<u8> {
        let empty = element(SEQUENCE, &[]);
        let fields = [
            element(0xa0, &[2, 1, 2]),
            element(2, &[1]),
            empty.clone(),
            empty.clone(),
            empty,
            element(SEQUENCE, subject),
        ];
        element(SEQUENCE, &element(SEQUENCE, &fields.concat()))
    }

    #[test]
    fn the_common_name_is_found() {
        let pair = [element(6, &COMMON_NAME), element(0x0c, b"alice")].concat();
        let subject = element(0x31, &element(SEQUENCE, &pair));
        let whole = certificate(&subject);
        assert_eq!(common_name(&whole).as_deref(), Some("alice"));
        for end in 0..whole.len() {
            assert_eq!(common_name(&whole[..end]), None, "cut at {end}");
        }
        assert_eq!(common_name(&certificate(&[])), None);
        assert_eq!(fingerprint(b"").len(), 64);
    }
}
