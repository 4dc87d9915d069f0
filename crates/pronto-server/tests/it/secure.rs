//! Tests of HTTPS with HTTP 1.1 and 2, and of client certificates.

use std::path::PathBuf;
use std::process::Command;

use pronto_server::config::{ServerConfig, TlsFiles};

use crate::stored::{Place, in_both_places};
use crate::support::{Server, Site};

in_both_places!(
    client_certificates_stand_for_users,
    http_2_is_spoken_with_prior_knowledge_and_by_agreement,
);

/// Certificates from openssl, or `None` if openssl is not installed.
struct Certificates {
    server: PathBuf,
    server_key: PathBuf,
    client: PathBuf,
    client_key: PathBuf,
    authority: PathBuf,
}

impl Certificates {
    fn make(site: &Site) -> Option<Self> {
        let path = |name: &str| site.path(name);
        let run = |arguments: &[&str]| {
            let output = Command::new("openssl")
                .args(arguments)
                .current_dir(site.scratch.path())
                .output()
                .ok()?;
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "openssl {arguments:?}: {text}");
            Some(())
        };
        let key = [
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
        ];
        let authority = ["req", "-x509", "-days", "30", "-subj", "/CN=authority"];
        run(&[
            &authority[..],
            &key,
            &["-keyout", "ca.key", "-out", "ca.pem"],
        ]
        .concat())?;
        for (name, subject, extension) in [
            (
                "server",
                "/CN=localhost",
                "subjectAltName=IP:127.0.0.1,DNS:localhost",
            ),
            ("client", "/O=team/CN=Alice", "extendedKeyUsage=clientAuth"),
        ] {
            let (request, certificate) = (format!("{name}.csr"), format!("{name}.pem"));
            let secret = format!("{name}.key");
            std::fs::write(path("extensions"), extension).expect("a file");
            run(&[
                &["req", "-new", "-subj", subject][..],
                &key,
                &["-keyout", &secret, "-out", &request],
            ]
            .concat())?;
            run(&[
                "x509",
                "-req",
                "-in",
                &request,
                "-CA",
                "ca.pem",
                "-CAkey",
                "ca.key",
                "-CAcreateserial",
                "-days",
                "30",
                "-extfile",
                "extensions",
                "-out",
                &certificate,
            ])?;
        }
        Some(Certificates {
            server: path("server.pem"),
            server_key: path("server.key"),
            client: path("client.pem"),
            client_key: path("client.key"),
            authority: path("ca.pem"),
        })
    }

    fn add_to(&self, mut config: ServerConfig) -> ServerConfig {
        config.tls = Some(TlsFiles {
            certificate: self.server.clone(),
            key: self.server_key.clone(),
            client_ca: Some(self.authority.clone()),
        });
        config
    }
}

const CONFIG: &str = r#"
[[grant]]
repository = "**"
users = ["alice"]
role = "write"
[[certificate]]
user = "alice"
subject = "Alice"
"#;

fn client_certificates_stand_for_users(place: Place) {
    let site = Site::new(place);
    let Some(certificates) = Certificates::make(&site) else {
        test_support::skip!("openssl is not installed");
    };
    let token = site.user("alice");
    let server = Server::start(&site, certificates.add_to(site.config(CONFIG)));
    let url = format!("https://{}/team/a", server.address());
    let clone = |url: &str, target: &str, with_certificate: bool, version: &str| {
        let mut command = site.git_command(site.scratch.path());
        command.env("GIT_SSL_CAINFO", &certificates.authority);
        if with_certificate {
            command.env("GIT_SSL_CERT", &certificates.client);
            command.env("GIT_SSL_KEY", &certificates.client_key);
        }
        let version = format!("http.version={version}");
        let output = command
            .args(["-c", &version, "clone", "-q", url, target])
            .output();
        output.expect("git runs").status.success()
    };
    for version in ["HTTP/1.1", "HTTP/2"] {
        let target = format!("certificate-{}", version.replace('/', "-"));
        assert!(clone(&url, &target, true, version), "{version}");
        let with_token = url.replace("https://", &format!("https://alice:{token}@"));
        let target = format!("token-{}", version.replace('/', "-"));
        assert!(clone(&with_token, &target, false, version), "{version}");
    }
    assert!(
        !clone(&url, "none", false, "HTTP/2"),
        "nobody is anonymous here"
    );
}

fn http_2_is_spoken_with_prior_knowledge_and_by_agreement(place: Place) {
    let site = Site::new(place);
    let Some(certificates) = Certificates::make(&site) else {
        test_support::skip!("openssl is not installed");
    };
    if test_support::output_if_installed(Command::new("curl").arg("--version")).is_none() {
        test_support::skip!("curl is not installed");
    }
    let plain = Server::start(&site, site.config(""));
    let secure = Server::start(&site, certificates.add_to(site.config("")));
    let curl = |arguments: &[&str]| {
        let output = Command::new("curl")
            .args([
                "-s",
                "-o",
                "/dev/null",
                "-w",
                "%{http_version} %{http_code}",
            ])
            .arg("--cacert")
            .arg(&certificates.authority)
            .args(arguments)
            .output()
            .expect("curl runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let path = "team/a/info/refs?service=git-upload-pack";
    assert_eq!(
        curl(&["--http2-prior-knowledge", &plain.url(path)]),
        "2 200"
    );
    assert_eq!(curl(&["--http1.1", &plain.url(path)]), "1.1 200");
    let url = format!("https://{}/{path}", secure.address());
    assert_eq!(curl(&["--http2", &url]), "2 200");
    assert_eq!(curl(&["--http1.1", &url]), "1.1 200");
}
