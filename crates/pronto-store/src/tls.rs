//! TLS to services: rustls with ring, as in the other crates, and the certificates of the system.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};

/// Returns the certificates of the authorities that the system trusts.
pub(crate) fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let native = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(native.certs);
    roots
}

/// Returns a configuration that trusts `roots`.
pub(crate) fn config(roots: RootCertStore) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}
