//! The properties of the machine on which a result was measured.

use std::path::Path;

/// Returns the processor, cores, memory and kernel of this machine, and the type of the file system
/// that contains `data`.
pub fn properties(data: &Path) -> Vec<(String, String)> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    [
        ("processor", proc_field("/proc/cpuinfo", "model name")),
        ("cores", cores.to_string()),
        ("memory", proc_field("/proc/meminfo", "MemTotal")),
        ("kernel", read("/proc/sys/kernel/osrelease")),
        ("file system", file_system(data)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

/// Drops the page cache.
///
/// # Errors
/// Fails if the process is not root.
pub fn drop_caches() -> Result<(), String> {
    rustix::fs::sync();
    std::fs::write("/proc/sys/vm/drop_caches", "3")
        .map_err(|error| format!("cannot drop the page cache (needs root): {error}"))
}

/// Writes to each page of `gib` GiB of memory and frees it.
pub fn touch(gib: usize) {
    const PAGE_BYTES: usize = 4096;
    let mut memory = vec![0_u8; gib << 30];
    for page in memory.chunks_mut(PAGE_BYTES) {
        page[0] = 1;
    }
    std::hint::black_box(&memory);
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

fn proc_field(path: &str, name: &str) -> String {
    let text = read(path);
    let line = text
        .lines()
        .find(|line| line.starts_with(name))
        .unwrap_or_default();
    line.split_once(':')
        .map_or(String::new(), |(_, value)| value.trim().to_owned())
}

/// Returns the type of the file system with the longest mount point above `data`.
fn file_system(data: &Path) -> String {
    let mounts = read("/proc/mounts");
    mounts
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ').skip(1);
            Some((words.next()?, words.next()?))
        })
        .filter(|(point, _)| data.starts_with(point))
        .max_by_key(|(point, _)| point.len())
        .map_or(String::new(), |(_, kind)| kind.to_owned())
}
