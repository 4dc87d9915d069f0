//! Tests signing and verification with real keys of gpg and SSH.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pronto_config::{Environment, ErrorKind};
use pronto_io::interrupt::Interrupt;
use pronto_signing::{
    KeyTrust, Settings, SignatureFormat, SignatureStatus, Signer, signature_start,
};
use test_support::keys::{GpgHome, make_ssh_key};
use test_support::{skip, write_program};

const NAME: &str = "A <a@x>";

/// The timeout for the start of a program.
const LONGEST: Duration = Duration::from_secs(30);

/// A directory with keys, and the environment for programs that use the keys.
struct Keys {
    home: GpgHome,
    environment: Environment,
    interrupt: Interrupt,
}

impl Keys {
    fn new() -> Self {
        let home = GpgHome::new();
        let mut environment = Environment::empty(home.path());
        environment.set("GNUPGHOME", home.path());
        environment.set("HOME", home.path());
        environment.set("TMPDIR", home.path());
        Keys {
            environment,
            home,
            interrupt: Interrupt::new(),
        }
    }

    fn signer<'a>(&'a self, settings: &'a Settings) -> Signer<'a> {
        let directory = self.home.path();
        Signer::new(settings, directory, &self.environment, &self.interrupt)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }
}

#[test]
fn gpg_signs_and_checks() {
    let keys = Keys::new();
    if !keys.home.make_key(NAME) {
        skip!("gpg is not installed");
    }
    let settings = Settings::default();
    let signer = keys.signer(&settings);
    let key = signer.key(|| Ok(NAME.into())).expect("the identity");
    assert_eq!(signer.key_id(&key).expect("the same"), NAME);
    let signature = signer.sign(b"a text\n", &key).expect("there is a key");
    let signed = [b"a text\n", signature.as_slice()].concat();
    assert_eq!(signature_start(&signed), 7);
    for signer in [signer, signer.detached()] {
        let check = signer.check(b"a text\n", &signature).expect("it is run");
        assert_eq!(
            (check.status, check.trust),
            (SignatureStatus::Good, KeyTrust::Ultimate)
        );
        assert!(check.is_good() && check.signer.is_some_and(|name| name == NAME));
        let check = signer.check(b"a TEXT\n", &signature).expect("it is run");
        assert!(check.status == SignatureStatus::Bad && !check.is_good());
    }
    let other = Keys::new();
    let check = other.signer(&settings).check(b"a text\n", &signature);
    assert_eq!(check.expect("it is run").status, SignatureStatus::Unknown);
    let error = signer
        .check(b"a text\n", b"no signature")
        .expect_err("it is none");
    assert_eq!(error.kind(), ErrorKind::UnknownSignature);
}

#[test]
fn ssh_signs_and_checks() {
    let keys = Keys::new();
    let file = keys.path("key");
    if !make_ssh_key(&file) {
        skip!("ssh-keygen is not installed");
    }
    let public = std::fs::read_to_string(file.with_extension("pub")).expect("a file");
    std::fs::write(keys.path("allowed"), format!("me@x {public}")).expect("a file");
    std::fs::write(keys.path("nobody"), "").expect("a file");
    let mut settings = Settings::default();
    settings.format = SignatureFormat::Ssh;
    settings.signing_key = Some("~/key".into());
    let signer = keys.signer(&settings);
    let key = signer.key(|| unreachable!("the key is set")).expect("set");
    let fingerprint = signer.key_id(&key).expect("the file is there");
    assert!(fingerprint.starts_with(b"SHA256:"));
    let signature = signer.sign(b"a text\n", &key).expect("there is a key");
    let error = signer
        .check(b"a text\n", &signature)
        .expect_err("nobody is allowed");
    assert_eq!(error.kind(), ErrorKind::Signing);

    let check = |allowed: &str, revoked: Option<&Path>, text: &[u8]| {
        let mut settings = settings.clone();
        settings.ssh_allowed_signers = Some(keys.path(allowed));
        settings.ssh_revocation_file = revoked.map(Path::to_owned);
        let check = keys.signer(&settings).detached().check(text, &signature);
        check.expect("it is run")
    };
    let good = check("allowed", None, b"a text\n");
    assert_eq!(
        (good.status, good.trust),
        (SignatureStatus::Good, KeyTrust::Fully)
    );
    assert!(good.is_good());
    assert_eq!(good.signer.expect("a principal"), "me@x");
    assert_eq!(good.key.expect("a key"), fingerprint);
    assert_eq!(
        check("allowed", None, b"a TEXT\n").status,
        SignatureStatus::Bad
    );
    let unknown = check("nobody", None, b"a text\n");
    assert_eq!(
        (unknown.status, unknown.signer.clone()),
        (SignatureStatus::Good, None)
    );
    assert!(!unknown.is_good() && unknown.trust == KeyTrust::Undefined);
    let revoked = check("allowed", Some(&file.with_extension("pub")), b"a text\n");
    assert_eq!(revoked.status, SignatureStatus::Bad);
    let missing = check("allowed", Some(Path::new("nowhere")), b"a text\n");
    assert!(missing.is_good() && missing.missing_revocation_file.is_some());
    let left = std::fs::read_dir(keys.home.path()).expect("a directory");
    assert_eq!(left.count(), 4);
}

#[test]
fn a_program_that_hangs_ends_with_the_interrupt() {
    let keys = Keys::new();
    let program = keys.path("slow");
    // The program exits after a while, so that the test fails and does not hang if the program is
    // not killed.
    let script = format!(
        "#!/bin/sh\ntouch \"$GNUPGHOME/begun\"\nsleep {}\n",
        2 * LONGEST.as_secs()
    );
    write_program(&program, &script);
    let line = format!("[gpg]\n\tprogram = {}\n", program.display());
    let mut loader = pronto_config::config::Loader::new(&keys.environment, None);
    let file = keys.path("config");
    std::fs::write(&file, line).expect("a file");
    let config = loader
        .file(&file, pronto_config::config::ConfigScope::Global)
        .load()
        .expect("well formed");
    let settings = Settings::of(&config, None).expect("well formed");
    let signer = keys.signer(&settings).detached();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let start = Instant::now();
            while !keys.path("begun").exists() {
                assert!(start.elapsed() < LONGEST, "the program does not start");
                std::thread::yield_now();
            }
            keys.interrupt.trigger();
        });
        let signature = b"-----BEGIN PGP SIGNATURE-----\n";
        let error = signer.check(b"text", signature).expect_err("it is stopped");
        assert_eq!(error.kind(), ErrorKind::Interrupted);
    });
}
