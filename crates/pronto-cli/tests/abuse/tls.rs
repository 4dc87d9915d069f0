//! Certificates and TLS clients.

use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use test_support::authority::Authority;

/// A TLS client configuration.
#[derive(Clone)]
pub(crate) struct Tls(Arc<ClientConfig>);

impl Tls {
    /// Starts a session over a connection.
    pub(crate) fn over(&self, socket: TcpStream) -> StreamOwned<ClientConnection, TcpStream> {
        let name = ServerName::try_from("localhost").expect("a name");
        let session = ClientConnection::new(Arc::clone(&self.0), name).expect("a session");
        StreamOwned::new(session, socket)
    }
}

/// The paths of certificates and keys.
pub(crate) struct Certificates {
    folder: tempfile::TempDir,
}

/// Returns the certificates; `None` if openssl is not installed.
pub(crate) fn certificates() -> Option<&'static Certificates> {
    static MADE: OnceLock<Option<Certificates>> = OnceLock::new();
    MADE.get_or_init(make).as_ref()
}

/// Creates a certificate of the server, a certificate of Alice, and a forged one. The forged
/// certificate has Alice's name, but its issuer is another authority with the same name.
fn make() -> Option<Certificates> {
    let (authority, stranger) = (Authority::new()?, Authority::new()?);
    let folder = tempfile::tempdir().expect("a directory");
    let made = Certificates { folder };
    std::fs::copy(authority.file(), made.path("authority.pem")).expect("a file");
    for (name, subject, issuer) in [
        ("server", "localhost", &authority),
        ("alice", "Alice", &authority),
        ("forged", "Alice", &stranger),
    ] {
        let issued = issuer.issue(subject);
        let write = |extension: &str, content: String| {
            let file = made.path(&format!("{name}.{extension}"));
            std::fs::write(file, content).expect("a file");
        };
        write("pem", issued.certificate);
        write("key", issued.key);
    }
    Some(made)
}

impl Certificates {
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns a client that trusts the authority, and uses the certificate `own` if one is given.
    pub(crate) fn client(&self, own: Option<&str>) -> Tls {
        let read = |name: &str| -> Vec<CertificateDer<'static>> {
            let items = CertificateDer::pem_file_iter(self.path(name)).expect("a file");
            items.map(|item| item.expect("a certificate")).collect()
        };
        let mut roots = RootCertStore::empty();
        for authority in read("authority.pem") {
            roots.add(authority).expect("an authority");
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider has them")
            .with_root_certificates(roots);
        let config = match own {
            None => builder.with_no_client_auth(),
            Some(name) => {
                let key = self.path(&format!("{name}.key"));
                let key = PrivateKeyDer::from_pem_file(key).expect("a key");
                let chain = read(&format!("{name}.pem"));
                let made = builder.with_client_auth_cert(chain, key);
                made.expect("they belong together")
            }
        };
        Tls(Arc::new(config))
    }
}
