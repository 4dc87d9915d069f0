//! A TLS proxy in front of a plain web server.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::certificate;

/// Accepts encrypted connections and forwards their bytes to a plain port until the process ends.
pub(crate) struct Tls {
    port: u16,
    /// Returns the authority to trust.
    pub(crate) authority: PathBuf,
    _folder: tempfile::TempDir,
}

impl Tls {
    /// Starts a proxy for `port`. `None` if certificates cannot be created.
    pub(crate) fn before(port: u16) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let certificate = certificate::make(folder.path())?;
        let chain = CertificateDer::pem_file_iter(&certificate.chain)
            .expect("a file")
            .map(|item| item.expect("a certificate"))
            .collect();
        let key = PrivateKeyDer::from_pem_file(&certificate.key).expect("a key");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider has them")
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .expect("they belong together");
        let config = Arc::new(config);
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let own = listener.local_addr().expect("it is bound").port();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let config = Arc::clone(&config);
                std::thread::spawn(move || pass(client, config, port));
            }
        });
        Some(Tls {
            port: own,
            authority: certificate.authority,
            _folder: folder,
        })
    }

    /// The URL of the repository `name`.
    pub(crate) fn url(&self, name: &str) -> String {
        format!("https://127.0.0.1:{}/git/{name}", self.port)
    }
}

/// Forwards bytes in both directions until one side ends.
fn pass(client: TcpStream, config: Arc<ServerConfig>, port: u16) -> Option<()> {
    let mut server = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let connection = ServerConnection::new(config).ok()?;
    client.set_nodelay(true).ok()?;
    let mut stream = StreamOwned::new(connection, client);
    stream.conn.complete_io(&mut stream.sock).ok()?;
    let wait = Some(Duration::from_millis(1));
    stream.sock.set_read_timeout(wait).ok()?;
    server.set_read_timeout(wait).ok()?;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return None,
            Ok(count) => server.write_all(&buffer[..count]).ok()?,
            Err(error) if is_timeout(&error) => {}
            Err(_) => return None,
        }
        match server.read(&mut buffer) {
            Ok(0) => {
                stream.conn.send_close_notify();
                return stream.flush().ok();
            }
            Ok(count) => stream.write_all(&buffer[..count]).ok()?,
            Err(error) if is_timeout(&error) => {}
            Err(_) => return None,
        }
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}
