//! The arguments with which garbage collection calls `git repack`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use super::Settings;
use super::loose::has_many_loose_objects;
use super::packs::OwnPacks;
use crate::Repository;

/// Returns the arguments that automatic garbage collection adds to `repack`; `None` if there is too
/// little to do.
pub(super) fn automatic_repacking(
    repository: &Repository,
    settings: &Settings,
) -> Option<Vec<OsString>> {
    if settings.auto <= 0 {
        return None;
    }
    let packs = OwnPacks::of(repository);
    let count = packs.stems().filter(|stem| !packs.is_kept(stem)).count() as i64;
    let limit = i64::from(settings.auto_pack_limit);
    if limit > 0 && count > limit {
        let mut kept = Vec::new();
        if settings.big_pack_threshold > 0 {
            kept = larger_than(&packs, settings.big_pack_threshold);
            if kept.len() as i64 >= limit {
                kept = largest(&packs).into_iter().collect();
            }
        } else if let Some(base) = largest(&packs) {
            let memory = rustix::system::sysinfo();
            let memory = memory.totalram * u64::from(memory.mem_unit).max(1);
            if memory > 0 && memory_to_repack(repository, &packs, &base) >= memory / 2 {
                kept.push(base);
            }
        }
        return Some(repack_all(settings, &kept));
    }
    if has_many_loose_objects(repository, settings.auto.into()) {
        return Some(words(&["--no-write-bitmap-index"]));
    }
    None
}

/// Estimates the memory in bytes for repacking everything. The formula is Git's, with the sizes of
/// Git's structures.
fn memory_to_repack(repository: &Repository, packs: &OwnPacks, base: &OsString) -> u64 {
    const ENTRY: u64 = 80;
    const BLOB: u64 = 40;
    const TREE: u64 = 56;
    const SLOT: u64 = 8;
    const PLACE: u64 = 12;
    let count = repository
        .objects()
        .ok()
        .and_then(|it| it.approximate_count().ok());
    let Some(count) = count.filter(|count| *count > 0) else {
        return 0;
    };
    let size = |key: &str, default: u64| match repository.config().u64(key) {
        Ok(Some(size)) => size,
        _ => default,
    };
    let each = ENTRY + BLOB / 2 + TREE / 2 + SLOT + PLACE;
    packs.size(base)
        + packs.index_size(base)
        + each.saturating_mul(count)
        + size("core.deltabasecachelimit", 96 << 20)
        + size("pack.deltacachesize", 256 << 20)
}

pub(super) fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(Into::into).collect()
}

/// Returns the arguments of a `git repack` of all packs but `kept`.
pub(super) fn repack_all(settings: &Settings, kept: &[OsString]) -> Vec<OsString> {
    let mut arguments = Vec::new();
    let valued =
        |name: &str, value: &[u8]| OsString::from_vec([name.as_bytes(), b"=", value].concat());
    let age = settings.prune_expire.as_ref();
    let saves = settings.cruft_packs && settings.expire_to.is_some();
    if age.is_some_and(|age| age == "now") && !saves {
        arguments.push("-a".into());
    } else if settings.cruft_packs {
        arguments.push("--cruft".into());
        if let Some(age) = age {
            arguments.push(valued("--cruft-expiration", age));
        }
        if settings.max_cruft_size > 0 {
            arguments.push(format!("--max-cruft-size={}", settings.max_cruft_size).into());
        }
        if let Some(place) = &settings.expire_to {
            arguments.push(valued("--expire-to", place.as_encoded_bytes()));
        }
    } else {
        arguments.push("-A".into());
        if let Some(age) = age {
            arguments.push(valued("--unpack-unreachable", age));
        }
    }
    for stem in kept {
        let name = Path::new(stem).with_extension("pack");
        arguments.push(valued("--keep-pack", name.as_os_str().as_encoded_bytes()));
    }
    if !settings.repack_filter.is_empty() {
        arguments.push(valued("--filter", &settings.repack_filter));
    }
    if !settings.repack_filter_to.is_empty() {
        arguments.push(valued("--filter-to", &settings.repack_filter_to));
    }
    arguments
}

pub(super) fn largest(packs: &OwnPacks) -> Option<OsString> {
    let stems = packs.stems().filter(|stem| !packs.is_cruft(stem));
    stems.max_by_key(|stem| packs.size(stem)).cloned()
}

pub(super) fn larger_than(packs: &OwnPacks, size: u64) -> Vec<OsString> {
    let stems = packs.stems().filter(|stem| !packs.is_cruft(stem));
    stems
        .filter(|stem| packs.size(stem) >= size)
        .cloned()
        .collect()
}
