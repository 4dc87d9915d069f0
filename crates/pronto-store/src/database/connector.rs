//! TLS for connections to the database, with the rustls of pronto.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use pronto_wire::tls::ServerTrust;
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

use super::address::DatabaseAddress;
use crate::{Error, ErrorKind, Result, tls};

/// Creates connections, and verifies that the certificate of the server is valid for its name.
#[derive(Clone)]
pub(super) struct DatabaseTls(Arc<ClientConfig>);

impl DatabaseTls {
    /// Prepares connections to `address` that trust its authorities, or those of the system.
    pub(super) fn new(address: &DatabaseAddress) -> Result<Self> {
        let trust = match &address.authorities {
            None => ServerTrust::of_system(),
            Some(path) => {
                let wrong = |reason: String| {
                    let message = format!("cannot read certificates from '{}'", path.display());
                    Error::new(ErrorKind::Options, message).because(reason)
                };
                let found = CertificateDer::pem_file_iter(path);
                let found = found.map_err(|error| wrong(error.to_string()))?;
                let found = found.collect::<Result<Vec<_>, _>>();
                let found = found.map_err(|error| wrong(error.to_string()))?;
                if found.is_empty() {
                    return Err(wrong("the file contains no certificates".to_owned()));
                }
                ServerTrust::new(found)
            }
        };
        let mut config = tls::config(trust)
            .map_err(|error| Error::new(ErrorKind::Options, "cannot set up TLS").because(error))?;
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(DatabaseTls(Arc::new(config)))
    }
}

impl MakeTlsConnect<Socket> for DatabaseTls {
    type Stream = Encrypted;
    type TlsConnect = Handshake;
    type Error = rustls::pki_types::InvalidDnsNameError;

    fn make_tls_connect(&mut self, domain: &str) -> Result<Handshake, Self::Error> {
        Ok(Handshake {
            connector: TlsConnector::from(Arc::clone(&self.0)),
            name: ServerName::try_from(domain.to_owned())?,
        })
    }
}

/// A handshake with the server of this name.
pub(super) struct Handshake {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl TlsConnect<Socket> for Handshake {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let stream = self.connector.connect(self.name, socket).await?;
            Ok(Encrypted(stream))
        })
    }
}

/// An encrypted connection.
pub(super) struct Encrypted(tokio_rustls::client::TlsStream<Socket>);

impl TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        // The certificate is verified, so a man in the middle is excluded.
        ChannelBinding::none()
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
