//! Clone and fetch over every transport. The result equals that of stock git.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use test_support::skip;

use crate::servers::{Daemon, Login, Ssh, Tls, Web};

/// A folder with a repository to clone from.
struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let scene = Scene { folder };
        scene.git(&["init", "-q", "-b", "main", "origin"]);
        scene.commit("one");
        scene.git(&["-C", "origin", "tag", "-m", "tagged", "v1"]);
        scene.git(&["-C", "origin", "branch", "side"]);
        scene.commit("two");
        scene
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn origin(&self) -> PathBuf {
        self.path().join("origin")
    }

    fn commit(&self, name: &str) {
        std::fs::write(self.origin().join(name), name.repeat(2000)).expect("a file");
        self.git(&["-C", "origin", "add", "."]);
        self.git(&["-C", "origin", "commit", "-q", "-m", name]);
    }

    fn run(&self, program: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
        Command::new(program)
            .args(arguments)
            .current_dir(self.path())
            .env("HOME", self.path())
            .env("GIT_CONFIG_GLOBAL", self.path().join("gitconfig"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env_remove("GIT_SSL_CAINFO")
            .env_remove("GIT_SSL_NO_VERIFY")
            .env("PRONTO_NO_FALLBACK", "1")
            .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@x")])
            .envs([("GIT_COMMITTER_NAME", "c"), ("GIT_COMMITTER_EMAIL", "c@x")])
            .env("GIT_COMMITTER_DATE", "1112911993 -0700")
            .envs(variables.iter().copied())
            .output()
            .expect("it can be started")
    }

    fn git(&self, arguments: &[&str]) -> String {
        let output = self.run("git", arguments, &[]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn pronto(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
        self.run(env!("CARGO_BIN_EXE_pronto"), arguments, variables)
    }

    /// Clones `url` and fetches from it with git and with pronto, and compares the results.
    fn compare(&self, url: &str, options: &[&str], variables: &[(&str, &str)]) {
        let clone = |program: &str| {
            let _ = std::fs::remove_dir_all(self.path().join("copy"));
            let arguments = [options, &["clone", "-q", url, "copy"]].concat();
            let output = self.run(program, &arguments, variables);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(
                output.status.success(),
                "{program} clone {arguments:?} {variables:?}: {said}"
            );
            self.state()
        };
        let theirs = clone("git");
        let ours = clone(env!("CARGO_BIN_EXE_pronto"));
        assert_eq!(ours, theirs, "{url}");
        self.git(&["-C", "copy", "fsck", "--full", "--strict"]);
        assert_eq!(self.git(&["-C", "copy", "status", "--porcelain"]), "");
        let count = self.git(&["-C", "origin", "rev-list", "--count", "main"]);
        self.commit(&format!("more-{}", count.trim()));
        let tip = self.git(&["-C", "origin", "rev-parse", "main"]);
        let arguments = [options, &["-C", "copy", "fetch", "-q"]].concat();
        let output = self.pronto(&arguments, variables);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "fetch {url}: {said}");
        assert_eq!(self.git(&["-C", "copy", "rev-parse", "origin/main"]), tip);
        self.git(&["-C", "copy", "fsck", "--full", "--strict"]);
    }

    /// References, logs and configuration of the copy.
    fn state(&self) -> Vec<String> {
        let copy = self.path().join("copy/.git");
        let read = |name: &str| std::fs::read_to_string(copy.join(name)).expect("a file");
        vec![
            read("HEAD"),
            read("config"),
            read("packed-refs"),
            read("logs/HEAD"),
            self.git(&["-C", "copy", "for-each-ref"]),
            self.git(&["-C", "copy", "ls-files", "-s"]),
        ]
    }
}

#[test]
fn a_local_server_receives_the_requested_version() {
    let scene = Scene::new();
    let url = format!("file://{}", scene.origin().display());
    let seen = scene.path().join("seen");
    let server = format!(
        "printf %s \"$GIT_PROTOCOL\" >'{}'; git-upload-pack",
        seen.display()
    );
    for configured in ["0", "1", "2"] {
        for given in [
            None,
            Some("version=0"),
            Some("version=1"),
            Some("version=2"),
        ] {
            let setting = format!("protocol.version={configured}");
            let arguments = ["-c", &setting, "clone", "-q", "-u", &server, &url, "copy"];
            let variables: Vec<_> = given.iter().map(|given| ("GIT_PROTOCOL", *given)).collect();
            let [theirs, ours] = ["git", env!("CARGO_BIN_EXE_pronto")].map(|program| {
                let _ = std::fs::remove_dir_all(scene.path().join("copy"));
                let output = scene.run(program, &arguments, &variables);
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{arguments:?} {given:?}: {said}");
                let seen = std::fs::read_to_string(&seen).expect("the server wrote it");
                (seen, scene.state())
            });
            assert_eq!(ours, theirs, "{configured} {given:?}");
        }
    }
}

#[test]
fn over_git_daemon() {
    let scene = Scene::new();
    let daemon = Daemon::start(scene.path());
    for version in ["0", "1", "2"] {
        let version = format!("protocol.version={version}");
        scene.compare(&daemon.url("origin"), &["-c", &version], &[]);
    }
}

#[test]
fn over_ssh() {
    let Some(ssh) = Ssh::start() else {
        skip!("sshd is not installed, or the user cannot log in");
    };
    let scene = Scene::new();
    let (url, command) = (ssh.url(&scene.origin()), ssh.command());
    scene.compare(&url, &[], &[("GIT_SSH_COMMAND", &command)]);
    let setting = format!("core.sshCommand={command}");
    scene.compare(&ssh.scp_url(&scene.origin()), &["-c", &setting], &[]);
    let wrapper = ssh.wrapper();
    let wrapper = wrapper.to_str().expect("a name in ASCII");
    scene.compare(&url, &["-c", "protocol.version=0"], &[("GIT_SSH", wrapper)]);
}

#[test]
fn over_http() {
    let scene = Scene::new();
    let Some(web) = Web::start(scene.path(), Login::Open) else {
        skip!("lighttpd is not installed");
    };
    for version in ["0", "1", "2"] {
        let version = format!("protocol.version={version}");
        scene.compare(&web.url("origin"), &["-c", &version], &[]);
    }
    let output = scene.pronto(&["clone", &web.url("nowhere")], &[]);
    let expected = format!(
        "Cloning into 'nowhere'...\nfatal: repository '{}/' not found\n",
        web.url("nowhere")
    );
    assert_eq!(String::from_utf8_lossy(&output.stderr), expected);
    assert!(!scene.path().join("nowhere").exists());
}

/// A web server without Git's protocol is handled by git alone. No message appears twice.
#[test]
fn over_http_without_a_smart_server() {
    let scene = Scene::new();
    scene.git(&["-C", "origin", "update-server-info"]);
    let url = format!("{}/origin/.git", serve_files(scene.path()));
    let fallback = [("PRONTO_NO_FALLBACK", "0")];
    let theirs = scene.run("git", &["clone", &url, "copy"], &[]);
    std::fs::remove_dir_all(scene.path().join("copy")).expect("it was cloned");
    let ours = scene.pronto(&["clone", &url, "copy"], &fallback);
    assert_eq!(
        String::from_utf8_lossy(&ours.stderr),
        String::from_utf8_lossy(&theirs.stderr)
    );
    assert_eq!(ours.status.code(), Some(0));
    assert!(scene.path().join("copy/two").exists());
    let listed = scene.pronto(&["ls-remote", &url], &fallback);
    let expected = scene.run("git", &["ls-remote", &url], &[]);
    assert_eq!(listed.stdout, expected.stdout);
    assert!(!listed.stdout.is_empty());
    let head = scene.pronto(
        &["-C", "copy", "remote", "set-head", "origin", "-a"],
        &fallback,
    );
    assert_eq!(head.status.code(), Some(0));
    let push = ["-C", "copy", "push", "origin", "HEAD"];
    let (theirs, ours) = (scene.run("git", &push, &[]), scene.pronto(&push, &fallback));
    assert_eq!(
        String::from_utf8_lossy(&ours.stderr),
        String::from_utf8_lossy(&theirs.stderr)
    );
    assert_eq!(ours.status.code(), Some(0));
    let refused = scene.pronto(&["clone", &url, "refused"], &[]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!said.contains("Cloning into"), "{said}");
    assert!(!scene.path().join("refused").exists());
}

/// Serves the files below `directory` until the process ends. Returns the address.
fn serve_files(directory: &Path) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let directory = directory.to_owned();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            // A client that disconnects is not an error.
            let _ = serve_file(&directory, &stream);
        }
    });
    format!("http://127.0.0.1:{port}")
}

