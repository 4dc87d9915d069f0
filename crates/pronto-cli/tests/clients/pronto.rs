//! Starts `pronto serve` with all transports: one process for HTTP, git:// and SSH, and one for
//! HTTPS.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use crate::stored::Behind;

const ACCESS: &str = r#"
[[grant]]
repository = "open/*"
users = ["anonymous"]
role = "read"
[[grant]]
repository = "**"
users = ["me"]
role = "write"
[[grant]]
repository = "**"
users = ["guest"]
role = "read"
[[rule]]
repository = "**"
refs = "refs/heads/main"
force = false
delete = false
[limits]
failures_per_minute = 100000
"#;

/// The timeout for the start of a server.
const PATIENCE: Duration = Duration::from_secs(30);

/// The servers, which are killed when the value is dropped.
pub(crate) struct Pronto {
    servers: Vec<Child>,
    log: Arc<Mutex<String>>,
    pub(crate) http: SocketAddr,
    pub(crate) https: SocketAddr,
    pub(crate) git: SocketAddr,
    pub(crate) ssh: SocketAddr,
    /// The tokens of `me` and `guest`.
    pub(crate) tokens: [String; 2],
    pub(crate) guest_key: PathBuf,
    pub(crate) stranger_key: PathBuf,
    /// The public key of the server.
    pub(crate) host_key: PathBuf,
}

impl Pronto {
    /// Starts the servers for `folder/pronto`. `key` is the private key of `me`. The server's
    /// certificate is beside that of its `authority`.
    pub(crate) fn start(
        folder: &Path,
        key: &Path,
        authority: &Path,
        behind: Option<&Behind>,
    ) -> Self {
        let place = folder.join("server");
        let root = folder.join("pronto");
        let head = format!("root = \"{}\"\n", root.display());
        let plain = "[http]\nlisten = [\"127.0.0.1:0\"]\n[daemon]\nlisten = [\"127.0.0.1:0\"]\n\
            [ssh]\nlisten = [\"127.0.0.1:0\"]\n";
        let secure = format!(
            "[http]\nlisten = [\"127.0.0.1:0\"]\ntls_certificate = \"{}\"\ntls_key = \"{}\"\n",
            authority.with_file_name("server.pem").display(),
            authority.with_file_name("server.key").display(),
        );
        for (name, section) in [("plain.toml", plain), ("secure.toml", &secure)] {
            // Each process has a cache of its own.
            let store = behind.map(|behind| behind.section(&format!("cache-{name}")));
            let store = store.unwrap_or_default();
            let text = format!("{head}{section}{ACCESS}{store}");
            std::fs::write(place.join(name), text).expect("a file");
        }
        let guest_key = make_key(&place, "guest");
        let stranger_key = make_key(&place, "stranger");
        for (user, key) in [("me", key), ("guest", &guest_key)] {
            let public = key.with_extension("pub");
            manage(&place, &["user", "add", user]);
            manage(
                &place,
                &["user", "key", "add", user, public.to_str().expect("text")],
            );
        }
        let tokens = ["me", "guest"].map(|user| manage(&place, &["token", user]));
        let log = Arc::new(Mutex::new(String::new()));
        let (plain, plain_log) = serve(&place, "plain.toml", &log);
        let (secure, secure_log) = serve(&place, "secure.toml", &log);
        let mut servers = Pronto {
            servers: vec![plain, secure],
            log,
            http: listens(&plain_log),
            git: listens(&plain_log),
            ssh: listens(&plain_log),
            https: listens(&secure_log),
            tokens,
            guest_key,
            stranger_key,
            host_key: place.join("host.pub"),
        };
        servers.write_host_key(&place);
        servers
    }

    fn write_host_key(&mut self, place: &Path) {
        let output = Command::new("ssh-keygen")
            .args(["-y", "-f"])
            .arg(place.join("pronto-ssh-host-key"))
            .output()
            .expect("it runs");
        assert!(output.status.success(), "ssh-keygen reads the host key");
        std::fs::write(&self.host_key, output.stdout).expect("a file");
    }

    pub(crate) fn log(&self) -> String {
        self.log.lock().expect("no panic").clone()
    }
}

impl Drop for Pronto {
    fn drop(&mut self) {
        for server in &mut self.servers {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

fn pronto(place: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pronto"));
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", place)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("PRONTO_NO_FALLBACK", "1")
        .current_dir(place)
        .stdin(Stdio::null());
    command
}

/// Runs a management command, and returns its output.
fn manage(place: &Path, arguments: &[&str]) -> String {
    let mut command = pronto(place);
    command
        .args(["serve", "--config", "plain.toml"])
        .args(arguments);
    let output = command.output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {text}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn make_key(place: &Path, name: &str) -> PathBuf {
    let path = place.join(name);
    let is_made = test_support::keys::make_ssh_key(&path);
    assert!(is_made, "ssh-keygen is installed");
    path
}

/// Starts a server. Its addresses are sent in the order HTTP, git:// and SSH.
fn serve(place: &Path, config: &str, log: &Arc<Mutex<String>>) -> (Child, Receiver<Value>) {
    let mut command = pronto(place);
    command
        .args(["serve", "--config", config])
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let stream = child.stderr.take().expect("it is a pipe");
    let (sender, receiver) = channel();
    let log = Arc::clone(log);
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            let event: Value = serde_json::from_str(&line).unwrap_or_default();
            if event["event"] == "listening" {
                let _ = sender.send(event);
            }
            let mut log = log.lock().expect("no panic");
            log.push_str(&line);
            log.push('\n');
        }
    });
    (child, receiver)
}

fn listens(events: &Receiver<Value>) -> SocketAddr {
    let event = events.recv_timeout(PATIENCE).expect("it starts");
    let address = event["address"].as_str().expect("an address");
    address.parse().expect("an address")
}
