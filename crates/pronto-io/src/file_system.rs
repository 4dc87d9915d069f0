//! Properties of file systems: local or remote, and supported features.

use std::io;
use std::os::fd::AsFd;
use std::sync::{PoisonError, RwLock};

use rustix::fs::{StatFs, fstatfs};

use crate::retry::retry;

/// The file systems of known devices, so that `statfs` is called once for each device. The list is
/// short.
static KNOWN: RwLock<Vec<(u64, FileSystem)>> = RwLock::new(Vec::new());

const XFS: u64 = 0x5846_5342;
const BTRFS: u64 = 0x9123_683e;
const BCACHEFS: u64 = 0xca45_1a4e;
const EXT4: u64 = 0xef53;
const TMPFS: u64 = 0x0102_1994;

/// A type of file system. Any thread may query it, because the known devices are shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSystem {
    number: u64,
    is_local: bool,
}

impl FileSystem {
    /// Returns the file system of `file`. Costs one system call, and another one for the first file
    /// of each device.
    ///
    /// # Errors
    /// Fails with the errors of `fstat(2)`.
    #[allow(
        clippy::unnecessary_cast,
        reason = "the width of the field differs between platforms"
    )]
    pub fn of(file: &impl AsFd) -> io::Result<FileSystem> {
        let device = retry(|| rustix::fs::fstat(file))?.st_dev as u64;
        Ok(FileSystem::on_device(file, device))
    }

    /// Returns the file system of `file`, which is on `device`. Makes no system call if the device
    /// is known.
    pub fn on_device(file: &impl AsFd, device: u64) -> FileSystem {
        let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(&(_, found)) = known.iter().find(|(other, _)| *other == device) {
            return found;
        }
        drop(known);
        let found = match fstatfs(file) {
            Ok(stat) => FileSystem::new(&stat),
            Err(_) => FileSystem {
                number: 0,
                is_local: false,
            },
        };
        let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
        if !known.iter().any(|(other, _)| *other == device) {
            known.push((device, found));
        }
        found
    }

    /// Whether the files of this file system are on this machine. Mapping such files is safe, and
    /// reading their metadata is fast. If the query of the type fails, the file system counts as
    /// remote; on a platform without types, as local.
    pub fn is_local(self) -> bool {
        self.is_local
    }

    /// Whether files can share blocks (`FICLONE`).
    pub fn shares_blocks(self) -> bool {
        matches!(self.number, BTRFS | XFS | BCACHEFS)
    }

    /// Whether files are known not to share blocks on this file system.
    pub fn never_shares_blocks(self) -> bool {
        matches!(self.number, EXT4 | TMPFS)
    }

    /// Whether overwriting a file in place is known to be faster than creating a new file.
    pub fn replaces_quickly(self) -> bool {
        matches!(self.number, XFS | EXT4 | BTRFS | TMPFS)
    }

    /// Returns the kernel's number of the file system type (`f_type`), or 0 on platforms without
    /// it.
    pub fn number(self) -> u64 {
        self.number
    }

    #[cfg(target_os = "linux")]
    fn new(stat: &StatFs) -> Self {
        /// Magic numbers of statfs(2) for file systems whose server may change, truncate or remove
        /// a mapped file, or that answer a page fault with a network request.
        const REMOTE: [u32; 16] = [
            0x0000_6969, // NFS
            0x0000_517B, // SMB
            0xFE53_4D42, // SMB2
            0xFF53_4D42, // CIFS
            0x6573_5546, // FUSE
            0x0102_1997, // 9P
            0x5346_414F, // AFS
            0x6B41_4653, // kAFS
            0x7375_7245, // Coda
            0x00C3_6400, // Ceph
            0x0BD0_0BD0, // Lustre
            0x4750_4653, // GPFS
            0x7461_636F, // OCFS2
            0xAAD7_AAEA, // PanFS
            0x1983_0326, // BeeGFS
            0x786F_4256, // VirtualBox shared folders
        ];
        // The field is signed on some platforms.
        let number = u64::from(stat.f_type as u32);
        FileSystem {
            number,
            is_local: !REMOTE.contains(&(number as u32)),
        }
    }

    #[cfg(any(target_os = "macos", target_os = "freebsd", target_os = "dragonfly"))]
    fn new(stat: &StatFs) -> Self {
        const MNT_LOCAL: u64 = 0x1000;
        FileSystem {
            number: 0,
            is_local: u64::from(stat.f_flags) & MNT_LOCAL != 0,
        }
    }

    #[cfg(not(any(
        target_os = "linux",
        target_os = "macos",
        target_os = "freebsd",
        target_os = "dragonfly"
    )))]
    fn new(_stat: &StatFs) -> Self {
        FileSystem {
            number: 0,
            is_local: true,
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_own_files_are_local_and_of_no_use() {
        let file = std::fs::File::open("/proc/self/status").expect("it is there");
        let found = FileSystem::of(&file).expect("it is open");
        assert_eq!(found.number(), 0x9fa0);
        assert!(found.is_local());
        assert!(!found.shares_blocks() && !found.replaces_quickly());
        assert_eq!(FileSystem::of(&file).expect("it is open"), found);
    }
}
