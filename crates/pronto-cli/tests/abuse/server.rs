//! A running server: its addresses, its log, its memory and its exit.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::site::{Site, pronto};

/// The timeout for actions that the server takes on its own.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The lines of a log, with a notification for each line and for the end.
#[derive(Debug, Default)]
struct Log {
    written: Mutex<Written>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Written {
    lines: Vec<String>,
    has_ended: bool,
}

impl Log {
    fn change(&self, change: impl FnOnce(&mut Written)) {
        change(&mut self.written.lock().expect("no panic"));
        self.changed.notify_all();
    }

    /// Waits until `is_true` returns true for the written lines. Returns `false` after a timeout.
    fn wait_until(&self, mut is_true: impl FnMut(&Written) -> bool) -> bool {
        let written = self.written.lock().expect("no panic");
        let waited = self
            .changed
            .wait_timeout_while(written, PATIENCE, |written| !is_true(written));
        !waited.expect("no panic").1.timed_out()
    }
}

/// A running server, which is killed when the value is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) http: SocketAddr,
    pub(crate) git: SocketAddr,
    pub(crate) ssh: Option<SocketAddr>,
    log: Arc<Log>,
    /// The thread that reads the log to its end.
    reader: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts `pronto serve` with `text` as its configuration.
    pub(crate) fn start(site: &Site, text: &str) -> Self {
        let config = site.path("server.toml");
        std::fs::write(&config, text).expect("a file");
        let mut command = test_support::with_default_signals(pronto());
        command
            .args(["serve", "--config"])
            .arg(&config)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", site.path("home"))
            .env("TMPDIR", site.path("tmp"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("PRONTO_NO_FALLBACK", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let stream = child.stderr.take().expect("it is a pipe");
        let log = Arc::new(Log::default());
        let lines = Arc::clone(&log);
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).into_owned();
                lines.change(|written| written.lines.push(line));
            }
            lines.change(|written| written.has_ended = true);
        });
        let reader = Some(reader);
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        let mut server = Server {
            child,
            http: nowhere,
            git: nowhere,
            ssh: None,
            log,
            reader,
        };
        server.http = server.listens(&["http", "https"]);
        server.git = server.listens(&["git"]);
        let has_ssh = text.contains("[ssh]");
        server.ssh = has_ssh.then(|| server.listens(&["ssh"]));
        server
    }

    /// Waits until the log contains the address of one of the protocols.
    fn listens(&self, protocols: &[&str]) -> SocketAddr {
        let fits = |event: &Value| {
            let protocol = event["protocol"].as_str().unwrap_or_default();
            event["event"] == "listening" && protocols.contains(&protocol)
        };
        let event = self.logged(fits).expect("the server starts");
        let address = event["address"].as_str().expect("an address");
        address.parse().expect("an address")
    }

    /// Waits for an event of the log.
    pub(crate) fn logged(&self, fits: impl Fn(&Value) -> bool) -> Result<Value, String> {
        // Lines that were parsed once are not parsed again.
        let (mut found, mut seen) = (None, 0);
        self.log.wait_until(|written| {
            let new = written.lines.get(seen..).unwrap_or_default();
            seen = written.lines.len();
            let mut events = new
                .iter()
                .filter_map(|line| serde_json::from_str(line).ok());
            found = events.find(&fits);
            found.is_some() || written.has_ended
        });
        found.ok_or_else(|| "the log has no such event".to_owned())
    }

    /// Returns the log.
    pub(crate) fn text(&self) -> String {
        let written = self.log.written.lock().expect("no panic");
        written.lines.join("\n")
    }

    /// Returns the peak memory of the server in MiB.
    pub(crate) fn peak_mebibytes(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmHWM:"));
        let number = line.and_then(|line| line.split_ascii_whitespace().nth(1));
        number
            .and_then(|text| text.parse::<u64>().ok())
            .unwrap_or(0)
            >> 10
    }

    /// Returns the process id of the server.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        // If the server has ended, the function that waits for the end reports that.
        let _ = kill_process(id.expect("an id"), signal);
    }

    /// Returns whether the server runs.
    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Requests the end of the server, and waits for the end.
    pub(crate) fn end(&mut self) -> Result<(), String> {
        self.signal(Signal::TERM);
        let begun = Instant::now();
        // The log ends when the server and the processes that have inherited it have ended.
        if !self.log.wait_until(|written| written.has_ended) {
            return Err(format!("the server runs for {:?} more", begun.elapsed()));
        }
        if let Some(reader) = self.reader.take() {
            reader.join().expect("no panic");
        }
        match self.child.wait() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("the server ends with {status}")),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until `is_true` returns true. Returns `false` after a timeout.
pub(crate) fn wait_until(mut is_true: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + PATIENCE;
    let mut pause = Duration::from_millis(20);
    loop {
        if is_true() {
            return true;
        }
        if Instant::now() > end {
            return false;
        }
        // A check uses the processor that the server needs, and often a connection, which a slow
        // server still counts at the next check.
        std::thread::sleep(pause);
        pause = (2 * pause).min(Duration::from_millis(500));
    }
}
