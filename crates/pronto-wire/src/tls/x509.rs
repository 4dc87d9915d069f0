//! Reads the parts of X.509 certificates that the TLS library does not show (RFC 5280). TLS verifies
//! signatures, not this module.

use x509_cert::Certificate;
use x509_cert::der::asn1::ObjectIdentifier;
use x509_cert::der::{Decode as _, Tag, Tagged as _};
use x509_cert::ext::pkix::ExtendedKeyUsage;
use x509_cert::name::Name;
use x509_cert::time::Time;

/// The object identifier of a common name.
const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");

/// The object identifier of the purpose of servers.
const SERVER_AUTHENTICATION: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.1");

/// The dates, the purpose and the subject of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CertificateDetails {
    /// The first second of the validity, since 1970.
    pub not_before: i64,
    /// The last second of the validity, since 1970.
    pub not_after: i64,
    /// Whether servers may use the certificate: it names this purpose, or no purpose at all.
    pub is_for_servers: bool,
    /// Whether issuer and subject have the same name.
    pub is_self_issued: bool,
    /// The last common name of the subject. `None` if the subject has none, or if that is not a UTF-8 or
    /// ASCII string.
    pub common_name: Option<String>,
}

impl CertificateDetails {
    /// Reads the details of a certificate in DER. Returns `None` if it is malformed, or has a date
    /// before 1970.
    pub fn of(certificate: &[u8]) -> Option<Self> {
        let certificate = Certificate::from_der(certificate).ok()?;
        let fields = certificate.tbs_certificate();
        let validity = fields.validity();
        let purposes = fields.get_extension::<ExtendedKeyUsage>().ok()?;
        Some(CertificateDetails {
            not_before: seconds(validity.not_before)?,
            not_after: seconds(validity.not_after)?,
            is_for_servers: purposes
                .is_none_or(|(_, purposes)| purposes.0.contains(&SERVER_AUTHENTICATION)),
            is_self_issued: fields.issuer() == fields.subject(),
            common_name: common_name(fields.subject()),
        })
    }
}

/// Returns a time as seconds since 1970.
fn seconds(time: Time) -> Option<i64> {
    i64::try_from(time.to_unix_duration().as_secs()).ok()
}

/// Returns the last common name of a subject.
fn common_name(subject: &Name) -> Option<String> {
    let names = subject.iter().filter(|pair| pair.oid == COMMON_NAME);
    let value = &names.last()?.value;
    match value.tag() {
        Tag::Utf8String | Tag::PrintableString | Tag::Ia5String => {
            String::from_utf8(value.value().to_vec()).ok()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Makes a certificate with `openssl req -x509`.
    fn certificate(subject: &str, extensions: &[&str]) -> Vec<u8> {
        let mut openssl = Command::new("openssl");
        openssl.args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
        ]);
        openssl.args([
            "-nodes",
            "-keyout",
            "/dev/null",
            "-outform",
            "DER",
            "-subj",
            subject,
        ]);
        openssl.args(
            extensions
                .iter()
                .flat_map(|extension| ["-addext", extension]),
        );
        let output = openssl.output().expect("openssl starts");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        output.stdout
    }

    #[test]
    fn details_are_those_of_the_certificate() {
        let whole = certificate("/O=x/CN=first/CN=alice", &[]);
        let found = CertificateDetails::of(&whole).expect("valid");
        // `-days` is 30 by default.
        assert_eq!(found.not_after - found.not_before, 30 * 86_400);
        assert!(found.is_for_servers && found.is_self_issued);
        assert_eq!(found.common_name.as_deref(), Some("alice"));
        for end in 0..whole.len() {
            assert_eq!(CertificateDetails::of(&whole[..end]), None, "cut at {end}");
        }
        let none = CertificateDetails::of(&certificate("/O=x", &[])).expect("valid");
        assert_eq!(none.common_name, None);
    }

    #[test]
    fn a_purpose_excludes_others() {
        for (purposes, expected) in [
            ("extendedKeyUsage=clientAuth", false),
            ("extendedKeyUsage=critical,clientAuth", false),
            ("extendedKeyUsage=clientAuth,serverAuth", true),
            ("extendedKeyUsage=critical,serverAuth", true),
        ] {
            let whole = certificate("/CN=x", &[purposes]);
            let found = CertificateDetails::of(&whole).expect("valid");
            assert_eq!(found.is_for_servers, expected, "{purposes}");
        }
    }
}
