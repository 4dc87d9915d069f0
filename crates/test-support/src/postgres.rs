//! A PostgreSQL server for tests.

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::{Scratch, free_port};

/// The password of the user `postgres`.
pub const PASSWORD: &str = "se/cr:et";

/// Returns whether a text contains a part of [`PASSWORD`], as plain text or percent-encoded.
#[must_use]
pub fn shows_password(text: &str) -> bool {
    let mut parts = ["se/cr", "se%2Fcr", "cr:et", "cr%3Aet"].iter();
    parts.any(|part| text.contains(part))
}

/// The shell script that runs the server. The server is stopped when the input of the script is
/// closed, which happens at the latest at the end of this process. The script exits when the server
/// exits.
const KEEPER: &str = r#"
    exec 3<&0
    "$@" 3<&- & server=$!
    { read -r _ <&3; kill -QUIT $server; } & reader=$!
    exec 3<&-
    wait $server
    status=$?
    kill $reader
    exit $status
"#;

/// A PostgreSQL server with an empty database, in other processes. The server is stopped when the
/// value is dropped or this process ends.
pub struct PostgresServer {
    scratch: Scratch,
    programs: PathBuf,
    /// The user and group id of the server, if this process is root: the server refuses to run as
    /// root.
    user: Option<(u32, u32)>,
    address: SocketAddr,
    /// The additional settings of this server.
    settings: Vec<String>,
    running: Option<(Child, ChildStdin)>,
}

impl PostgresServer {
    /// Starts a server that accepts TCP connections with a password. Returns `None` if PostgreSQL
    /// is not installed.
    ///
    /// # Panics
    /// Panics if the server does not start.
    #[must_use]
    pub fn start() -> Option<Self> {
        let mut server = PostgresServer::new()?;
        server.resume();
        Some(server)
    }

    /// Starts a server that also accepts TLS connections, with a certificate and its private key in
    /// PEM. Returns `None` if PostgreSQL is not installed.
    ///
    /// # Panics
    /// Panics if the server does not start.
    #[must_use]
    pub fn start_secure(certificate: &str, key: &str) -> Option<Self> {
        let mut server = PostgresServer::new()?;
        server.settings.push("ssl=on".to_owned());
        for (setting, content) in [("ssl_cert_file", certificate), ("ssl_key_file", key)] {
            let path = server.write(setting, content);
            server
                .settings
                .push(format!("{setting}={}", path.display()));
        }
        server.resume();
        Some(server)
    }

    /// Creates the files of a server.
    fn new() -> Option<Self> {
        let server = PostgresServer {
            scratch: Scratch::new(),
            programs: programs()?,
            user: other_user(),
            address: (Ipv4Addr::LOCALHOST, free_port()).into(),
            settings: Vec::new(),
            running: None,
        };
        let directory = server.scratch.path();
        if let Some((user, group)) = server.user {
            chown(directory, Some(user), Some(group)).expect("root may do that");
        }
        let password = server.write("password", PASSWORD);
        let mut initdb = server.command("initdb");
        initdb.args(["--username=postgres", "--auth=scram-sha-256", "--no-sync"]);
        initdb.args(["--encoding=UTF8", "--no-locale", "--pwfile"]);
        initdb.arg(password);
        initdb.arg("--pgdata").arg(directory.join("data"));
        let made = initdb.output().expect("it starts");
        assert!(made.status.success(), "{made:?}");
        Some(server)
    }

