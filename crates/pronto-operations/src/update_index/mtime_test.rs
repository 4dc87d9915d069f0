//! Tests whether the times of directories are reliable enough for an untracked cache.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use pronto_io::dir::{Metadata, metadata};
use pronto_io::error::IoContext;

use crate::{ErrorKind, Result};

/// Longer than a tick of the clock that file systems take their times from, where those have
/// nanoseconds; others take another second.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(1100)];

/// An action, its place, whether the stat data of the directory change with it, and the error if
/// not.
type Turn<'a> = (
    &'a dyn Fn() -> std::io::Result<()>,
    &'a Path,
    bool,
    &'static str,
);

/// Changes files in a new directory below `top`, which is removed at the end, and checks whether
/// its stat data change. `step` is called after each pause; the error text is in Git's words.
///
/// # Errors
/// A file or directory cannot be created or removed.
pub fn test_untracked_cache(
    top: &Path,
    step: &mut dyn FnMut() -> Result<()>,
) -> Result<std::result::Result<(), &'static str>> {
    let io = |result: std::io::Result<()>, path: &Path| -> Result<()> {
        result.context(ErrorKind::Io, "unable to change", path)
    };
    let directory = top.join(format!("mtime-test-{}", std::process::id()));
    io(fs::create_dir(&directory), &directory)?;
    let _guard = pronto_io::cleanup::Guard::new(&directory);
    let (file, below) = (directory.join("newfile"), directory.join("new-dir"));
    let inner = below.join("new");
    let mut times = Times::of(&directory)?;
    let mut turn = |action: &dyn Fn() -> std::io::Result<()>, path: &Path| -> Result<bool> {
        std::thread::sleep(times.pause());
        step()?;
        io(action(), path)?;
        times.have_changed(&directory)
    };
    let create = |path: &Path| File::create_new(path).map(drop);
    let append = |path: &Path| {
        let mut file = fs::OpenOptions::new().append(true).open(path)?;
        file.write_all(b"data")
    };
    let remove_below = || fs::remove_file(&inner).and_then(|()| fs::remove_dir(&below));
    let turns: [Turn<'_>; 6] = [
        (
            &|| create(&file),
            &file,
            true,
            "directory stat info does not change after adding a new file",
        ),
        (
            &|| fs::create_dir(&below),
            &below,
            true,
            "directory stat info does not change after adding a new directory",
        ),
        (
            &|| append(&file),
            &file,
            false,
            "directory stat info changes after updating a file",
        ),
        (
            &|| create(&inner),
            &inner,
            false,
            "directory stat info changes after adding a file inside subdirectory",
        ),
        (
            &|| fs::remove_file(&file),
            &file,
            true,
            "directory stat info does not change after deleting a file",
        ),
        (
            &remove_below,
            &below,
            true,
            "directory stat info does not change after deleting a directory",
        ),
    ];
    for (action, path, expected, reason) in turns {
        if turn(action, path)? != expected {
            return Ok(Err(reason));
        }
    }
    Ok(Ok(()))
}

struct Times(Metadata);

impl Times {
    fn of(directory: &Path) -> Result<Times> {
        let found = metadata(directory).context(ErrorKind::Io, "unable to look at", directory)?;
        Ok(Times(found))
    }

    fn pause(&self) -> Duration {
        PAUSES[usize::from(self.0.modified.nanoseconds == 0)]
    }

    fn have_changed(&mut self, directory: &Path) -> Result<bool> {
        let now = Times::of(directory)?;
        let changed = now.0 != self.0;
        *self = now;
        Ok(changed)
    }
}
