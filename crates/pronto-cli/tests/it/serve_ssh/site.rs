//! The repositories and clients of the SSH server that the tests use.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::process::Signal;
use test_support::skip;

use crate::serve::{Server, repository};
use crate::stored::{Place, Root};
use crate::support::{Scratch, path_with, process, pronto, stderr, stdout};

/// The permissions of all users in the tests.
pub(crate) const ACCESS: &str = r#"
root = "root"
create_on_push = true
[http]
metrics = "loopback"
listen = ["127.0.0.1:0"]
[ssh]
listen = ["127.0.0.1:0"]
[[grant]]
repository = "**"
users = ["alice"]
role = "admin"
[[grant]]
repository = "team/**"
users = ["bob"]
role = "read"
[[grant]]
repository = "open"
users = ["anonymous"]
role = "read"
[[rule]]
repository = "**"
refs = "refs/heads/main"
force = false
delete = false
"#;

/// A server with the repositories `team/a`, `open` and `private`, and the keys of its users.
pub(crate) struct Site {
    pub(crate) scratch: Scratch,
    pub(crate) root: Root,
    pub(crate) server: Option<Server>,
}

impl Site {
    /// Creates a site. Returns `None` if no SSH client is installed. `more` is appended to the
    /// configuration.
    pub(crate) fn new(place: Place, more: &str) -> Option<Self> {
        for program in ["/usr/bin/ssh", "/usr/bin/ssh-keygen"] {
            if !Path::new(program).exists() {
                skip!(format!("there is no {program}"));
            }
        }
        let scratch = Scratch::new();
        let mut site = Site {
            root: Root::new(scratch.path(), place),
            scratch,
            server: None,
        };
        repository(&site.scratch);
        for name in ["root/team/a.git", "root/open.git", "root/private.git"] {
            let output = site.git(&["clone", "-q", "--bare", "work", name]);
            assert!(output.status.success(), "{}", stderr(&output));
        }
        site.root.publish_new();
        let text = format!("{ACCESS}{more}{}", site.root.section("cache"));
        std::fs::write(site.path("server.toml"), text).expect("a file");
        for user in ["alice", "bob"] {
            site.make_key(user, &["-t", "ed25519"]);
            site.serve(&["user", "add", user]);
            site.serve(&["user", "key", "add", user, &format!("{user}.pub")]);
        }
        site.start();
        Some(site)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    pub(crate) fn start(&mut self) {
        let arguments = ["--config", "server.toml"];
        let server = Server::start(self.scratch.path(), &arguments, "git clone");
        self.server = Some(server);
    }

    pub(crate) fn running(&self) -> &Server {
        self.server.as_ref().expect("it runs")
    }

    /// Stops the server and returns its log.
    pub(crate) fn end(&mut self) -> String {
        let server = self.server.take().expect("it runs");
        server.signal(Signal::TERM);
        server.end()
    }

    pub(crate) fn address(&self) -> String {
        let lines = self.running().lines.iter();
        let mut addresses = lines.filter_map(|line| line.strip_prefix("serving at ssh://"));
        let address = addresses.next().expect("it serves SSH");
        address.trim_end_matches('/').to_owned()
    }

    /// Returns the fingerprint that the server has printed.
    pub(crate) fn fingerprint(&self) -> String {
        let lines = self.running().lines.iter();
        let mut prints = lines.filter_map(|line| line.strip_prefix("the host key of SSH is "));
        prints.next().expect("it is printed").to_owned()
    }

    /// Returns the number of open connections, without the connection of the query itself.
    pub(crate) fn connections(&self) -> usize {
        let lines = self.running().lines.iter();
        let mut addresses = lines.filter_map(|line| line.strip_prefix("serving at http://"));
        let address = addresses.next().expect("it serves HTTP");
        let mut socket = TcpStream::connect(address.trim_end_matches('/')).expect("it listens");
        let request = b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        socket.write_all(request).expect("it reads");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("text");
        let mut lines = answer.lines();
        let count = lines.find_map(|line| line.strip_prefix("pronto_server_connections "));
        let count: usize = count.expect("a count").parse().expect("a number");
        count - 1
    }

    pub(crate) fn port(&self) -> String {
        let address = self.address();
        address.rsplit(':').next().expect("a port").to_owned()
    }

    pub(crate) fn url(&self, name: &str) -> String {
        format!("ssh://git@{}/{name}", self.address())
    }

    pub(crate) fn make_key(&self, name: &str, kind: &[&str]) {
        let made = Command::new("/usr/bin/ssh-keygen")
            .args(["-q", "-N", "", "-C", name, "-f", name])
            .args(kind)
            .current_dir(self.scratch.path())
            .output()
            .expect("ssh-keygen runs");
        assert!(made.status.success(), "{}", stderr(&made));
    }

    /// Runs a management command, fails unless it succeeds, and returns its output.
    pub(crate) fn serve(&self, arguments: &[&str]) -> String {
        let output = self.try_serve(arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            stderr(&output)
        );
        stdout(&output)
    }

    pub(crate) fn try_serve(&self, arguments: &[&str]) -> Output {
        pronto()
            .args(["serve", "--config", "server.toml"])
            .args(arguments)
            .current_dir(self.scratch.path())
            .stdin(Stdio::null())
            .output()
            .expect("it starts")
    }

    /// Returns the options of ssh for a key.
    pub(crate) fn options(&self, key: &str) -> Vec<String> {
        let known = self.path("known_hosts");
        [
            "-F/dev/null".to_owned(),
            format!("-i{}", self.path(key).display()),
            "-oIdentitiesOnly=yes".to_owned(),
            "-oBatchMode=yes".to_owned(),
            "-oLogLevel=ERROR".to_owned(),
            "-oStrictHostKeyChecking=accept-new".to_owned(),
            "-oHostKeyAlias=pronto".to_owned(),
            format!("-oUserKnownHostsFile={}", known.display()),
        ]
        .to_vec()
    }

    /// Returns an `ssh` command with the key.
    pub(crate) fn ssh(&self, key: &str) -> Command {
        let mut command = process("/usr/bin/ssh");
        command
            .args(self.options(key))
            .args(["-p", &self.port(), "git@127.0.0.1"])
            .current_dir(self.scratch.path())
            .stdin(Stdio::null());
        command
    }

    /// Runs a Git program with the key.
    pub(crate) fn client(&self, program: &Path, key: &str, arguments: &[&str]) -> Output {
        let ssh = format!("ssh {}", self.options(key).join(" "));
        let mut command = process(program);
        if let Some(directory) = program.parent().filter(|path| path.is_absolute()) {
            // A git runs the git on `PATH` for some of its work.
            command.env("PATH", path_with(directory));
        }
        command
            .args(arguments)
            .current_dir(self.scratch.path())
            .env("HOME", self.scratch.path())
            .env("PRONTO_NO_FALLBACK", "1")
            .env("GIT_SSH_COMMAND", ssh)
            .envs([("GIT_AUTHOR_NAME", "A"), ("GIT_COMMITTER_NAME", "A")])
            .envs([("GIT_AUTHOR_EMAIL", "a@x"), ("GIT_COMMITTER_EMAIL", "a@x")])
            .output()
            .expect("it starts")
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> Output {
        self.client(Path::new("git"), "alice", arguments)
    }

    /// Runs git with the key, fails unless it succeeds, and returns its output.
    pub(crate) fn succeed(&self, key: &str, arguments: &[&str]) -> String {
        let output = self.client(Path::new("git"), key, arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            stderr(&output)
        );
        stdout(&output)
    }

    /// Runs git with the key, fails unless git fails, and returns its messages.
    pub(crate) fn fail(&self, key: &str, arguments: &[&str]) -> String {
        let output = self.client(Path::new("git"), key, arguments);
        assert!(!output.status.success(), "{arguments:?}");
        stderr(&output)
    }
}
