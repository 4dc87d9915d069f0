//! What a watcher sees when directories change places, or cannot be watched.

use super::*;
use crate::Answer;
use rustix::fs::{CWD, RenameFlags, renameat_with};

struct Watched {
    scratch: tempfile::TempDir,
    watcher: Watcher,
    journal: Journal,
}

impl Watched {
    fn new(directories: &[&str]) -> Watched {
        let scratch = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(scratch.path().join("cookies")).expect("a directory");
        let top = scratch.path().join("above/top");
        std::fs::create_dir_all(&top).expect("a directory");
        for directory in directories {
            std::fs::create_dir_all(top.join(directory)).expect("a directory");
        }
        let mut journal = Journal::new("test");
        let watcher = Watcher::new(&top, &scratch.path().join("cookies"), &mut journal);
        Watched {
            watcher: watcher.expect("it can be watched"),
            scratch,
            journal,
        }
    }

    fn top(&self) -> PathBuf {
        self.scratch.path().join("above/top")
    }

    /// What changes while `work` is done; `None` for everything.
    fn told(&mut self, work: impl FnOnce(&Path)) -> Option<Vec<String>> {
        let drained = self.watcher.drain(&mut self.journal);
        drained.expect("it can be read");
        let token = self.journal.token();
        work(&self.top());
        let drained = self.watcher.drain(&mut self.journal);
        drained.expect("it can be read");
        match self.journal.since(token.as_bstr()) {
            Answer::Paths { paths, .. } => Some(paths.iter().map(ToString::to_string).collect()),
            Answer::Everything { .. } => None,
        }
    }

    fn tells(&mut self, path: &str) {
        let written = |top: &Path| std::fs::write(top.join(path), "x").expect("a file");
        let told = self.told(written).expect("not everything changed");
        assert!(told.iter().any(|told| told == path), "{path}: {told:?}");
    }
}

#[test]
fn directories_that_change_places_are_both_watched() {
    let mut watched = Watched::new(&["a/x/deep", "b/y", "c"]);
    for _ in 0..2 {
        watched.told(|top| {
            let (a, b) = (top.join("a"), top.join("b"));
            renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).expect("they are there");
        });
        watched.tells("a/new");
        watched.tells("b/new");
    }
    watched.tells("a/x/deep/file");
    watched.tells("b/y/file");
    // With a file, both ways.
    for _ in 0..2 {
        watched.told(|top| {
            std::fs::write(top.join("f"), "x").ok();
            let (c, f) = (top.join("c"), top.join("f"));
            renameat_with(CWD, c, CWD, f, RenameFlags::EXCHANGE).expect("they are there");
        });
    }
    watched.tells("c/new");
}

#[test]
fn a_name_that_is_there_again_is_watched() {
    let mut watched = Watched::new(&["a/x"]);
    watched.told(|top| {
        std::fs::rename(top.join("a"), top.join("b")).expect("it is there");
        std::fs::create_dir_all(top.join("a/x")).expect("a directory");
        std::fs::remove_dir(top.join("b/x")).expect("it is empty");
        std::fs::create_dir_all(top.join("b/x/z")).expect("a directory");
    });
    for path in ["a/x/file", "b/x/z/file", "a/file", "b/file"] {
        watched.tells(path);
    }
    assert_eq!(watched.watcher.len(), 6);
}

#[test]
fn closing_a_file_that_was_written_through_a_map_is_told() {
    let mut watched = Watched::new(&["a"]);
    watched.tells("a/file");
    let told = watched.told(|top| {
        let file = std::fs::File::options()
            .write(true)
            .open(top.join("a/file"));
        drop(file.expect("it is there"));
    });
    assert_eq!(told, Some(vec!["a/file".to_owned()]));
}

#[test]
fn beginning_again_leaves_nothing_behind() {
    let mut watched = Watched::new(&["a/x", "b"]);
    let (watches, fd) = (
        watched.watcher.watches.clone(),
        watched.watcher.fd.as_raw_fd(),
    );
    watched.watcher.seen_cookies.push(b"old".to_vec());
    let token = watched.journal.token();
    std::fs::rename(watched.top().join("b"), watched.scratch.path().join("b")).expect("it goes");
    let Watched {
        watcher, journal, ..
    } = &mut watched;
    watcher.start_anew(journal).expect("it can be watched");
    assert!(!watcher.take_cookie(b"old"));
    assert_eq!(watcher.fd.as_raw_fd(), fd);
    assert!(matches!(
        journal.since(token.as_bstr()),
        Answer::Everything { .. }
    ));
    for (path, watch) in &watcher.watches {
        assert_eq!(watches.get(path), Some(watch));
    }
    assert_eq!((watcher.watches.len(), watcher.places.len()), (3, 4));
    // The one that left is not watched any more.
    let left = watched.scratch.path().join("b/file");
    let told = watched.told(|_| std::fs::write(left, "x").expect("a file"));
    assert_eq!(told, Some(vec![]));
    watched.tells("a/x/file");
}

#[test]
fn a_failure_is_a_doubt() {
    let mut watched = Watched::new(&["a"]);
    std::fs::remove_dir(watched.scratch.path().join("cookies")).expect("it is empty");
    let token = watched.journal.token();
    let Watched {
        watcher, journal, ..
    } = &mut watched;
    assert!(watcher.start_anew(journal).is_err());
    assert!(watcher.doubt().is_some() && watcher.has_ended());
    assert!(matches!(
        journal.since(token.as_bstr()),
        Answer::Everything { .. }
    ));
    for (error, is_doubt) in [
        (Errno::NOENT, false),
        (Errno::NOTDIR, false),
        (Errno::IO, true),
        (Errno::MFILE, true),
        (Errno::NAMETOOLONG, true),
        // It can be entered.
        (Errno::ACCESS, true),
        (Errno::NOSPC, true),
    ] {
        watcher.doubt = None;
        watcher.doubt_path("a".into(), &error.into());
        assert_eq!(watcher.doubt().is_some(), is_doubt, "{error}");
    }
    watcher.doubt = None;
    watcher.doubt_path("gone".into(), &Errno::ACCESS.into());
    assert_eq!(watcher.doubt(), None);
}

#[test]
fn a_directory_above_may_be_renamed() {
    let mut watched = Watched::new(&["a"]);
    let (before, after) = (watched.scratch.path().join("above"), "other");
    let after = watched.scratch.path().join(after);
    std::fs::rename(&before, &after).expect("it is there");
    std::fs::create_dir_all(after.join("top/new/deep")).expect("a directory");
    watched.told(|_| {});
    let file = after.join("top/new/deep/file");
    let told = watched.told(|_| std::fs::write(file, "x").expect("a file"));
    assert_eq!(told, Some(vec!["new/deep/file".to_owned()]));
    assert!(!watched.watcher.has_ended());
    std::fs::remove_dir_all(&after).expect("it goes");
    assert!(watched.watcher.has_ended());
}

#[test]
fn a_directory_at_two_places_is_a_doubt() {
    let mut watched = Watched::new(&["a"]);
    let root = watched
        .watcher
        .root
        .open_beneath(b"a")
        .expect("it is there");
    let added = watched.watcher.add(&"b".into(), &root);
    assert!(added.expect("it can be watched"));
    assert_eq!(watched.watcher.doubt(), Some(&Doubt::TwoPlaces("b".into())));
}
