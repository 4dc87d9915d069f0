//! Tests of views whose packs are read by range, and of git clients that clone them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use pronto::{Environment, Watch};
use pronto_store::{BlockCache, BlockOptions, BlockingStore, RangedView, StoredRepository};
use test_support::{Random, Scratch, git};

use super::served::Served;

/// The number of bytes of a block.
pub(crate) const BLOCK: u64 = 1 << 20;

/// A store with a repository of some MiB, and a directory for the caches of servers.
pub(crate) struct World {
    pub(crate) scratch: Scratch,
}

/// A server: a store, and a cache of blocks.
pub(crate) struct Node {
    pub(crate) store: BlockingStore,
    pub(crate) repository: Arc<StoredRepository>,
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) reports: Arc<Mutex<Vec<String>>>,
}

impl World {
    pub(crate) fn new() -> Self {
        let scratch = Scratch::new();
        let world = World { scratch };
        world.git("", &["init", "-q", "--bare", "-b", "main", "source"]);
        let script = history();
        let source = world.scratch.join("source");
        let imported = git::isolated(&source, &["fast-import", "--quiet"], &script);
        assert!(imported.status.success(), "{imported:?}");
        fs::create_dir(world.scratch.join("store")).expect("a directory");
        let node = world.node();
        let source = pronto::Repository::open(&source, &Environment::empty("/"));
        let source = source.expect("a repository");
        let watch = Watch::none();
        let imported = node
            .store
            .import(&source, &node.repository, world.scratch.path(), &watch);
        imported.expect("imported");
        world
    }

