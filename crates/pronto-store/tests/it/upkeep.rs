//! Tests of upkeep of repositories that were filled by real pushes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use pronto::{Interrupt, Watch, pack_objects};
use pronto_hash::ObjectId;
use pronto_store::{
    CallKind, CallObserver, Creating, ErrorKind, ExpectedRefValue, FileKind, LayerKind, Manifest,
    MeteredCall, NewPack, Outcome, PackPush, RefDecision, RefUpdate, StoreChange, StoredRefValue,
    UpkeepOptions, UpkeepRole, UploadFile,
};
use test_support::Random;
use test_support::git::isolated;

use super::support::Server;

/// A store, and a Git repository that is pushed there.
pub(crate) struct World {
    folder: tempfile::TempDir,
    pub(crate) server: Server,
    source: PathBuf,
}

impl World {
    fn new() -> Self {
        World::over(Server::new)
    }

    /// Opens the store in a directory with `open`.
    pub(crate) fn over(open: impl FnOnce(&Path) -> Server) -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        let store = folder.path().join("store");
        std::fs::create_dir(&store).expect("a directory");
        std::fs::create_dir(folder.path().join("scratch")).expect("a directory");
        let server = open(&store);
        server.create();
        let source = folder.path().join("source");
        git(folder.path(), &["init", "-q", "-b", "main", "source"]);
        let world = World {
            folder,
            server,
            source,
        };
        let mut head = PackPush::default();
        head.updates.push(RefUpdate {
            name: "HEAD".into(),
            old: ExpectedRefValue::Missing,
            new: Some(StoredRefValue::Symbolic("refs/heads/main".into())),
        });
        world.commit(head).expect("committed");
        world
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn commit(&self, push: PackPush) -> Result<Outcome, pronto_store::Error> {
        let commit = self.server.repository.commit(StoreChange::Push(push));
        self.server.store.wait(commit)
    }

    pub(crate) fn manifest(&self) -> Manifest {
        let newest = self.server.store.wait(self.server.repository.latest());
        newest.expect("readable").manifest.clone()
    }

    fn id(&self, revision: &str) -> ObjectId {
        let id = git(&self.source, &["rev-parse", revision]);
        ObjectId::from_hex(id.trim().as_bytes()).expect("an id")
    }

    /// Makes a commit.
    pub(crate) fn change(&self, text: &str) -> ObjectId {
        std::fs::write(self.source.join(format!("{text}.txt")), text).expect("it is ours");
        git(&self.source, &["add", "-A"]);
        git(&self.source, &["commit", "-q", "-m", text]);
        self.id("HEAD")
    }

    /// Pushes a pack of the objects that are reachable from `new` and not from its parents, and sets `name`.
    pub(crate) fn push(&self, name: &str, old: Option<ObjectId>, new: ObjectId) {
        let revisions = format!("{new}\n--not\n{new}^@\n");
        let base = self.path("pushed");
        std::fs::create_dir_all(&base).expect("a directory");
        let stem = base.join("pack");
        let stem = stem.to_str().expect("UTF-8");
        let made = isolated(
            &self.source,
            &["pack-objects", "-q", "--revs", stem],
            revisions.as_bytes(),
        );
        assert!(made.status.success(), "{made:?}");
        let id = String::from_utf8(made.stdout).expect("an id");
        let id = id.trim();
        let file = |kind: FileKind| {
            let path = format!("{stem}-{id}.{}", kind.extension());
            UploadFile::from_path(kind, Path::new(&path)).expect("readable")
        };
        let pack = NewPack {
            id: ObjectId::from_hex(id.as_bytes()).expect("an id"),
            objects: objects_of(Path::new(&format!("{stem}-{id}.pack"))),
            is_promisor: false,
            files: vec![file(FileKind::Pack), file(FileKind::Index)],
        };
        let uploaded = self
            .server
            .store
            .wait(self.server.repository.upload(&pack))
            .expect("uploaded");
        let mut push = PackPush::default();
        push.packs.push(uploaded);
        push.updates.push(RefUpdate {
            name: name.into(),
            old: old.map_or(ExpectedRefValue::Missing, ExpectedRefValue::Id),
            new: Some(StoredRefValue::direct(new)),
        });
        let outcome = self.commit(push).expect("committed");
        assert_eq!(outcome.verdicts, [RefDecision::Applied]);
    }

