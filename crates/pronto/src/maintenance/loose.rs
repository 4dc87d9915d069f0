//! Estimates the number of loose objects.

use std::path::Path;

use crate::Repository;

/// The number of directories of loose objects.
const FANOUT: i64 = 256;

/// Estimates whether there are more than `limit` loose objects, from the number in one directory.
pub(super) fn has_many_loose_objects(repository: &Repository, limit: i64) -> bool {
    let count = loose_in(
        &repository.objects_dir(),
        0x17,
        repository.object_hash().len_in_hex(),
    );
    count > (limit + FANOUT - 1) / FANOUT
}

/// Returns the number of loose objects whose ids start with `byte`.
pub(super) fn loose_in(objects: &Path, byte: u8, hex_len: usize) -> i64 {
    let entries = std::fs::read_dir(objects.join(format!("{byte:02x}")));
    let names = entries.into_iter().flatten().flatten();
    let is_object = |name: std::ffi::OsString| {
        let name = name.as_encoded_bytes();
        let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        name.len() == hex_len - 2 && name.iter().all(is_digit)
    };
    names.filter(|entry| is_object(entry.file_name())).count() as i64
}
