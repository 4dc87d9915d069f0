//! Certificates, and clients of TLS.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// A client configuration.
#[derive(Clone)]
pub(crate) struct Tls(Arc<ClientConfig>);

impl Tls {
    /// A session over a connection.
    pub(crate) fn over(&self, socket: TcpStream) -> StreamOwned<ClientConnection, TcpStream> {
        let name = ServerName::try_from("localhost").expect("a name");
        let session = ClientConnection::new(Arc::clone(&self.0), name).expect("a session");
        StreamOwned::new(session, socket)
    }
}

/// Files of certificates.
pub(crate) struct Certificates {
    folder: tempfile::TempDir,
}

/// The certificates; `None` if openssl is not installed.
pub(crate) fn certificates() -> Option<&'static Certificates> {
    static MADE: OnceLock<Option<Certificates>> = OnceLock::new();
    MADE.get_or_init(make).as_ref()
}

const CURVE: &str = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";

/// Makes an authority, a certificate of the server and one of Alice; and those of a stranger, who
/// calls himself Alice as well.
fn make() -> Option<Certificates> {
    Command::new("openssl").arg("version").output().ok()?;
    let folder = tempfile::tempdir().expect("a directory");
    let at = folder.path();
    for authority in ["authority", "stranger"] {
        openssl(
            at,
            &format!(
                "req -x509 {CURVE} -keyout {authority}.key -out {authority}.pem -days 2 -subj /CN={authority}"
            ),
        );
    }
    std::fs::write(
        at.join("names"),
        "subjectAltName=DNS:localhost,IP:127.0.0.1\n",
    )
    .expect("a file");
    for (name, subject, authority) in [
        ("server", "localhost", "authority"),
        ("alice", "Alice", "authority"),
        ("forged", "Alice", "stranger"),
    ] {
        openssl(
            at,
            &format!("req {CURVE} -keyout {name}.key -out {name}.csr -subj /CN={subject}"),
        );
        openssl(
            at,
            &format!(
                "x509 -req -in {name}.csr -CA {authority}.pem -CAkey {authority}.key -CAcreateserial -out {name}.pem -days 2 -extfile names"
            ),
        );
    }
    Some(Certificates { folder })
}

fn openssl(at: &Path, arguments: &str) {
    let status = Command::new("openssl")
        .args(arguments.split(' '))
        .current_dir(at)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(
        status.expect("openssl runs").success(),
        "openssl {arguments}"
    );
}

impl Certificates {
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A client that trusts the authority, and has the certificate `own` if there is one.
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
