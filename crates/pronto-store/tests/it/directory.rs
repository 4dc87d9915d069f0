//! Tests of servers that share a directory.

use std::sync::Barrier;

use pronto_store::{
    BlockOptions, Creating, ErrorKind, PackPush, RefDecision, StoredRefValue, ViewCache,
};

use super::support::{Server, id};

#[test]
fn what_one_server_commits_the_others_see() {
    let folder = tempfile::tempdir().expect("a directory");
    what_one_server_commits_the_others_see_over(&|| Server::new(folder.path()));
}

pub(crate) fn what_one_server_commits_the_others_see_over(open: &dyn Fn() -> Server) {
    let (one, other) = (open(), open());
    one.create();
    let creating = Creating::default();
    let again = other.repository.create(&creating, PackPush::default());
    let error = other.store.wait(again).expect_err("it exists");
    assert_eq!(error.kind(), ErrorKind::Exists);
    assert_eq!(other.store.repositories().expect("readable"), ["team/r"]);

    let outcome = one.push("refs/heads/main", None, "a").expect("committed");
    assert_eq!(
        (outcome.generation, outcome.verdicts),
        (2, vec![RefDecision::Applied])
    );
    let seen = other
        .store
        .wait(other.repository.latest())
        .expect("readable");
    assert_eq!(seen.number(), 2);
    let found = seen.refs.find("refs/heads/main").expect("sound");
    assert_eq!(found.expect("there").value.object(), Some(&*id("a")));

    // The other server has the newest state, which this one must not overwrite.
    other
        .push("refs/heads/main", Some(id("a")), "b")
        .expect("committed");
    let outcome = one
        .push("refs/heads/main", Some(id("a")), "c")
        .expect("answered");
    assert_eq!(
        outcome.verdicts,
        [RefDecision::Stale(Some(StoredRefValue::direct(id("b"))))]
    );
    assert_eq!(outcome.generation, 3);

    let listed = one.store.generations(&one.repository).expect("readable");
    let numbers: Vec<u64> = listed.iter().map(|listed| listed.number).collect();
    assert_eq!(numbers, [3, 2, 1]);
    let old = one.store.wait(one.repository.at(2)).expect("retained");
    let found = old.refs.find("refs/heads/main").expect("sound");
    assert_eq!(found.expect("there").value.object(), Some(&*id("a")));
    let error = one.store.wait(one.repository.at(9)).expect_err("not there");
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn pushes_of_many_threads_and_servers_are_all_there() {
    let folder = tempfile::tempdir().expect("a directory");
    pushes_of_many_threads_and_servers_are_all_there_over(&|| Server::new(folder.path()));
}

pub(crate) fn pushes_of_many_threads_and_servers_are_all_there_over(open: &dyn Fn() -> Server) {
    const THREADS: usize = 8;
    const PUSHES: usize = 12;
    let servers = [open(), open()];
    servers[0].create();
    let barrier = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (servers, barrier) = (&servers, &barrier);
            scope.spawn(move || {
                barrier.wait();
                for push in 0..PUSHES {
                    let name = format!("refs/heads/{thread}/{push}");
                    let server = &servers[thread % servers.len()];
                    let outcome = server.push(&name, None, &name).expect("committed");
                    assert_eq!(outcome.verdicts, [RefDecision::Applied]);
                }
            });
        }
    });
    let newest = servers[0]
        .store
        .wait(servers[0].repository.latest())
        .expect("readable");
    for thread in 0..THREADS {
        for push in 0..PUSHES {
            let name = format!("refs/heads/{thread}/{push}");
            let found = newest.refs.find(&name).expect("sound");
            assert_eq!(found.expect("there").value.object(), Some(&*id(&name)));
        }
    }
    assert_eq!(newest.manifest.packs.len(), THREADS * PUSHES);
    // Concurrent pushes share a generation, and tables are merged.
    assert!(newest.number() <= 1 + (THREADS * PUSHES) as u64);
    assert!(newest.manifest.tables.len() < 10);
    let watch = pronto::Watch::none();
    let verified = servers[0]
        .store
        .wait(servers[0].repository.verify(true, &watch));
    let verified = verified.expect("readable");
    assert_eq!(verified.problems, []);
    assert_eq!(verified.orphans, 0);
}

#[test]
fn invalid_names_are_refused_before_they_disturb_others() {
    let folder = tempfile::tempdir().expect("a directory");
    invalid_names_are_refused_before_they_disturb_others_over(&|| Server::new(folder.path()));
}