    /// Writes a file that does not compress, which the next commit includes.
    pub(crate) fn noise(&self, name: &str, bytes: usize) {
        let noise = Random::new(7).bytes(bytes);
        std::fs::write(self.source.join(name), noise).expect("it is ours");
    }

    /// Creates `count` branches that point to `id`.
    pub(crate) fn branches(&self, id: ObjectId, count: usize) {
        let mut push = PackPush::default();
        for number in 0..count {
            push.updates.push(RefUpdate {
                name: format!("refs/heads/branches/with-a-long-name-{number}").into(),
                old: ExpectedRefValue::Missing,
                new: Some(StoredRefValue::direct(id)),
            });
        }
        self.commit(push).expect("committed");
    }

    /// Runs git below the folder.
    pub(crate) fn git(&self, directory: &str, arguments: &[&str]) -> String {
        git(&self.path(directory), arguments)
    }

    fn delete(&self, name: &str, old: ObjectId) {
        let mut push = PackPush::default();
        push.updates.push(RefUpdate {
            name: name.into(),
            old: ExpectedRefValue::Id(old),
            new: None,
        });
        let outcome = self.commit(push).expect("committed");
        assert_eq!(outcome.verdicts, [RefDecision::Applied]);
    }

    /// Pushes `count` commits to `main`, each with a separate pack.
    pub(crate) fn push_many(&self, count: usize) -> ObjectId {
        self.push_many_to("main", count)
    }

    fn push_many_to(&self, branch: &str, count: usize) -> ObjectId {
        let mut old = None;
        for number in 0..count {
            let new = self.change(&format!("{branch}{number}"));
            self.push(&format!("refs/heads/{branch}"), old, new);
            old = Some(new);
        }
        old.expect("one at least")
    }

    pub(crate) fn options(&self) -> UpkeepOptions {
        UpkeepOptions::new(self.path("scratch"))
    }

    pub(crate) fn keep_up(&self, options: &UpkeepOptions) -> pronto_store::UpkeepPass {
        let Server { store, repository } = &self.server;
        let done = store.keep_up(repository, options, &Watch::none());
        let left = std::fs::read_dir(self.path("scratch")).expect("it is there");
        assert_eq!(left.count(), 0, "files are left");
        done.expect("done")
    }

    /// Writes the newest generation as a repository, and checks it.
    fn export(&self, name: &str) -> PathBuf {
        let directory = self.path(name);
        let Server { store, repository } = &self.server;
        let newest = store.wait(repository.latest()).expect("readable");
        let watch = Watch::none();
        let writing = repository.write_view(&newest, &directory, None, &watch);
        store.wait(writing).expect("written");
        let verified = store.wait(repository.verify(true, &watch));
        assert_eq!(verified.expect("readable").problems, []);
        directory
    }
}

fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = isolated(directory, arguments, b"");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns the number of objects in the header of a pack.
fn objects_of(pack: &Path) -> u32 {
    let bytes = std::fs::read(pack).expect("readable");
    u32::from_be_bytes(bytes[8..12].try_into().expect("four bytes"))
}

fn has(manifest: &Manifest, kind: FileKind) -> bool {
    let mut files = manifest.packs.iter().flat_map(|pack| &pack.files);
    files.any(|file| file.kind == kind)
}

fn open(directory: &Path) -> pronto::Repository {
    let environment = pronto::Environment::empty("/");
    pronto::Repository::open(directory, &environment).expect("a repository")
}

#[test]
fn small_packs_become_few_and_nothing_is_lost() {
    small_packs_become_few_over(Server::new);
}

