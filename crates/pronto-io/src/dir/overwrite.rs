//! Replaces the content of a file in place if the result is indistinguishable from a new file. The
//! replacement frees and allocates neither an inode nor blocks.
//!
//! Other users of the old file must keep its content, and the new file must not have properties of
//! the old file. So a file is not overwritten if it has another hard link, if another process has
//! it open or mapped, if its owner or permissions differ from those of a new file, or if it has
//! extended attributes. A write lease (`fcntl(2)`, `F_SETLEASE`) shows that no other process has
//! the file open. While this process holds the lease, another process that opens the file waits
//! until this process closes it.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::fs::{Mode, OFlags, Stat};
use rustix::io::Errno;

use super::{Directory, Metadata, NewFile};
use crate::file_system::FileSystem;
use crate::retry::retry;

/// Zeros for the rest of the last block of a file. A file with larger blocks is not overwritten.
const ZEROS: [u8; 4096] = [0; 4096];

/// The value of `F_SETSIG` in `fcntl.h`, which selects the signal of a lease. The value is the same
/// on all platforms.
const F_SETSIG: libc::c_int = 10;

/// The number of the system call `cachestat`, which is the same on all platforms.
const SYS_CACHESTAT: libc::c_long = 451;

/// The extended attribute of every new file on systems with SELinux.
const LABEL: &[u8] = b"security.selinux\0";

/// Overwrites files in place. `Send + Sync`.
#[derive(Debug)]
pub struct Overwriter {
    device: u64,
    user: u32,
    group: u32,
    umask: u32,
    /// Whether to overwrite a file even if its last page has to be read from the disk.
    anywhere: bool,
    /// Whether the file system has refused a lease.
    is_refused: AtomicBool,
}

impl Overwriter {
    /// Returns an overwriter for files below `top`, or `None` on file systems on which overwriting
    /// is not known to be faster. `anywhere` permits every file system. Costs a few system calls,
    /// some of which read the attributes of this process.
    pub fn new(top: &Directory, anywhere: bool) -> Option<Overwriter> {
        let device = top.own_metadata().ok()?.device;
        if !(anywhere || FileSystem::on_device(top, device).replaces_quickly()) {
            return None;
        }
        Some(Overwriter {
            device,
            user: rustix::process::geteuid().as_raw(),
            group: rustix::process::getegid().as_raw(),
            umask: crate::process::umask()?,
            anywhere,
            is_refused: AtomicBool::new(false),
        })
    }

    /// Replaces the content of the file `name` by `content` and its mode by that of an `executable`
    /// or an ordinary file. Returns `None` if the file was not overwritten, also if `content` is
    /// empty: the caller must then remove and create the file. The last page of the file must be in
    /// memory, because it would have to be read otherwise; with `anywhere` the page is read.
    ///
    /// Costs nine system calls, ten for a shorter file, and up to seven if the file is not
    /// overwritten. Another process that opens the file during the call waits. This process then
    /// receives `SIGURG`, which is ignored by default.
    ///
    /// # Errors
    /// Fails with the errors of `writev(2)`, `ftruncate(2)`, `fstat(2)` and `close(2)`. The file is
    /// damaged then.
    pub fn overwrite(
        &self,
        directory: &Directory,
        name: &[u8],
        executable: bool,
        content: &[u8],
    ) -> io::Result<Option<Metadata>> {
        if content.is_empty() || self.is_refused.load(Relaxed) {
            return Ok(None);
        }
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let flags = flags | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = retry(|| rustix::fs::openat(directory, name, flags, Mode::empty()));
        let Ok(fd) = opened else {
            return Ok(None);
        };
        let mut file = NewFile { fd };
        let Some(old) = self.suitable(&file, executable) else {
            return Ok(None);
        };
        fill(&mut file, &old, content)?;
        file.finish().map(Some)
    }

    /// Returns the metadata of the file if an overwritten file is indistinguishable from a new
    /// file.
    fn suitable(&self, file: &NewFile, executable: bool) -> Option<Stat> {
        let stat = rustix::fs::fstat(file).ok()?;
        let metadata = Metadata::new(&stat);
        let permissions = if executable { 0o777 } else { 0o666 };
        let fits = metadata.is_file()
            && metadata.mode & 0o7777 == permissions & !self.umask
            && stat.st_nlink == 1
            && (metadata.device, metadata.user, metadata.group)
                == (self.device, self.user, self.group)
            && usize::try_from(stat.st_blksize).is_ok_and(|size| size <= ZEROS.len());
        let is_quick = || self.anywhere || is_in_memory(file.as_fd(), metadata.size_bytes);
        let is_ours = || has_no_attributes(file.as_fd()) && self.lease(file.as_fd());
        (fits && is_quick() && is_ours()).then_some(stat)
    }

