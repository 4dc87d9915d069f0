//! Tests both sources of events with directories that are exchanged or cannot be watched.

use super::*;
use crate::MonitorResponse;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::os::fd::AsRawFd;
use test_support::{Need, lacks};

struct TestWatch {
    scratch: tempfile::TempDir,
    watcher: Watcher,
    journal: Journal,
}

impl TestWatch {
    /// Runs `test` with each source. `fanotify` needs privileges.
    fn each(directories: &[&str], mut test: impl FnMut(TestWatch)) {
        test(TestWatch::new(SourceChoice::Inotify, directories).expect("inotify is there"));
        let watched = TestWatch::new(SourceChoice::Fanotify, directories).or_else(|error| {
            // Not every file system supports file handles; tmpfs does.
            let memory = Path::new("/dev/shm");
            let is_permitted = error.kind() != io::ErrorKind::PermissionDenied;
            match is_permitted && memory.is_dir() {
                true => TestWatch::within(memory, SourceChoice::Fanotify, directories),
                false => Err(error),
            }
        });
        match watched {
            Ok(watched) => test(watched),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                lacks!(Need::Fanotify, error);
            }
            Err(error) => panic!("no fanotify: {error}"),
        }
    }

    fn new(source: SourceChoice, directories: &[&str]) -> io::Result<TestWatch> {
        TestWatch::within(&std::env::temp_dir(), source, directories)
    }

    fn within(base: &Path, source: SourceChoice, directories: &[&str]) -> io::Result<TestWatch> {
        let scratch = tempfile::tempdir_in(base).expect("a directory");
        std::fs::create_dir(scratch.path().join("cookies")).expect("a directory");
        let top = scratch.path().join("above/top");
        std::fs::create_dir_all(&top).expect("a directory");
        for directory in directories {
            std::fs::create_dir_all(top.join(directory)).expect("a directory");
        }
        let mut journal = Journal::new("test");
        let places = WatchedPaths {
            root: &top,
            cookies: &scratch.path().join("cookies"),
            mounts: &[],
        };
        Ok(TestWatch {
            watcher: Watcher::new(places, source, &mut journal)?,
            scratch,
            journal,
        })
    }

    fn top(&self) -> PathBuf {
        self.scratch.path().join("above/top")
    }

    /// Returns the paths that change during `work`, or `None` if every path may have changed.
    fn reported(&mut self, work: impl FnOnce(&Path)) -> Option<Vec<String>> {
        let drained = self.watcher.drain(&mut self.journal);
        drained.expect("it can be read");
        let token = self.journal.token();
        work(&self.top());
        let drained = self.watcher.drain(&mut self.journal);
        drained.expect("it can be read");
        match self.journal.since(token.as_bstr()) {
            MonitorResponse::Paths { paths, .. } => {
                Some(paths.iter().map(ToString::to_string).collect())
            }
            MonitorResponse::Everything { .. } => None,
        }
    }

    fn reports(&mut self, path: &str) {
        let written = |top: &Path| std::fs::write(top.join(path), "x").expect("a file");
        let reported = self.reported(written).expect("not everything changed");
        assert!(
            reported.iter().any(|reported| reported == path),
            "{path}: {reported:?}"
        );
    }
}

#[test]
fn directories_that_change_places_are_both_watched() {
    TestWatch::each(&["a/x/deep", "b/y", "c"], |mut watched| {
        for _ in 0..2 {
            watched.reported(|top| {
                let (a, b) = (top.join("a"), top.join("b"));
                renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).expect("they are there");
            });
            watched.reports("a/new");
            watched.reports("b/new");
        }
        watched.reports("a/x/deep/file");
        watched.reports("b/y/file");
        // Exchange a directory with a file, in both directions.
        for _ in 0..2 {
            watched.reported(|top| {
                std::fs::write(top.join("f"), "x").ok();
                let (c, f) = (top.join("c"), top.join("f"));
                renameat_with(CWD, c, CWD, f, RenameFlags::EXCHANGE).expect("they are there");
            });
        }
        watched.reports("c/new");
    });
}

#[test]
fn a_name_that_is_there_again_is_watched() {
    TestWatch::each(&["a/x"], |mut watched| {
        watched.reported(|top| {
            std::fs::rename(top.join("a"), top.join("b")).expect("it is there");
            std::fs::create_dir_all(top.join("a/x")).expect("a directory");
            std::fs::remove_dir(top.join("b/x")).expect("it is empty");
            std::fs::create_dir_all(top.join("b/x/z")).expect("a directory");
        });
        for path in ["a/x/file", "b/x/z/file", "a/file", "b/file"] {
            watched.reports(path);
        }
    });
}

#[test]
fn closing_a_file_that_was_written_through_a_map_is_told() {
    TestWatch::each(&["a"], |mut watched| {
        watched.reports("a/file");
        let reported = watched.reported(|top| {
            let file = std::fs::File::options()
                .write(true)
                .open(top.join("a/file"));
            drop(file.expect("it is there"));
        });
        assert_eq!(reported, Some(vec!["a/file".to_owned()]));
    });
}

