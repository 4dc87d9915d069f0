//! Tests whether the mtimes of directories are reliable enough for an untracked cache:
//! `git update-index --test-untracked-cache`.

use std::fmt;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use pronto_io::dir::{Metadata, metadata};
use pronto_io::error::IoContext;

use crate::{ErrorKind, Result};

/// The pause after each change: longer than a clock tick of file systems with nanosecond
/// timestamps, or longer than a second for other file systems.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(1100)];

/// One test: an action, its path, whether the action must change the stat data of the directory,
/// and the defect otherwise.
type TestedAction<'a> = (
    &'a dyn Fn() -> std::io::Result<()>,
    &'a Path,
    bool,
    MtimeDefect,
);

/// A defect of a file system because of which an untracked cache cannot be used.
/// [`Display`](fmt::Display) gives Git's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MtimeDefect {
    /// A new file does not change the stat data of its directory.
    NewFile,
    /// A new directory does not change the stat data of its parent directory.
    NewDirectory,
    /// New content of a file changes the stat data of its directory.
    Update,
    /// A new file in a subdirectory changes the stat data of the parent directory.
    FileBelow,
    /// The removal of a file does not change the stat data of its directory.
    RemovedFile,
    /// The removal of a directory does not change the stat data of its parent directory.
    RemovedDirectory,
}

impl fmt::Display for MtimeDefect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MtimeDefect::NewFile => "directory stat info does not change after adding a new file",
            MtimeDefect::NewDirectory => {
                "directory stat info does not change after adding a new directory"
            }
            MtimeDefect::Update => "directory stat info changes after updating a file",
            MtimeDefect::FileBelow => {
                "directory stat info changes after adding a file inside subdirectory"
            }
            MtimeDefect::RemovedFile => "directory stat info does not change after deleting a file",
            MtimeDefect::RemovedDirectory => {
                "directory stat info does not change after deleting a directory"
            }
        })
    }
}

/// Changes files in a temporary directory below `top`, and checks whether the stat data of
/// directories change. `step` is called after each pause. Returns the first defect.
///
/// # Errors
/// Fails with [`ErrorKind::Io`] if a file or directory cannot be created or removed.
pub fn test_untracked_cache(
    top: &Path,
    step: &mut dyn FnMut() -> Result<()>,
) -> Result<Option<MtimeDefect>> {
    let io = |result: std::io::Result<()>, path: &Path| -> Result<()> {
        result.context(ErrorKind::Io, "unable to change", path)
    };
    let directory = top.join(format!("mtime-test-{}", std::process::id()));
    io(fs::create_dir(&directory), &directory)?;
    let _guard = pronto_io::cleanup::Guard::new(&directory);
    let (file, below) = (directory.join("newfile"), directory.join("new-dir"));
    let inner = below.join("new");
    let mut times = FileTimes::of(&directory)?;
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
    let turns: [TestedAction<'_>; 6] = [
        (&|| create(&file), &file, true, MtimeDefect::NewFile),
        (
            &|| fs::create_dir(&below),
            &below,
            true,
            MtimeDefect::NewDirectory,
        ),
        (&|| append(&file), &file, false, MtimeDefect::Update),
        (&|| create(&inner), &inner, false, MtimeDefect::FileBelow),
        (
            &|| fs::remove_file(&file),
            &file,
            true,
            MtimeDefect::RemovedFile,
        ),
        (&remove_below, &below, true, MtimeDefect::RemovedDirectory),
    ];
    for (action, path, expected, defect) in turns {
        if turn(action, path)? != expected {
            return Ok(Some(defect));
        }
    }
    Ok(None)
}

struct FileTimes(Metadata);

impl FileTimes {
    fn of(directory: &Path) -> Result<FileTimes> {
        let found = metadata(directory).context(ErrorKind::Io, "unable to look at", directory)?;
        Ok(FileTimes(found))
    }

    fn pause(&self) -> Duration {
        PAUSES[usize::from(self.0.modified.nanoseconds == 0)]
    }

    fn have_changed(&mut self, directory: &Path) -> Result<bool> {
        let now = FileTimes::of(directory)?;
        let changed = now.0 != self.0;
        *self = now;
        Ok(changed)
    }
}
