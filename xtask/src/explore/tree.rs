//! Copies directories with the modes and times of their files, and removes directories.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};

/// Copies the directory `from` to `to`, which must not exist. Object files are linked, because no
/// program changes them.
///
/// # Errors
/// Fails if a file cannot be read or written.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let copying = Copying {
        replaced: None,
        is_linking: true,
    };
    copying.directory(from, to, false)
}

/// Copies the directory `from` to `to`, and replaces the path `old` in files by `new`, which must
/// have the same length.
///
/// # Errors
/// Fails if a file cannot be read or written.
pub(super) fn copy_replacing(from: &Path, to: &Path, old: &Path, new: &Path) -> io::Result<()> {
    let replaced = [old, new].map(|path| path.as_os_str().as_bytes());
    let copying = Copying {
        replaced: Some(replaced),
        is_linking: false,
    };
    copying.directory(from, to, false)
}

/// The parameters of a copy.
#[derive(Clone, Copy, Debug)]
struct Copying<'a> {
    /// The text to replace in files, and its replacement.
    replaced: Option<[&'a [u8]; 2]>,
    is_linking: bool,
}

impl Copying<'_> {
    fn directory(self, from: &Path, to: &Path, are_objects: bool) -> io::Result<()> {
        fs::create_dir(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            let (source, target) = (entry.path(), to.join(entry.file_name()));
            let kind = entry.file_type()?;
            if kind.is_file() && are_objects && self.is_linking {
                fs::hard_link(&source, &target)?;
                continue;
            }
            let metadata = entry.metadata()?;
            if kind.is_dir() {
                let are_objects =
                    (are_objects && entry.file_name() != "info") || entry.file_name() == "objects";
                self.directory(&source, &target, are_objects)?;
            } else if kind.is_symlink() {
                let old = fs::read_link(&source)?.into_os_string().into_vec();
                symlink(OsString::from_vec(self.replace(&old)), &target)?;
            } else if kind.is_file() {
                self.file(&source, &target)?;
            }
            set_time(&target, &metadata)?;
        }
        Ok(())
    }

    fn file(self, from: &Path, to: &Path) -> io::Result<()> {
        fs::copy(from, to)?;
        if self.replaced.is_some() {
            let old = fs::read(from)?;
            let new = self.replace(&old);
            if new != old {
                fs::write(to, new)?;
            }
        }
        Ok(())
    }

    fn replace(self, text: &[u8]) -> Vec<u8> {
        let Some([old, new]) = self.replaced else {
            return text.to_vec();
        };
        let mut written = Vec::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix(old) {
                written.extend_from_slice(new);
                rest = after;
            } else {
                written.push(rest[0]);
                rest = &rest[1..];
            }
        }
        written
    }
}

/// Removes the directory `path` if it exists.
///
/// # Errors
/// Fails if the directory cannot be removed.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Sets the modification time of `path` to that of `metadata`.
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

    #[test]
    fn a_copy_has_another_path_and_shares_objects() {
        let scratch = test_support::Scratch::new();
        let from = scratch.join("from");
        for directory in [".git/objects/aa", ".git/objects/info"] {
            fs::create_dir_all(from.join(directory)).expect("a directory");
        }
        fs::write(from.join(".git/config"), "x /old/root y").expect("a file");
        fs::write(from.join(".git/objects/aa/b"), "object").expect("a file");
        fs::write(from.join(".git/objects/info/alternates"), "path").expect("a file");
        let to = scratch.join("to");
        let [old, new] = ["/old/root", "/new/root"].map(Path::new);
        copy_replacing(&from, &to, old, new).expect("the copy is made");
        let text = fs::read_to_string(to.join(".git/config")).expect("a file");
        assert_eq!(text, "x /new/root y");
        let second = scratch.join("second");
        copy(&to, &second).expect("the copy is made");
        let links = |name: &str| fs::metadata(second.join(name)).expect("a file").nlink();
        assert_eq!(links(".git/objects/aa/b"), 2);
        assert_eq!(links(".git/objects/info/alternates"), 1);
        assert_eq!(links(".git/config"), 1);
    }
}