pub(crate) fn small_packs_become_few_over(server: impl FnOnce(&Path) -> Server) {
    let world = World::over(server);
    let newest = world.push_many(14);
    assert_eq!(world.manifest().packs.len(), 14);
    let done = world.keep_up(&world.options());
    let repacked = done.repacked.expect("it was due");
    assert_eq!((repacked.packs_before, repacked.packs_after), (14, 1));
    let manifest = world.manifest();
    assert!(has(&manifest, FileKind::Bitmap) && has(&manifest, FileKind::Reverse));
    let layers = manifest.layers.iter();
    assert_eq!(
        layers
            .filter(|layer| layer.kind == LayerKind::Graph)
            .count(),
        1
    );
    let view = world.export("after");
    let view = open(&view);
    assert!(view.has_usable_bitmaps().expect("readable"));
    let tip = view.refs().resolve(b"refs/heads/main").expect("readable");
    assert_eq!(tip.expect("there").id, Some(newest));
    let checked = pronto_checks(&world, "after");
    assert!(checked.contains("14"), "{checked}");
    // No upkeep is pending any more.
    assert_eq!(
        world.keep_up(&world.options()),
        pronto_store::UpkeepPass::default()
    );
}

/// Counts the commits of an exported repository through its commit-graph and packs, which are verified.
fn pronto_checks(world: &World, name: &str) -> String {
    let view = open(&world.path(name));
    let tip = view.refs().resolve(b"refs/heads/main").expect("readable");
    let tip = tip.and_then(|tip| tip.id).expect("there");
    let all = pack_objects::select(&view, &[tip], &[], &Default::default(), &Watch::none());
    let all = all.expect("complete");
    let commits = all.members.iter().filter(|member| {
        let header = view.objects().expect("readable").header(&member.id);
        header.expect("readable").expect("there").kind.to_string() == "commit"
    });
    commits.count().to_string()
}

#[test]
fn large_packs_are_read_by_range_and_stay_whole() {
    let world = World::new();
    // The content does not compress, and fills a pack of several blocks.
    let mut random = Random::new(7);
    std::fs::write(world.source.join("large"), random.bytes(5 << 20)).expect("it is ours");
    let first = world.change("large");
    world.push("refs/heads/large", None, first);
    world.push_many(12);
    world.keep_up(&world.options());
    assert_eq!(world.manifest().packs.len(), 1);
    for number in 0..12 {
        let tip = world.change(&format!("more{number}"));
        world.push(&format!("refs/heads/{number}"), None, tip);
    }
    world.keep_up(&world.options());
    let packs = world.manifest().packs;
    assert!(packs.len() < 4, "{}", packs.len());
    world.export("after");
    assert_eq!(pronto_checks(&world, "after"), "13");
}

#[test]
fn unreachable_objects_are_kept_for_a_while_and_then_deleted() {
    let world = World::new();
    world.push_many(12);
    git(&world.source, &["checkout", "-q", "-b", "side"]);
    let side = world.change("side");
    world.push("refs/heads/side", None, side);
    world.delete("refs/heads/side", side);
    world.keep_up(&world.options());
    let manifest = world.manifest();
    assert!(has(&manifest, FileKind::Times), "there is no cruft pack");
    assert_eq!(manifest.pruned, 0);
    let store_has = |name: &str| {
        let view = open(&world.export(name));
        let objects = view.objects().expect("readable");
        objects.contains(&side).expect("readable")
    };
    assert!(store_has("kept"));
    // This push was checked while the object existed.
    let mut late = PackPush {
        base: Some(manifest.number),
        ..PackPush::default()
    };
    late.updates.push(RefUpdate {
        name: "refs/heads/late".into(),
        old: ExpectedRefValue::Missing,
        new: Some(StoredRefValue::direct(side)),
    });
    let mut options = world.options();
    options.prune_after = Some(Duration::ZERO);
    std::thread::sleep(Duration::from_millis(1100));
    world.keep_up(&options);
    let pruned = world.manifest();
    assert_eq!(pruned.pruned, pruned.number);
    assert!(!has(&pruned, FileKind::Times));
    assert!(!store_has("gone"));
    let error = world.commit(late).expect_err("the object is gone");
    assert_eq!(error.kind(), ErrorKind::Expired);
}

