//! TLS for HTTPS: the certificate, the key, and the authorities for client certificates.

use std::path::Path;
use std::sync::Arc;

use pronto_wire::tls::CertificateDetails;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

use crate::config::TlsFiles;
use crate::{Error, ErrorKind, Result};

/// The largest size in bytes of a PEM file.
const LARGEST_BYTES: u64 = 16 << 20;

/// Reads the files and prepares handshakes.
///
/// # Errors
/// Fails if a file cannot be read or contains no usable data, or the key does not fit the
/// certificate.
pub(crate) fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let chain = certificates(&files.certificate)?;
    let key = PrivateKeyDer::from_pem_slice(&read(&files.key)?)
        .map_err(|error| unusable(&files.key, "contains no private key in PEM format", error))?;
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&files.certificate, "cannot be used", error))?;
    let builder = match &files.client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(path)? {
                let added = roots.add(certificate);
                added.map_err(|error| {
                    unusable(
                        path,
                        "contains a certificate that cannot be used as an authority",
                        error,
                    )
                })?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .allow_unauthenticated()
                .build()
                .map_err(|error| unusable(path, "cannot be used", error))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder
        .with_single_cert(chain, key)
        .map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => Error::new(
                ErrorKind::Config,
                format!(
                    "certificate '{}' does not belong to private key '{}'",
                    files.certificate.display(),
                    files.key.display()
                ),
            ),
            error => unusable(
                &files.certificate,
                "cannot be used with the private key in tls_key",
                error,
            ),
        })?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    // Clients keep the sessions, in tickets that cost the server no memory.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.ticketer = rustls::crypto::ring::Ticketer::new()
        .map_err(|error| unusable(&files.certificate, "cannot be used", error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Returns the second at which the first certificate of the chain expires, since 1970; `None` if they cannot
/// be parsed.
///
/// # Errors
/// Fails if the file cannot be read, or contains no certificates.
pub(crate) fn end(files: &TlsFiles) -> Result<Option<i64>> {
    let chain = certificates(&files.certificate)?;
    let ends = chain.iter().filter_map(|item| CertificateDetails::of(item));
    Ok(ends.map(|details| details.not_after).min())
}

/// Reads the certificates in a PEM file.
///
/// # Errors
/// Fails if the file cannot be read, or contains no certificates.
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let bytes = read(path)?;
    let found = CertificateDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>();
    let found =
        found.map_err(|error| unusable(path, "contains no certificates in PEM format", error))?;
    match found.is_empty() {
        true => Err(Error::new(
            ErrorKind::Config,
            format!(
                "'{}' contains no certificates in PEM format",
                path.display()
            ),
        )),
        false => Ok(found),
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let links = pronto_io::untrusted::SymlinkPolicy::Follow;
    pronto_io::untrusted::read(path, links, LARGEST_BYTES).map_err(|error| {
        let reason = pronto_io::error::reason(&error);
        let message = format!("cannot read '{}': {reason}", path.display());
        Error::new(ErrorKind::Config, message)
    })
}

fn unusable(
    path: &Path,
    what: &str,
    error: impl std::error::Error + Send + Sync + 'static,
) -> Error {
    let message = format!("'{}' {what}", path.display());
    Error::new(ErrorKind::Config, message).because(error)
}
