//! Peers that authenticate each other by their keys, and a server for many peers.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use test_support::DEFAULT_SIGNALS;

use crate::support::{process, pronto_path, stderr, stdout};

/// A time limit that only a hang reaches.
const LONG: Duration = Duration::from_secs(300);

/// Users with home directories, and repositories.
pub(crate) struct World {
    folder: tempfile::TempDir,
}

/// A running server.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) address: String,
    lines: Arc<Mutex<Vec<String>>>,
}

impl World {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        World { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Creates a command that runs a program as `who`.
    pub(crate) fn command(&self, program: &Path, who: &str, place: &str) -> Command {
        let mut command = process(program);
        command
            .current_dir(self.path(place))
            .env("HOME", self.path(&format!("home-{who}")))
            .env("PRONTO_NO_FALLBACK", "1")
            .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@x")])
            .envs([("GIT_COMMITTER_NAME", "c"), ("GIT_COMMITTER_EMAIL", "c@x")]);
        command
    }

    pub(crate) fn pronto(&self, who: &str, place: &str, arguments: &[&str]) -> Output {
        let mut command = self.command(pronto_path(), who, place);
        command.args(arguments).output().expect("it can be started")
    }

    pub(crate) fn done(&self, who: &str, place: &str, arguments: &[&str]) -> String {
        let output = self.pronto(who, place, arguments);
        let said = stderr(&output);
        assert!(output.status.success(), "{arguments:?}: {said}");
        stdout(&output)
    }

    pub(crate) fn git(&self, place: &str, arguments: &[&str]) -> String {
        let mut command = self.command(Path::new("git"), "git", place);
        let output = command.args(arguments).output().expect("it can be started");
        let said = stderr(&output);
        assert!(output.status.success(), "{arguments:?}: {said}");
        stdout(&output)
    }

    pub(crate) fn commit(&self, place: &str, file: &str, content: &[u8]) {
        std::fs::write(self.path(place).join(file), content).expect("a file");
        self.git(place, &["add", "."]);
        self.git(place, &["commit", "-q", "-m", file]);
    }

    /// A repository with one commit.
    pub(crate) fn repository(&self, place: &str) {
        self.git(".", &["init", "-q", "-b", "main", place]);
        self.commit(place, "base", b"base\n");
    }

    /// Creates the key of `who`.
    pub(crate) fn key(&self, who: &str) -> String {
        let reported = self.done(who, ".", &["netsync", "keygen"]);
        reported.lines().next().expect("a key").to_owned()
    }

    /// Makes the two peers trust each other.
    pub(crate) fn introduce(&self, one: (&str, &str), other: (&str, &str)) {
        self.done(one.0, ".", &["netsync", "trust", other.0, other.1]);
        self.done(other.0, ".", &["netsync", "trust", one.0, one.1]);
    }

    pub(crate) fn serve(&self, who: &str, place: &str, arguments: &[&str]) -> Server {
        let mut command = self.command(Path::new("env"), who, place);
        command
            .args(DEFAULT_SIGNALS)
            .arg(pronto_path())
            .args(["serve", "--netsync", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("it can be started");
        let mut output = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut first = String::new();
        output.read_line(&mut first).expect("a line");
        let (_, address) = first.split_once("\"address\":\"").expect("it says where");
        let (address, _) = address.split_once('"').expect("the address ends");
        let lines = Arc::new(Mutex::new(vec![first.clone()]));
        let kept = Arc::clone(&lines);
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                kept.lock().expect("no panic").push(line);
            }
        });
        Server {
            child,
            address: address.to_owned(),
            lines,
        }
    }
}

impl Server {
    pub(crate) fn url(&self, path: &str) -> String {
        format!("netsync://{}/{path}", self.address)
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().expect("no panic").clone()
    }

