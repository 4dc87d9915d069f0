//! Files and directories that exist only while an operation runs. A guard removes its path when
//! it is dropped, and [`remove_all`] removes those of every live guard when the process is about
//! to end early (a signal), in the reverse order of their making.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    issued: 0,
    watched: Vec::new(),
});

/// Tickets are issued in rising order and never again, so `watched` stays sorted.
struct Registry {
    issued: u64,
    watched: Vec<(u64, PathBuf)>,
}

/// Removes a file, or a directory and all that is in it, unless [kept](Guard::keep).
#[derive(Debug)]
pub struct Guard {
    ticket: u64,
}

impl Guard {
    /// Watches over `path`, which need not exist yet. Takes one short global lock.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let mut registry = lock();
        registry.issued += 1;
        let ticket = registry.issued;
        registry.watched.push((ticket, path.into()));
        Guard { ticket }
    }

    /// The path is complete: it stays.
    pub fn keep(self) {
        self.take();
    }

    fn take(&self) -> Option<PathBuf> {
        let watched = &mut lock().watched;
        let at = watched
            .binary_search_by_key(&self.ticket, |(ticket, _)| *ticket)
            .ok()?;
        Some(watched.remove(at).1)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(path) = self.take() {
            remove(&path);
        }
    }
}

/// Removes what every live guard watches over. Not for signal handlers, which may not lock or
/// allocate: call it from a thread that waits for signals.
pub fn remove_all() {
    let paths = std::mem::take(&mut lock().watched);
    for (_, path) in paths.iter().rev() {
        remove(path);
    }
}

fn lock() -> std::sync::MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Other threads may still be making files inside a directory, so try more than once.
fn remove(path: &Path) {
    for _ in 0..8 {
        let removed = match path.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => std::fs::remove_dir_all(path),
            Ok(_) => std::fs::remove_file(path),
            Err(_) => return,
        };
        if removed.is_ok() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_guard_removes_and_a_kept_one_does_not() {
        let base = std::env::temp_dir().join(format!("pronto-cleanup-{}", std::process::id()));
        std::fs::create_dir_all(base.join("a/b")).expect("a directory");
        std::fs::write(base.join("kept"), b"x").expect("a file");
        let (tree, kept) = (Guard::new(base.join("a")), Guard::new(base.join("kept")));
        drop(tree);
        kept.keep();
        assert!(!base.join("a").exists());
        assert!(base.join("kept").exists());
        drop(Guard::new(&base));
        assert!(!base.exists());
    }
}
