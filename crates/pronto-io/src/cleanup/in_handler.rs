//! Removes paths from within a signal handler: with system calls and the stack only, without locks
//! and allocations.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr;
use std::sync::atomic::Ordering::SeqCst;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, openat, unlinkat};
use rustix::io::Errno;

use super::slots;

/// The maximum depth of nested directories. Each level takes a descriptor, and [`CHUNK_BYTES`] and
/// a little more of the stack of the interrupted thread.
const DEEPEST: u32 = 256;

/// The size of the buffer for directory entries, which holds at least one entry with the longest
/// name.
const CHUNK_BYTES: usize = 1024;

/// Removes the paths of all live guards, the latest first. The strings are not freed, because the
/// process is about to end.
pub(crate) fn remove_all_in_handler() {
    for slot in slots() {
        let path = slot.swap(ptr::null_mut(), SeqCst);
        if !path.is_null() {
            // SAFETY: a C string that came from `into_raw`, and that is never freed from now on.
            remove(CWD, unsafe { CStr::from_ptr(path) }, DEEPEST);
        }
    }
}

/// Removes the entry `name` of `parent`. Retries, because other threads may still be creating files
/// inside of a directory.
fn remove(parent: BorrowedFd<'_>, name: &CStr, depth: u32) {
    for _ in 0..8 {
        match unlinkat(parent, name, AtFlags::empty()) {
            // The errors for a directory: `EPERM` in POSIX, `EISDIR` in Linux.
            Err(Errno::PERM | Errno::ISDIR) if depth > 0 => empty(parent, name, depth - 1),
            Err(Errno::INTR) => continue,
            _ => return,
        }
        match unlinkat(parent, name, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::INTR) => {}
            _ => return,
        }
    }
}

/// Removes the entries of the directory, as far as possible.
fn empty(parent: BorrowedFd<'_>, name: &CStr, depth: u32) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(directory) = openat(parent, name, flags, Mode::empty()) else {
        return;
    };
    let directory = directory.as_fd();
    let mut chunk = [MaybeUninit::<u8>::uninit(); CHUNK_BYTES];
    let mut entries = RawDir::new(directory, &mut chunk);
    while let Some(Ok(entry)) = entries.next() {
        let is_link_up = matches!(entry.file_name().to_bytes(), b"." | b"..");
        if is_link_up {
            continue;
        }
        if entry.file_type() == FileType::Directory && depth > 0 {
            empty(directory, entry.file_name(), depth - 1);
            let _ = unlinkat(directory, entry.file_name(), AtFlags::REMOVEDIR);
        } else {
            remove(directory, entry.file_name(), depth);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn a_tree_goes_and_what_its_links_name_stays() {
        let base = std::env::temp_dir().join(format!("pronto-handler-{}", std::process::id()));
        let _guard = crate::cleanup::Guard::new(&base);
        let (tree, outside) = (base.join("tree"), base.join("outside"));
        std::fs::create_dir_all(&outside).expect("a directory");
        std::fs::write(outside.join("file"), b"x").expect("a file");
        for directory in 0..50 {
            let directory = tree.join(format!("{directory}/a/b/c"));
            std::fs::create_dir_all(&directory).expect("a directory");
            std::os::unix::fs::symlink(&outside, directory.join("link")).expect("a link");
            for file in 0..50 {
                let name = format!("{file:0100}");
                std::fs::write(directory.join(name), b"x").expect("a file");
            }
        }
        let name = CString::new(tree.as_os_str().as_bytes()).expect("no zero byte");
        remove(CWD, &name, DEEPEST);
        assert!(!tree.exists());
        assert!(outside.join("file").exists());
        remove(CWD, &name, DEEPEST);
    }
}
