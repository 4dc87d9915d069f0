//! TLS for servers. The certificates are created once.

use std::io::{self, Read};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use super::Log;

#[path = "../../../../pronto-wire/tests/servers/certificate.rs"]
mod certificate;

/// The text in the log of a server that has received the client's certificate.
pub(crate) const CLIENT: &str = "CANARY-CLIENT-CERTIFICATE";

/// Files of certificates.
pub(crate) struct Certificates {
    pub(crate) authority: PathBuf,
    pub(crate) chain: PathBuf,
    pub(crate) key: PathBuf,
    config: Arc<ServerConfig>,
    _folder: tempfile::TempDir,
}

/// Returns the certificates; `None` if openssl is not installed.
pub(crate) fn certificates() -> Option<&'static Certificates> {
    static MADE: OnceLock<Option<Certificates>> = OnceLock::new();
    MADE.get_or_init(make).as_ref()
}

fn installed(paths: &[&str]) -> Option<PathBuf> {
    paths.iter().map(PathBuf::from).find(|path| path.is_file())
}

fn make() -> Option<Certificates> {
    let folder = tempfile::tempdir().expect("a folder");
    let made = certificate::make(folder.path())?;
    let read = |path: &PathBuf| {
        let items = CertificateDer::pem_file_iter(path).expect("a file");
        items.map(|item| item.expect("a certificate")).collect()
    };
    let chain: Vec<CertificateDer<'static>> = read(&made.chain);
    let authorities: Vec<CertificateDer<'static>> = read(&made.authority);
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority).expect("an authority");
    }
    let key = PrivateKeyDer::from_pem_file(&made.key).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone())
        .allow_unauthenticated()
        .build()
        .expect("there is an authority");
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has them")
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .expect("they belong together");
    Some(Certificates {
        authority: made.authority,
        chain: made.chain,
        key: made.key,
        config: Arc::new(config),
        _folder: folder,
    })
}

/// Accepts one connection.
pub(super) fn accept(
    connection: TcpStream,
    log: &Log,
) -> io::Result<StreamOwned<ServerConnection, TcpStream>> {
    let made = certificates().ok_or(io::ErrorKind::NotFound)?;
    let session = ServerConnection::new(Arc::clone(&made.config)).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(session, connection);
    // The first read completes the handshake.
    let _ = stream.read(&mut [])?;
    stream.conn.complete_io(&mut stream.sock)?;
    if stream.conn.peer_certificates().is_some() {
        log.add(CLIENT.as_bytes());
    }
    Ok(stream)
}