    /// Returns whether no other process has the file open. The answer holds until this process
    /// closes the file.
    fn lease(&self, file: BorrowedFd<'_>) -> bool {
        match lease(file) {
            Ok(()) => true,
            Err(error) => {
                // Another process has this file open, or the file system supports no leases for it.
                let is_about_file = error.kind() == io::ErrorKind::WouldBlock;
                self.is_refused.fetch_or(!is_about_file, Relaxed);
                false
            }
        }
    }
}

fn lease(file: BorrowedFd<'_>) -> io::Result<()> {
    // When another process opens the file, the kernel sends this signal, which is ignored by
    // default.
    // SAFETY: the calls take numbers and access no memory; the descriptor is open.
    let done = unsafe {
        libc::fcntl(file.as_raw_fd(), F_SETSIG, libc::SIGURG) == 0
            && libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK) == 0
    };
    match done {
        true => Ok(()),
        false => Err(io::Error::last_os_error()),
    }
}

fn has_no_attributes(file: BorrowedFd<'_>) -> bool {
    let mut names = [0_u8; 64];
    match rustix::fs::flistxattr(file, &mut names) {
        Ok(0) | Err(Errno::NOTSUP) => true,
        Ok(len) => names.get(..len) == Some(LABEL),
        // The list of attributes is longer than the buffer.
        Err(_) => false,
    }
}

/// Returns whether the last page of the file is in memory (`cachestat(2)`, Linux 6.5), without
/// reading the page.
fn is_in_memory(file: BorrowedFd<'_>, size_bytes: u64) -> bool {
    let Some(last) = size_bytes.checked_sub(1) else {
        return true;
    };
    // `struct cachestat_range` and `struct cachestat`, of which the first number counts pages in memory.
    let (range, mut found) = ([last, 1_u64], [0_u64; 5]);
    let (range, into) = (range.as_ptr(), found.as_mut_ptr());
    // SAFETY: the kernel reads two numbers and writes five, which are what the pointers lead to.
    let done = unsafe { libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), range, into, 0) };
    done == 0 && found[0] > 0
}

