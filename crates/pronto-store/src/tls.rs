//! TLS to services: rustls with ring, as in the other crates, and the certificates of the system.

use std::sync::Arc;

use pronto_wire::tls::ServerTrust;
use rustls::ClientConfig;

/// Returns a configuration that trusts `trust`.
pub(crate) fn config(trust: ServerTrust) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(trust))
        .with_no_client_auth();
    Ok(config)
}
