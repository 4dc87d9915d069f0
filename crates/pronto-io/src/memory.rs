//! Controls how much freed memory the allocator keeps.

/// From now on large buffers (2 MiB and more) go back to the system as soon as they are freed, and
/// so does what is free at the end of a heap beyond 16 MiB. By itself the C library keeps ever larger
/// ones the more of them there were, up to 64 MiB for each thread: right for few threads that read
/// the same sizes over and over, and wrong where many sizes come and go.
///
/// Any thread may call it, at any time. It counts for the whole process, and costs a system call for
/// each large buffer. Nothing where the allocator is not glibc's.
pub fn return_large_buffers() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        const LARGE_BYTES: i32 = 2 << 20;
        const FREE_BYTES: i32 = 16 << 20;
        // SAFETY: the call only passes numbers to the allocator and is allowed at any time.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
            libc::mallopt(libc::M_TRIM_THRESHOLD, FREE_BYTES);
        }
    }
}

/// Asks the system for few large pages instead of many small ones for `bytes`, which should be of some
/// megabytes and not have been written to. Each small page costs half a microsecond when it is
/// written to first. Never fails: it is only a wish.
pub fn use_large_pages(bytes: &mut [u8]) {
    #[cfg(target_os = "linux")]
    {
        const PAGE_BYTES: usize = 2 << 20;
        let start = bytes.as_ptr().align_offset(PAGE_BYTES);
        let len = bytes.len().saturating_sub(start) / PAGE_BYTES * PAGE_BYTES;
        if len > 0 {
            // SAFETY: the range is within `bytes`, which are borrowed for as long as the call takes,
            // and the advice changes nothing of what they hold.
            unsafe {
                libc::madvise(bytes[start..].as_mut_ptr().cast(), len, libc::MADV_HUGEPAGE);
            }
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = bytes;
}
