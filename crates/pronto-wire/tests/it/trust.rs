//! Which certificates of servers are trusted (`http.sslCAInfo`, `http.sslCAPath`).

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pronto_wire::transport::{Options, http};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use test_support::authority::{Authority, IssuedCertificate, self_signed};
use test_support::skip;

use crate::support::{Fixed, connect_with};

/// The names of the server of a test, as openssl writes them.
const NAMES: &str = "subjectAltName=DNS:localhost,IP:127.0.0.1\n";

/// Dates that contain today.
const VALID: [&str; 2] = ["20200101000000Z", "20990101000000Z"];

/// Presents one certificate, whether the key belongs to it or not.
#[derive(Debug)]
struct Presented(Arc<CertifiedKey>);

impl ResolvesServerCert for Presented {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

/// Starts a server that has no repositories. Returns its port.
fn serve(certificate: &str, key: &str) -> u16 {
    let chain = CertificateDer::pem_slice_iter(certificate.as_bytes());
    let chain = chain.map(|item| item.expect("a certificate")).collect();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
    let key = rustls::crypto::ring::sign::any_supported_type(&key).expect("a key that is known");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has them")
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Presented(Arc::new(CertifiedKey::new(chain, key)))));
    let config = Arc::new(config);
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let config = Arc::clone(&config);
            std::thread::spawn(move || refuse(client, config));
        }
    });
    port
}

/// Answers one request with 404.
fn refuse(client: TcpStream, config: Arc<ServerConfig>) -> Option<()> {
    let connection = ServerConnection::new(config).ok()?;
    let mut stream = StreamOwned::new(connection, client);
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        request.extend(byte);
    }
    let answer = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    stream.write_all(answer).ok()?;
    stream.conn.send_close_notify();
    stream.flush().ok()
}

/// Returns the error of a client that trusts the certificates in `trusted`.
fn error(host: &str, port: u16, trusted: &Path) -> String {
    let mut options = http::Options::default();
    match trusted.is_dir() {
        true => options.ssl_ca_path = Some(trusted.to_owned()),
        false => options.ssl_ca_info = Some(trusted.to_owned()),
    }
    let settings = Fixed {
        options,
        ..Fixed::default()
    };
    let url = format!("https://{host}:{port}/x");
    let refused = connect_with(&url, &Options::default(), settings).err();
    refused.expect("the server has no repository").to_string()
}

fn is_trusted(error: &str) -> bool {
    error.contains("not found")
}

fn written(folder: &tempfile::TempDir, name: &str, parts: &[&str]) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, parts.concat()).expect("a file");
    path
}

#[test]
fn the_certificate_itself_can_be_trusted() {
    let folder = tempfile::tempdir().expect("a directory");
    // `openssl req -x509` makes an authority. Others make a certificate that is none.
    for kind in [
        "basicConstraints=critical,CA:TRUE\n",
        "basicConstraints=CA:FALSE\n",
        "",
    ] {
        for purpose in [
            "",
            "extendedKeyUsage=serverAuth\n",
            "extendedKeyUsage=clientAuth,serverAuth\n",
        ] {
            let extensions = [NAMES, kind, purpose].concat();
            let Some(made) = self_signed(&extensions, VALID) else {
                skip!("openssl is not installed");
            };
            let port = serve(&made.certificate, &made.key);
            let trusted = written(&folder, "trusted.pem", &[&made.certificate]);
            for host in ["localhost", "127.0.0.1"] {
                let found = error(host, port, &trusted);
                assert!(is_trusted(&found), "{extensions} {host}: {found}");
            }
        }
    }
    // A certificate of an authority that the user does not know, beside another one, in a directory.
    let authority = Authority::new().expect("openssl is installed");
    let (one, other) = (authority.issue("one"), authority.issue("other"));
    let port = serve(&one.certificate, &one.key);
    let both = written(
        &folder,
        "both.pem",
        &[&other.certificate, "\n", &one.certificate],
    );
    for place in [&both, folder.path()] {
        let found = error("localhost", port, place);
        assert!(is_trusted(&found), "{found}");
    }
    // The certificate of the other server is no reason to trust this one.
    let only = written(&folder, "only.pem", &[&other.certificate]);
    let found = error("localhost", port, &only);
    assert!(found.contains("UnknownIssuer"), "{found}");
}

#[test]
fn a_trusted_certificate_is_verified_like_others() {
    let folder = tempfile::tempdir().expect("a directory");
    let authority = "basicConstraints=critical,CA:TRUE\n";
    for kind in [authority, "basicConstraints=CA:FALSE\n"] {
        for (extensions, dates, expected) in [
            (
                "subjectAltName=DNS:elsewhere\n",
                VALID,
                "not valid for name",
            ),
            (
                "subjectAltName=DNS:localhost.example.org\n",
                VALID,
                "not valid for name",
            ),
            ("subjectAltName=IP:127.0.0.2\n", VALID, "not valid for name"),
            // The common name is no name of a server.
            ("", VALID, "not valid for name"),
            (NAMES, ["20200101000000Z", "20200201000000Z"], "expired"),
            (
                NAMES,
                ["20980101000000Z", "20990101000000Z"],
                "not valid yet",
            ),
            (
                "subjectAltName=DNS:localhost\nextendedKeyUsage=clientAuth\n",
                VALID,
                "",
            ),
            (
                "subjectAltName=DNS:localhost\nextendedKeyUsage=critical,codeSigning\n",
                VALID,
                "",
            ),
        ] {
            let Some(made) = self_signed(&[extensions, kind].concat(), dates) else {
                skip!("openssl is not installed");
            };
            let port = serve(&made.certificate, &made.key);
            let trusted = written(&folder, "trusted.pem", &[&made.certificate]);
            let found = error("localhost", port, &trusted);
            assert!(
                found.contains("invalid peer certificate") && found.contains(expected),
                "{extensions}{kind}: {found}"
            );
        }
    }
}

#[test]
fn a_certificate_without_its_key_is_refused() {
    let folder = tempfile::tempdir().expect("a directory");
    let make = |kind: &str| self_signed(&[NAMES, kind].concat(), VALID);
    for kind in [
        "basicConstraints=critical,CA:TRUE\n",
        "basicConstraints=CA:FALSE\n",
    ] {
        let (Some(own), Some(foreign)) = (make(kind), make(kind)) else {
            skip!("openssl is not installed");
        };
        let trusted = written(&folder, "trusted.pem", &[&own.certificate]);
        // The trusted certificate with another key.
        let port = serve(&own.certificate, &foreign.key);
        let found = error("localhost", port, &trusted);
        assert!(!is_trusted(&found), "{found}");
        assert!(found.contains("BadSignature"), "{found}");
        // Another certificate with the same names, alone and with the trusted one behind it.
        let IssuedCertificate { certificate, key } = &foreign;
        for chain in [
            certificate.clone(),
            [certificate.as_str(), "\n", &own.certificate].concat(),
        ] {
            let found = error("localhost", serve(&chain, key), &trusted);
            assert!(!is_trusted(&found), "{found}");
            assert!(found.contains("invalid peer certificate"), "{found}");
        }
    }
}