    /// Starts a server.
    pub(crate) fn node(&self) -> Node {
        let url = format!("file://{}", self.scratch.join("store").display());
        let store = BlockingStore::open(&url, &Environment::empty("/")).expect("a directory");
        let repository = Arc::new(store.repository("team/r").expect("a valid name"));
        let reports = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&reports);
        let report = move |line: &str| kept.lock().expect("no panic").push(line.to_owned());
        let cache = store.block_cache(BlockOptions::default(), report);
        Node {
            store,
            repository,
            cache,
            reports,
        }
    }

    /// The directory of cached files of servers.
    pub(crate) fn files(&self) -> PathBuf {
        self.scratch.join("files")
    }

    /// Returns the only file in `directory` whose name ends with `ending`.
    pub(crate) fn file(&self, directory: &Path, ending: &str) -> PathBuf {
        let entries = fs::read_dir(directory).expect("a directory");
        let paths = entries.map(|entry| entry.expect("readable").path());
        let mut found = paths.filter(|path| path.to_string_lossy().ends_with(ending));
        let only = found.next().expect("a file");
        assert_eq!(found.next(), None);
        only
    }

    /// Returns an object of the store.
    pub(crate) fn object(&self, ending: &str) -> PathBuf {
        self.file(&self.scratch.join("store/team/r.git/pack"), ending)
    }

    pub(crate) fn git(&self, folder: &str, arguments: &[&str]) -> String {
        let output = git::isolated(&self.scratch.join(folder), arguments, b"");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Node {
    /// Writes a view with the name `name`.
    pub(crate) fn view(&self, world: &World, name: &str) -> pronto_store::Result<RangedView> {
        let generation = self.store.wait(self.repository.latest()).expect("readable");
        let watch = Watch::none();
        let directory = world.scratch.join(name);
        let files = world.files();
        let view =
            self.repository
                .write_ranged_view(&generation, &directory, &files, &self.cache, &watch);
        self.store.wait(view)
    }

    pub(crate) fn reports(&self) -> Vec<String> {
        std::mem::take(&mut *self.reports.lock().expect("no panic"))
    }
}

/// Returns a fast-import stream of a history: 12 blobs that do not compress, and many small
/// commits.
fn history() -> Vec<u8> {
    let mut random = Random::new(7);
    let mut script = Vec::new();
    let mut text = String::new();
    for number in 1..=60 {
        let large = number % 5 == 0;
        let content = match large {
            true => random.bytes(700_000),
            false => {
                text.push_str(&format!("{number}: {:x}\n", random.number()));
                text.clone().into_bytes()
            }
        };
        let name = if large {
            format!("large/{number}")
        } else {
            "text".into()
        };
        let line = format!(
            "commit refs/heads/main\nmark :{number}\ncommitter a <a@x> {} +0000\ndata 1\nm\nM 100644 inline {name}\ndata {}\n",
            1_700_000_000 + number,
            content.len()
        );
        script.extend_from_slice(line.as_bytes());
        script.extend_from_slice(&content);
        script.push(b'\n');
    }
    script.extend_from_slice(b"reset refs/tags/first\nfrom :10\n\ndone\n");
    script
}

fn clone(world: &World, served: &Served, name: &str, options: &[&str]) {
    let arguments = [&["clone", "-q", "--bare"], options].concat();
    let output = served.git(world.scratch.path(), &arguments, &[name]);
    assert!(output.status.success(), "{output:?}");
    let _ = served.ended().expect("served");
}

#[test]
fn clones_read_each_block_once() {
    let world = World::new();
    let size = fs::metadata(world.object(".pack")).expect("a file").len();
    assert!(size > 8 * BLOCK);
    let node = world.node();
    let view = node.view(&world, "view").expect("written");
    assert_eq!(view.packs(), 1);
    let served = Served::new(view.directory());
    // A part of the history needs a part of the pack.
    clone(
        &world,
        &served,
        "part.git",
        &["--depth=1", "--branch=first", "--single-branch"],
    );
    assert!(
        node.cache.counts().bytes < size / 2,
        "{:?}",
        node.cache.counts()
    );
    clone(&world, &served, "whole.git", &[]);
    let counts = node.cache.counts();
    assert_eq!(counts.bytes, size);
    clone(&world, &served, "again.git", &["--no-tags"]);
    assert_eq!(node.cache.counts(), counts);
    let refs = world.git("source", &["for-each-ref"]);
    for name in ["whole.git", "part.git"] {
        world.git(name, &["fsck", "--strict"]);
    }
    assert_eq!(world.git("whole.git", &["for-each-ref"]), refs);
    let fetched = served.git(
        &world.scratch.join("part.git"),
        &["fetch", "-q", "--unshallow"],
        &["main"],
    );
    assert!(fetched.status.success(), "{fetched:?}");
    world.git("part.git", &["fsck", "--strict"]);

    // Another process verifies the existing files, and fetches nothing.
    let other = world.node();
    let second = other.view(&world, "second").expect("written");
    let served = Served::new(second.directory());
    clone(&world, &served, "second.git", &[]);
    world.git("second.git", &["fsck", "--strict"]);
    assert_eq!(other.cache.counts().requests, 0);
    assert_eq!((node.reports(), other.reports()), (vec![], vec![]));
}

#[test]
fn other_programs_read_a_view_when_it_is_filled() {
    let world = World::new();
    let node = world.node();
    let view = node.view(&world, "view").expect("written");
    let head = world.git("source", &["rev-parse", "main"]);
    // The stub is not a valid pack, and no reader mistakes holes for content.
    let pack = world.file(&view.directory().join("objects/pack"), ".pack");
    assert!(fs::metadata(&pack).expect("a file").len() < 200);
    let other = pronto::Repository::open(view.directory(), &Environment::empty("/"));
    other.expect("a view").objects().expect("objects");
    view.fill(&Watch::none()).expect("there is room");
    let original = fs::read(world.object(".pack")).expect("a file");
    assert_eq!(fs::read(&pack).expect("a file"), original);
    let Some(reference) = git::reference() else {
        return test_support::report_missing_reference(&"reading a view needs git with reftables");
    };
    for arguments in [
        &["rev-list", "--all", "--objects"][..],
        &["rev-parse", "main"],
    ] {
        let output = std::process::Command::new(reference)
            .arg("-C")
            .arg(view.directory())
            .args(arguments)
            .output()
            .expect("git starts");
        assert!(output.status.success(), "{output:?}");
        if arguments[0] == "rev-parse" {
            assert_eq!(String::from_utf8_lossy(&output.stdout), head);
        }
    }
}

#[test]
fn thin_packs_are_completed_from_packs_that_are_read_by_range() {
    let world = World::new();
    let writer = world.node();
    let view = writer.view(&world, "view").expect("written");
    let served = Served::new(view.directory());
    clone(&world, &served, "writer.git", &[]);
    // A change of the text, which is sent as a delta.
    let text = world.git("writer.git", &["show", "main:text"]);
    let script = format!(
        "commit refs/heads/main\ncommitter a <a@x> 1800000000 +0000\ndata 1\nm\nfrom refs/heads/main^0\n\
         M 100644 inline text\ndata {}\n{text}more\n\ndone\n",
        text.len() + 5
    );
    let folder = world.scratch.join("writer.git");
    let imported = git::isolated(&folder, &["fast-import", "--quiet"], script.as_bytes());
    assert!(imported.status.success(), "{imported:?}");
    drop((view, served));

    // The receiver is another process, which has read nothing yet.
    fs::remove_dir_all(world.files()).expect("a directory");
    let receiver = world.node();
    let view = receiver.view(&world, "receiver").expect("written");
    let served = Served::new(view.directory());
    let pushed = served.git(&folder, &["push", "-q", "--thin"], &["main"]);
    assert!(pushed.status.success(), "{pushed:?}");
    let _ = served.ended().expect("served");
    let counts = receiver.cache.counts();
    assert!((2..=8).contains(&(counts.bytes >> 20)), "{counts:?}");
    clone(&world, &served, "pushed.git", &[]);
    world.git("pushed.git", &["fsck", "--strict"]);
    let head = world.git("writer.git", &["rev-parse", "main"]);
    assert_eq!(world.git("pushed.git", &["rev-parse", "main"]), head);
    assert_eq!(receiver.reports(), [""; 0]);
}

#[test]
fn views_of_one_pack_share_its_blocks() {
    let world = World::new();
    let node = world.node();
    let first = node.view(&world, "first").expect("written");
    let second = node.view(&world, "second").expect("written");
    let served = Served::new(first.directory());
    clone(&world, &served, "one.git", &[]);
    let counts = node.cache.counts();
    drop(first);
    let served = Served::new(second.directory());
    clone(&world, &served, "two.git", &[]);
    assert_eq!(node.cache.counts(), counts);
    // Without a live view, the stub is an ordinary file.
    let directory = second.directory().to_owned();
    drop(second);
    let served = Served::new(&directory);
    let output = served.git(
        world.scratch.path(),
        &["clone", "-q", "--bare"],
        &["none.git"],
    );
    assert!(!output.status.success());
    assert!(node.view(&world, "third").is_ok());
}
