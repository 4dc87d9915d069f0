//! The effect of a reload on each setting: the table of `docs/operate.md`, row by row.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use test_support::authority::{IssuedCertificate, self_signed};
use test_support::skip;

use crate::support::{Scratch, interruptible_pronto, pronto, stdout};

/// A server whose log is a file.
struct Reloaded {
    child: Child,
    directory: PathBuf,
    /// The number of reloads.
    count: usize,
}

impl Reloaded {
    /// Starts a server with the settings of a configuration.
    fn start(directory: &Path, settings: &Settings) -> Self {
        std::fs::write(directory.join("server.toml"), settings.text()).expect("a file");
        let log = std::fs::File::create(directory.join("log")).expect("a file");
        let child = interruptible_pronto()
            .args(["serve", "--config", "server.toml"])
            .current_dir(directory)
            .env("HOME", directory)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("it starts");
        let server = Reloaded {
            child,
            directory: directory.to_owned(),
            count: 0,
        };
        server.wait(|events| events.iter().any(|event| event["event"] == "listening"));
        server
    }

    fn events(&self) -> Vec<Value> {
        let log = std::fs::read_to_string(self.directory.join("log")).expect("a log");
        let lines = log.lines();
        lines
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    fn wait(&self, is_there: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        loop {
            let events = self.events();
            if is_there(&events) {
                return events;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Reloads other settings. Returns the names for which a restart is needed.
    fn reload(&mut self, settings: &Settings) -> Vec<String> {
        std::fs::write(self.directory.join("server.toml"), settings.text()).expect("a file");
        let id = i32::try_from(self.child.id()).expect("an id");
        kill_process(Pid::from_raw(id).expect("an id"), Signal::HUP).expect("it runs");
        self.count += 1;
        let count = self.count;
        let reloads = |events: &[Value]| {
            let reloads = events.iter().filter(|event| event["event"] == "reloaded");
            reloads.count()
        };
        let events = self.wait(|events| reloads(events) == count);
        let last = events.iter().rfind(|event| event["event"] == "reloaded");
        let last = last.expect("it is there");
        assert!(last["error"].is_null(), "{}: {last}", settings.text());
        // The warning follows the reload. The next reload is in the log after it.
        self.settle(settings)
    }

    /// Makes a reload of a broken configuration, after which the warning of the last one is in the log.
    fn settle(&mut self, settings: &Settings) -> Vec<String> {
        std::fs::write(self.directory.join("server.toml"), "nonsense = 1").expect("a file");
        let id = i32::try_from(self.child.id()).expect("an id");
        kill_process(Pid::from_raw(id).expect("an id"), Signal::HUP).expect("it runs");
        self.count += 1;
        let count = self.count;
        let reloads = |events: &[Value]| {
            let reloads = events.iter().filter(|event| event["event"] == "reloaded");
            reloads.count()
        };
        let events = self.wait(|events| reloads(events) == count);
        let mut between = events
            .iter()
            .rev()
            .skip_while(|event| event["event"] != "reloaded");
        let failed = between.next().expect("it is there");
        assert!(!failed["error"].is_null(), "{}: {failed}", settings.text());
        let Some(warning) = between
            .next()
            .filter(|event| event["event"] == "restart-needed")
        else {
            return Vec::new();
        };
        assert_eq!(warning["level"], "warning", "{warning}");
        let names = warning["settings"].as_array().expect("a list");
        let names = names
            .iter()
            .map(|name| name.as_str().expect("text").to_owned());
        let names: Vec<String> = names.collect();
        let shown: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
        let message = format!("a restart is needed for {}", shown.join(", "));
        assert_eq!(warning["message"], message.as_str());
        names
    }
}

impl Drop for Reloaded {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The settings of a configuration, by their names with the section, and tables at its end.
#[derive(Clone, Default)]
struct Settings {
    values: BTreeMap<String, String>,
    tables: String,
}

impl Settings {
    fn of(pairs: &[(&str, &str)]) -> Self {
        let mut settings = Settings::default();
        for (name, value) in pairs {
            settings.set(name, value);
        }
        settings
    }

    fn set(&mut self, name: &str, value: &str) {
        self.values.insert(name.to_owned(), value.to_owned());
    }

    fn text(&self) -> String {
        let lines = self
            .values
            .iter()
            .map(|(name, value)| format!("{name} = {value}\n"));
        let lines: String = lines.collect();
        lines + &self.tables
    }
}

/// The settings of a row, and whether they apply after a restart only.
struct Row {
    names: Vec<String>,
    needs_restart: bool,
}

/// The rows of the table "setting, applies after" of the page.
fn table() -> Vec<Row> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operate.md");
    let page = std::fs::read_to_string(path).expect("a page");
    let (_, rest) = page
        .split_once("| setting | applies after |\n|---|---|\n")
        .expect("the table");
    let lines = rest.lines().take_while(|line| line.starts_with('|'));
    let rows = lines.map(|line| {
        let mut cells = line.trim_matches('|').split('|');
        let names = cells.next().expect("a cell").split('`').skip(1).step_by(2);
        let names = names.map(str::to_owned).collect();
        let needs_restart = cells.next().expect("a cell").contains("restart");
        Row {
            names,
            needs_restart,
        }
    });
    rows.collect()
}

/// Every setting that `--print-config` prints, with its section. Those of a repeated table are one.
fn printed() -> BTreeSet<String> {
    let output = pronto()
        .args(["serve", "--print-config"])
        .output()
        .expect("it starts");
    let mut section = String::new();
    let mut names = BTreeSet::new();
    for line in stdout(&output).lines() {
        let line = line.trim_start_matches('#');
        if line.starts_with("[[") {
            line.clone_into(&mut section);
            names.insert(section.clone());
        } else if line.starts_with('[') {
            section = format!("{}.", line.trim_matches(['[', ']']));
        } else if let Some((name, _)) = line.split_once(" = ")
            && name
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
            && !section.starts_with('[')
        {
            names.insert(format!("{section}{name}"));
        }
    }
    names
}

/// Another value for each setting.
const CHANGES: [(&str, &str); 55] = [
    ("root", "\"other\""),
    ("users", "\"others.toml\""),
    ("create_on_push", "true"),
    ("require_export_ok", "true"),
    ("http.listen", "[\"127.0.0.1:0\", \"127.0.0.2:0\"]"),
    ("http.public_url", "\"https://git.example.org\""),
    ("http.hosts", "[\"git.example.org\"]"),
    ("http.tls_certificate", "\"c2.pem\""),
    ("http.tls_key", "\"k2.pem\""),
    ("http.client_ca", "\"c2.pem\""),
    ("http.metrics", "\"everyone\""),
    ("daemon.listen", "[\"127.0.0.1:0\"]"),
    ("daemon.push", "\"always\""),
    ("ssh.listen", "[\"127.0.0.1:0\", \"127.0.0.2:0\"]"),
    ("ssh.host_key", "\"second-key\""),
    ("netsync.listen", "[\"127.0.0.1:0\"]"),
    ("netsync.key", "\"another-key\""),
    ("netsync.memory_bytes", "200000000"),
    ("metrics.listen", "[\"127.0.0.1:0\"]"),
    ("log.format", "\"human\""),
    ("cache.directory", "\".\""),
    ("cache.bytes", "0"),
    ("cache.listing_bytes", "1"),
    ("clone.bundle_uri", "false"),
    ("clone.bundle_least_bytes", "1"),
    ("store.url", "\"file:///nonexistent\""),
    ("store.generations", "\"postgres://a@localhost/b\""),
    ("store.cache", "\"another-cache\""),
    ("store.cache_bytes", "1000000"),
    ("store.patience_seconds", "3"),
    ("store.role", "\"serve\""),
    ("store.upkeep_seconds", "3"),
    ("store.prune_after_days", "3"),
    ("limits.connections", "1000"),
    ("limits.connections_per_address", "1000"),
    ("limits.requests", "200"),
    ("limits.user_share", "33"),
    ("limits.queue", "33"),
    ("limits.memory_bytes", "100000000"),
    ("limits.head_bytes", "10000"),
    ("limits.fetch_bytes", "33"),
    ("limits.push_bytes", "33"),
    ("limits.command_bytes", "33"),
    ("limits.head_seconds", "33"),
    ("limits.login_seconds", "33"),
    ("limits.idle_seconds", "33"),
    ("limits.wait_seconds", "33"),
    ("limits.stall_seconds", "33"),
    ("limits.request_seconds", "33"),
    ("limits.drain_seconds", "33"),
    ("limits.failures_per_minute", "33"),
    (
        "[[grant]]",
        "repository = \"**\"\nusers = [\"*\"]\nrole = \"read\"\n",
    ),
    ("[[rule]]", "repository = \"**\"\nrefs = \"**\"\n"),
    ("[[quota]]", "repository = \"**\"\nrefs = 3\n"),
    ("[[certificate]]", "user = \"a\"\nsubject = \"a\"\n"),
];

fn changed(base: &Settings, name: &str) -> Settings {
    let (_, value) = CHANGES
        .iter()
        .find(|(known, _)| *known == name)
        .unwrap_or_else(|| panic!("no value for {name}"));
    let mut settings = base.clone();
    match name.starts_with('[') {
        true => settings.tables = format!("{name}\n{value}"),
        false => settings.set(name, value),
    }
    // A certificate and its key change together.
    if ["http.tls_certificate", "http.tls_key"].contains(&name) {
        settings.set("http.tls_certificate", "\"c2.pem\"");
        settings.set("http.tls_key", "\"k2.pem\"");
    }
    settings
}

fn write_certificates(directory: &Path, made: &IssuedCertificate) {
    for number in ["", "2"] {
        let path = |name: &str| directory.join(format!("{name}{number}.pem"));
        std::fs::write(path("c"), &made.certificate).expect("a file");
        std::fs::write(path("k"), &made.key).expect("a file");
    }
}

#[test]
fn each_setting_is_reloaded_or_needs_a_restart_as_the_table_says() {
    let dates = ["20200101000000Z", "20990101000000Z"];
    let Some(made) = self_signed("subjectAltName=DNS:localhost\n", dates) else {
        skip!("openssl is not installed");
    };
    let scratch = Scratch::new();
    for name in ["root", "other", "directory", "store"] {
        std::fs::create_dir_all(scratch.join("stored").join(name)).expect("a directory");
        std::fs::create_dir_all(scratch.join("plain").join(name)).expect("a directory");
    }
    let (plain, stored) = (scratch.join("plain"), scratch.join("stored"));
    for directory in [&plain, &stored] {
        write_certificates(directory, &made);
    }
    let common = [
        ("root", "\"root\""),
        ("http.listen", "[\"127.0.0.1:0\"]"),
        ("http.tls_certificate", "\"c.pem\""),
        ("http.tls_key", "\"k.pem\""),
        ("ssh.listen", "[\"127.0.0.1:0\"]"),
        ("log.format", "\"json\""),
    ];
    let base = Settings::of(&common);
    let mut with_store = base.clone();
    let url = format!("\"file://{}\"", stored.join("store").display());
    with_store.set("store.url", &url);
    let mut first = Reloaded::start(&plain, &base);
    let mut second = Reloaded::start(&stored, &with_store);
    // The other host key has to exist.
    let keys = ["pronto-ssh-host-key", "second-key"].map(|name| plain.join(name));
    std::fs::copy(&keys[0], &keys[1]).expect("a key");
    let mut documented = BTreeSet::new();
    for Row {
        names,
        needs_restart,
    } in table()
    {
        for name in names {
            let of_store = name.starts_with("store.");
            let (server, base) = match of_store {
                true => (&mut second, &with_store),
                false => (&mut first, &base),
            };
            let found = server.reload(&changed(base, &name));
            let expected = match needs_restart {
                true => vec![name.clone()],
                false => Vec::new(),
            };
            assert_eq!(found, expected, "{name}");
            documented.insert(name);
        }
    }
    assert_eq!(documented, printed());
    // Without a change, nothing waits for a restart, and sections can be added and removed.
    assert_eq!(first.reload(&base), Vec::<String>::new());
    assert_eq!(first.reload(&with_store), ["store.url"]);
    assert_eq!(second.reload(&base), ["store.url"]);
    let mut without_ssh = base.clone();
    without_ssh.values.remove("ssh.listen");
    assert_eq!(first.reload(&without_ssh), ["ssh.listen"]);
    // Two settings are named together, also in the next reload.
    let both = changed(&changed(&base, "cache.bytes"), "daemon.listen");
    for _ in 0..2 {
        assert_eq!(first.reload(&both), ["daemon.listen", "cache.bytes"]);
    }
}

#[test]
fn sessions_of_netsync_keep_their_limits() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.join("root")).expect("a directory");
    let base = Settings::of(&[
        ("root", "\"root\""),
        ("http.listen", "[\"127.0.0.1:0\"]"),
        ("netsync.listen", "[\"127.0.0.1:0\"]"),
    ]);
    let mut server = Reloaded::start(scratch.path(), &base);
    let found = server.reload(&changed(&base, "limits.stall_seconds"));
    assert_eq!(found, ["limits.stall_seconds for netsync"]);
    let found = server.reload(&changed(&base, "limits.push_bytes"));
    assert_eq!(found, Vec::<String>::new());
}
