//! The scene of the calls: repositories, a store, servers, and the program in a fixed environment.

use std::fmt::Write as _;
use std::fs::Permissions;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use test_support::{DEFAULT_SIGNALS, Scratch};

use crate::support::{process, pronto_path, stderr, stdout};

/// The date of all commits, so that objects have the same sizes in each run.
const DATE: &str = "1700000000 +0000";

/// The configuration of the server.
const CONFIG: &str =
    "root = \"$DIR/served\"\nusers = \"$DIR/users.toml\"\n[http]\nlisten = [\"127.0.0.1:0\"]\n";

/// Mounts a full file system with a copy of the directory `$1` there, and runs the other arguments.
const FULL_DISK: &str = r#"
set -e
mount -t tmpfs -o size=16m none /mnt
cp -a "$1/." /mnt
dd if=/dev/zero of=/mnt/fill bs=4096 2>/dev/null || true
mount --bind /mnt "$1"
cd "$PWD"
shift
exec "$@"
"#;

/// A directory with the repositories `work` and `other`, the store `store` with the repository `r`, and
/// the configuration `server.toml` of a server of the repositories in `served`.
pub(super) struct World {
    pub(super) scratch: Scratch,
    /// The words before the program.
    prefix: Vec<String>,
}

impl World {
    pub(super) fn new() -> Self {
        let scratch = Scratch::new();
        let world = World {
            scratch,
            prefix: Vec::new(),
        };
        for name in ["home", "store", "served", "cache"] {
            std::fs::create_dir(world.path(name)).expect("a directory");
        }
        for name in ["work", "other"] {
            git(world.scratch.path(), &["init", "-q", "-b", "main", name]);
            let repository = world.path(name);
            std::fs::write(repository.join("file"), "content\n").expect("a file");
            git(&repository, &["add", "."]);
            git(&repository, &["commit", "-q", "-m", name]);
        }
        git(
            world.scratch.path(),
            &["clone", "-q", "--bare", "work", "served/project.git"],
        );
        world.write("server.toml", CONFIG);
        world.prepare("pronto store import work file://$DIR/store r");
        world.prepare("pronto serve --config server.toml user add ann");
        world
    }

    /// Returns a world whose directory `name` has a copy of its content and no free space in calls.
    /// Only root can make it.
    pub(super) fn on_full_disk(&self, name: &str) -> View<'_> {
        let path = self.path(name).to_string_lossy().into_owned();
        let words = ["unshare", "--mount", "sh", "-c", FULL_DISK, "sh"];
        let words = words.into_iter().map(str::to_owned);
        View {
            world: self,
            prefix: words.chain([path]).collect(),
            variables: Vec::new(),
        }
    }

    /// Returns a world with further variables of the environment in calls.
    pub(super) fn with(&self, variables: &[(&str, &str)]) -> View<'_> {
        View {
            world: self,
            prefix: self.prefix.clone(),
            variables: variables
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    /// Writes a file, in whose text `$DIR` is the directory.
    pub(super) fn write(&self, name: &str, text: &str) {
        let top = self.scratch.path().to_string_lossy();
        std::fs::write(self.path(name), text.replace("$DIR", &top)).expect("a file");
    }

    /// Sets the permissions of a file.
    pub(super) fn permit(&self, name: &str, mode: u32) {
        let permissions = Permissions::from_mode(mode);
        std::fs::set_permissions(self.path(name), permissions).expect("they are set");
    }

    /// Makes all further calls run without the right to ignore permissions, if the tests run as root.
    pub(super) fn without_privileges(&mut self) {
        if rustix::process::geteuid().is_root() {
            let bounds = "--bounding-set=-dac_override,-dac_read_search";
            self.prefix = vec!["setpriv".to_owned(), bounds.to_owned()];
        }
    }

    /// Runs a call that must succeed, and returns its standard output.
    pub(super) fn prepare(&self, line: &str) -> String {
        let output = self.with(&[]).command(line).output().expect("it starts");
        assert!(output.status.success(), "{line}: {}", stderr(&output));
        stdout(&output)
    }

    /// Runs a call, and returns its line and its result.
    pub(super) fn run(&self, line: &str) -> String {
        self.with(&[]).run(line)
    }

    /// Returns the text of a result, without what differs from run to run.
    fn plain(&self, text: &str) -> String {
        let top = self.scratch.path().to_string_lossy().into_owned();
        let program = pronto_path().to_string_lossy().into_owned();
        let text = text.replace(&top, "$DIR").replace(&program, "pronto");
        // Which of both is said depends on the name servers.
        let unresolved = [
            "Temporary failure in name resolution",
            "Name or service not known",
            "No address associated with hostname",
        ];
        let text = unresolved
            .iter()
            .fold(text, |text, each| text.replace(each, "UNRESOLVED"));
        without_ids(&without_times(&without_ports(&without_temporary(&text))))
    }
}

/// Runs git in `directory`, which must succeed.
pub(super) fn git(directory: &Path, arguments: &[&str]) {
    let output = process("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@x"])
        .args(arguments)
        .envs([("GIT_AUTHOR_DATE", DATE), ("GIT_COMMITTER_DATE", DATE)])
        .current_dir(directory)
        .output()
        .expect("git starts");
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        stderr(&output)
    );
}

/// A world with further variables, and its words before the program.
pub(super) struct View<'a> {
    world: &'a World,
    prefix: Vec<String>,
    variables: Vec<(String, String)>,
}