fn serve_file(directory: &Path, mut stream: &std::net::TcpStream) -> std::io::Result<()> {
    use std::io::{BufRead as _, BufReader, Write as _};
    let mut lines = BufReader::new(stream).lines();
    let request = lines.next().unwrap_or_else(|| Ok(String::new()))?;
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let path = request.split(' ').nth(1).unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default();
    let (status, body) = match std::fs::read(directory.join(path.trim_start_matches('/'))) {
        Ok(body) => ("200 OK", body),
        Err(_) => ("404 Not Found", Vec::new()),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    );
    stream.write_all(&[head.as_bytes(), &body].concat())
}

#[test]
fn over_https() {
    let scene = Scene::new();
    let Some(web) = Web::start(scene.path(), Login::Open) else {
        skip!("lighttpd is not installed");
    };
    let Some(tls) = Tls::before(web.port()) else {
        skip!("openssl is not installed");
    };
    let authority = tls.authority.to_str().expect("a name in ASCII");
    let setting = format!("http.sslCAInfo={authority}");
    scene.compare(&tls.url("origin"), &["-c", &setting], &[]);
    scene.compare(&tls.url("origin"), &[], &[("GIT_SSL_NO_VERIFY", "1")]);
    scene.compare(&tls.url("origin"), &[], &[("GIT_SSL_CAINFO", authority)]);
    let output = scene.pronto(&["clone", &tls.url("origin"), "untrusted"], &[]);
    assert_eq!(output.status.code(), Some(128));
    assert!(!scene.path().join("untrusted").exists());
}