    /// Waits for a matching line of its log.
    pub(crate) fn wait_for(&self, what: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + LONG;
        loop {
            if let Some(line) = self.lines().into_iter().find(|line| what(line)) {
                return line;
            }
            assert!(Instant::now() < end, "{:?}", self.lines());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Returns its peak memory in KiB.
    pub(crate) fn peak_kib(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).expect("it runs");
        let line = status.lines().find(|line| line.starts_with("VmHWM:"));
        let number = line.and_then(|line| line.split_ascii_whitespace().nth(1));
        number.and_then(|text| text.parse().ok()).expect("a number")
    }

    pub(crate) fn terminate(&self) {
        let id = i32::try_from(self.child.id()).expect("an id");
        let id = rustix::process::Pid::from_raw(id).expect("an id");
        rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("it runs");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn two_machines_sync_over_tls() {
    let world = World::new();
    world.repository("desk");
    world.git(".", &["clone", "-q", "desk", "laptop"]);
    world.commit("desk", "d", b"desk\n");
    world.commit("laptop", "l", b"laptop\n");
    let (desk, laptop) = (world.key("desk"), world.key("laptop"));
    world.introduce(("desk", &desk), ("laptop", &laptop));
    let server = world.serve("desk", "desk", &[]);
    let url = server.url("");
    let reported = world.done("laptop", "laptop", &["sync", &url, "--name", "desk"]);
    assert!(
        reported.contains("* new      main -> desk/main"),
        "{reported}"
    );
    assert!(
        reported.contains("* new      main -> laptop/main"),
        "{reported}"
    );
    let again = world.done("laptop", "laptop", &["sync", &url, "--name", "desk"]);
    assert!(again.starts_with("Already up to date."), "{again}");
    for (here, name, there) in [("desk", "laptop", "laptop"), ("laptop", "desk", "desk")] {
        let tracked = world.git(here, &["rev-parse", &format!("refs/remotes/{name}/main")]);
        assert_eq!(tracked, world.git(there, &["rev-parse", "main"]));
        assert_eq!(world.git(here, &["fsck", "--full", "--strict"]), "");
    }
    server.wait_for(|line| line.contains("\"event\":\"synced\"") && line.contains("\"number\":1"));
    // A peer without the name of the host is found by its address.
    let trusted = ["netsync", "trust", "desk", &desk, "--at", &server.address];
    world.done("laptop", ".", &trusted);
    world.done("laptop", "laptop", &["sync", &url]);
    let peers = world.done("laptop", ".", &["netsync", "peers"]);
    assert!(peers.starts_with("desk\tread,write\t"), "{peers}");
}

#[test]
fn an_unknown_peer_learns_only_how_to_be_trusted() {
    let world = World::new();
    world.repository("desk");
    world.git(".", &["clone", "-q", "desk", "laptop"]);
    world.git("desk", &["branch", "confidential"]);
    let desk = world.key("desk");
    let server = world.serve("desk", "desk", &[]);
    let url = server.url("");
    let refused = |parts: &[&str]| {
        let output = world.pronto("laptop", "laptop", &["sync", &url, "--name", "desk"]);
        assert_eq!(output.status.code(), Some(128), "{}", stdout(&output));
        let said = stderr(&output);
        for part in parts {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(
            !said.contains("confidential") && stdout(&output).is_empty(),
            "{said}"
        );
    };
    refused(&[
        "no netsync key",
        "hint: create one with 'pronto netsync keygen'",
    ]);
    let laptop = world.key("laptop");
    // First the client does not know the server, then the server does not know the client.
    let hint = format!("pronto netsync trust desk {desk} --at {}", server.address);
    refused(&["is not trusted: its fingerprint is ", &hint]);
    world.done("laptop", ".", &["netsync", "trust", "desk", &desk]);
    refused(&[
        "does not know the key",
        &format!("pronto netsync trust NAME {laptop}"),
    ]);
    let line = server.wait_for(|line| line.contains("does not know the key"));
    assert!(
        line.contains("\"event\":\"failed\"") && !line.contains("\"repository\""),
        "{line}"
    );
    world.done("desk", ".", &["netsync", "trust", "laptop", &laptop]);
    world.done("laptop", "laptop", &["sync", &url, "--name", "desk"]);
    // A known name with another key.
    let other = world.key("other");
    world.done("laptop", ".", &["netsync", "revoke", "desk"]);
    refused(&["has the key of 'desk', which was revoked"]);
    world.done("laptop", ".", &["netsync", "trust", "desk", &other]);
    refused(&[
        "does not have the key of 'desk'",
        "another host may intercept the connection",
    ]);
    let list = world.path("home-laptop/.config/pronto/netsync/known_peers");
    std::fs::write(&list, format!("desk read,write {desk}\n")).expect("a list");
    // Revoked on the other side.
    world.done("desk", ".", &["netsync", "revoke", "laptop"]);
    refused(&["was revoked"]);
    assert_eq!(world.git("desk", &["fsck", "--full", "--strict"]), "");
}

#[test]
fn roles_and_globs_are_enforced() {
    let world = World::new();
    world.repository("desk");
    world.git(".", &["clone", "-q", "desk", "laptop"]);
    world.git("desk", &["branch", "secret/plan"]);
    world.commit("desk", "d", b"desk\n");
    world.commit("laptop", "l", b"laptop\n");
    let (desk, laptop) = (world.key("desk"), world.key("laptop"));
    world.done("laptop", ".", &["netsync", "trust", "desk", &desk]);
    let roles = |roles: &str| {
        let trusted = [
            "netsync", "trust", "laptop", &laptop, "--roles", roles, "--not", "secret/*",
        ];
        world.done("desk", ".", &trusted);
    };
    roles("read");
    let server = world.serve("desk", ".", &["."]);
    let url = server.url("desk");
    let sync = |arguments: &[&str]| {
        let arguments = [&["sync", &url, "--name", "desk"], arguments].concat();
        world.pronto("laptop", "laptop", &arguments)
    };
    for arguments in [&[][..], &["--push"]] {
        let said = stderr(&sync(arguments));
        assert!(
            said.contains("'laptop' may not write here; use --pull"),
            "{said}"
        );
    }
    let reported = sync(&["--pull"]);
    assert!(reported.status.success(), "{}", stderr(&reported));
    let refs = world.git(
        "laptop",
        &["for-each-ref", "--format=%(refname)", "refs/remotes/desk"],
    );
    assert_eq!(refs, "refs/remotes/desk/main\n");
    assert_eq!(world.git("desk", &["for-each-ref", "refs/remotes"]), "");
    roles("write");
    let said = stderr(&sync(&["--pull"]));
    assert!(
        said.contains("'laptop' may not read here; use --push"),
        "{said}"
    );
    assert!(sync(&["--push"]).status.success());
    world.git("desk", &["rev-parse", "refs/remotes/laptop/main"]);
    // Paths outside of the served directory do not exist.
    world.repository("elsewhere");
    for path in ["nowhere", "../elsewhere", "desk/../elsewhere", ""] {
        let url = server.url(path);
        let output = world.pronto(
            "laptop",
            "laptop",
            &["sync", &url, "--push", "--name", "desk"],
        );
        let said = stderr(&output);
        let is_none = path == "elsewhere" || said.contains("there is no repository");
        assert!(is_none, "{path}: {said}");
    }
}

#[test]
fn mismatches_are_reported() {
    let world = World::new();
    world.repository("desk");
    world.git(".", &["init", "-q", "-b", "main", "stranger"]);
    world.commit("stranger", "x", b"x\n");
    world.git(".", &["init", "-q", "--object-format=sha256", "long"]);
    let (desk, laptop) = (world.key("desk"), world.key("laptop"));
    world.introduce(("desk", &desk), ("laptop", &laptop));
    let server = world.serve("desk", "desk", &["--max-received", "1"]);
    let url = server.url("desk");
    let fails = |place: &str, arguments: &[&str], part: &str| {
        let arguments = [&["sync", &url, "--name", "desk"], arguments].concat();
        let output = world.pronto("laptop", place, &arguments);
        assert_eq!(output.status.code(), Some(128), "{}", stdout(&output));
        assert!(stderr(&output).contains(part), "{}", stderr(&output));
    };
    // A name belongs to the first repository that uses it.
    let forget = || world.done("desk", "desk", &["netsync", "forget", "laptop"]);
    fails("long", &[], "different object formats");
    fails("stranger", &[], "no common commit");
    let hint = "hint: use --allow-unrelated";
    fails("stranger", &[], hint);
    forget();
    world.git(".", &["clone", "-q", "desk", "laptop"]);
    let mut number = 1u64;
    let mut noise = Vec::new();
    while noise.len() < 3 << 20 {
        number = number
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        noise.extend_from_slice(&number.to_be_bytes()[..4]);
    }
    world.commit("laptop", "much", &noise);
    fails(
        "laptop",
        &[],
        "the transfer is larger than the peer accepts in one session",
    );
    assert_eq!(world.git("desk", &["for-each-ref", "refs/remotes"]), "");
}

#[test]
fn a_server_finishes_sessions_before_it_ends() {
    let world = World::new();
    world.repository("desk");
    world.git(".", &["clone", "-q", "desk", "laptop"]);
    let (desk, laptop) = (world.key("desk"), world.key("laptop"));
    world.introduce(("desk", &desk), ("laptop", &laptop));
    let mut server = world.serve("desk", "desk", &["--handshake-timeout", "300"]);
    // A connected client that stays silent.
    let mut guest = std::net::TcpStream::connect(&server.address).expect("it listens");
    world.done(
        "laptop",
        "laptop",
        &["sync", &server.url(""), "--name", "desk"],
    );
    server.terminate();
    server.wait_for(|line| line.contains("\"event\":\"draining\""));
    assert!(server.child.try_wait().expect("it can be asked").is_none());
    guest.shutdown(std::net::Shutdown::Write).expect("a socket");
    let _ = guest.read(&mut [0; 16]);
    let status = server.child.wait().expect("it ends");
    assert!(status.success(), "{status}");
    let mut server = world.serve("desk", "desk", &["--once"]);
    world.done(
        "laptop",
        "laptop",
        &["sync", &server.url(""), "--name", "desk"],
    );
    assert!(server.child.wait().expect("it ends").success());
}
