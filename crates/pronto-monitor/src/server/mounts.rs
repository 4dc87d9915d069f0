//! The mounts that affect a worktree. The format is that of `proc_pid_mountinfo(5)`.

use crate::watch::Doubt;
use bstr::{BString, ByteSlice};
use pronto_io::view::is_local;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The index of the column with the mount point.
const POINT_COLUMN: usize = 4;

/// The mounts at, above and below a directory.
pub(super) struct Mounts {
    table: File,
    known: Vec<Vec<u8>>,
    allow_remote: bool,
}

impl Mounts {
    /// Reads the mounts for `root`, which must not contain a symbolic link.
    ///
    /// # Errors
    /// Fails if the list of mounts cannot be read.
    pub(super) fn new(root: &Path, allow_remote: bool) -> io::Result<Mounts> {
        let mut mounts = Mounts {
            table: File::open("/proc/self/mountinfo")?,
            known: Vec::new(),
            allow_remote,
        };
        mounts.known = mounts.read(root)?;
        Ok(mounts)
    }

    fn read(&mut self, root: &Path) -> io::Result<Vec<Vec<u8>>> {
        let mut content = Vec::new();
        self.table.rewind()?;
        self.table.read_to_end(&mut content)?;
        let root = root.as_os_str().as_bytes();
        let counts = |line: &&[u8]| {
            let point = mount_point(line);
            within(&point, root) || within(root, &point)
        };
        Ok(content.lines().filter(counts).map(<[u8]>::to_vec).collect())
    }

    /// Returns whether the mounts differ from those at the last call. Costs one system call if the
    /// kernel reports no change. If the mounts cannot be read, they count as changed.
    pub(super) fn have_changed(&mut self, root: &Path) -> bool {
        let descriptor = self.table.as_fd();
        let mut polled = [PollFd::new(&descriptor, PollFlags::PRI)];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        if poll(&mut polled, Some(&now)).is_ok_and(|ready| ready == 0) {
            return false;
        }
        match self.read(root) {
            Ok(now) if now == self.known => false,
            Ok(now) => {
                self.known = now;
                true
            }
            Err(_) => true,
        }
    }

    /// Returns the reachable directories below `root` that are mount points.
    ///
    /// # Errors
    /// Fails if the list of mounts cannot be read.
    pub(super) fn below(&mut self, root: &Path) -> io::Result<Vec<PathBuf>> {
        self.known = self.read(root)?;
        let points = self.points(root);
        let points = points.map(|point| PathBuf::from(OsStr::from_bytes(&point)));
        Ok(points.filter(|point| point.is_dir()).collect())
    }

    fn points(&self, root: &Path) -> impl Iterator<Item = Vec<u8>> {
        let top = root.as_os_str().as_bytes();
        let points = self.known.iter().map(|line| mount_point(line));
        points.filter(move |point| within(point, top) && *point != top)
    }

    /// Returns a mount below `root` whose changes are not reported: a network file system (unless
    /// allowed), or a single file, whose changes are reported only for its original directory.
    pub(super) fn doubt(&self, root: &Path) -> Option<Doubt> {
        let is_dark = |point: &Vec<u8>| {
            let opened = File::open(PathBuf::from(OsStr::from_bytes(point)));
            // A mount point that another mount covers cannot be opened or changed through this
            // path.
            opened.is_ok_and(|file| {
                let is_directory = file.metadata().is_ok_and(|metadata| metadata.is_dir());
                !is_directory || !(self.allow_remote || is_local(&file).unwrap_or(false))
            })
        };
        self.points(root)
            .find(is_dark)
            .map(|point| Doubt::Mount(BString::from(point)))
    }
}

/// Decodes the mount point of a line, in which white space and backslashes are octal escapes.
fn mount_point(line: &[u8]) -> Vec<u8> {
    let field = line.split(|&byte| byte == b' ').nth(POINT_COLUMN);
    let mut rest = field.unwrap_or_default();
    let mut point = Vec::with_capacity(rest.len());
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| byte == b'\\');
        let number = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match number.and_then(|number| u8::from_str_radix(number, 8).ok()) {
            Some(escaped) => {
                point.push(escaped);
                rest = &after[3..];
            }
            None => {
                point.push(byte);
                rest = after;
            }
        }
    }
    point
}

/// Returns whether `one` equals `other` or is below it.
fn within(one: &[u8], other: &[u8]) -> bool {
    one.strip_prefix(other)
        .is_some_and(|rest| rest.is_empty() || rest[0] == b'/' || other == b"/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_read_as_they_are() {
        let line = br"36 35 98:0 /mnt1 /a\040b/c\134d\012 rw,noatime master:1 - ext3 /dev/root rw";
        assert_eq!(mount_point(line), b"/a b/c\\d\n");
        assert_eq!(mount_point(br"36 35 98:0 / /\04 rw"), br"/\04");
        assert_eq!(mount_point(b"36 35"), b"");
        assert!(within(b"/a b/c", b"/a b") && within(b"/x", b"/") && within(b"/x", b"/x"));
        assert!(!within(b"/a bc", b"/a b") && !within(b"", b"/"));
    }
}
