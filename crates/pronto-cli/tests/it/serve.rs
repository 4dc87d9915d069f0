//! `serve` without `--netsync`, run as its users run it. The server itself is tested in its crate.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::stored::{Place, Root, in_a_directory_only, in_both_places};
use crate::support::{Scratch, interruptible_pronto, process, pronto, stderr, stdout};

in_both_places!(
    the_printed_token_lets_the_owner_push,
    pushes_need_no_git_and_hooks_learn_the_client,
    users_are_managed_while_the_server_runs_and_a_signal_reloads,
);

in_a_directory_only!(
    /// A store has no single repository that needs no configuration.
    a_repository_is_served_without_a_configuration,
    /// A store has no single repository that needs no configuration. The log is written by the same code.
    a_log_that_nobody_reads_does_not_stop_the_server,
    /// No repository is served.
    a_configuration_is_checked_and_printed,
    /// A store accepts known settings only, and its views have no configuration of their own.
    a_repository_with_a_setting_that_is_lacking_is_refused_and_logged,
);

/// A server that ended before it was ready.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// Everything that it printed.
    pub(crate) output: String,
}

/// A running server, and the lines that it has printed.
pub(crate) struct Server {
    child: Child,
    pub(crate) lines: Vec<String>,
    output: BufReader<ChildStdout>,
    /// Reads the log, so that no line of it is dropped.
    log: Option<JoinHandle<String>>,
}

impl Server {
    /// Starts `serve` in `directory`, and waits until a line begins with `last`.
    pub(crate) fn start(directory: &Path, arguments: &[&str], last: &str) -> Self {
        Self::start_with(directory, arguments, last, &[])
    }

    /// Starts `serve` in `directory` with variables of the environment, and waits until a line begins with `last`.
    pub(crate) fn start_with(
        directory: &Path,
        arguments: &[&str],
        last: &str,
        variables: &[(&str, &str)],
    ) -> Self {
        Self::try_start(directory, arguments, last, variables)
            .unwrap_or_else(|ended| panic!("it ended with {}: {}", ended.status, ended.output))
    }

    /// Starts `serve` in `directory` with variables of the environment, and waits until a line begins with `last`.
    ///
    /// # Errors
    /// The server ended before it printed such a line.
    pub(crate) fn try_start(
        directory: &Path,
        arguments: &[&str],
        last: &str,
        variables: &[(&str, &str)],
    ) -> Result<Self, Ended> {
        let mut child = interruptible_pronto()
            .arg("serve")
            .args(arguments)
            .current_dir(directory)
            .env("HOME", directory)
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let output = BufReader::new(child.stdout.take().expect("it was asked for"));
        let mut stream = child.stderr.take().expect("it was asked for");
        let log = std::thread::spawn(move || {
            let mut log = String::new();
            stream.read_to_string(&mut log).expect("text");
            log
        });
        let mut server = Server {
            child,
            lines: Vec::new(),
            output,
            log: Some(log),
        };
        loop {
            let mut line = String::new();
            if server.output.read_line(&mut line).expect("text") == 0 {
                let status = server.child.wait().expect("it ends");
                let log = server.log.take().expect("it runs").join();
                let output = format!("{}\n{}", server.lines.join("\n"), log.expect("a log"));
                return Err(Ended { status, output });
            }
            server.lines.push(line.trim_end().to_owned());
            if line.trim_start().starts_with(last) {
                return Ok(server);
            }
        }
    }

