//! Signed pushes, with keys of gpg and ssh, between stock git and pronto.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use test_support::keys::{GpgHome, make_ssh_key};
use test_support::{skip, write_program};

use crate::servers::{Daemon, Login, Ssh, Web};
use crate::support::{process, pronto_path, stderr};

const NAME: &str = "C O Mitter <committer@example.com>";

/// The hook, which writes its variables and the certificate to the files of [`TOLD`].
const HOOK: &str = r#"#!/bin/sh
for name in SIGNER KEY STATUS NONCE_STATUS NONCE_SLOP; do
	eval "echo $name=\${GIT_PUSH_CERT_$name-none}"
done >"$0.told"
echo "$GIT_PUSH_CERT_NONCE" >"$0.nonce"
git cat-file blob "$GIT_PUSH_CERT" >"$0.certificate"
cat >/dev/null
"#;

/// The ends of the names of the files that [`HOOK`] writes.
const TOLD: [&str; 3] = ["told", "nonce", "certificate"];

const HOOKS: [&str; 2] = ["pre-receive", "post-receive"];

/// Keys of gpg and ssh.
struct Keys {
    home: GpgHome,
}

impl Keys {
    /// `None` if gpg or ssh-keygen is not installed.
    fn make() -> Option<Self> {
        let home = GpgHome::new();
        let keys = Keys { home };
        if !keys.home.make_key(NAME) || !make_ssh_key(&keys.ssh()) {
            skip!("gpg or ssh-keygen is not installed");
        }
        let public = std::fs::read_to_string(keys.ssh().with_extension("pub"));
        let line = format!("me@x {}", public.expect("a public key"));
        std::fs::write(keys.allowed(), line).expect("a file");
        Some(keys)
    }

    fn ssh(&self) -> PathBuf {
        self.home.path().join("key")
    }

    fn allowed(&self) -> PathBuf {
        self.home.path().join("allowed")
    }

    /// The settings with which a push is signed in a format.
    fn settings(&self, format: &str) -> Vec<String> {
        match format {
            "ssh" => vec![
                "gpg.format=ssh".to_owned(),
                format!("user.signingKey={}", self.ssh().display()),
            ],
            "literal" => {
                let public = std::fs::read_to_string(self.ssh().with_extension("pub"));
                let public = public.expect("a public key");
                let command = format!("echo 'key::{}'", public.trim());
                vec![
                    "gpg.format=ssh".to_owned(),
                    format!("gpg.ssh.defaultKeyCommand=sh -c \"{command}\""),
                ]
            }
            _ => Vec::new(),
        }
    }
}

/// A repository with a commit, and one that takes signed pushes.
struct Scene {
    folder: tempfile::TempDir,
    keys: Keys,
}

impl Scene {
    fn new() -> Option<Self> {
        let keys = Keys::make()?;
        let folder = tempfile::tempdir().expect("a folder");
        let scene = Scene { folder, keys };
        scene.git(".", &["init", "-q", "--bare", "-b", "main", "target.git"]);
        let set = |key: &str, value: &str| scene.git("target.git", &["config", key, value]);
        set("receive.certNonceSeed", "seed");
        set("receive.certNonceSlop", "600");
        set("receive.advertisePushOptions", "true");
        set("http.receivePack", "true");
        set("daemon.receivePack", "true");
        let allowed = scene.keys.allowed();
        set(
            "gpg.ssh.allowedSignersFile",
            allowed.to_str().expect("ASCII"),
        );
        for name in HOOKS {
            write_program(&scene.target().join("hooks").join(name), HOOK);
        }
        scene.git(".", &["init", "-q", "-b", "main", "source"]);
        scene.commit();
        Some(scene)
    }

    fn target(&self) -> PathBuf {
        self.folder.path().join("target.git")
    }

    fn command(&self, program: impl AsRef<Path>, directory: &str) -> Command {
        let mut command = process(program.as_ref());
        command
            .current_dir(self.folder.path().join(directory))
            .env("HOME", self.folder.path())
            .env("TMPDIR", self.folder.path())
            .env("GNUPGHOME", self.keys.home.path())
            .env("PRONTO_NO_FALLBACK", "1")
            .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@x")])
            .env("GIT_COMMITTER_NAME", "C O Mitter")
            .env("GIT_COMMITTER_EMAIL", "committer@example.com");
        command
    }