#[test]
fn a_failure_is_a_doubt() {
    TestWatch::each(&["a"], |mut watched| {
        std::fs::remove_dir(watched.scratch.path().join("cookies")).expect("it is empty");
        let token = watched.journal.token();
        let TestWatch {
            watcher, journal, ..
        } = &mut watched;
        assert!(watcher.restart(journal).is_err());
        assert!(watcher.doubt().is_some() && watcher.has_ended());
        assert!(matches!(
            journal.since(token.as_bstr()),
            MonitorResponse::Everything { .. }
        ));
        for (error, is_doubt) in [
            (Errno::NOENT, false),
            (Errno::NOTDIR, false),
            (Errno::IO, true),
            (Errno::MFILE, true),
            (Errno::NAMETOOLONG, true),
            // The directory can be entered.
            (Errno::ACCESS, true),
            (Errno::NOSPC, true),
        ] {
            watcher.common.doubt = None;
            watcher.common.doubt_path("a".into(), &error.into());
            assert_eq!(watcher.doubt().is_some(), is_doubt, "{error}");
        }
        watcher.common.doubt = None;
        watcher
            .common
            .doubt_path("gone".into(), &Errno::ACCESS.into());
        assert_eq!(watcher.doubt(), None);
    });
}

#[test]
fn a_directory_above_may_be_renamed() {
    TestWatch::each(&["a"], |mut watched| {
        let (before, after) = (watched.scratch.path().join("above"), "other");
        let after = watched.scratch.path().join(after);
        std::fs::rename(&before, &after).expect("it is there");
        std::fs::create_dir_all(after.join("top/new/deep")).expect("a directory");
        watched.reported(|_| {});
        let file = after.join("top/new/deep/file");
        let reported = watched.reported(|_| std::fs::write(file, "x").expect("a file"));
        assert_eq!(reported, Some(vec!["new/deep/file".to_owned()]));
        assert!(!watched.watcher.has_ended());
        std::fs::remove_dir_all(&after).expect("it goes");
        assert!(watched.watcher.has_ended());
    });
}

#[test]
fn beginning_again_leaves_nothing_behind() {
    TestWatch::each(&["a/x", "b"], |mut watched| {
        let fd = watched.watcher.descriptor().as_raw_fd();
        watched.watcher.common.seen_cookies.push(b"old".to_vec());
        let token = watched.journal.token();
        let outside = watched.scratch.path().join("b");
        std::fs::rename(watched.top().join("b"), &outside).expect("it goes");
        let TestWatch {
            watcher, journal, ..
        } = &mut watched;
        watcher.restart(journal).expect("it can be watched");
        assert!(!watcher.take_cookie(b"old"));
        assert_eq!(watcher.descriptor().as_raw_fd(), fd);
        assert!(matches!(
            journal.since(token.as_bstr()),
            MonitorResponse::Everything { .. }
        ));
        // The directory that was moved away is no longer watched.
        let reported =
            watched.reported(|_| std::fs::write(outside.join("file"), "x").expect("a file"));
        assert_eq!(reported, Some(vec![]));
        watched.reports("a/x/file");
    });
}

#[test]
fn the_top_that_is_renamed_is_the_end() {
    TestWatch::each(&["a"], |mut watched| {
        watched
            .reported(|top| std::fs::rename(top.join("a"), top.join("top")).expect("it is there"));
        assert!(!watched.watcher.has_ended());
        watched
            .reported(|top| std::fs::rename(top, top.with_extension("old")).expect("it is there"));
        assert!(watched.watcher.has_ended());
    });
}

#[test]
fn of_repositories_only_what_makes_them_counts() {
    TestWatch::each(&[".git/objects", "sub/.git/objects"], |mut watched| {
        let reported = watched.reported(|top| {
            std::fs::write(top.join(".git/objects/x"), "x").expect("a file");
            std::fs::write(top.join(".git/HEAD"), "x").expect("a file");
            std::fs::write(top.join("sub/.git/objects/x"), "x").expect("a file");
        });
        assert_eq!(reported, Some(vec![]));
        let reported = watched.reported(|top| {
            std::fs::write(top.join("sub/.git/HEAD"), "x").expect("a file");
        });
        assert_eq!(reported, Some(vec!["sub/.git".to_owned()]));
    });
}

#[test]
fn what_comes_with_a_directory_is_named() {
    TestWatch::each(&["a/b"], |mut watched| {
        let outside = watched.scratch.path().join("outside");
        std::fs::create_dir_all(outside.join("deep/er")).expect("a directory");
        std::fs::write(outside.join("deep/er/file"), "x").expect("a file");
        let reported = watched.reported(|top| {
            std::fs::rename(&outside, top.join("a/b/new")).expect("it is there");
        });
        let reported = reported.expect("not everything changed");
        for path in ["a/b/new/", "a/b/new/deep/", "a/b/new/deep/er/file"] {
            assert!(
                reported.iter().any(|reported| reported == path),
                "{path}: {reported:?}"
            );
        }
        let reported = watched.reported(|top| {
            std::fs::rename(top.join("a/b"), outside.with_extension("back")).expect("it is there");
        });
        let reported = reported.expect("not everything changed");
        assert!(reported.contains(&"a/b/".to_owned()), "{reported:?}");
        watched.reports("a/file");
    });
}