    /// Returns the number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Serves the repositories of a test to an owner, who may write.
    pub(crate) fn start_root(scratch: &Scratch, root: &Root, variables: &[(&str, &str)]) -> Self {
        let rest = root.arguments();
        let mut arguments = vec!["--write"];
        arguments.extend(rest.iter().map(String::as_str));
        Self::start_with(scratch.path(), &arguments, "pronto_", variables)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).expect("an id");
        let id = Pid::from_raw(id).expect("an id");
        kill_process(id, signal).expect("it runs");
    }

    /// Returns the address of the first repository.
    pub(crate) fn url(&self) -> String {
        let line = self.lines.iter().find(|line| line.contains("git clone "));
        let line = line.expect("there is one");
        line.rsplit(' ').next().expect("a word").to_owned()
    }

    /// Returns the host and the port.
    pub(crate) fn host(&self) -> &str {
        let line = self.lines[0].strip_prefix("serving at http://");
        line.expect("an address").trim_end_matches('/')
    }

    /// Returns the address of a repository with the printed token of the owner.
    pub(crate) fn owner_url(&self, name: &str) -> String {
        let token = self.lines.last().expect("a line").trim();
        format!("http://owner:{token}@{}/{name}", self.host())
    }

    /// Waits for its end, and returns what it wrote to standard error.
    pub(crate) fn end(mut self) -> String {
        let status = self.child.wait().expect("it ends");
        let mut rest = String::new();
        let _ = self.output.read_to_string(&mut rest);
        let log = self.log.take().expect("it runs").join().expect("a log");
        assert!(status.success(), "{status}: {rest}{log}");
        log
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn git(scratch: &Scratch, directory: &Path, arguments: &[&str]) -> std::process::Output {
    process("git")
        .args(arguments)
        .current_dir(directory)
        .env("HOME", scratch.path())
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_AUTHOR_NAME", "A")
        .env("GIT_AUTHOR_EMAIL", "a@example.org")
        .env("GIT_COMMITTER_NAME", "A")
        .env("GIT_COMMITTER_EMAIL", "a@example.org")
        .output()
        .expect("git runs")
}

/// Runs git, which must succeed. Returns its output.
pub(crate) fn git_succeeds(scratch: &Scratch, directory: &Path, arguments: &[&str]) -> String {
    let output = git(scratch, directory, arguments);
    let said = stderr(&output);
    assert!(output.status.success(), "git {arguments:?}: {said}");
    stdout(&output)
}

pub(crate) fn repository(scratch: &Scratch) -> std::path::PathBuf {
    let work = scratch.join("work");
    for arguments in [
        &["init", "-q", "-b", "main", "work"][..],
        &["-C", "work", "commit", "-q", "--allow-empty", "-m", "one"],
    ] {
        git_succeeds(scratch, scratch.path(), arguments);
    }
    work
}

fn a_repository_is_served_without_a_configuration() {
    let scratch = Scratch::new();
    let work = repository(&scratch);
    let server = Server::start(&work, &["."], "git clone");
    let url = server.url();
    assert!(
        url.starts_with("http://127.0.0.1:") && url.ends_with("/work"),
        "{url}"
    );
    git_succeeds(&scratch, scratch.path(), &["clone", "-q", &url, "clone"]);
    let output = git(&scratch, &work, &["push", &url, "main:other"]);
    assert!(!output.status.success(), "it is for reading");
    server.signal(Signal::TERM);
    let log = server.end();
    assert!(log.contains("\"event\":\"listening\""), "{log}");
    assert!(log.contains("\"repository\":\"work\""), "{log}");
    assert!(log.contains("\"event\":\"drained\""), "{log}");
}

fn the_printed_token_lets_the_owner_push(place: Place) {
    let scratch = Scratch::new();
    let work = repository(&scratch);
    let root = Root::new(scratch.path(), place);
    let server = Server::start_root(&scratch, &root, &[]);
    let url = server.owner_url("new");
    git_succeeds(&scratch, &work, &["push", "-q", &url, "main"]);
    assert!(root.has("new"));
}

fn pushes_need_no_git_and_hooks_learn_the_client(place: Place) {
    let scratch = Scratch::new();
    let work = repository(&scratch);
    let hook = "#!/bin/sh\nread old new name\necho \"$REMOTE_USER at $REMOTE_ADDR: $name\"\n";
    let root = Root::new(scratch.path(), place);
    let repository = root.directory("r");
    git_succeeds(
        &scratch,
        scratch.path(),
        &["init", "-q", "--bare", "root/r.git"],
    );
    let logs = [
        "-C",
        "root/r.git",
        "config",
        "core.logAllRefUpdates",
        "true",
    ];
    git(&scratch, scratch.path(), &logs);
    crate::support::write_program(&repository.join("hooks/pre-receive"), hook);
    let variables = [("PATH", "/nonexistent"), ("PRONTO_NO_FALLBACK", "1")];
    root.publish_new();
    let server = Server::start_root(&scratch, &root, &variables);
    let url = server.owner_url("r");
    let output = git(&scratch, &work, &["push", &url, "main", "main:refs/tags/t"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stderr(&output);
    assert!(
        text.contains("remote: owner at 127.0.0.1: refs/heads/main"),
        "{text}"
    );
    // A store has no reflogs.
    if !root.is_store() {
        let log = repository.join("logs/refs/heads/main");
        let log = std::fs::read_to_string(log).expect("a reflog");
        assert!(log.contains(" owner <owner@http.127.0.0.1> "), "{log}");
    }
    git_succeeds(&scratch, &work, &["push", "-q", &url, ":refs/tags/t"]);
    let checked = git(&scratch, &root.served("r"), &["fsck", "--full", "--strict"]);
    assert!(checked.status.success(), "{}", stderr(&checked));
}

fn a_repository_with_a_setting_that_is_lacking_is_refused_and_logged() {
    let scratch = Scratch::new();
    let work = repository(&scratch);
    let clone = ["clone", "-q", "--bare", "work", "root/r.git"];
    let root = Root::new(scratch.path(), Place::Directory);
    git_succeeds(&scratch, scratch.path(), &clone);
    let served = scratch.join("root/r.git");
    let commit = ["commit", "-q", "--allow-empty", "-m", "two"];
    git_succeeds(&scratch, &work, &commit);
    let state = || {
        let mut objects = git_succeeds(&scratch, &served, &["count-objects", "-v"]);
        objects.push_str(&git_succeeds(&scratch, &served, &["for-each-ref"]));
        objects
    };
    let server = Server::start_root(&scratch, &root, &[]);
    let url = server.owner_url("r");
    for (key, value) in [
        ("transfer.onlySigned", "true"),
        ("safe.invented", "1"),
        ("core.maxTreeDepth", "5"),
    ] {
        git_succeeds(&scratch, &served, &["config", key, value]);
        let before = state();
        for arguments in [
            &["push", &url, "main:new"][..],
            &["fetch", "-q", &url, "main"],
        ] {
            let output = git(&scratch, &work, arguments);
            let said = stderr(&output);
            assert!(!output.status.success(), "{key}, {arguments:?}: {said}");
            assert!(!said.contains("not implemented"), "{said}");
        }
        assert_eq!(state(), before, "{key}");
        git_succeeds(&scratch, &served, &["config", "--unset", key]);
    }
    git_succeeds(&scratch, &work, &["push", "-q", &url, "main:new"]);
    server.signal(Signal::TERM);
    let log = server.end();
    for key in ["transfer.onlysigned", "safe.invented", "core.maxtreedepth"] {
        let named = format!("setting '{key}' is not implemented natively");
        assert!(log.matches(&named).count() >= 2, "{key}: {log}");
    }
}

fn a_log_that_nobody_reads_does_not_stop_the_server() {
    let scratch = Scratch::new();
    let work = repository(&scratch);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    // The pipe is full from the start.
    rustix::pipe::fcntl_setpipe_size(&writer, 4096).expect("a size");
    (&writer).write_all(&[b'x'; 4096]).expect("it fits");
    let mut child = interruptible_pronto()
        .args(["serve", "."])
        .current_dir(&work)
        .env("HOME", &work)
        .stdout(Stdio::piped())
        .stderr(writer)
        .spawn()
        .expect("it starts");
    let mut output = BufReader::new(child.stdout.take().expect("it was asked for"));
    let mut line = String::new();
    while !line.trim_start().starts_with("git clone") {
        line.clear();
        assert!(output.read_line(&mut line).expect("text") > 0, "it ended");
    }
    let url = line.trim_end().rsplit(' ').next().expect("a word");
    for _ in 0..3 {
        git_succeeds(&scratch, &work, &["ls-remote", url]);
    }
    let id = Pid::from_raw(i32::try_from(child.id()).expect("an id")).expect("an id");
    kill_process(id, Signal::TERM).expect("it runs");
    assert!(child.wait().expect("it ends").success());
    drop(reader);
}

fn a_configuration_is_checked_and_printed() {
    let scratch = Scratch::new();
    let serve = |arguments: &[&str]| {
        let mut command = pronto();
        command
            .arg("serve")
            .args(arguments)
            .current_dir(scratch.path());
        command.output().expect("it starts")
    };
    let printed = serve(&["--print-config"]);
    assert!(printed.status.success());
    std::fs::write(scratch.join("good.toml"), &printed.stdout).expect("a file");
    let output = serve(&["--config", "good.toml", "--check"]);
    assert!(output.status.success(), "{}", stderr(&output));
    std::fs::write(scratch.join("bad.toml"), "[limits]\nrequests = -1\n").expect("a file");
    let output = serve(&["--config", "bad.toml", "--check"]);
    let text = stderr(&output);
    assert!(
        text.starts_with("fatal: ") && text.contains("bad.toml:2: "),
        "{text}"
    );
    assert_eq!(output.status.code(), Some(128));
    std::fs::write(scratch.join("cache"), "").expect("a file");
    for (directory, expected) in [
        ("cache", "cannot be used"),
        ("no/such", "cannot be created"),
    ] {
        let text = format!("[cache]\ndirectory = \"{directory}\"\n");
        std::fs::write(scratch.join("cache.toml"), &text).expect("a file");
        let output = serve(&["--config", "cache.toml", "--check"]);
        let said = stderr(&output);
        assert!(
            said.contains(&format!("/{directory}' {expected}")),
            "{said}"
        );
        assert!(said.contains("hint: set 'directory' in [cache]"), "{said}");
        // No packs, no directory.
        std::fs::write(scratch.join("cache.toml"), format!("{text}bytes = 0\n")).expect("a file");
        let output = serve(&["--config", "cache.toml", "--check"]);
        assert!(output.status.success(), "{}", stderr(&output));
    }
    for usage in [
        &["--check"][..],
        &["--config", "good.toml", "--write"],
        &["--tls-cert", "x"],
        &["user", "add"],
        &["a", "b"],
    ] {
        assert_eq!(serve(usage).status.code(), Some(129), "{usage:?}");
    }
}

fn users_are_managed_while_the_server_runs_and_a_signal_reloads(place: Place) {
    let scratch = Scratch::new();
    repository(&scratch);
    let root = Root::new(scratch.path(), place);
    let config = scratch.join("server.toml");
    let text = "root = \"root\"\n[[grant]]\nrepository = \"**\"\nusers = [\"alice\"]\nrole = \"read\"\n\
        [http]\nlisten = [\"127.0.0.1:0\"]\n";
    let text = format!("{text}{}", root.section("cache"));
    std::fs::write(&config, &text).expect("a file");
    let serve = |arguments: &[&str]| {
        let mut command = pronto();
        command
            .args(["serve", "--config", "server.toml"])
            .args(arguments);
        let output = command
            .current_dir(scratch.path())
            .output()
            .expect("it starts");
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            stderr(&output)
        );
        stdout(&output)
    };
    serve(&["repository", "create", "team/a"]);
    assert_eq!(serve(&["repository", "list"]), "team/a\n");
    // A reload keeps what the options say: here, TLS.
    make_certificate(scratch.path());
    let options = ["--tls-cert", "certificate.pem", "--tls-key", "key.pem"];
    let arguments = [&["--config", "server.toml"], &options[..]].concat();
    let server = Server::start(scratch.path(), &arguments, "git clone");
    serve(&["user", "add", "alice"]);
    let token = serve(&["token", "alice"]);
    assert_eq!(serve(&["user", "list"]), "alice\t1 token\t0 keys\n");
    let url = server
        .url()
        .replace("https://", &format!("https://alice:{}@", token.trim()));
    let may_read = || {
        let trusting = ["-c", "http.sslVerify=false", "ls-remote", &url];
        git(&scratch, scratch.path(), &trusting).status.success()
    };
    wait_until(may_read);
    std::fs::write(&config, text.replace("alice", "bob")).expect("a file");
    server.signal(Signal::HUP);
    wait_until(|| !may_read());
    std::fs::write(&config, &text).expect("a file");
    server.signal(Signal::HUP);
    wait_until(may_read);
    serve(&["user", "remove", "alice"]);
    wait_until(|| !may_read());
    server.signal(Signal::TERM);
    assert!(server.end().contains("\"event\":\"reloaded\""));
}

/// Makes the files `certificate.pem` and `key.pem` in `directory`.
fn make_certificate(directory: &Path) {
    let made = process("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-subj",
            "/CN=localhost",
        ])
        .args(["-keyout", "key.pem", "-out", "certificate.pem"])
        .current_dir(directory)
        .output()
        .expect("openssl is installed");
    assert!(made.status.success(), "{}", stderr(&made));
}

/// Waits until a condition holds that a server establishes within a second.
pub(crate) fn wait_until(mut is_true: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !is_true() {
        assert!(Instant::now() < end, "it does not happen");
    }
}
