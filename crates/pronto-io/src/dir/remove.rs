//! Removes a directory and its contents with several workers.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::{Directory, EntryKind, is_directory_error, is_missing};
use crate::pool::{self, Workers};

/// Removes the directory at `path` and its contents. No symbolic link below `path` is followed. A
/// file that another process removes at the same time is not an error.
///
/// Removes all files first, level by level from the top, and then the directories, from the bottom.
/// Costs one system call for each file, about seven for each directory, and memory for the paths of
/// all directories.
///
/// # Errors
/// Returns the first failure, after removing everything else that can be removed.
pub fn remove_tree(path: &Path, workers: Workers) -> io::Result<()> {
    let removal = TreeRemoval {
        top: Directory::open(path)?,
        failure: Mutex::new(None),
    };
    let mut levels = Vec::new();
    let mut level = vec![Vec::new()];
    while !level.is_empty() {
        let below = removal.for_each(workers, &level, |path, below| {
            removal.remove_files(path, below)
        });
        levels.push(std::mem::replace(&mut level, below));
    }
    // The first level is the top directory, which is removed separately.
    for level in levels.iter().skip(1).rev() {
        removal.for_each(workers, level, |path, _| removal.remove_directory(path));
    }
    let failure = removal.failure.into_inner();
    match failure.unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => std::fs::remove_dir(path),
    }
}

struct TreeRemoval {
    top: Directory,
    failure: Mutex<Option<io::Error>>,
}

impl TreeRemoval {
    /// Calls `work` for each of `paths` and with a list to which `work` adds further paths. Returns
    /// that list.
    fn for_each(
        &self,
        workers: Workers,
        paths: &[Vec<u8>],
        work: impl Fn(&[u8], &mut Vec<Vec<u8>>) -> io::Result<()> + Sync,
    ) -> Vec<Vec<u8>> {
        let found = Mutex::new(Vec::new());
        let lock = || found.lock().unwrap_or_else(PoisonError::into_inner);
        pool::run(
            workers,
            paths.len(),
            Vec::new,
            |own, range| {
                for path in &paths[range] {
                    if let Err(error) = work(path, own) {
                        self.fail(error);
                    }
                }
                ControlFlow::Continue(())
            },
            |own| lock().extend(own),
        );
        found.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, error: io::Error) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(error);
    }

    /// Removes the files in the directory `path` and adds its subdirectories to `below`.
    fn remove_files(&self, path: &[u8], below: &mut Vec<Vec<u8>>) -> io::Result<()> {
        let directory = self.top.open_beneath(path)?;
        for (name, kind) in directory.entries()? {
            let is_directory = match kind {
                EntryKind::Directory => true,
                _ => match directory.remove_file(&name) {
                    Ok(()) => false,
                    Err(error) if is_missing(&error) => false,
                    Err(error) if is_directory_error(&error) => true,
                    Err(error) => {
                        self.fail(error);
                        false
                    }
                },
            };
            if is_directory {
                let mut inner = path.to_vec();
                if !inner.is_empty() {
                    inner.push(b'/');
                }
                inner.extend_from_slice(&name);
                below.push(inner);
            }
        }
        Ok(())
    }

    fn remove_directory(&self, path: &[u8]) -> io::Result<()> {
        let slash = path.iter().rposition(|&byte| byte == b'/');
        let removed = match slash {
            Some(at) => {
                let parent = self.top.open_beneath(&path[..at])?;
                parent.remove_directory(&path[at + 1..])
            }
            None => self.top.remove_directory(path),
        };
        match removed {
            Err(error) if is_missing(&error) => Ok(()),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn everything_goes_and_links_are_not_followed() {
        for workers in [Workers::Exactly(1), Workers::Exactly(4), Workers::ADAPTIVE] {
            let place = tempfile::tempdir().expect("a directory");
            let kept = place.path().join("kept");
            fs::create_dir(&kept).expect("a directory");
            fs::write(kept.join("file"), "kept").expect("a file");
            let top = place.path().join("top");
            for outer in 0..8 {
                for inner in 0..8 {
                    let directory = top.join(format!("{outer}/{inner}/deep/er"));
                    fs::create_dir_all(&directory).expect("a directory");
                    fs::write(directory.join("file"), "x").expect("a file");
                }
                symlink(&kept, top.join(format!("{outer}/link"))).expect("a link");
            }
            remove_tree(&top, workers).expect("it can be removed");
            assert!(!top.exists());
            assert_eq!(fs::read(kept.join("file")).expect("it is there"), b"kept");
        }
    }

    #[test]
    fn what_is_not_a_directory_is_refused() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("file");
        fs::write(&file, "x").expect("a file");
        remove_tree(&file, Workers::ADAPTIVE).expect_err("it is a file");
        assert!(file.exists());
        remove_tree(&place.path().join("none"), Workers::ADAPTIVE).expect_err("it is missing");
    }
}
