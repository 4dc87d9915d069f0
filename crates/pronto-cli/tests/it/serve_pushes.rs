//! Many pushes to one `serve`: at once, and while the server is killed.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use rustix::process::Signal;
use test_support::Random;

use crate::serve::{Server, git};
use crate::support::{Scratch, stderr, stdout};

/// A served repository, and clones of it.
struct World {
    scratch: Scratch,
    bare: PathBuf,
    clones: Vec<PathBuf>,
}

impl World {
    fn new(clones: usize) -> Self {
        let scratch = Scratch::new();
        std::fs::create_dir(scratch.join("root")).expect("a directory");
        let run = |arguments: &[&str]| {
            let output = git(&scratch, scratch.path(), arguments);
            assert!(
                output.status.success(),
                "{arguments:?}: {}",
                stderr(&output)
            );
        };
        run(&["init", "-q", "-b", "main", "seed"]);
        run(&["-C", "seed", "commit", "-q", "--allow-empty", "-m", "seed"]);
        run(&["clone", "-q", "--bare", "seed", "root/r.git"]);
        let names = (0..clones).map(|number| format!("clone{number}"));
        let clones = names.map(|name| {
            run(&["clone", "-q", "seed", &name]);
            scratch.join(&name)
        });
        World {
            clones: clones.collect(),
            bare: scratch.join("root/r.git"),
            scratch,
        }
    }

    fn serve(&self) -> Server {
        Server::start(self.scratch.path(), &["--write", "root"], "pronto_")
    }

    /// Makes a commit in a clone, and returns its id.
    fn commit(&self, clone: &Path, text: &str) -> String {
        std::fs::write(clone.join("file"), text).expect("a file");
        for arguments in [&["add", "file"][..], &["commit", "-q", "-m", text]] {
            let output = git(&self.scratch, clone, arguments);
            assert!(output.status.success(), "{}", stderr(&output));
        }
        self.read(clone, &["rev-parse", "HEAD"])
    }

    fn read(&self, at: &Path, arguments: &[&str]) -> String {
        let output = git(&self.scratch, at, arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            stderr(&output)
        );
        stdout(&output).trim_end().to_owned()
    }

    /// Pushes `HEAD` of a clone to a branch; what git said if that failed.
    fn push(&self, clone: &Path, url: &str, branch: &str) -> Result<(), String> {
        let output = git(
            &self.scratch,
            clone,
            &["push", "-q", url, &format!("HEAD:refs/heads/{branch}")],
        );
        match output.status.success() {
            true => Ok(()),
            false => Err(stderr(&output)),
        }
    }

    /// Asserts that all refs are whole.
    fn check(&self) {
        self.read(&self.bare, &["fsck", "--full", "--strict", "--no-dangling"]);
        self.read(&self.bare, &["rev-list", "--objects", "--all", "--quiet"]);
    }
}

fn number(variable: &str, default: usize) -> usize {
    let given = std::env::var(variable).ok();
    given.map_or(default, |given| given.parse().expect("a number"))
}

/// The address of the repository with the token of its owner.
fn url_of(server: &Server) -> String {
    let token = server.lines.last().expect("a line").trim();
    let base = server.lines[0].strip_prefix("serving at http://");
    format!("http://owner:{token}@{}r", base.expect("an address"))
}

#[test]
fn no_push_is_lost_when_the_server_is_killed() {
    let kills = number("PRONTO_TEST_KILLS", 5);
    let mut random = Random::new(kills as u64);
    let world = World::new(3);
    // The last commit of each clone that was acknowledged.
    let acknowledged: Vec<Mutex<Option<String>>> =
        world.clones.iter().map(|_| Mutex::default()).collect();
    for round in 0..kills {
        let server = world.serve();
        let url = url_of(&server);
        let wait = Duration::from_millis(random.number() % 400);
        std::thread::scope(|scope| {
            for (number, clone) in world.clones.iter().enumerate() {
                let (world, url, last) = (&world, &url, &acknowledged[number]);
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
            // The moment is random.
            std::thread::sleep(wait);
            server.signal(Signal::KILL);
        });
        drop(server);
        world.check();
        for (number, last) in acknowledged.iter().enumerate() {
            if let Some(id) = &*last.lock().expect("no panic") {
                let branch = format!("refs/heads/c{number}");
                world.read(&world.bare, &["merge-base", "--is-ancestor", id, &branch]);
            }
        }
    }
    // Nothing needs a repair: the next pushes of all branches succeed.
    let server = world.serve();
    for (number, clone) in world.clones.iter().enumerate() {
        world.commit(clone, "last");
        let pushed = world.push(clone, &url_of(&server), &format!("c{number}"));
        pushed.expect("the server runs again");
    }
    world.check();
}

#[test]
fn many_clients_push_at_once() {
    let pushes = number("PRONTO_TEST_PUSHES", 48);
    let clients = if pushes >= 1000 { 32 } else { 8 };
    let world = World::new(clients);
    let server = world.serve();
    let url = url_of(&server);
    let each = pushes.div_ceil(clients);
    let expected = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for (number, clone) in world.clones.iter().enumerate() {
            let (world, url, expected) = (&world, &url, &expected);
            scope.spawn(move || {
                for push in 0..each {
                    let branch = format!("c{number}/{push}");
                    let id = world.commit(clone, &branch);
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
        &world.bare,
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
    world.check();
}
