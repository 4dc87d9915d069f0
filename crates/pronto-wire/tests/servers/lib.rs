//! Real servers for tests. Each runs on a free port of the loopback interface until it is dropped.
//! A server that is not installed is `None`, and the test calls `skip!`.

#![allow(
    dead_code,
    reason = "every suite that uses these servers uses some of them"
)]

use std::io::Read;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

mod certificate;
mod ssh;
mod tls;
mod web;

pub(crate) use ssh::Ssh;
pub(crate) use tls::Tls;
pub(crate) use web::{Login, Web};

/// Returns the first of `candidates` that exists.
pub(crate) fn installed(candidates: &[&str]) -> Option<PathBuf> {
    candidates
        .iter()
        .map(PathBuf::from)
        .find(|path| path.is_file())
}

pub(crate) use test_support::free_port;

/// A child whose process group is killed when this is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
}

impl Server {
    /// Starts `command` and waits until it listens on `port`.
    pub(crate) fn start(mut command: Command, port: u16) -> Self {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let child = command.spawn().expect("the server is installed");
        let mut server = Server { child, port };
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if server.child.try_wait().expect("a child").is_some() || Instant::now() > deadline {
                let mut said = String::new();
                let _ = server.child.kill();
                if let Some(stderr) = &mut server.child.stderr {
                    let _ = stderr.read_to_string(&mut said);
                }
                panic!("the server did not start: {command:?}: {said}");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `git daemon`.
pub(crate) struct Daemon {
    server: Server,
}

impl Daemon {
    /// Serves every repository below `root`.
    pub(crate) fn start(root: &Path) -> Self {
        let port = free_port();
        // Started directly rather than through `git`, so that killing the child ends it.
        let program = installed(&[
            "/usr/lib/git-core/git-daemon",
            "/usr/libexec/git-core/git-daemon",
        ]);
        let mut command = match program {
            Some(program) => Command::new(program),
            None => {
                let mut command = Command::new("git");
                command.arg("daemon");
                command
            }
        };
        command
            .args(["--export-all", "--reuseaddr", "--listen=127.0.0.1"])
            .arg("--informative-errors")
            .arg(format!("--port={port}"))
            .arg(format!("--base-path={}", root.display()))
            .arg(root);
        Daemon {
            server: Server::start(command, port),
        }
    }

    /// The URL of the repository `name`.
    pub(crate) fn url(&self, name: &str) -> String {
        format!("git://127.0.0.1:{}/{name}", self.server.port)
    }
}
