//! The scripts of Git's own tests that run here.
//!
//! A third of the scripts is left out, and nobody who works on pronto reads or runs it: it judges pronto
//! from outside. The checksum of a name decides, so that the third is the same on every machine.

use std::io;
use std::path::Path;

use super::result::is_script_name;

/// The divisor of the selection: a script is left out if the checksum of its name is divisible by
/// this number.
const PARTS: u32 = 3;

/// The groups of scripts about native commands: setup and objects, the index and checkout, sparse
/// checkout and read-tree, transports, and the porcelain of worktrees.
const NATIVE_GROUPS: [&str; 5] = ["t0", "t1", "t2", "t5", "t7"];

/// Returns the names of the scripts in `directory` that may run, sorted.
///
/// # Errors
/// Fails if the directory cannot be read.
pub(super) fn scripts(directory: &Path) -> Result<Vec<String>, String> {
    let read = || -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(directory)? {
            let name = entry?.file_name();
            let name = name.to_str().and_then(|name| name.strip_suffix(".sh"));
            names.extend(name.filter(|name| is_seen_script(name)).map(str::to_owned));
        }
        names.sort();
        Ok(names)
    };
    read().map_err(|error| format!("cannot read '{}': {error}", directory.display()))
}

/// Returns whether a script is about commands that pronto has.
pub(super) fn is_native(name: &str) -> bool {
    NATIVE_GROUPS.iter().any(|group| name.starts_with(group))
}

/// Returns whether `name` is a script that may run here.
pub(super) fn is_seen_script(name: &str) -> bool {
    is_script_name(name) && !is_kept_for_judging(name)
}

/// Returns whether a script is left out.
fn is_kept_for_judging(name: &str) -> bool {
    checksum(format!("{name}\n").as_bytes()).is_multiple_of(PARTS)
}

/// Returns the checksum of `bytes` that the program `cksum` prints, as POSIX defines it.
fn checksum(bytes: &[u8]) -> u32 {
    const POLYNOMIAL: u32 = 0x04c1_1db7;
    let length = (0..)
        .map(|byte| bytes.len() >> (8 * byte))
        .take_while(|rest| *rest != 0)
        .map(|rest| rest as u8);
    let all = bytes.iter().copied().chain(length);
    let sum = all.fold(0_u32, |sum, byte| {
        (0..8).fold(sum ^ (u32::from(byte) << 24), |sum, _| match sum >> 31 {
            0 => sum << 1,
            _ => (sum << 1) ^ POLYNOMIAL,
        })
    });
    !sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_cksum() {
        assert_eq!(checksum(b"t0001-init\n"), 2_196_537_024);
        assert_eq!(checksum(b""), 4_294_967_295);
    }

    #[test]
    fn a_script_with_a_sum_divisible_by_three_is_left_out() {
        assert!(!is_seen_script("t0001-init"));
        assert!(is_seen_script("t0021-conversion"));
        assert!(!is_seen_script("lib-httpd"));
    }
}
