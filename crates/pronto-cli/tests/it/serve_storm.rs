//! Three servers on one bucket: clients push, fetch and clone while servers are killed and calls of
//! the store fail.
//!
//! `PRONTO_TEST_STORM=SECONDS,CLIENTS` sets the duration and the number of clients.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use test_support::s3::{BUCKET, S3Server, variables};
use test_support::store_proxy::{ProxyFaults, StoreProxy};
use test_support::{Random, skip};

use crate::pushers;
use crate::serve::{Ended, Server, git};
use crate::support::{Scratch, stderr};

const SERVERS: usize = 3;

const REPOSITORIES: usize = 3;

/// The size of a file in each repository, which cannot be compressed.
const FILE_BYTES: usize = 2 << 20;

/// The size of a cache. All repositories together are larger, so servers evict some again and again.
const CACHE_BYTES: u64 = 5 << 20;

/// The exit code of a server that cannot start.
const FATAL: i32 = 128;

/// The number of starts of a server, one after the other, that calls of the store may make fail.
const MOST_FAILED_STARTS: usize = 10;

/// The most memory that a server may take: 256 MiB.
const MEMORY_BYTES: u64 = 256 << 20;

/// A bucket behind a proxy that makes calls fail, and the servers on it.
struct Storm {
    scratch: Scratch,
    proxy: StoreProxy,
    servers: Vec<Mutex<Option<Server>>>,
    clients: Vec<Client>,
    counts: Counts,
    /// Set at the deadline, or when a thread panics.
    is_over: AtomicBool,
}

/// Ends the storm when it is dropped by a panic.
struct EndOnPanic<'a>(&'a AtomicBool);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Relaxed);
        }
    }
}

/// A clone. Nobody else pushes to its branch.
struct Client {
    number: usize,
    /// The commit of the last acknowledged push, followed by the commits of the pushes since then.
    candidates: Mutex<Vec<String>>,
    /// Set by the first acknowledged push.
    is_born: AtomicBool,
}

#[derive(Debug, Default)]
struct Counts {
    pushes: AtomicU64,
    failed_pushes: AtomicU64,
    fetches: AtomicU64,
    clones: AtomicU64,
    failed_reads: AtomicU64,
    kills: AtomicU64,
    failed_starts: AtomicU64,
    memory_bytes: AtomicU64,
    cache_bytes: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn repository_of(client: usize) -> String {
    format!("r{}", client % REPOSITORIES)
}

impl Storm {
    fn new(store: &S3Server, clients: usize) -> Self {
        let storm = Storm {
            scratch: Scratch::new(),
            proxy: StoreProxy::start(store.address(), 77),
            servers: (0..SERVERS).map(|_| Mutex::new(None)).collect(),
            clients: (0..clients).map(Client::new).collect(),
            counts: Counts::default(),
            is_over: AtomicBool::new(false),
        };
        let mut random = Random::new(5);
        for number in 0..REPOSITORIES {
            let name = format!("r{number}");
            storm.git(storm.scratch.path(), &["init", "-q", "-b", "main", &name]);
            let at = storm.scratch.join(&name);
            std::fs::write(at.join("large"), random.bytes(FILE_BYTES)).expect("a file");
            storm.git(&at, &["add", "large"]);
            storm.git(&at, &["commit", "-q", "-m", "seed"]);
            storm.store(&["import", &name, &storm.url(), &name]);
        }
        for client in &storm.clients {
            let source = repository_of(client.number);
            storm.git(
                storm.scratch.path(),
                &["clone", "-q", &source, &client.name()],
            );
        }
        storm
    }

    fn url(&self) -> String {
        format!("s3://{BUCKET}/storm")
    }

    fn git(&self, at: &Path, arguments: &[&str]) -> String {
        pushers::read(&self.scratch, at, arguments)
    }

    fn store(&self, arguments: &[&str]) -> String {
        let variables = variables(self.proxy.address());
        pushers::store(&self.scratch, &variables, arguments)
    }

    /// Starts a server.
    ///
    /// # Errors
    /// The server ended. It does so if a call of the store fails.
    fn start(&self, number: usize) -> Result<Server, Ended> {
        let cache = self.cache(number);
        let text = format!(
            "[http]\nlisten = [\"127.0.0.1:0\"]\n[[grant]]\nrepository = \"**\"\nusers = [\"anonymous\"]\n\
             role = \"write\"\n[limits]\nuser_share = 100\n[store]\nurl = \"{}\"\ncache = \"{}\"\n\
             cache_bytes = {CACHE_BYTES}\nupkeep_seconds = 2\n",
            self.url(),
            cache.display()
        );
        let file = self.scratch.join(format!("server{number}.toml"));
        std::fs::write(&file, text).expect("a file");
        let file = file.display().to_string();
        let variables = variables(self.proxy.address());
        let variables: Vec<(&str, &str)> = variables
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        Server::try_start(
            self.scratch.path(),
            &["--config", &file],
            "serving at",
            &variables,
        )
    }

    fn cache(&self, number: usize) -> PathBuf {
        self.scratch.join(format!("cache{number}"))
    }

