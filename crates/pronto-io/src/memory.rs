//! Controls how much freed memory the allocator keeps.

/// Makes the allocator return freed large buffers (2 MiB and more) to the system at once, and also
/// free memory of more than 16 MiB at the end of a heap. By default glibc raises its thresholds
/// with the sizes of freed buffers, and then keeps up to 64 MiB for each thread. The default suits
/// a few threads that allocate the same sizes again and again, and wastes memory if sizes vary.
///
/// May be called from any thread, at any time. Applies to the whole process. Costs a system call
/// for each large buffer. Has no effect with allocators other than glibc's.
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

/// Advises the system to use huge pages for `bytes`, which should be several megabytes and not yet
/// written to. This saves the page faults of the first write to each small page. Never fails,
/// because the system may ignore the advice.
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
