//! Tests of the store on S3, through a proxy that makes requests fail.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use bytes::Bytes;
use pronto::{Environment, Watch};
use pronto_store::{
    Bucket as _, Cloud, CopySource, CreationResult, ErrorKind, RefDecision, StoreLocation,
    UploadContent,
};
use test_support::s3::{BUCKET, S3Server, variables};
use test_support::store_proxy::{ProxyFaults, StoreProxy};
use test_support::{Random, Scratch, skip};
use tokio::runtime::Runtime;

use super::support::{Server, id};

macro_rules! start {
    () => {
        match S3Server::start() {
            Some(server) => server,
            None => skip!("moto, a server of S3, is not installed"),
        }
    };
}

fn environment(address: SocketAddr) -> Environment {
    let mut environment = Environment::empty("/");
    for (name, value) in variables(address) {
        environment.set(name, value);
    }
    environment
}

fn open(address: SocketAddr) -> Server {
    let url = format!("s3://{BUCKET}/prefix");
    Server::open(&url, &environment(address))
}

fn cloud(address: SocketAddr) -> Cloud {
    let url = format!("s3://{BUCKET}/cloud");
    let location = StoreLocation::parse(&url, &environment(address)).expect("an address");
    Cloud::open(&location).expect("plain variables")
}

fn runtime() -> Runtime {
    Runtime::new().expect("a runtime")
}

#[test]
fn one_of_many_creators_wins() {
    const CREATORS: u32 = 32;
    const ROUNDS: u32 = 200;
    let server = start!();
    let cloud = cloud(server.address());
    runtime().block_on(async {
        for round in 0..ROUNDS {
            let name = format!("name/{round}");
            let creators = (0..CREATORS).map(|creator| {
                let (cloud, name) = (cloud.clone(), name.clone());
                tokio::spawn(async move {
                    let bytes = Bytes::from(creator.to_string());
                    cloud.create(&name, bytes).await.expect("answered")
                })
            });
            let mut winners = Vec::new();
            for (creator, task) in creators.collect::<Vec<_>>().into_iter().enumerate() {
                if task.await.expect("no panic") == CreationResult::Created {
                    winners.push(creator);
                }
            }
            let found = cloud
                .get(&name, 100)
                .await
                .expect("readable")
                .expect("there");
            assert_eq!(winners.len(), 1, "round {round}");
            assert_eq!(found, winners[0].to_string());
        }
    });
}

#[test]
fn the_calls_of_a_bucket_do_what_they_say() {
    let server = start!();
    let cloud = cloud(server.address());
    let scratch = Scratch::new();
    let large = Random::new(1).bytes(40 << 20);
    let path = scratch.join("large");
    std::fs::write(&path, &large).expect("writable");
    runtime().block_on(async {
        // The object is uploaded in parts.
        cloud
            .put("a/large", &UploadContent::File(path))
            .await
            .expect("written");
        let part = cloud
            .get_range("a/large", 17 << 20, 1000)
            .await
            .expect("readable");
        assert_eq!(part.expect("there"), large[17 << 20..][..1000]);
        let end = cloud
            .get_range("a/large", (40 << 20) - 5, 1000)
            .await
            .expect("readable");
        assert_eq!(end.expect("there"), large[(40 << 20) - 5..]);
        let behind = cloud
            .get_range("a/large", 40 << 20, 10)
            .await
            .expect("readable");
        assert_eq!(behind.expect("there").len(), 0);
        assert!(
            cloud
                .get_range("a/none", 0, 10)
                .await
                .expect("readable")
                .is_none()
        );
        let head = cloud
            .head("a/large")
            .await
            .expect("readable")
            .expect("there");
        assert_eq!(head.size_bytes, 40 << 20);
        let error = cloud.get("a/large", 1000).await.expect_err("too large");
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        for name in ["b/3", "b/1", "b/2", "b/sub/x"] {
            let content = UploadContent::Bytes(Bytes::from_static(b"x"));
            cloud.put(name, &content).await.expect("written");
        }
        let first = cloud.list("b/", 2, None).await.expect("readable");
        let names = |page: &pronto_store::ListingPage| {
            page.entries
                .iter()
                .map(|entry| entry.name.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&first), ["b/1", "b/2"]);
        let next = first.next.expect("more");
        let second = cloud.list("b/", 9, Some(&next)).await.expect("readable");
        assert_eq!(names(&second), ["b/3", "b/sub/x"]);
        assert_eq!(second.next, None);
        assert_eq!(cloud.directories("").await.expect("readable"), ["a/", "b/"]);
        for _ in 0..2 {
            cloud.delete("b/1").await.expect("deleted");
        }
        assert!(cloud.head("b/1").await.expect("readable").is_none());
    });
}

