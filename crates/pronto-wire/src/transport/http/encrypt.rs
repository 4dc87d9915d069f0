//! Encrypted connections of the HTTP client.

use std::io::{self, Read as _, Write as _};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use ureq::Error;
use ureq::http::Uri;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout, Transport,
    TransportAdapter,
};

/// A connector that encrypts connections to servers with the scheme `https`, or all connections to a
/// forwarding proxy with that scheme.
#[derive(Clone, Debug, Default)]
pub(super) struct Encryption {
    /// The configuration of TLS. `None` if no connection is encrypted.
    config: Option<Arc<ClientConfig>>,
    /// The address of the forwarding proxy, if connections to it are encrypted.
    proxy: Option<Uri>,
}

impl Encryption {
    /// Encrypts connections to servers, and to proxies that make a tunnel to them.
    pub(super) fn of_origin(config: Arc<ClientConfig>) -> Self {
        Encryption {
            config: Some(config),
            proxy: None,
        }
    }

    /// Encrypts connections to the forwarding proxy at `address`.
    pub(super) fn of_proxy(config: Arc<ClientConfig>, address: Uri) -> Self {
        Encryption {
            config: Some(config),
            proxy: Some(address),
        }
    }
}

impl<In: Transport> Connector<In> for Encryption {
    type Out = Either<In, EncryptedConnection>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, Error> {
        let Some(connection) = chained else {
            return Ok(None);
        };
        if self.proxy.is_none() && !details.needs_tls() || connection.is_tls() {
            return Ok(Some(Either::A(connection)));
        }
        let config = self.config.as_ref().ok_or(Error::TlsRequired)?;
        let uri = self.proxy.as_ref().unwrap_or(details.uri);
        let name = server_name(uri)?;
        let client = ClientConnection::new(Arc::clone(config), name)?;
        let clock = Arc::clone(&details.current_time);
        let mut below = TransportAdapter::new(connection.boxed(), clock);
        below.set_timeout(details.timeout);
        let mut stream = StreamOwned::new(client, below);
        stream.conn.complete_io(&mut stream.sock)?;
        let config = details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        Ok(Some(Either::B(EncryptedConnection { stream, buffers })))
    }
}

/// Returns the name or the address that the certificate of a server must contain.
fn server_name(uri: &Uri) -> Result<ServerName<'static>, Error> {
    let host = uri.host().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let invalid = |_| Error::BadUri(format!("'{host}' cannot be the name of a server"));
    ServerName::try_from(bare.to_owned()).map_err(invalid)
}

/// A connection that is encrypted.
pub(super) struct EncryptedConnection {
    stream: StreamOwned<ClientConnection, TransportAdapter>,
    buffers: LazyBuffers,
}

impl std::fmt::Debug for EncryptedConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EncryptedConnection")
            .field("below", &self.stream.sock.inner())
            .finish_non_exhaustive()
    }
}

impl Transport for EncryptedConnection {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.stream.sock.set_timeout(timeout);
        let output = self.buffers.output().get(..amount);
        let output = output.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        self.stream.write_all(output)?;
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        self.stream.sock.set_timeout(timeout);
        let count = self.stream.read(self.buffers.input_append_buf())?;
        self.buffers.input_appended(count);
        Ok(count > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.sock.get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}
