//! Certificate authorities, and self-signed certificates, for tests.

use std::process::{Command, Stdio};

use crate::{Scratch, output_if_installed};

const CURVE: &str = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";

/// A certificate authority for the address 127.0.0.1 and the name `localhost`.
pub struct Authority(Scratch);

/// A certificate and its private key, in PEM.
pub struct IssuedCertificate {
    /// The certificate.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

impl Authority {
    /// Creates an authority with openssl. Returns `None` if openssl is not installed.
    ///
    /// # Panics
    /// Panics if openssl fails.
    #[must_use]
    pub fn new() -> Option<Self> {
        output_if_installed(Command::new("openssl").arg("version"))?;
        let authority = Authority(Scratch::new());
        authority.openssl(&format!(
            "req -x509 {CURVE} -keyout authority.key -out authority.pem -days 2 -subj /CN=authority"
        ));
        let names = "subjectAltName=DNS:localhost,IP:127.0.0.1\n";
        std::fs::write(authority.0.join("names"), names).expect("writable");
        Some(authority)
    }

    /// Returns the path of the authority's own certificate.
    #[must_use]
    pub fn file(&self) -> std::path::PathBuf {
        self.0.join("authority.pem")
    }

    /// Issues a certificate whose subject has the common name `name`.
    ///
    /// # Panics
    /// Panics if openssl fails.
    #[must_use]
    pub fn issue(&self, name: &str) -> IssuedCertificate {
        self.openssl(&format!(
            "req {CURVE} -keyout {name}.key -out {name}.csr -subj /CN={name}"
        ));
        self.openssl(&format!(
            "x509 -req -in {name}.csr -CA authority.pem -CAkey authority.key -CAcreateserial -out {name}.pem \
             -days 2 -extfile names"
        ));
        let read = |extension: &str| {
            let file = self.0.join(format!("{name}.{extension}"));
            std::fs::read_to_string(file).expect("text")
        };
        IssuedCertificate {
            certificate: read("pem"),
            key: read("key"),
        }
    }

    fn openssl(&self, arguments: &str) {
        let output = Command::new("openssl")
            .args(arguments.split(' '))
            .current_dir(self.0.path())
            .stdin(Stdio::null())
            .output()
            .expect("it starts");
        assert!(output.status.success(), "openssl {arguments}: {output:?}");
    }
}

/// The settings of `openssl ca` for certificates with any dates.
const SETTINGS: &str = "[ca]\ndefault_ca = own\n[own]\ndatabase = index\nnew_certs_dir = .\nserial = serial\n\
                        default_md = sha256\npolicy = any\n[any]\ncommonName = supplied\n";

/// Creates a self-signed certificate with these extensions (lines of openssl's configuration), valid from the
/// first to the second date (`YYYYMMDDHHMMSSZ`). Returns `None` if openssl is not installed.
///
/// # Panics
/// Panics if openssl fails.
#[must_use]
pub fn self_signed(extensions: &str, dates: [&str; 2]) -> Option<IssuedCertificate> {
    output_if_installed(Command::new("openssl").arg("version"))?;
    let folder = Authority(Scratch::new());
    let [from, to] = dates;
    for (name, text) in [
        ("settings", SETTINGS),
        ("index", ""),
        ("serial", "01\n"),
        ("extensions", extensions),
    ] {
        std::fs::write(folder.0.join(name), text).expect("writable");
    }
    folder.openssl(&format!(
        "req {CURVE} -keyout own.key -out own.csr -subj /CN=localhost"
    ));
    folder.openssl(&format!(
        "ca -batch -config settings -selfsign -keyfile own.key -in own.csr -startdate {from} -enddate {to} \
         -extfile extensions -notext -out own.pem"
    ));
    let read = |name: &str| std::fs::read_to_string(folder.0.join(name)).expect("text");
    Some(IssuedCertificate {
        certificate: read("own.pem"),
        key: read("own.key"),
    })
}
