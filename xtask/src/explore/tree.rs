//! Copies a directory with the modes and times of its files, and removes one.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};

/// Copies the directory `from` to `to`, which must not exist.
///
/// # Errors
/// A file cannot be read or written.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let metadata = entry.metadata()?;
        if metadata.is_dir() {
            copy(&source, &target)?;
        } else if metadata.is_symlink() {
            symlink(fs::read_link(&source)?, &target)?;
        } else if metadata.is_file() {
            fs::copy(&source, &target)?;
        }
        set_time(&target, &metadata)?;
    }
    Ok(())
}

/// Removes the directory `path` if it exists.
///
/// # Errors
/// It cannot be removed.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Gives `path` the time of the last change of `metadata`.
fn set_time(path: &Path, metadata: &Metadata) -> io::Result<()> {
    let time = Timespec {
        tv_sec: metadata.mtime(),
        tv_nsec: metadata.mtime_nsec() as _,
    };
    let times = Timestamps {
        last_access: time,
        last_modification: time,
    };
    utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_links_and_times() {
        let scratch = test_support::Scratch::new();
        let from = scratch.join("from");
        fs::create_dir_all(from.join("d")).expect("a directory");
        fs::write(from.join("d/file"), "text").expect("a file");
        symlink("nowhere", from.join("link")).expect("a link");
        let to = scratch.join("to");
        copy(&from, &to).expect("the copy is made");
        assert_eq!(fs::read(to.join("d/file")).expect("a file"), b"text");
        assert_eq!(
            fs::read_link(to.join("link")).expect("a link"),
            Path::new("nowhere")
        );
        for name in ["d/file", "link"] {
            let time = |top: &Path| {
                fs::symlink_metadata(top.join(name))
                    .expect("a file")
                    .mtime()
            };
            assert_eq!(time(&from), time(&to));
        }
    }
}