    fn git(&self, directory: &str, arguments: &[&str]) -> String {
        let output = self.command("git", directory).args(arguments).output();
        let output = output.expect("it starts");
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn commit(&self) {
        self.git("source", &["commit", "-q", "--allow-empty", "-m", "more"]);
    }

    /// Pushes with a signature in a format.
    fn push(&self, client: &str, format: &str, arguments: &[&str]) -> Output {
        let mut command = self.command(program(client), "source");
        for setting in self.keys.settings(format) {
            command.args(["-c", &setting]);
        }
        command.args(["push", "-q", "--signed"]).args(arguments);
        self.run_push(&mut command)
    }

    /// Runs a push. Removes what hooks wrote during earlier ones before.
    fn run_push(&self, command: &mut Command) -> Output {
        for (hook, what) in HOOKS.iter().flat_map(|hook| TOLD.map(|what| (hook, what))) {
            match std::fs::remove_file(self.reported_file(hook, what)) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => panic!("{hook}.{what}: {error}"),
            }
        }
        command.output().expect("it starts")
    }

    fn reported_file(&self, hook: &str, what: &str) -> PathBuf {
        self.target().join("hooks").join(format!("{hook}.{what}"))
    }

    /// Returns what a hook wrote during the last push.
    fn reported(&self, hook: &str, what: &str) -> String {
        std::fs::read_to_string(self.reported_file(hook, what)).expect("the hook ran")
    }

    /// Checks that both hooks learned of a good signature, and that the certificate is the one that the client
    /// signed.
    fn check(&self, format: &str, pushee: &str, options: &[&str]) {
        let (signer, key) = match format {
            "gpg" => (NAME.to_owned(), self.gpg_key()),
            _ => ("me@x".to_owned(), self.ssh_key()),
        };
        let expected =
            format!("SIGNER={signer}\nKEY={key}\nSTATUS=G\nNONCE_STATUS=OK\nNONCE_SLOP=none\n");
        for hook in HOOKS {
            assert_eq!(self.reported(hook, "told"), expected, "{hook} {format}");
        }
        let certificate = self.reported("post-receive", "certificate");
        let (head, body) = certificate.split_once("\n\n").expect("it has two parts");
        let pusher = match format {
            "gpg" => NAME.to_owned(),
            _ => key,
        };
        let mut lines = head.lines();
        assert_eq!(lines.next(), Some("certificate version 0.1"));
        let line = lines.next().expect("a pusher");
        // Older releases of git write two spaces before the time.
        let line = line.replace("  ", " ");
        assert!(line.starts_with(&format!("pusher {pusher} 1")), "{line}");
        assert_eq!(lines.next(), Some(&*format!("pushee {pushee}")));
        let nonce = self.reported("post-receive", "nonce");
        assert_eq!(lines.next(), Some(&*format!("nonce {}", nonce.trim())));
        let options = options.iter().map(|option| format!("push-option {option}"));
        assert!(lines.map(str::to_owned).eq(options), "{head}");
        let new = self.git("source", &["rev-parse", "main"]);
        let change = body.lines().next().expect("a change");
        assert!(
            change.ends_with(&format!(" {} refs/heads/main", new.trim())),
            "{change}"
        );
        assert_eq!(self.git("target.git", &["rev-parse", "main"]), new);
    }

    /// Checks that signing and checking left no temporary file.
    fn check_temporary_files(&self) {
        let left = std::fs::read_dir(self.folder.path()).expect("a directory");
        let mut names = left.flatten().map(|entry| entry.file_name());
        assert!(!names.any(|name| name.to_string_lossy().starts_with(".git_")));
    }

    fn gpg_key(&self) -> String {
        let mut command = self.command("gpg", ".");
        command.args(["--list-keys", "--with-colons"]);
        let output = command.output().expect("it starts").stdout;
        let text = String::from_utf8_lossy(&output).into_owned();
        let line = text.lines().find(|line| line.starts_with("pub:"));
        let field = line.and_then(|line| line.split(':').nth(4));
        field.expect("there is a key").to_owned()
    }

    fn ssh_key(&self) -> String {
        let mut command = self.command("ssh-keygen", ".");
        let output = command.arg("-lf").arg(self.keys.ssh()).output();
        let output = output.expect("it starts").stdout;
        let text = String::from_utf8_lossy(&output).into_owned();
        text.split(' ').nth(1).expect("a fingerprint").to_owned()
    }
}

fn program(name: &str) -> PathBuf {
    match name {
        "git" => "git".into(),
        _ => pronto_path().to_owned(),
    }
}

fn succeeded(output: &Output) {
    assert!(output.status.success(), "{}", stderr(output));
}

/// The programs of both sides.
const PAIRS: [(&str, &str); 3] = [("pronto", "git"), ("git", "pronto"), ("pronto", "pronto")];

#[test]
fn the_server_checks_what_the_client_signs() {
    let Some(scene) = Scene::new() else { return };
    for (client, there) in PAIRS {
        let receive = format!("--receive-pack='{}' receive-pack", program(there).display());
        for format in ["gpg", "ssh"] {
            scene.commit();
            let all = [&receive, "-o", "a b", "-o", "c", "../target.git", "main"];
            succeeded(&scene.push(client, format, &all));
            scene.check(format, "../target.git", &["a b", "c"]);
        }
    }
    scene.check_temporary_files();
}

