//! Which file systems are local, so that mapping their files is safe.

use std::os::fd::AsFd;
use std::sync::{PoisonError, RwLock};

/// What is known of each device, so that `statfs` is asked once for each. There are few.
static KNOWN: RwLock<Vec<(u64, bool)>> = RwLock::new(Vec::new());

/// Whether `file`, which is on `device`, is on a local file system. When the system does not say,
/// it is taken for local.
pub(super) fn is_local(file: &impl AsFd, device: u64) -> bool {
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(&(_, local)) = known.iter().find(|(other, _)| *other == device) {
        return local;
    }
    drop(known);
    let local = ask(file);
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    if !known.iter().any(|(other, _)| *other == device) {
        known.push((device, local));
    }
    local
}

#[cfg(target_os = "linux")]
fn ask(file: &impl AsFd) -> bool {
    /// Magic numbers of statfs(2): file systems whose server may change, truncate or lose a file
    /// under a map, or that answer a page fault with a round trip.
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
    rustix::fs::fstatfs(file).is_ok_and(|stat| !REMOTE.contains(&(stat.f_type as u32)))
}

#[cfg(any(target_os = "macos", target_os = "freebsd", target_os = "dragonfly"))]
fn ask(file: &impl AsFd) -> bool {
    const MNT_LOCAL: u64 = 0x1000;
    rustix::fs::fstatfs(file).is_ok_and(|stat| u64::from(stat.f_flags) & MNT_LOCAL != 0)
}

#[cfg(not(any(
    target_os = "linux",
    target_os = "macos",
    target_os = "freebsd",
    target_os = "dragonfly"
)))]
fn ask(_file: &impl AsFd) -> bool {
    true
}