    /// Returns the address of a repository at a server, or `None` while the server does not run.
    fn address(&self, server: usize, repository: &str) -> Option<String> {
        let server = lock(&self.servers[server]);
        let line = &server.as_ref()?.lines[0];
        let base = line.strip_prefix("serving at ").expect("an address");
        Some(format!("{base}{repository}"))
    }

    /// Kills servers and starts them again, until the end.
    fn kill(&self) {
        let mut random = Random::new(9);
        while !self.is_over.load(Relaxed) {
            std::thread::sleep(Duration::from_millis(500 + random.below(4000)));
            let number = random.below(SERVERS as u64) as usize;
            if let Some(server) = lock(&self.servers[number]).take() {
                server.signal(Signal::KILL);
                self.counts.kills.fetch_add(1, Relaxed);
            }
            std::thread::sleep(Duration::from_millis(random.below(500)));
            *lock(&self.servers[number]) = Some(self.start_in_storm(number));
        }
    }

    /// Starts a server while calls of the store fail. Some of its starts may fail because of that.
    fn start_in_storm(&self, number: usize) -> Server {
        let mut failures = Vec::new();
        while failures.len() < MOST_FAILED_STARTS {
            match self.start(number) {
                Ok(server) => return server,
                Err(ended) => {
                    let Ended { status, output } = &ended;
                    assert_eq!(status.code(), Some(FATAL), "server {number}: {output}");
                    self.counts.failed_starts.fetch_add(1, Relaxed);
                    failures.push(ended);
                }
            }
        }
        panic!("server {number} does not start: {failures:#?}");
    }

    /// Starts all servers while no call fails.
    fn start_all(&self) {
        for (number, place) in self.servers.iter().enumerate() {
            let started = self.start(number);
            *lock(place) = Some(started.expect("no call fails"));
        }
    }

    /// Runs the work of a thread. Its panic ends the storm.
    fn guard(&self, work: impl FnOnce()) {
        let _guard = EndOnPanic(&self.is_over);
        work();
    }

    /// Runs clients while servers are killed, until the time is over or a thread panics.
    fn run(&self, time: Duration) {
        std::thread::scope(|scope| {
            scope.spawn(|| self.guard(|| self.kill()));
            scope.spawn(|| self.guard(|| self.watch()));
            for client in &self.clients {
                scope.spawn(|| self.guard(|| self.work(client)));
            }
            let begun = Instant::now();
            while begun.elapsed() < time && !self.is_over.load(Relaxed) {
                std::thread::sleep(Duration::from_millis(100));
            }
            self.is_over.store(true, Relaxed);
        });
    }

