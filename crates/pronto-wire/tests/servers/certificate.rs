//! Certificates for one test.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A certificate for 127.0.0.1, its key, and the authority that signed it.
pub(crate) struct Certificate {
    pub(crate) authority: PathBuf,
    pub(crate) chain: PathBuf,
    pub(crate) key: PathBuf,
}

/// Creates one in `folder`. `None` if openssl is not installed.
pub(crate) fn make(folder: &Path) -> Option<Certificate> {
    let openssl = super::installed(&["/usr/bin/openssl", "/usr/local/bin/openssl"])?;
    let run = |arguments: &str| {
        let status = Command::new(&openssl)
            .args(arguments.split(' '))
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .expect("openssl runs");
        assert!(status.success(), "openssl {arguments}");
    };
    std::fs::write(
        folder.join("names"),
        "subjectAltName=IP:127.0.0.1,DNS:localhost\n",
    )
    .expect("a file");
    let curve = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    run(&format!(
        "req -x509 {curve} -keyout authority.key -out authority.pem -days 2 -subj /CN=authority"
    ));
    run(&format!(
        "req {curve} -keyout server.key -out server.csr -subj /CN=127.0.0.1"
    ));
    run(
        "x509 -req -in server.csr -CA authority.pem -CAkey authority.key -CAcreateserial \
         -out server.pem -days 2 -extfile names",
    );
    Some(Certificate {
        authority: folder.join("authority.pem"),
        chain: folder.join("server.pem"),
        key: folder.join("server.key"),
    })
}
