//! What the allocator keeps of memory that was freed.

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
        // SAFETY: numbers are all that is given to the allocator, which may be told at any time.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
            libc::mallopt(libc::M_TRIM_THRESHOLD, FREE_BYTES);
        }
    }
}
