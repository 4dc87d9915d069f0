//! OpenSSH clients with a key of an attacker.

use std::io::Read as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;

use test_support::keys::make_ssh_key;

use crate::client::{ATTACKER, RequestIds};
use crate::site::{Site, manage};

const SSH: &str = "/usr/bin/ssh";

/// Creates a key, and adds it to a user. Returns `false` if no SSH client is installed.
pub(crate) fn add_key(site: &Site, user: &str) -> bool {
    if !Path::new(SSH).exists() || !make_ssh_key(&site.path("key")) {
        test_support::report_skip(&"OpenSSH is not installed", &test_support::INSTALL);
        return false;
    }
    let public = site.path("key.pub").display().to_string();
    manage(
        &site.path("server.toml"),
        &["user", "key", "add", user, &public],
    );
    true
}

/// An SSH client.
pub(crate) struct Ssh {
    folder: PathBuf,
    port: String,
    ids: RequestIds,
    login: &'static str,
    /// The keys that the client offers, in this order.
    keys: Vec<String>,
}

/// A running client, which is killed when the value is dropped.
pub(crate) struct Running(Child);

impl Ssh {
    pub(crate) fn new(site: &Site, address: SocketAddr, ids: &RequestIds) -> Self {
        Ssh {
            folder: site.path(""),
            port: address.port().to_string(),
            ids: Arc::clone(ids),
            login: "git@127.0.0.1",
            keys: vec!["key".to_owned()],
        }
    }

    /// Returns the client without a user name.
    pub(crate) fn anonymous(mut self) -> Self {
        self.login = "anonymous@127.0.0.1";
        self
    }

    /// Returns the client that offers `count` other keys before its own.
    pub(crate) fn with_wrong_keys(mut self, count: usize) -> Self {
        let wrong = (0..count).map(|number| format!("wrong{number}"));
        self.keys = wrong.chain(["key".to_owned()]).collect();
        for key in &self.keys {
            let path = self.folder.join(key);
            assert!(path.exists() || make_ssh_key(&path), "there is ssh-keygen");
        }
        self
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = test_support::with_default_signals(SSH);
        command
            .args(["-F/dev/null", "-p", &self.port])
            .args(self.keys.iter().map(|key| format!("-i{key}")))
            .args(["-b", &ATTACKER.to_string()])
            .args(["-oIdentitiesOnly=yes", "-oBatchMode=yes"])
            .args(["-oLogLevel=ERROR", "-oUserKnownHostsFile=known"])
            .args(["-oStrictHostKeyChecking=accept-new", self.login])
            .args(arguments)
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs a command on the server to its end. The request id in its output must be logged.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let output = self.command(arguments).output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        if let Some((_, rest)) = said.rsplit_once("(request ")
            && let Some((id, _)) = rest.split_once(')')
        {
            self.ids.lock().expect("no panic").push(id.to_owned());
        }
        output
    }

    /// Runs a command with `input`, and returns its output.
    pub(crate) fn ask(&self, command: &str, input: &[u8]) -> Vec<u8> {
        let mut running = self.start(&[command]);
        running.send(input);
        drop(running.0.stdin.take());
        let mut output = Vec::new();
        let stdout = running.0.stdout.as_mut().expect("it is a pipe");
        stdout.read_to_end(&mut output).expect("it can be read");
        output
    }

    /// Runs a command on the server with a value of `GIT_PROTOCOL` and with `input`, to its end.
    pub(crate) fn converse(&self, command: &str, protocol: &str, input: &[u8]) -> Output {
        let option = format!("-oSetEnv=GIT_PROTOCOL={protocol}");
        let mut arguments = vec![command];
        if !protocol.is_empty() {
            arguments.insert(0, &option);
        }
        // Options precede the host, which `command` appends.
        let mut command = self.command(&[]);
        command.args(arguments).stdin(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut stdin = child.stdin.take().expect("it is a pipe");
        std::thread::scope(|scope| {
            // A server that refuses does not read the input.
            scope.spawn(move || {
                use std::io::Write as _;
                let _ = stdin.write_all(input);
            });
            child.wait_with_output().expect("it ends")
        })
    }

    /// Starts a client whose input stays open and whose output is not read.
    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stderr(Stdio::null());
        Running(command.spawn().expect("it starts"))
    }
}

impl Running {
    /// Reads the first bytes of the output. Returns whether there were any.
    pub(crate) fn begins(&mut self) -> bool {
        let output = self.0.stdout.as_mut().expect("it is a pipe");
        output.read_exact(&mut [0; 4]).is_ok()
    }

    /// Reads the ref advertisement up to its end.
    pub(crate) fn advertisement(&mut self) -> Vec<u8> {
        let output = self.0.stdout.as_mut().expect("it is a pipe");
        let (mut all, mut digits) = (Vec::new(), [0; 4]);
        while output.read_exact(&mut digits).is_ok() {
            let text = std::str::from_utf8(&digits).unwrap_or("0000");
            let length = usize::from_str_radix(text, 16).unwrap_or(0);
            if length < 4 {
                break;
            }
            let start = all.len();
            all.resize(start + length - 4, 0);
            if output.read_exact(&mut all[start..]).is_err() {
                break;
            }
        }
        all
    }

    /// Reads the output up to its end.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        // The server waits for the end of the input.
        drop(self.0.stdin.take());
        let mut rest = Vec::new();
        let output = self.0.stdout.as_mut().expect("it is a pipe");
        // The bytes that were read before an error count.
        let _ = output.read_to_end(&mut rest);
        rest
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        use std::io::Write as _;
        let input = self.0.stdin.as_mut().expect("it is a pipe");
        // A connection that the server has closed is not an error.
        let _ = input.write_all(bytes);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
