//! HTTP for the services: reqwest on rustls with ring, as everywhere in pronto, and the certificates of the
//! system.

use std::sync::Arc;
use std::time::Duration;

use object_store::ClientOptions;
use object_store::client::{HttpClient, HttpConnector};
use rustls::{ClientConfig, RootCertStore};

/// The time in which a connection must be made.
const CONNECT: Duration = Duration::from_secs(5);

/// The longest time without a byte.
const SILENCE: Duration = Duration::from_secs(15);

/// Makes clients of HTTP.
#[derive(Debug)]
pub(super) struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let failed =
            |source: Box<dyn std::error::Error + Send + Sync>| object_store::Error::Generic {
                store: "HTTP",
                source,
            };
        let mut roots = RootCertStore::empty();
        let native = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(native.certs);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| failed(error.into()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(config)
            .connect_timeout(CONNECT)
            .read_timeout(SILENCE)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("pronto/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| failed(error.into()))?;
        Ok(HttpClient::new(client))
    }
}
