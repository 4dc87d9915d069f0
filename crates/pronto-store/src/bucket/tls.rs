//! HTTP for the cloud services: reqwest with the TLS implementation and the host lookup of pronto.

use std::time::Duration;

use object_store::ClientOptions;
use object_store::client::{HttpClient, HttpConnector};
use pronto_io::hosts;
use pronto_wire::tls::ServerTrust;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::tls;

/// The connect timeout.
const CONNECT: Duration = Duration::from_secs(5);

/// The timeout for receiving the next byte.
const SILENCE: Duration = Duration::from_secs(15);

/// Creates HTTP clients.
#[derive(Debug)]
pub(super) struct BucketHttpConnector;

impl HttpConnector for BucketHttpConnector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let failed =
            |source: Box<dyn std::error::Error + Send + Sync>| object_store::Error::Generic {
                store: "HTTP",
                source,
            };
        let config = tls::config(ServerTrust::of_system());
        let config = config.map_err(|error| failed(error.into()))?;
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(config)
            .connect_timeout(CONNECT)
            .read_timeout(SILENCE)
            .dns_resolver(SystemHosts)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("pronto/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| failed(error.into()))?;
        Ok(HttpClient::new(client))
    }
}

/// Looks up hosts like the rest of pronto, because a static program must not use the C library for
/// it.
struct SystemHosts;

impl Resolve for SystemHosts {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            // The port of the URL replaces 0.
            let found = move || hosts::resolve(name.as_str(), 0, CONNECT);
            let found = tokio::task::spawn_blocking(found).await??;
            let addresses: Addrs = Box::new(found.into_iter());
            Ok(addresses)
        })
    }
}