    /// Returns the URL of the database, including the password.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_at(self.address)
    }

    /// Returns the URL of the database behind a proxy at `address`.
    #[must_use]
    pub fn url_at(&self, address: SocketAddr) -> String {
        let password = PASSWORD.replace('/', "%2F").replace(':', "%3A");
        format!("postgres://postgres:{password}@{address}/postgres")
    }

    /// Returns the address of the server.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Kills all processes of the server, as in a crash: unwritten data is lost, and clients are
    /// not notified.
    ///
    /// # Panics
    /// Panics if the server is not running.
    pub fn crash(&mut self) {
        let mut stop = self.command("pg_ctl");
        stop.args(["stop", "--mode=immediate", "--wait", "--silent", "--pgdata"]);
        stop.arg(self.scratch.join("data"));
        let stopped = stop.output().expect("it starts");
        assert!(stopped.status.success(), "{stopped:?}");
        self.reap();
    }

    /// Starts the server again, at the same address. Returns when the server accepts connections.
    ///
    /// # Panics
    /// Panics if the server exits or accepts no connections for a minute. The message contains its
    /// log.
    pub fn resume(&mut self) {
        let mut keeper = Command::new("/bin/sh");
        keeper.args(["-c", KEEPER, "sh"]);
        keeper.arg(self.programs.join("postgres"));
        keeper.arg("-D").arg(self.scratch.join("data"));
        keeper.arg("-k").arg(self.scratch.path());
        let port = format!("port={}", self.address.port());
        // With `synchronous_commit=off` a crash loses acknowledged transactions, unless the client
        // requests otherwise.
        for setting in [
            &port,
            "listen_addresses=127.0.0.1",
            "synchronous_commit=off",
        ] {
            keeper.args(["-c", setting]);
        }
        for setting in &self.settings {
            keeper.args(["-c", setting]);
        }
        self.run_as_other(&mut keeper);
        let log = std::fs::File::options()
            .append(true)
            .create(true)
            .open(self.scratch.join("log"));
        let mut child = keeper
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log.expect("writable"))
            .spawn()
            .expect("a shell");
        let input = child.stdin.take().expect("a pipe");
        self.running = Some((child, input));
        for _ in 0..600 {
            if self.is_ready() {
                return;
            }
            let (child, _) = self.running.as_mut().expect("it was started");
            if let Some(status) = child.try_wait().expect("it is a child") {
                panic!("the server has ended with {status}: {}", self.log());
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        panic!("the server does not start: {}", self.log());
    }

    fn is_ready(&self) -> bool {
        let mut ready = self.command("pg_isready");
        ready.args(["--quiet", "--host=127.0.0.1", "--port"]);
        ready.arg(self.address.port().to_string());
        ready.status().expect("it starts").success()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.scratch.join("log")).unwrap_or_default()
    }

    /// Writes a file that only the user of the server may read.
    fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.scratch.join(name);
        let mut file = std::fs::File::options();
        let file = file.write(true).create_new(true).mode(0o600).open(&path);
        let written = file.expect("a new file").write_all(content.as_bytes());
        written.expect("writable");
        if let Some((user, group)) = self.user {
            chown(&path, Some(user), Some(group)).expect("root may do that");
        }
        path
    }

    /// Executes statements, and returns their output.
    ///
    /// # Panics
    /// Panics if a statement fails.
    pub fn execute(&self, statements: &str) -> String {
        // With the server's setting, a crash could lose the transaction.
        let statements = format!("SET synchronous_commit = on; {statements}");
        let mut psql = self.command("psql");
        psql.args([
            "-X",
            "-q",
            "-t",
            "-A",
            "-v",
            "ON_ERROR_STOP=1",
            "-c",
            &statements,
        ]);
        psql.arg(self.url());
        let done = psql.output().expect("it starts");
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).expect("text")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.current_dir("/").stdin(Stdio::null());
        command.env_remove("LC_ALL").env("LANG", "C");
        // Remove the user's own variables for PostgreSQL clients.
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"PG") {
                command.env_remove(name);
            }
        }
        self.run_as_other(&mut command);
        command
    }

    fn run_as_other(&self, command: &mut Command) {
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
    }

    fn reap(&mut self) {
        if let Some((mut child, mut input)) = self.running.take() {
            let _ = input.write_all(b"\n");
            drop(input);
            let _ = child.wait();
        }
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.reap();
    }
}

/// Returns the directory with the programs: the newest version in Debian's directory, or a
/// directory of the search path.
fn programs() -> Option<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .collect();
    found.sort_unstable();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let others = std::env::split_paths(&path).collect::<Vec<_>>();
    let all = found.into_iter().rev().chain(others);
    let has = |directory: &Path, name| directory.join(name).exists();
    all.into_iter()
        .find(|directory| has(directory, "initdb") && has(directory, "postgres"))
}

/// Returns the user and group id of the system's own server, or of nobody, if this process is root.
fn other_user() -> Option<(u32, u32)> {
    if std::fs::metadata("/proc/self").expect("linux").uid() != 0 {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let own = users.lines().find_map(|line| {
        let mut fields = line.strip_prefix("postgres:")?.split(':').skip(1);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    });
    Some(own.unwrap_or((65534, 65534)))
}