#[test]
fn a_removed_repository_needs_no_packing_and_fails_nothing() {
    let world = World::new();
    world.push_many(13);
    let Server { store, repository } = &world.server;
    store.wait(repository.remove()).expect("removed");
    let done = world.keep_up(&world.options());
    assert_eq!(done, pronto_store::UpkeepPass::default());
    let shared = Arc::new(Server::new(&world.path("store")).store);
    let (sender, calls) = channel();
    shared.observe(Arc::new(Calls(sender)));
    shared.repositories().expect("a listing");
    let listing: Vec<CallKind> = calls.try_iter().collect();
    assert!(!listing.contains(&CallKind::Get), "{listing:?}");
    let role = UpkeepRole::new(shared, world.options(), Duration::from_millis(1));
    let interrupt = Interrupt::new();
    let mut looks = 0;
    std::thread::scope(|scope| {
        let (role, interrupt) = (&role, &interrupt);
        scope.spawn(move || {
            let on_pass = |pass: &pronto_store::Pass<'_>| panic!("{pass:?}");
            role.run(interrupt, &on_pass);
        });
        // A check reads the newest generation, and a listing of repositories reads nothing.
        while looks < 3
            && let Ok(call) = calls.recv_timeout(Duration::from_secs(60))
        {
            looks += usize::from(call == CallKind::Get);
        }
        interrupt.trigger();
    });
    assert_eq!(looks, 3, "the role does not look again");
}

/// Sends the kind of each call of a store.
struct Calls(Sender<CallKind>);

impl CallObserver for Calls {
    fn called(&self, call: &MeteredCall) {
        let _ = self.0.send(call.kind);
    }
}

#[test]
fn two_nodes_do_not_disturb_each_other() {
    let world = World::new();
    world.push_many(13);
    let other = Server::new(&world.path("store"));
    let options = world.options();
    std::thread::scope(|scope| {
        for server in [&world.server, &other] {
            let options = &options;
            scope.spawn(move || {
                let Server { store, repository } = server;
                let done = store.keep_up(repository, options, &Watch::none());
                done.expect("done, or overtaken");
            });
        }
    });
    assert_eq!(world.manifest().packs.len(), 1);
    assert_eq!(pronto_checks_after(&world), "13");
}

fn pronto_checks_after(world: &World) -> String {
    world.export("both");
    pronto_checks(world, "both")
}

#[test]
fn a_role_finds_what_is_due_until_it_is_stopped() {
    let world = World::new();
    world.push_many(13);
    let store = Arc::new(Server::new(&world.path("store")).store);
    let role = UpkeepRole::new(store, world.options(), Duration::from_millis(50));
    let interrupt = Interrupt::new();
    std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        let (role, interrupt) = (&role, &interrupt);
        scope.spawn(move || {
            role.run(interrupt, &|pass| {
                let done = pass.result.as_ref().expect("done");
                let _ = sender.send((pass.repository.to_owned(), done.repacked));
            });
        });
        let (name, repacked) = receiver.recv().expect("a pass");
        assert_eq!(name, "team/r");
        assert_eq!(repacked.expect("it was due").packs_after, 1);
        interrupt.trigger();
    });
    // The first export of a separate server proves that the commit of the other server is visible.
    assert_eq!(world.manifest().packs.len(), 1);
    let creating = Creating::default();
    let again = world
        .server
        .repository
        .create(&creating, PackPush::default());
    assert!(world.server.store.wait(again).is_err());
}

#[test]
fn many_changes_bring_the_next_look_forward() {
    let world = World::new();
    world.push_many(13);
    let store = Arc::new(Server::new(&world.path("store")).store);
    let repository = Arc::new(store.repository("team/r").expect("a name"));
    let role = UpkeepRole::new(store, world.options(), Duration::from_secs(3600));
    let interrupt = Interrupt::new();
    std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        let (role, interrupt) = (&role, &interrupt);
        scope.spawn(move || {
            role.run(interrupt, &|pass| {
                let done = pass.result.as_ref().expect("done");
                let _ = sender.send(done.repacked);
            });
        });
        receiver.recv().expect("a pass").expect("it was due");
        // The next check would be in an hour.
        world.push_many_to("other", 13);
        for _ in 0..50 {
            role.note_change(&repository);
        }
        receiver.recv().expect("a pass").expect("it was due");
        interrupt.trigger();
    });
    assert!(world.manifest().packs.len() < 13);
}