/// A program that takes the place of gpg in a client.
fn forger(scene: &Scene, name: &str, script: &str) -> String {
    let path = scene.folder.path().join(name);
    write_program(&path, &format!("#!/bin/sh\n{script}\n"));
    format!("gpg.program={}", path.display())
}

#[test]
fn hooks_learn_of_bad_signatures() {
    let Some(scene) = Scene::new() else { return };
    let other = forger(&scene, "other", r#"cat >/dev/null; echo other | gpg "$@""#);
    let none = forger(
        &scene,
        "none",
        "cat >/dev/null; echo none; echo '[GNUPG:] SIG_CREATED x' >&2",
    );
    let push = |there: &str, setting: &str| {
        let mut command = scene.command(pronto_path(), "source");
        let receive = format!("--receive-pack='{}' receive-pack", program(there).display());
        command.args(["-c", setting, "push", "--signed", &receive]);
        scene.run_push(command.args(["../target.git", "main"]))
    };
    let key = scene.gpg_key();
    for there in ["git", "pronto"] {
        scene.commit();
        succeeded(&push(there, &other));
        let reported =
            format!("SIGNER={NAME}\nKEY={key}\nSTATUS=B\nNONCE_STATUS=OK\nNONCE_SLOP=none\n");
        assert_eq!(scene.reported("pre-receive", "told"), reported, "{there}");
        // The server takes text without a signature for commands, which are malformed.
        scene.commit();
        let before = scene.git("target.git", &["rev-parse", "main"]);
        let output = push(there, &none);
        assert!(!output.status.success(), "{there}");
        assert_eq!(scene.git("target.git", &["rev-parse", "main"]), before);
    }
    // The server cannot run the program: there is no verdict.
    scene.git("target.git", &["config", "gpg.program", "/nonexistent"]);
    let settings = ["-c", "gpg.program=gpg"];
    for there in ["git", "pronto"] {
        scene.commit();
        let mut command = scene.command(pronto_path(), "source");
        let receive = format!("--receive-pack='{}' receive-pack", program(there).display());
        command.args(settings).args(["push", "--signed", &receive]);
        let output = scene.run_push(command.args(["../target.git", "main"]));
        succeeded(&output);
        assert!(
            stderr(&output).contains("/nonexistent"),
            "{}",
            stderr(&output)
        );
        let reported = "SIGNER=\nKEY=\nSTATUS=N\nNONCE_STATUS=OK\nNONCE_SLOP=none\n";
        assert_eq!(scene.reported("post-receive", "told"), reported, "{there}");
    }
}

#[test]
fn unknown_and_revoked_ssh_keys_are_reported() {
    let Some(scene) = Scene::new() else { return };
    let key = scene.ssh_key();
    let revoked = scene.keys.ssh().with_extension("pub");
    let revoked = revoked.to_str().expect("ASCII");
    for (setting, value, reported) in [
        (
            "gpg.ssh.allowedSignersFile",
            "/dev/null",
            format!("SIGNER=\nKEY={key}\nSTATUS=G\n"),
        ),
        (
            "gpg.ssh.revocationFile",
            revoked,
            "SIGNER=\nKEY=\nSTATUS=B\n".to_owned(),
        ),
        (
            "gpg.ssh.revocationFile",
            "/nonexistent",
            format!("SIGNER=me@x\nKEY={key}\nSTATUS=G\n"),
        ),
    ] {
        let allowed = scene.keys.allowed();
        let allowed = allowed.to_str().expect("ASCII");
        scene.git(
            "target.git",
            &["config", "gpg.ssh.allowedSignersFile", allowed],
        );
        scene.git("target.git", &["config", setting, value]);
        for there in ["git", "pronto"] {
            if there == "git" && value == revoked {
                // Git calls ssh-keygen in a way that ignores the file of revoked keys.
                continue;
            }
            scene.commit();
            let receive = format!("--receive-pack='{}' receive-pack", program(there).display());
            succeeded(&scene.push("pronto", "ssh", &[&receive, "../target.git", "main"]));
            let found = scene.reported("post-receive", "told");
            assert!(
                found.starts_with(&reported),
                "{there} {setting}={value}: {found}"
            );
        }
    }
}

#[test]
fn both_sides_work_without_git() {
    let Some(scene) = Scene::new() else { return };
    let programs = scene.folder.path().join("programs");
    std::fs::create_dir(&programs).expect("a directory");
    for name in ["sh", "cat", "gpg", "gpg-agent", "ssh-keygen"] {
        let found = ["/usr/bin", "/bin"].map(|directory| Path::new(directory).join(name));
        let found = found.iter().find(|path| path.exists());
        let found = found.expect("it is installed");
        std::os::unix::fs::symlink(found, programs.join(name)).expect("a link");
    }
    // Without git, the hook cannot read the certificate.
    let hook = HOOK.replace("git cat-file blob", "echo");
    for name in HOOKS {
        write_program(&scene.target().join("hooks").join(name), &hook);
    }
    for format in ["gpg", "ssh"] {
        scene.commit();
        let mut command = scene.command(pronto_path(), "source");
        for setting in scene.keys.settings(format) {
            command.args(["-c", &setting]);
        }
        command.env("PATH", &programs);
        command.args(["push", "-q", "--signed", "../target.git", "main"]);
        succeeded(&scene.run_push(&mut command));
        let reported = scene.reported("post-receive", "told");
        assert!(
            reported.contains("STATUS=G\nNONCE_STATUS=OK\n"),
            "{reported}"
        );
        let id = scene.reported("post-receive", "certificate");
        let certificate = scene.git("target.git", &["cat-file", "blob", id.trim()]);
        assert!(certificate.starts_with("certificate version 0.1\npusher "));
    }
}

#[test]
fn an_agent_signs_with_a_public_key() {
    let Some(scene) = Scene::new() else { return };
    let mut command = scene.command("ssh-agent", "source");
    let script = r#"ssh-add -q "$KEY" && exec "$@""#;
    command.env("KEY", scene.keys.ssh());
    command.args(["sh", "-c", script, "sh"]).arg(pronto_path());
    for setting in scene.keys.settings("literal") {
        command.args(["-c", &setting]);
    }
    command.args(["push", "-q", "--signed", "../target.git", "main"]);
    succeeded(&scene.run_push(&mut command));
    scene.check("ssh", "../target.git", &[]);
    scene.check_temporary_files();
}

#[test]
fn every_transport_carries_a_certificate() {
    let Some(scene) = Scene::new() else { return };
    let root = scene.folder.path();
    let daemon = Daemon::start(root);
    let (ssh, web) = (Ssh::start(), Web::start(root, Login::Open));
    let mut urls = vec![daemon.url("target.git")];
    match &ssh {
        Some(ssh) => urls.push(ssh.url(&scene.target())),
        None => test_support::report_skip(&"sshd is not installed", &test_support::INSTALL),
    }
    match &web {
        Some(web) => urls.push(web.url("target.git")),
        None => test_support::report_skip(&"lighttpd is not installed", &test_support::INSTALL),
    }
    for url in urls {
        scene.commit();
        let mut command = scene.command(pronto_path(), "source");
        if let Some(ssh) = &ssh {
            command.env("GIT_SSH_COMMAND", ssh.command());
        }
        for setting in scene.keys.settings("ssh") {
            command.args(["-c", &setting]);
        }
        command.args(["push", "-q", "--signed", &url, "main"]);
        succeeded(&scene.run_push(&mut command));
        scene.check("ssh", &url, &[]);
    }
}

#[test]
fn a_push_without_a_key_changes_nothing() {
    let Some(scene) = Scene::new() else { return };
    for (settings, reason) in [
        (
            &["user.signingKey=nobody@nowhere"][..],
            "gpg failed to sign the data:\n",
        ),
        (
            &["gpg.program=/nonexistent"],
            "gpg failed to sign the data:\n",
        ),
        (
            &["gpg.program=false"],
            "gpg failed to sign the data:\n(no gpg output)\n",
        ),
        (
            &["gpg.program=true"],
            "gpg failed to sign the data:\n(no gpg output)\n",
        ),
        (
            &["gpg.format=ssh"],
            "either user.signingkey or gpg.ssh.defaultKeyCommand",
        ),
        (
            &["gpg.format=ssh", "user.signingKey=/nonexistent"],
            "failed to get the ssh fingerprint for key '/nonexistent'",
        ),
        (
            &["gpg.format=ssh", "gpg.ssh.defaultKeyCommand=false"],
            "gpg.ssh.defaultKeyCommand failed",
        ),
        (
            &["gpg.format=ssh", "gpg.ssh.defaultKeyCommand=true"],
            "gpg.ssh.defaultKeyCommand succeeded but returned no keys",
        ),
        (&["gpg.format=odd"], "invalid value for 'gpg.format': 'odd'"),
    ] {
        let mut command = scene.command(pronto_path(), "source");
        for setting in settings {
            command.args(["-c", setting]);
        }
        let push = ["push", "--signed", "../target.git", "main"];
        let output = scene.run_push(command.args(push));
        assert_eq!(output.status.code(), Some(128), "{settings:?}");
        let said = stderr(&output);
        assert!(said.contains(reason), "{settings:?}: {said}");
        if reason.starts_with("gpg failed") {
            assert!(
                said.contains("fatal: failed to sign the push certificate"),
                "{said}"
            );
        }
    }
    let refs = scene.git("target.git", &["for-each-ref"]);
    assert_eq!(refs, "");
    scene.check_temporary_files();
}