#[test]
fn with_passwords() {
    let scene = Scene::new();
    let Some(web) = Web::start(scene.path(), Login::Basic) else {
        skip!("lighttpd is not installed");
    };
    let url = web.url("origin");
    let helper = "credential.helper=!f() { echo username=me; echo password=secret; }; f";
    scene.compare(&url, &["-c", helper], &[]);
    let header = "http.extraHeader=Authorization: Basic bWU6c2VjcmV0";
    scene.compare(&url, &["-c", header], &[]);
    // A helper that stores passwords receives the correct one.
    let store = scene.path().join("passwords");
    let ask = scene.path().join("ask");
    let script = "#!/bin/sh\ncase $1 in User*) echo me ;; *) echo secret ;; esac\n";
    crate::support::write_program(&ask, script);
    let setting = format!("credential.helper=store --file={}", store.display());
    // The helper is part of git, so git may be called for it.
    let asked = [
        ("GIT_ASKPASS", ask.to_str().expect("a name in ASCII")),
        ("PRONTO_NO_FALLBACK", "0"),
    ];
    let output = scene.pronto(&["-c", &setting, "clone", "-q", &url, "asked"], &asked);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let kept = std::fs::read_to_string(store).expect("it was kept");
    assert!(kept.contains("me:secret@"), "{kept}");
    let without_git = [asked[0], ("PRONTO_NO_FALLBACK", "1")];
    let output = scene.pronto(
        &["-c", &setting, "clone", "-q", &url, "without"],
        &without_git,
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("credential-store"), "{said}");

    let output = scene.pronto(&["clone", &url, "refused"], &[]);
    let expected = format!(
        "Cloning into 'refused'...\nfatal: could not read Username for 'http://127.0.0.1:{}': \
         terminal prompts disabled\n",
        web.port()
    );
    assert_eq!(String::from_utf8_lossy(&output.stderr), expected);
    let wrong = "credential.helper=!f() { echo username=me; echo password=no; }; f";
    let output = scene.pronto(&["-c", wrong, "clone", &url, "refused"], &[]);
    let expected =
        format!("Cloning into 'refused'...\nfatal: Authentication failed for '{url}/'\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), expected);
    assert!(!scene.path().join("refused").exists());
}

/// The commit of the submodule is missing. A file with the same id must still be fetched.
#[test]
fn a_file_in_place_of_a_submodule_is_fetched() {
    let scene = Scene::new();
    std::fs::write(scene.path().join("secret"), "secret\n").expect("a file");
    let in_origin = |arguments: &[&str]| {
        let output = scene.git(&[&["-C", "origin"], arguments].concat());
        output.trim().to_owned()
    };
    let blob = in_origin(&["hash-object", "../secret"]);
    let add = |mode: &str| {
        let entry = format!("{mode},{blob},x");
        in_origin(&["update-index", "--add", "--cacheinfo", &entry]);
        let tree = in_origin(&["write-tree", "--missing-ok"]);
        let commit = in_origin(&["commit-tree", "-p", "HEAD", "-m", mode, &tree]);
        in_origin(&["update-ref", "HEAD", &commit]);
        format!("{tree}\n{commit}\n")
    };
    add("160000");
    scene.git(&["clone", "-q", "origin", "copy"]);
    let ids = add("100644");
    std::fs::write(scene.path().join("ids"), ids).expect("a file");
    in_origin(&[
        "config",
        "--global",
        "alias.pick",
        "!git pack-objects -q --stdout <../ids >../pack",
    ]);
    in_origin(&["pick"]);
    let pack = scene.path().join("pack");
    // It reads the requests of the server, which would end without a reader.
    let read_all = "cat >/dev/null";
    let pack = pack.display();
    let hook = format!("uploadpack.packObjectsHook={read_all}; cat '{pack}'; :");
    let server = format!("git -c \"{hook}\" upload-pack");
    for program in ["git", env!("CARGO_BIN_EXE_pronto")] {
        let arguments = ["-C", "copy", "fetch", "-q", "--upload-pack", &server];
        let output = scene.run(program, &arguments, &[]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{program}: {said}");
        assert!(
            said.contains("did not send all necessary objects"),
            "{program}: {said}"
        );
    }
}
