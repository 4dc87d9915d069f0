//! Many pushes to `serve`: in parallel, and while servers are killed. The repository is in a
//! directory, or in a store with two servers.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use rustix::process::Signal;
use test_support::Random;

use crate::pushers;
use crate::serve::{Server, git_succeeds};
use crate::stored::{Place, in_both_places};
use crate::support::Scratch;

in_both_places!(
    no_push_is_lost_when_servers_are_killed,
    many_clients_push_at_once,
);

/// A served repository, and clones of it.
struct World {
    scratch: Scratch,
    place: Place,
    clones: Vec<PathBuf>,
}

impl World {
    fn new(clones: usize, place: Place) -> Self {
        let scratch = Scratch::new();
        std::fs::create_dir(scratch.join("root")).expect("a directory");
        let run = |arguments: &[&str]| git_succeeds(&scratch, scratch.path(), arguments);
        run(&["init", "-q", "-b", "main", "seed"]);
        run(&["-C", "seed", "commit", "-q", "--allow-empty", "-m", "seed"]);
        run(&["clone", "-q", "--bare", "seed", "root/r.git"]);
        let names = (0..clones).map(|number| format!("clone{number}"));
        let clones = names.map(|name| {
            run(&["clone", "-q", "seed", &name]);
            scratch.join(&name)
        });
        let world = World {
            clones: clones.collect(),
            place,
            scratch,
        };
        if place == Place::Store {
            std::fs::create_dir(world.scratch.join("store")).expect("a directory");
            world.store(&["import", "root/r.git", &world.store_url(), "r"]);
        }
        world
    }

    fn store_url(&self) -> String {
        format!("file://{}", self.scratch.join("store").display())
    }

    fn store(&self, arguments: &[&str]) -> String {
        pushers::store(&self.scratch, &[], arguments)
    }

    /// Starts all servers.
    fn serve(&self) -> Vec<Server> {
        match self.place {
            Place::Directory => {
                let arguments = ["--write", "root"];
                vec![Server::start(self.scratch.path(), &arguments, "pronto_")]
            }
            Place::Store => vec![self.serve_store("cache0"), self.serve_store("cache1")],
        }
    }

    fn serve_store(&self, cache: &str) -> Server {
        let url = self.store_url();
        let arguments = ["--write", "--store", &url, "--cache", cache];
        Server::start(self.scratch.path(), &arguments, "pronto_")
    }

    /// Returns a bare repository that git reads, with what the served one has.
    fn bare(&self) -> PathBuf {
        if self.place == Place::Directory {
            return self.scratch.join("root/r.git");
        }
        let server = self.serve_store("cache2");
        let bare = self.scratch.join("copy.git");
        let _ = std::fs::remove_dir_all(&bare);
        let url = url_of(&server);
        self.read(
            self.scratch.path(),
            &["clone", "-q", "--mirror", &url, "copy.git"],
        );
        bare
    }

    fn commit(&self, clone: &Path, text: &str) -> String {
        pushers::commit(&self.scratch, clone, text)
    }

    fn read(&self, at: &Path, arguments: &[&str]) -> String {
        pushers::read(&self.scratch, at, arguments)
    }

    /// Pushes `HEAD` of a clone to a branch. Returns what git said if that failed.
    fn push(&self, clone: &Path, url: &str, branch: &str) -> Result<(), String> {
        let branch = format!("refs/heads/{branch}");
        pushers::push(&self.scratch, clone, url, &branch)
    }

    /// Asserts that all refs are whole. Returns the repository with them.
    fn check(&self) -> PathBuf {
        let bare = self.bare();
        self.read(&bare, &["fsck", "--full", "--strict", "--no-dangling"]);
        self.read(&bare, &["rev-list", "--objects", "--all", "--quiet"]);
        if self.place == Place::Store {
            let verified = self.store(&["verify", &self.store_url(), "r"]);
            assert!(verified.ends_with(" 0 problems\n"), "{verified}");
        }
        bare
    }
}

/// Returns the number in a variable of the environment.
pub(crate) fn number(variable: &str, default: usize) -> usize {
    let given = std::env::var(variable).ok();
    given.map_or(default, |given| given.parse().expect("a number"))
}

/// Returns the address of the repository with the token of its owner.
fn url_of(server: &Server) -> String {
    server.owner_url("r")
}

fn no_push_is_lost_when_servers_are_killed(place: Place) {
    let kills = number("PRONTO_TEST_KILLS", 5);
    let mut random = Random::new(kills as u64);
    let world = World::new(3, place);
    // For each clone, the commit of the last push that was acknowledged.
    let acknowledged: Vec<Mutex<Option<String>>> =
        world.clones.iter().map(|_| Mutex::default()).collect();
    for round in 0..kills {
        let servers = world.serve();
        let urls: Vec<String> = servers.iter().map(url_of).collect();
        let mut wait = || Duration::from_millis(random.number() % 400);
        let waits = [wait(), wait()];
        std::thread::scope(|scope| {
            for (number, clone) in world.clones.iter().enumerate() {
                let url = &urls[number % urls.len()];
                let (world, last) = (&world, &acknowledged[number]);
                scope.spawn(move || {
                    for push in 0.. {
                        let id = world.commit(clone, &format!("{round} {push}"));
                        if world.push(clone, url, &format!("c{number}")).is_err() {
                            return;
                        }
                        *last.lock().expect("no panic") = Some(id);
                    }
                });
            }
            for (server, wait) in servers.iter().zip(waits) {
                std::thread::sleep(wait);
                server.signal(Signal::KILL);
            }
        });
        drop(servers);
        let bare = world.check();
        for (number, last) in acknowledged.iter().enumerate() {
            if let Some(id) = &*last.lock().expect("no panic") {
                let branch = format!("refs/heads/c{number}");
                world.read(&bare, &["merge-base", "--is-ancestor", id, &branch]);
            }
        }
    }
    // Nothing needs a repair: the next pushes of all branches succeed.
    let servers = world.serve();
    for (number, clone) in world.clones.iter().enumerate() {
        world.commit(clone, "last");
        let server = &servers[number % servers.len()];
        let pushed = world.push(clone, &url_of(server), &format!("c{number}"));
        pushed.expect("the server runs again");
    }
    world.check();
}

fn many_clients_push_at_once(place: Place) {
    let pushes = number("PRONTO_TEST_PUSHES", 48);
    let clients = if pushes >= 1000 { 32 } else { 8 };
    let world = World::new(clients, place);
    let servers = world.serve();
    let urls: Vec<String> = servers.iter().map(url_of).collect();
    let each = pushes.div_ceil(clients);
    let expected = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for (number, clone) in world.clones.iter().enumerate() {
            let (world, urls, expected) = (&world, &urls, &expected);
            scope.spawn(move || {
                for push in 0..each {
                    let branch = format!("c{number}/{push}");
                    let id = world.commit(clone, &branch);
                    let url = &urls[(number + push) % urls.len()];
                    world
                        .push(clone, url, &branch)
                        .expect("there is room for all");
                    let line = format!("{id} refs/heads/{branch}");
                    expected.lock().expect("no panic").push(line);
                }
            });
        }
    });
    let listed = world.read(
        &world.check(),
        &[
            "for-each-ref",
            "--format=%(objectname) %(refname)",
            "refs/heads/c*/*",
        ],
    );
    let mut listed: Vec<String> = listed.lines().map(str::to_owned).collect();
    let mut expected = expected.into_inner().expect("no panic");
    listed.sort_unstable();
    expected.sort_unstable();
    assert_eq!(listed, expected);
}