pub(crate) fn invalid_names_are_refused_before_they_disturb_others_over(open: &dyn Fn() -> Server) {
    let server = open();
    server.create();
    for name in [
        "refs/heads/../x",
        "main",
        "refs/heads/a b",
        "refs/heads/x.lock",
    ] {
        let error = server.push(name, None, name).expect_err(name);
        assert_eq!(error.kind(), ErrorKind::Options, "{name}");
    }
    for name in ["", "a//b", "../a", "a/.b", "a b", "x.git/y"] {
        assert!(server.store.repository(name).is_err(), "{name}");
    }
    let missing = server.store.repository("team/other").expect("a valid name");
    let error = server
        .store
        .wait(missing.latest())
        .expect_err("there is none");
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn a_removed_repository_is_gone_for_all_and_can_be_created_again() {
    let folder = tempfile::tempdir().expect("a directory");
    a_removed_repository_is_gone_for_all_and_can_be_created_again_over(&|| {
        Server::new(folder.path())
    });
}

pub(crate) fn a_removed_repository_is_gone_for_all_and_can_be_created_again_over(
    open: &dyn Fn() -> Server,
) {
    let (one, other) = (open(), open());
    one.create();
    one.push("refs/heads/main", None, "a").expect("committed");
    let latest = |server: &Server| {
        let latest = server.store.wait(server.repository.latest());
        latest.map_err(|error| error.kind())
    };
    assert_eq!(latest(&other).expect("readable").number(), 2);
    one.store
        .wait(one.repository.remove())
        .expect("it is there");
    for server in [&one, &other] {
        assert_eq!(latest(server).expect_err("removed"), ErrorKind::NotFound);
        let pushed = server.push("refs/heads/new", None, "b");
        assert_eq!(pushed.expect_err("removed").kind(), ErrorKind::NotFound);
        let removed = server.store.wait(server.repository.remove());
        assert_eq!(removed.expect_err("removed").kind(), ErrorKind::NotFound);
    }
    let names = vec!["team/r".to_owned()];
    assert!(one.store.existing(names.clone()).expect("read").is_empty());
    // Old generations are backups until the retention ends.
    let old = one.store.wait(one.repository.at(2)).expect("retained");
    assert_eq!(old.manifest.packs.len(), 1);
    other.create();
    assert_eq!(latest(&one).expect("readable").number(), 4);
    assert_eq!(one.store.existing(names.clone()).expect("read"), names);
    other.push("refs/heads/main", None, "c").expect("committed");
    let newest = latest(&one).expect("readable");
    assert_eq!(newest.manifest.packs.len(), 1);
    let watch = pronto::Watch::none();
    let verified = one.store.wait(one.repository.verify(true, &watch));
    assert_eq!(verified.expect("readable").problems, []);
}

#[test]
fn a_cache_belongs_to_one_process_and_is_cleaned() {
    let folder = tempfile::tempdir().expect("a directory");
    let (store, place) = (folder.path().join("store"), folder.path().join("cache"));
    std::fs::create_dir(&store).expect("a directory");
    let server = Server::new(&store);
    server.create();
    server
        .push("refs/heads/main", None, "a")
        .expect("committed");
    let latest = || {
        let latest = server.store.wait(server.repository.latest());
        latest.expect("readable")
    };
    let watch = pronto::Watch::none();
    let open = || {
        let blocks = server.store.block_cache(BlockOptions::default(), |_| ());
        ViewCache::open(&place, 1 << 20, blocks)
    };
    let cache = open().expect("a new directory");
    let error = open().expect_err("it is used");
    assert!(error.to_string().contains("another process"), "{error}");
    let view = |cache: &ViewCache| cache.view(&server.store, &server.repository, &latest(), &watch);
    let old = view(&cache).expect("a view");
    assert_eq!(view(&cache).expect("the same").directory(), old.directory());
    server
        .push("refs/heads/main", Some(id("a")), "b")
        .expect("committed");
    let new = view(&cache).expect("a view");
    assert!(new.number() > old.number() && old.directory().join("HEAD").exists());
    let path = old.directory().to_owned();
    drop(old);
    assert!(!path.exists(), "nobody uses it");
    let own = cache.push_view(&new).expect("a view");
    std::fs::write(own.directory().join("reftable/tables.list"), "").expect("its own");
    let kept = std::fs::read(new.directory().join("reftable/tables.list")).expect("a file");
    assert!(!kept.is_empty());
    assert!(cache.bytes() > 0);
    // A view in use stays, whatever the budget.
    cache.set_most_bytes(0);
    assert!(new.directory().join("HEAD").exists());
    // A killed process leaves all its files.
    let (view_left, own_left) = (new.directory().to_owned(), own.directory().to_owned());
    std::mem::forget((new, own));
    drop(cache);
    let cache = open().expect("it is free");
    assert!(!view_left.exists() && !own_left.exists());
    assert!(cache.bytes() > 0, "complete files are kept");
    assert_eq!(view(&cache).expect("a view").number(), 3);
}