    /// Notes how much memory and disk servers take, until the end.
    fn watch(&self) {
        while !self.is_over.load(Relaxed) {
            for (number, server) in self.servers.iter().enumerate() {
                let id = lock(server).as_ref().map(Server::id);
                if let Some(id) = id {
                    let memory = anonymous_bytes(id);
                    self.counts.memory_bytes.fetch_max(memory, Relaxed);
                }
                let disk = disk_bytes(&self.cache(number));
                self.counts.cache_bytes.fetch_max(disk, Relaxed);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Pushes, fetches and clones until the end.
    fn work(&self, client: &Client) {
        let mut random = Random::new(client.number as u64 + 100);
        let at = self.scratch.join(client.name());
        let counts = &self.counts;
        while !self.is_over.load(Relaxed) {
            let server = random.below(SERVERS as u64) as usize;
            let Some(url) = self.address(server, &repository_of(client.number)) else {
                // It starts again.
                std::thread::sleep(Duration::from_millis(20));
                continue;
            };
            match random.below(10) {
                0..5 => {
                    let count = match self.push(client, &at, &url) {
                        true => &counts.pushes,
                        false => &counts.failed_pushes,
                    };
                    count.fetch_add(1, Relaxed);
                }
                5..9 => match self.read(client, &at, &url) {
                    true => _ = counts.fetches.fetch_add(1, Relaxed),
                    false => _ = counts.failed_reads.fetch_add(1, Relaxed),
                },
                _ => match self.clone(client, &url) {
                    true => _ = counts.clones.fetch_add(1, Relaxed),
                    false => _ = counts.failed_reads.fetch_add(1, Relaxed),
                },
            }
        }
    }

    /// Pushes a commit. Returns whether the server acknowledged it.
    fn push(&self, client: &Client, at: &Path, url: &str) -> bool {
        self.git(at, &["commit", "-q", "--allow-empty", "-m", "more"]);
        let id = self.git(at, &["rev-parse", "HEAD"]);
        lock(&client.candidates).push(id.clone());
        let pushed = pushers::push(&self.scratch, at, url, &client.branch());
        if pushed.is_ok() {
            *lock(&client.candidates) = vec![id];
            client.is_born.store(true, Relaxed);
        }
        pushed.is_ok()
    }

    /// Fetches, and checks that nothing acknowledged is missing. Returns whether the server answered.
    fn read(&self, client: &Client, at: &Path, url: &str) -> bool {
        let target = format!("+{}:refs/seen", client.branch());
        let _ = git(&self.scratch, at, &["update-ref", "-d", "refs/seen"]);
        let candidates = lock(&client.candidates).clone();
        let output = git(&self.scratch, at, &["fetch", "-q", url, &target]);
        let said = stderr(&output);
        let is_absent = said.contains("couldn't find remote ref");
        if !output.status.success() && !is_absent {
            return false;
        }
        if candidates.is_empty() {
            return true;
        }
        // Before the first acknowledged push, the branch may not be there.
        assert!(
            !is_absent || client.is_unborn(),
            "{}: {said}",
            client.name()
        );
        if !is_absent {
            let seen = self.git(at, &["rev-parse", "refs/seen"]);
            assert!(
                candidates.contains(&seen),
                "{}: {seen} of {candidates:?}",
                client.name()
            );
        }
        true
    }

    fn clone(&self, client: &Client, url: &str) -> bool {
        let name = format!("copy{}", client.number);
        let copy = self.scratch.join(&name);
        let _ = std::fs::remove_dir_all(&copy);
        let arguments = ["clone", "-q", "--bare", url, &name];
        let output = git(&self.scratch, self.scratch.path(), &arguments);
        if output.status.success() {
            self.git(&copy, &["fsck", "--no-dangling", "--no-progress"]);
        }
        output.status.success()
    }

    /// Asserts that the bucket has all that was acknowledged, and that all of it is whole.
    fn check(&self) {
        let verified = self.store(&["verify", &self.url()]);
        assert!(verified.ends_with(" 0 problems\n"), "{verified}");
        for number in 0..REPOSITORIES {
            let (name, copy) = (format!("r{number}"), format!("export{number}"));
            self.store(&["export", &self.url(), &name, &copy]);
            let copy = self.scratch.join(copy);
            self.git(&copy, &["fsck", "--full", "--strict", "--no-dangling"]);
            for client in self
                .clients
                .iter()
                .filter(|client| repository_of(client.number) == name)
            {
                let candidates = lock(&client.candidates).clone();
                let listed = self.git(
                    &copy,
                    &["for-each-ref", "--format=%(objectname)", &client.branch()],
                );
                let is_lost = listed.is_empty() && !client.is_unborn();
                assert!(!is_lost, "{} is gone", client.branch());
                assert!(
                    listed.is_empty() || candidates.contains(&listed),
                    "{}: {listed} of {candidates:?}",
                    client.branch()
                );
            }
        }
    }
}

impl Client {
    fn new(number: usize) -> Self {
        Client {
            number,
            candidates: Mutex::default(),
            is_born: AtomicBool::new(false),
        }
    }

    fn name(&self) -> String {
        format!("client{}", self.number)
    }

    fn branch(&self) -> String {
        format!("refs/heads/c{}", self.number)
    }

    /// Returns whether no push was acknowledged yet, so that the branch need not be there.
    fn is_unborn(&self) -> bool {
        !self.is_born.load(Relaxed)
    }
}

/// Returns the bytes of anonymous memory of a process, or 0 if it has ended.
fn anonymous_bytes(id: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// Returns the bytes that the file system has allocated below `path`, with links counted once.
fn disk_bytes(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let mut bytes = std::collections::HashMap::new();
    let mut directories = vec![path.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => directories.push(entry.path()),
                Ok(metadata) => _ = bytes.insert(metadata.ino(), metadata.blocks() * 512),
                // It is gone.
                Err(_) => {}
            }
        }
    }
    bytes.values().sum()
}

/// Returns the seconds and the number of clients.
fn extent() -> (u64, usize) {
    let Ok(text) = std::env::var("PRONTO_TEST_STORM") else {
        return (12, 6);
    };
    let parsed = text
        .split_once(',')
        .and_then(|(seconds, clients)| Some((seconds.parse().ok()?, clients.parse().ok()?)));
    parsed.expect("PRONTO_TEST_STORM is SECONDS,CLIENTS")
}

#[test]
fn nothing_acknowledged_is_lost_in_a_storm() {
    let (seconds, clients) = extent();
    let Some(store) = S3Server::start() else {
        skip!("moto, a server of S3, is not installed");
    };
    let storm = Storm::new(&store, clients);
    storm.start_all();
    storm.proxy.set(ProxyFaults::some());
    storm.run(Duration::from_secs(seconds));
    storm.proxy.set(ProxyFaults::default());
    let failed_calls = storm.proxy.failed();
    for server in &storm.servers {
        *lock(server) = None;
    }
    // Each of them starts with the cache that the storm has left.
    storm.start_all();
    for server in &storm.servers {
        *lock(server) = None;
    }
    storm.check();
    let counts = &storm.counts;
    println!(
        "{counts:?}, {} calls, of which {failed_calls} failed",
        storm.proxy.requests()
    );
    assert!(counts.pushes.load(Relaxed) > 0 && counts.fetches.load(Relaxed) > 0);
    assert!(counts.kills.load(Relaxed) > 0, "no server was killed");
    assert!(failed_calls > 0, "no call failed");
    assert!(counts.memory_bytes.load(Relaxed) <= MEMORY_BYTES);
}