/// Overwrites the whole content of the file with `content`.
fn fill(file: &mut NewFile, old: &Stat, content: &[u8]) -> io::Result<()> {
    let (old_size, len) = (old.st_size.unsigned_abs(), content.len());
    if old_size <= len as u64 {
        return file.write_all(content);
    }
    // Write whole blocks, so that the kernel reads no block.
    let over = len % (old.st_blksize.unsigned_abs() as usize).max(1);
    let fill = match over {
        0 => 0,
        over => old.st_blksize.unsigned_abs() as usize - over,
    };
    let zeros = &ZEROS[..fill];
    let all = [IoSlice::new(content), IoSlice::new(zeros)];
    let written = retry(|| rustix::io::writev(&*file, &all))?;
    if written < len {
        file.write_all(&content[written..])?;
    }
    Ok(retry(|| rustix::fs::ftruncate(&*file, len as u64))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::path::PathBuf;
    use test_support::skip;

    struct Place {
        scratch: tempfile::TempDir,
        directory: Directory,
        overwriter: Overwriter,
    }

    impl Place {
        /// Creates a directory with a file `a` of this content.
        fn new(content: &[u8]) -> Place {
            let scratch = tempfile::tempdir().expect("a directory");
            let directory = Directory::open(scratch.path()).expect("it is there");
            let overwriter = Overwriter::new(&directory, true).expect("it is local");
            let mut file = directory.create_file(b"a", false).expect("a new file");
            file.write_all(content).expect("there is room");
            Place {
                scratch,
                directory,
                overwriter,
            }
        }

        fn path(&self) -> PathBuf {
            self.scratch.path().join("a")
        }

        fn overwrite(&self, content: &[u8]) -> Option<Metadata> {
            let done = self
                .overwriter
                .overwrite(&self.directory, b"a", false, content);
            done.expect("there is room")
        }
    }

    #[test]
    fn the_file_stays_and_its_content_goes() {
        let sizes = [1, 100, 4095, 4096, 4097, 8192, 9000, 70_000];
        for old in sizes.into_iter().chain([0]) {
            for new in sizes {
                let place = Place::new(&vec![b'o'; old]);
                let inode = fs::metadata(place.path()).expect("it is there").ino();
                let content = vec![b'n'; new];
                let metadata = place.overwrite(&content).expect("nobody else knows it");
                assert_eq!(metadata.inode, inode);
                assert_eq!(metadata.size_bytes, new as u64);
                let found = fs::read(place.path()).expect("it is there");
                assert!(found == content, "{old} to {new} bytes");
                let same = fs::metadata(place.path()).expect("it is there");
                let changed = (same.ctime(), same.ctime_nsec() as u32);
                assert_eq!(
                    (metadata.changed.seconds, metadata.changed.nanoseconds),
                    changed
                );
            }
        }
    }

    #[test]
    fn what_others_see_is_left_alone() {
        let left_alone = |what: &str, place: &Place| {
            let before = fs::read(place.path()).expect("it is there");
            assert_eq!(place.overwrite(b"new"), None, "{what}");
            assert_eq!(fs::read(place.path()).expect("it is there"), before);
        };
        let place = Place::new(b"old");
        let path = place.path();
        {
            let _open = fs::File::open(&path).expect("it is there");
            left_alone("open to be read", &place);
        }
        {
            let file = fs::File::options().append(true).open(&path);
            let _open = file.expect("it is there");
            left_alone("open to be written", &place);
        }
        {
            let file = fs::File::open(&path).expect("it is there");
            // SAFETY: nobody writes the file while the map is there, which is what is tested.
            let map = unsafe { memmap2::Mmap::map(&file) }.expect("a map");
            drop(file);
            left_alone("mapped", &place);
            assert_eq!(&map[..], b"old");
        }
        let other = place.scratch.path().join("b");
        fs::hard_link(&path, &other).expect("a link");
        left_alone("of two names", &place);
        fs::remove_file(&other).expect("it is there");
        for mode in [0o600, 0o755, 0o666, 0o444] {
            let was = fs::metadata(&path).expect("it is there").permissions();
            fs::set_permissions(&path, Permissions::from_mode(mode)).expect("it is ours");
            if was.mode() & 0o777 != mode {
                left_alone("not as new", &place);
            }
            fs::set_permissions(&path, was).expect("it is ours");
        }
        assert_eq!(place.overwrite(b""), None, "nothing to write");
        assert!(place.overwrite(b"new").is_some(), "all that is over");
        rustix::fs::setxattr(&path, "user.x", b"1", rustix::fs::XattrFlags::empty())
            .expect("the file system has attributes");
        left_alone("with attributes", &place);
        fs::remove_file(&path).expect("it is there");
        assert_eq!(place.overwrite(b"new"), None, "not there");
        std::os::unix::fs::symlink("b", &path).expect("a link");
        fs::write(&other, "old").expect("a file");
        left_alone("a link", &place);
        fs::remove_file(&path).expect("it is there");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, Mode::from_raw_mode(0o644)).expect("a pipe");
        assert_eq!(place.overwrite(b"new"), None, "a pipe");
    }

    #[test]
    fn who_opens_it_waits_for_the_whole() {
        let place = Place::new(&vec![b'o'; 500_000]);
        let (path, new) = (place.path(), vec![b'n'; 500_000]);
        let writes = AtomicBool::new(true);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while writes.load(Relaxed) {
                    let found = fs::read(&path).expect("it is there");
                    assert!(found.iter().all(|byte| *byte == found[0]));
                    assert_eq!(found.len(), 500_000);
                }
            });
            for _ in 0..200 {
                for content in [vec![b'o'; 500_000], new.clone()] {
                    // Fails from time to time, when the other thread has the file open.
                    place.overwrite(&content);
                }
            }
            writes.store(false, Relaxed);
        });
    }

    #[test]
    fn what_is_not_in_memory_is_seen_to_be_so() {
        let place = Place::new(&[b'o'; 5000]);
        let file = fs::File::open(place.path()).expect("it is there");
        if !is_in_memory(file.as_fd(), 5000) {
            skip!(
                "the kernel does not say what is in memory",
                "use a kernel with mincore(2)"
            );
        }
        assert!(!is_in_memory(file.as_fd(), 500_000));
        assert!(is_in_memory(file.as_fd(), 0));
    }
}