impl View<'_> {
    /// Creates the process of a call: words that spaces separate, the first of which is `pronto`. Words
    /// before it set variables, and `cd DIRECTORY &&` selects the directory.
    fn command(&self, line: &str) -> Command {
        let top = self.world.scratch.path().to_string_lossy();
        let line = line.replace("$DIR", &top);
        let (place, line) = match line.strip_prefix("cd ") {
            Some(rest) => rest.split_once(" && ").expect("a directory"),
            None => (".", line.as_str()),
        };
        let mut words = line.split(' ');
        assert_eq!(words.next(), Some("pronto"), "{line}");
        let mut command = process("/usr/bin/env");
        command.args(DEFAULT_SIGNALS).args(&self.prefix);
        command
            .arg(pronto_path())
            .args(words)
            .current_dir(self.world.path(place))
            .env("HOME", self.world.path("home"))
            .env("TMPDIR", self.world.scratch.path())
            .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@x")])
            .envs([("GIT_COMMITTER_NAME", "c"), ("GIT_COMMITTER_EMAIL", "c@x")])
            .envs([("GIT_AUTHOR_DATE", DATE), ("GIT_COMMITTER_DATE", DATE)])
            .env("PRONTO_NO_FALLBACK", "1")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        command
    }

    /// Runs a call, and returns its line and its result.
    pub(super) fn run(&self, line: &str) -> String {
        let output = self.command(line).output();
        self.result(line, &output.expect("it starts"))
    }

    /// Runs a call until `begun` gets a message, and sends it a signal.
    pub(super) fn interrupt(
        &self,
        line: &str,
        begun: &mpsc::Receiver<()>,
        signal: Signal,
    ) -> String {
        let mut command = self.command(line);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("it starts");
        let asked = begun.recv_timeout(Duration::from_secs(60));
        asked.expect("the peer is asked");
        let process = Pid::from_child(&child);
        kill_process(process, signal).expect("it runs");
        let output = child.wait_with_output().expect("it ends");
        self.result(line, &output)
    }

    fn result(&self, line: &str, output: &Output) -> String {
        let mut text = format!("\n$ {}\n", self.world.plain(line));
        for part in [stdout(output), stderr(output)] {
            text.push_str(&self.world.plain(&part));
            if !text.ends_with('\n') {
                text.push('\n');
            }
        }
        match (output.status.code(), output.status.signal()) {
            (Some(0), _) => {}
            (Some(code), _) => writeln!(text, "exit {code}").expect("text"),
            (None, signal) => writeln!(text, "signal {}", signal.unwrap_or(0)).expect("text"),
        }
        text
    }
}

/// Replaces the random ends of the names of temporary packs.
fn without_temporary(text: &str) -> String {
    const START: &str = "tmp_pack_";
    let mut parts = text.split(START);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|each: char| each.is_ascii_alphanumeric());
        out.push_str(START);
        out.push_str("RANDOM");
        out.push_str(rest);
    }
    out
}

/// Replaces the ports of this machine.
fn without_ports(text: &str) -> String {
    const HOST: &str = "127.0.0.1:";
    let mut parts = text.split(HOST);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(HOST);
        let rest = part.trim_start_matches(|each: char| each.is_ascii_digit());
        if rest.len() < part.len() {
            out.push_str("PORT");
        }
        out.push_str(rest);
    }
    out
}

/// Replaces times in the form `2026-11-30T12:00:00Z`.
fn without_times(text: &str) -> String {
    const FORM: &str = "0000-00-00T00:00:00Z";
    let is_time = |word: &str| {
        word.len() == FORM.len()
            && word
                .chars()
                .zip(FORM.chars())
                .all(|(each, form)| match form {
                    '0' => each.is_ascii_digit(),
                    _ => each == form,
                })
    };
    let words = text.split_inclusive(['\n', '\t', ' ']);
    let words = words.map(|word| {
        let time = word.trim_end();
        match is_time(time) {
            true => word.replace(time, "TIME"),
            false => word.to_owned(),
        }
    });
    words.collect()
}

/// Replaces words of hexadecimal digits: ids of objects and uploads, keys and fingerprints.
fn without_ids(text: &str) -> String {
    const SHORTEST: usize = 12;
    let is_digit = |each: char| matches!(each, '0'..='9' | 'a'..='f' | '-');
    let mut out = String::new();
    let mut word = String::new();
    let end = |word: &mut String, out: &mut String| {
        let digits = word.chars().filter(|each| *each != '-').count();
        let has_number = word.contains(|each: char| each.is_ascii_digit());
        match digits >= SHORTEST && has_number {
            true => out.push_str("ID"),
            false => out.push_str(word),
        }
        word.clear();
    };
    for each in text.chars() {
        match is_digit(each) {
            true => word.push(each),
            false => {
                end(&mut word, &mut out);
                out.push(each);
            }
        }
    }
    end(&mut word, &mut out);
    out
}

/// Starts a server that accepts connections and reads them, but never answers. Returns its port, and a
/// channel that gets a message after the first bytes of each connection.
pub(super) fn silent_server() -> (u16, mpsc::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (sender, receiver) = mpsc::channel();
    // The thread ends with the process.
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for connection in listener.incoming() {
            let Ok(mut connection) = connection else {
                continue;
            };
            let mut byte = [0];
            if connection.read(&mut byte).is_ok_and(|count| count == 1) && sender.send(()).is_err()
            {
                return;
            }
            kept.push(connection);
        }
    });
    (port, receiver)
}

/// Starts a server that answers the first bytes of each connection with `answer`, and closes it. Returns
/// its port.
pub(super) fn answering_server(answer: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    // The thread ends with the process.
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let Ok(mut connection) = connection else {
                continue;
            };
            let mut bytes = [0; 4096];
            let _ = connection.read(&mut bytes);
            // A client may close the connection first.
            let _ = connection.write_all(answer);
        }
    });
    port
}
