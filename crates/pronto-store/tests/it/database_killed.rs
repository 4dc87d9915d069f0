//! Tests of pushes whose process, database or connection ends at any time.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use pronto_store::RefDecision;
use test_support::cut_proxy::CutProxy;
use test_support::postgres::PostgresServer;
use test_support::{Random, Seed, skip};

use super::database::{assert_whole, open, start};
use super::support::{Server, id};

const CHILD: &str = "DATABASE_TEST_PUSHER";

/// The process that other tests start repeatedly. It pushes refs, compares the read refs with the
/// acknowledged ones, and prints the refs that were acknowledged.
#[test]
fn a_pusher() {
    let Some(given) = std::env::var_os(CHILD) else {
        return;
    };
    let given = given.into_string().expect("text");
    let words: Vec<&str> = given.split(' ').collect();
    let [database, directory, prefix] = words[..] else {
        panic!("three words");
    };
    let server = open(Path::new(directory), database);
    for number in 0.. {
        let name = format!("refs/heads/{prefix}/{number}");
        println!("trying {name}");
        match server.push(&name, None, &name) {
            Ok(outcome) => {
                assert_eq!(outcome.verdicts, [RefDecision::Applied], "{name}");
                println!("done {name}");
            }
            Err(error) => {
                println!("failed {name}: {error}");
                continue;
            }
        }
        if let Ok(newest) = server.store.wait(server.repository.latest()) {
            let found = newest.refs.find(&name).expect("sound");
            let found = found.expect("acknowledged");
            assert_eq!(found.value.object(), Some(&*id(&name)));
            println!("seen {name}");
        }
    }
}

/// Processes that push, and their output.
struct Pushers {
    database: String,
    directory: String,
    running: Vec<Pusher>,
    started: usize,
    sender: Sender<String>,
    lines: Receiver<String>,
    log: Vec<String>,
}

struct Pusher(Child);

impl Drop for Pusher {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Pushers {
    const COUNT: usize = 3;

    fn start(database: String, directory: &Path) -> Self {
        let (sender, lines) = channel();
        let mut pushers = Pushers {
            database,
            directory: directory.to_str().expect("text").to_owned(),
            running: Vec::new(),
            started: 0,
            sender,
            lines,
            log: Vec::new(),
        };
        for _ in 0..Self::COUNT {
            let pusher = pushers.one();
            pushers.running.push(pusher);
        }
        pushers
    }

    fn one(&mut self) -> Pusher {
        self.started += 1;
        let given = format!("{} {} {}", self.database, self.directory, self.started);
        let mut child = Command::new(std::env::current_exe().expect("it runs"))
            .args(["--exact", "--nocapture", "database_killed::a_pusher"])
            .env(CHILD, given)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it can be started");
        let pipes: [Box<dyn std::io::Read + Send>; 2] = [
            Box::new(child.stdout.take().expect("a pipe")),
            Box::new(child.stderr.take().expect("a pipe")),
        ];
        for pipe in pipes {
            let lines = self.sender.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                    let _ = lines.send(line);
                }
            });
        }
        Pusher(child)
    }

    /// Kills a process, and starts another one.
    fn replace(&mut self, victim: usize) {
        self.running[victim] = self.one();
    }

    /// Waits for acknowledged pushes.
    fn wait(&mut self, pushes: usize) {
        let mut left = pushes;
        while left > 0 {
            let line = self.lines.recv_timeout(Duration::from_secs(120));
            let line = line.unwrap_or_else(|_| panic!("no progress: {:?}", self.log));
            assert!(!line.contains("panicked"), "{line}");
            left -= usize::from(line.starts_with("done "));
            self.log.push(line);
        }
    }

    /// Kills all processes, and checks that `server` has the acknowledged refs.
    fn end(mut self, server: &Server) -> usize {
        self.running.clear();
        drop(self.sender);
        self.log.extend(self.lines);
        let newest = server.store.wait(server.repository.latest());
        let newest = newest.expect("readable");
        let mut fates = BTreeMap::new();
        for line in &self.log {
            assert!(!line.contains("panicked"), "{line}");
            if let Some((fate, name)) = line.split_once(' ')
                && matches!(fate, "trying" | "done")
            {
                fates.insert(name.to_owned(), fate == "done");
            }
        }
        for (name, is_done) in &fates {
            match newest.refs.find(name).expect("sound") {
                Some(found) => assert_eq!(found.value.object(), Some(&*id(name)), "{name}"),
                None => assert!(!is_done, "{name} was acknowledged, and is lost"),
            }
        }
        assert_whole(server);
        fates.values().filter(|is_done| **is_done).count()
    }
}

#[test]
fn pushes_survive_cut_connections_and_killed_processes() {
    const KILLS: usize = 12;
    let (server, folder) = (start!(), tempfile::tempdir().expect("a directory"));
    let direct = open(folder.path(), &server.url());
    direct.create();
    let seed = Seed::new("pushes_survive_cut_connections_and_killed_processes");
    let proxy = CutProxy::start(server.address(), seed.number());
    proxy.cut(5);
    let mut pushers = Pushers::start(server.url_at(proxy.address()), folder.path());
    let mut random = Random::new(seed.number());
    for _ in 0..KILLS {
        pushers.wait(4);
        pushers.replace(random.index(Pushers::COUNT));
    }
    proxy.cut(0);
    assert!(proxy.cuts() > 5, "{}", proxy.cuts());
    let done = pushers.end(&direct);
    assert!(done >= 4 * KILLS, "{done}");
}

#[test]
fn pushes_survive_a_database_that_crashes() {
    const CRASHES: usize = 5;
    let (mut server, folder) = (start!(), tempfile::tempdir().expect("a directory"));
    let direct = open(folder.path(), &server.url());
    direct.create();
    let mut pushers = Pushers::start(server.url(), folder.path());
    for crash in 0..CRASHES {
        pushers.wait(6);
        server.crash();
        if crash % 2 == 1 {
            pushers.replace(crash % Pushers::COUNT);
        }
        server.resume();
    }
    pushers.wait(6);
    let done = pushers.end(&direct);
    assert!(done >= 6 * (CRASHES + 1), "{done}");
}
