//! Tests inotify watches.

use super::*;
use crate::watch::{Doubt, EventSource, SourceChoice, WatchedPaths, Watcher};

struct TestInotify {
    scratch: tempfile::TempDir,
    inotify: Inotify,
    common: WatchState,
    journal: Journal,
}

impl TestInotify {
    fn new(directories: &[&str]) -> TestInotify {
        let scratch = tempfile::tempdir().expect("a directory");
        let (top, cookies) = (scratch.path().join("top"), scratch.path().join("cookies"));
        std::fs::create_dir(&cookies).expect("a directory");
        for directory in directories {
            std::fs::create_dir_all(top.join(directory)).expect("a directory");
        }
        let places = WatchedPaths {
            root: &top,
            cookies: &cookies,
            mounts: &[],
        };
        let mut journal = Journal::new("test");
        let watcher = Watcher::new(places, SourceChoice::Inotify, &mut journal);
        let Watcher {
            common,
            event_source,
        } = watcher.expect("it can be watched");
        let EventSource::Inotify(inotify) = event_source else {
            panic!("it was to be inotify");
        };
        TestInotify {
            scratch,
            inotify,
            common,
            journal,
        }
    }
}

#[test]
fn beginning_again_keeps_watches() {
    let mut watched = TestInotify::new(&["a/x", "b"]);
    let watches = watched.inotify.watches.clone();
    let (top, outside) = (watched.scratch.path().join("top"), watched.scratch.path());
    std::fs::rename(top.join("b"), outside.join("b")).expect("it goes");
    let started = watched.inotify.start(&mut watched.common);
    started.expect("it can be watched");
    for (path, watch) in &watched.inotify.watches {
        assert_eq!(watches.get(path), Some(watch));
    }
    let count = (watched.inotify.watches.len(), watched.inotify.places.len());
    assert_eq!(count, (3, 4));
}

#[test]
fn a_name_that_is_there_again_has_one_watch() {
    let mut watched = TestInotify::new(&["a/x"]);
    let top = watched.scratch.path().join("top");
    std::fs::rename(top.join("a"), top.join("b")).expect("it is there");
    std::fs::create_dir_all(top.join("a/x")).expect("a directory");
    std::fs::remove_dir(top.join("b/x")).expect("it is empty");
    std::fs::create_dir_all(top.join("b/x/z")).expect("a directory");
    let TestInotify {
        inotify,
        common,
        journal,
        ..
    } = &mut watched;
    inotify.drain(common, journal).expect("it can be read");
    assert_eq!(inotify.watches.len(), 6);
}

#[test]
fn a_directory_at_two_places_is_a_doubt() {
    let mut watched = TestInotify::new(&["a"]);
    let directory = watched.common.root.open_beneath(b"a");
    let directory = directory.expect("it is there");
    let common = &mut watched.common;
    let added = watched.inotify.add(&"b".into(), &directory, common);
    assert!(added.expect("it can be watched"));
    assert_eq!(common.doubt, Some(Doubt::TwoPlaces("b".into())));
}
