//! Repositories, users, and a server for them with all protocols.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use bench::load::Result;
use bench::load::push::PreparedPushes;
use serde_json::Value;

/// The timeout for the start of a server.
const PATIENCE: Duration = Duration::from_secs(60);

/// The number of commits that honest clients can push.
const CHANGES: u32 = 300;

const CONFIG: &str = r#"
root = "root"
[http]
listen = ["127.0.0.1:0"]
[daemon]
listen = ["127.0.0.1:0"]
[ssh]
listen = ["127.0.0.1:0"]
[netsync]
listen = ["127.0.0.1:0"]
[[grant]]
repository = "**"
users = ["anonymous"]
role = "read"
[[grant]]
repository = "**"
users = ["alice", "mallory"]
role = "write"
[[rule]]
repository = "**"
refs = "refs/kept/**"
users = ["alice"]
"#;

/// The files of a server.
pub(crate) struct SiegeSite {
    folder: tempfile::TempDir,
    pub(crate) alice: String,
    pub(crate) mallory: String,
    pub(crate) changes: PreparedPushes,
}

impl SiegeSite {
    pub(crate) fn make(pronto: &Path) -> Result<Self> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let root = folder.path().join("root");
        fs::create_dir_all(&root).map_err(|error| error.to_string())?;
        let small = root.join("small.git");
        git(&root, &["init", "-q", "--bare", "-b", "main", "small.git"])?;
        history(&small)?;
        fs::write(folder.path().join("server.toml"), CONFIG).map_err(|error| error.to_string())?;
        let changes = PreparedPushes::make(&small, CHANGES)?;
        let user = |name: &str| -> Result<String> {
            let config = folder.path().join("server.toml");
            let manage = |arguments: &[&str]| {
                let mut command = Command::new(pronto);
                command
                    .args(["serve", "--config"])
                    .arg(&config)
                    .args(arguments);
                output(&mut command)
            };
            manage(&["user", "add", name])?;
            manage(&["token", name])
        };
        Ok(SiegeSite {
            alice: user("alice")?,
            mallory: user("mallory")?,
            changes,
            folder,
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Creates a history of 200 commits with 200 tags.
fn history(repository: &Path) -> Result<()> {
    let mut stream = String::new();
    for number in 0..200 {
        let time = 1_700_000_000 + number;
        stream.push_str(&format!(
            "commit refs/heads/main\ncommitter A <a@example.org> {time} +0000\ndata 1\nx\
             M 100644 inline f{}\ndata 6\nl{number:04}\n\n",
            number % 50
        ));
        stream.push_str(&format!(
            "reset refs/tags/t{number}\nfrom refs/heads/main\n\n"
        ));
    }
    let mut child = Command::new("git")
        .args(["fast-import", "--quiet"])
        .current_dir(repository)
        .stdin(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let input = child.stdin.as_mut().ok_or("there is no pipe")?;
    std::io::Write::write_all(input, stream.as_bytes()).map_err(|error| error.to_string())?;
    drop(child.stdin.take());
    let status = child.wait().map_err(|error| error.to_string())?;
    match status.success() {
        true => git(repository, &["repack", "-adbq"]),
        false => Err("git fast-import fails".to_owned()),
    }
}

fn git(at: &Path, arguments: &[&str]) -> Result<()> {
    output(Command::new("git").args(arguments).current_dir(at)).map(|_| ())
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.output().map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// A running server, which is killed when the value is dropped.
pub(crate) struct SiegeServer {
    child: Child,
    pub(crate) http: SocketAddr,
    pub(crate) git: SocketAddr,
    pub(crate) ssh: SocketAddr,
    pub(crate) netsync: SocketAddr,
}

impl SiegeServer {
    pub(crate) fn start(pronto: &Path, site: &SiegeSite) -> Result<Self> {
        let mut child = Command::new(pronto)
            .args(["serve", "--config"])
            .arg(site.path("server.toml"))
            .env("HOME", site.path(""))
            .env("PRONTO_NO_FALLBACK", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start the server: {error}"))?;
        let stream = child.stderr.take().ok_or("there is no pipe")?;
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stream)
                .lines()
                .map_while(std::result::Result::ok)
            {
                let event = serde_json::from_str::<Value>(&line).unwrap_or_default();
                if event["event"] == "listening" {
                    // Later events have no receiver.
                    let _ = sender.send(event);
                }
            }
        });
        let found = addresses(&receiver);
        let address = |protocol: &str| {
            let found = found.iter().find(|(name, _)| name == protocol);
            found.map(|(_, address)| *address)
        };
        let all = [
            address("http"),
            address("git"),
            address("ssh"),
            address("netsync"),
        ];
        let [Some(http), Some(git), Some(ssh), Some(netsync)] = all else {
            // The process may have ended already.
            let _ = child.kill();
            let _ = child.wait();
            return Err("the server does not listen".to_owned());
        };
        Ok(SiegeServer {
            child,
            http,
            git,
            ssh,
            netsync,
        })
    }

    /// Returns the peak memory of the server.
    pub(crate) fn peak_mebibytes(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = fs::read_to_string(path).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let number = line.and_then(|line| line.split_ascii_whitespace().next());
        number
            .and_then(|text| text.parse::<u64>().ok())
            .unwrap_or(0)
            >> 10
    }
}

/// Returns the addresses of the four protocols, as they are logged.
fn addresses(events: &Receiver<Value>) -> Vec<(String, SocketAddr)> {
    let mut found = Vec::new();
    while found.len() < 4 {
        let Ok(event) = events.recv_timeout(PATIENCE) else {
            break;
        };
        let text = |name: &str| event[name].as_str().unwrap_or_default();
        if let Ok(address) = text("address").parse() {
            found.push((text("protocol").to_owned(), address));
        }
    }
    found
}

impl Drop for SiegeServer {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
