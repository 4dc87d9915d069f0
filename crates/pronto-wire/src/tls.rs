//! TLS to servers: which certificates a client trusts (`http.sslCAInfo`), and X.509 certificates.
//!
//! A server is trusted by a chain of certificates that ends at a trusted authority. As in Git with curl, a
//! server is also trusted if its own certificate is one of the trusted certificates, whether it is an
//! authority or not. The dates, the purpose and the names of the certificate, and that the server has its key,
//! are verified in both cases.

mod x509;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme, client,
};

pub use x509::CertificateDetails;

/// The certificates that a client trusts, as the verifier of certificates of servers.
#[derive(Debug)]
pub struct ServerTrust {
    trusted: Vec<CertificateDer<'static>>,
    /// The verifier of chains. `None` if no trusted certificate can be an authority.
    chains: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerTrust {
    /// Trusts `trusted`. Certificates that cannot be parsed are skipped.
    pub fn new(trusted: Vec<CertificateDer<'static>>) -> Self {
        let provider = provider();
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(trusted.iter().cloned());
        let builder =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        ServerTrust {
            trusted,
            // Without revocation lists, only the lack of authorities is an error.
            chains: builder.build().ok(),
            provider,
        }
    }

    /// Trusts the certificates that the operating system trusts.
    pub fn of_system() -> Self {
        Self::new(rustls_native_certs::load_native_certs().certs)
    }

    /// Verifies a certificate that is itself one of the trusted certificates.
    fn verify_trusted(
        certificate: &CertificateDer<'_>,
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), CertificateError> {
        let bad = |_| CertificateError::BadEncoding;
        let parsed = ParsedCertificate::try_from(certificate).map_err(bad)?;
        let details = CertificateDetails::of(certificate).ok_or(CertificateError::BadEncoding)?;
        let seconds = i64::try_from(now.as_secs()).map_err(|_| CertificateError::Expired)?;
        let at = |seconds: i64| {
            let seconds = u64::try_from(seconds).unwrap_or_default();
            UnixTime::since_unix_epoch(Duration::from_secs(seconds))
        };
        if seconds < details.not_before {
            return Err(CertificateError::NotValidYetContext {
                time: now,
                not_before: at(details.not_before),
            });
        }
        if seconds > details.not_after {
            return Err(CertificateError::ExpiredContext {
                time: now,
                not_after: at(details.not_after),
            });
        }
        if !details.is_for_servers {
            return Err(CertificateError::InvalidPurpose);
        }
        match client::verify_server_name(&parsed, name) {
            Ok(()) => Ok(()),
            Err(Error::InvalidCertificate(error)) => Err(error),
            Err(_) => Err(CertificateError::NotValidForName),
        }
    }
}

impl ServerCertVerifier for ServerTrust {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let chain = self.chains.as_ref().map(|chains| {
            chains.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
        });
        let refused = match chain {
            Some(Ok(verified)) => return Ok(verified),
            Some(Err(error)) => error,
            None => CertificateError::UnknownIssuer.into(),
        };
        if self.trusted.iter().any(|trusted| trusted == end_entity) {
            Self::verify_trusted(end_entity, server_name, now)?;
            return Ok(ServerCertVerified::assertion());
        }
        Err(match refused {
            // An authority presents its own certificate, which is not trusted.
            Error::InvalidCertificate(CertificateError::Other(_))
                if CertificateDetails::of(end_entity).is_some_and(|found| found.is_self_issued) =>
            {
                CertificateError::UnknownIssuer.into()
            }
            refused => refused,
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let known = &self.provider.signature_verification_algorithms;
        known.supported_schemes()
    }
}

/// Accepts every certificate (`http.sslVerify = false`).
#[derive(Debug)]
pub(crate) struct AnyServer;

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let provider = provider();
        provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// Returns the implementation of cryptography.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Reads the certificates in a PEM file. Other parts of the file are skipped.
///
/// # Errors
/// Fails if the file cannot be read.
pub(crate) fn certificates_in(path: &Path) -> std::io::Result<Vec<CertificateDer<'static>>> {
    let pem = std::fs::read(path)?;
    let found = CertificateDer::pem_slice_iter(&pem).filter_map(Result::ok);
    Ok(found.collect())
}