#[test]
fn repositories_are_imported_pushed_to_exported_and_copied() {
    let server = start!();
    let world = super::blocks::World::new();
    let node = open(server.address());
    let source = world.scratch.join("source");
    let source = pronto::Repository::open(source, &Environment::empty("/")).expect("a repository");
    let watch = Watch::none();
    let imported = node
        .store
        .import(&source, &node.repository, world.scratch.path(), &watch);
    imported.expect("imported");
    for number in 0..5 {
        let name = format!("refs/heads/{number}");
        let outcome = node.push(&name, None, &name).expect("committed");
        assert_eq!(outcome.verdicts, [RefDecision::Applied]);
    }
    assert_eq!(node.store.repositories().expect("readable"), ["team/r"]);
    let generations = node.store.generations(&node.repository).expect("readable");
    assert_eq!(generations.len(), 6);
    // The packs of the pushes have no valid format, so the export is made from the import.
    let other = open(server.address());
    let first = other.store.wait(other.repository.at(1)).expect("retained");
    let directory = world.scratch.join("export");
    let written = other
        .repository
        .write_view(&first, &directory, None, &watch);
    other.store.wait(written).expect("written");
    let view = pronto::Repository::open(&directory, &Environment::empty("/")).expect("a view");
    let head = view.resolve("refs/heads/main").expect("it is there");
    assert_eq!(
        format!("{head}\n"),
        world.git("source", &["rev-parse", "main"])
    );
    let ranged = other
        .store
        .block_cache(Default::default(), |line| panic!("{line}"));
    let repository = Arc::new(other.store.repository("team/r").expect("a name"));
    let directory = world.scratch.join("ranged");
    let files = world.files();
    let view = repository.write_ranged_view(&first, &directory, &files, &ranged, &watch);
    let view = other.store.wait(view).expect("written");
    let served = super::served::Served::new(view.directory());
    let cloned = served.git(
        world.scratch.path(),
        &["clone", "-q", "--bare"],
        &["clone.git"],
    );
    assert!(cloned.status.success(), "{cloned:?}");
    world.git("clone.git", &["fsck", "--strict"]);

    let copy = node.store.repository("copies/one").expect("a name");
    let newest = node.store.wait(node.repository.latest()).expect("readable");
    let from = CopySource {
        store: &node.store,
        repository: &node.repository,
    };
    let copied = node
        .store
        .copy(&newest, from, &copy, world.scratch.path(), &watch);
    assert_eq!(copied.expect("copied").refs, 3 + 5);
    for repository in [&node.repository, &copy] {
        let verified = node
            .store
            .wait(repository.verify(true, &watch))
            .expect("readable");
        assert_eq!((verified.problems, verified.orphans), (vec![], 0));
    }
}

const CHILD: &str = "STORE_TEST_PUSHER";

/// The process that `pushes_survive_faults_and_kills` starts repeatedly. It pushes refs, compares
/// the read refs with the acknowledged ones, and prints the refs that were acknowledged.
#[test]
fn a_pusher() {
    let Some(given) = std::env::var_os(CHILD) else {
        return;
    };
    let given = given.into_string().expect("text");
    let (address, prefix) = given.split_once(' ').expect("two words");
    let server = open(address.parse().expect("an address"));
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
            assert_eq!(
                found.expect("acknowledged").value.object(),
                Some(&*id(&name))
            );
            println!("seen {name}");
        }
    }
}

struct Pusher(Child);

impl Pusher {
    fn start(address: SocketAddr, prefix: &str, lines: &Sender<String>) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("it runs"))
            .args(["--exact", "--nocapture", "s3::a_pusher"])
            .env(CHILD, format!("{address} {prefix}"))
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
            let lines = lines.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                    let _ = lines.send(line);
                }
            });
        }
        Pusher(child)
    }
}

impl Drop for Pusher {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn pushes_survive_faults_and_kills() {
    const PUSHERS: usize = 3;
    const KILLS: usize = 9;
    /// The number of acknowledged pushes between two kills.
    const BETWEEN: usize = 4;
    let server = start!();
    let direct = open(server.address());
    direct.create();
    let seed = u64::from(std::process::id());
    let proxy = StoreProxy::start(server.address(), seed);
    proxy.set(ProxyFaults::some());
    let (sender, lines) = channel();
    let start = |number: usize| {
        let prefix = format!("{}-{number}", number % PUSHERS);
        Pusher::start(proxy.address(), &prefix, &sender)
    };
    let mut random = Random::new(seed);
    let mut pushers: Vec<Pusher> = (0..PUSHERS).map(start).collect();
    let mut log = Vec::new();
    for kill in 0..KILLS {
        let mut left = BETWEEN;
        while left > 0 {
            let line = lines
                .recv_timeout(Duration::from_secs(120))
                .expect("progress");
            assert!(!line.contains("panicked"), "seed {seed}: {line}");
            left -= usize::from(line.starts_with("done "));
            log.push(line);
        }
        let victim = random.index(PUSHERS);
        pushers[victim] = start(PUSHERS * (kill + 1) + victim);
    }
    drop(pushers);
    drop(sender);
    log.extend(lines);
    // Requests that were in flight may still be received.
    proxy.set(ProxyFaults::default());
    assert!(proxy.failed() > 20, "{}", proxy.failed());
    let newest = direct
        .store
        .wait(direct.repository.latest())
        .expect("readable");
    let mut fates = BTreeMap::new();
    for line in &log {
        assert!(!line.contains("panicked"), "seed {seed}: {line}");
        if let Some((fate, name)) = line.split_once(' ')
            && matches!(fate, "trying" | "done")
        {
            fates.insert(name.to_owned(), fate == "done");
        }
    }
    let done = fates.values().filter(|is_done| **is_done).count();
    assert!(done >= KILLS * BETWEEN, "{done}");
    for (name, is_done) in &fates {
        let found = newest.refs.find(name).expect("sound");
        match found {
            Some(found) => assert_eq!(found.value.object(), Some(&*id(name)), "{name}"),
            None => assert!(
                !is_done,
                "seed {seed}: {name} was acknowledged, and is lost"
            ),
        }
    }
    let verified = direct
        .store
        .wait(direct.repository.verify(true, &Watch::none()));
    assert_eq!(verified.expect("readable").problems, []);
}
