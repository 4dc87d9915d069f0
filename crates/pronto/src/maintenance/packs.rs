//! The numbers and sizes of a repository's packs, by which maintenance decides.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::{Error, ErrorKind, Repository, Result};

/// The files in `objects/pack` of the repository, without those of alternates.
#[derive(Debug)]
pub(super) struct OwnPacks {
    directory: PathBuf,
    /// The names, without extension, of the packs that have an index, sorted.
    stems: Vec<OsString>,
    names: HashSet<OsString>,
}

impl OwnPacks {
    /// Lists the packs of `repository`. Costs one directory listing.
    pub(super) fn of(repository: &Repository) -> Self {
        Self::in_objects(&repository.objects_dir())
    }

    /// Lists the packs of the object directory `objects`.
    pub(super) fn in_objects(objects: &Path) -> Self {
        let directory = objects.join("pack");
        let entries = std::fs::read_dir(&directory).into_iter().flatten();
        let names: HashSet<OsString> = entries.flatten().map(|entry| entry.file_name()).collect();
        let mut stems: Vec<OsString> = Vec::new();
        for name in &names {
            let path = Path::new(name);
            let is_pack = path.extension().is_some_and(|ending| ending == "pack");
            if is_pack && names.contains(path.with_extension("idx").as_os_str()) {
                stems.push(path.with_extension("").into());
            }
        }
        stems.sort();
        OwnPacks {
            directory,
            stems,
            names,
        }
    }

    /// Returns the names of the packs, without extension.
    pub(super) fn stems(&self) -> impl Iterator<Item = &OsString> {
        self.stems.iter()
    }

    /// Whether the pack has a file with this extension.
    pub(super) fn has(&self, stem: &OsString, ending: &str) -> bool {
        self.names
            .contains(Path::new(stem).with_extension(ending).as_os_str())
    }

    /// Whether the pack has a `.keep` file.
    pub(super) fn is_kept(&self, stem: &OsString) -> bool {
        self.has(stem, "keep")
    }

    /// Whether the pack is a cruft pack.
    pub(super) fn is_cruft(&self, stem: &OsString) -> bool {
        self.has(stem, "mtimes")
    }

    /// Returns the size of the pack in bytes; zero if the pack no longer exists.
    pub(super) fn size(&self, stem: &OsString) -> u64 {
        std::fs::metadata(self.path(stem, "pack")).map_or(0, |file| file.len())
    }

    /// Returns the size of the pack's index in bytes; zero if the index no longer exists.
    pub(super) fn index_size(&self, stem: &OsString) -> u64 {
        std::fs::metadata(self.path(stem, "idx")).map_or(0, |file| file.len())
    }

    fn path(&self, stem: &OsString, ending: &str) -> PathBuf {
        self.directory.join(stem).with_extension(ending)
    }

    /// Returns the number of objects in the pack, read from its index. Costs three system calls.
    /// `None` if the index is missing or truncated.
    pub(super) fn count(&self, stem: &OsString) -> Option<u32> {
        let file = File::open(self.path(stem, "idx")).ok()?;
        // The last entry of the fanout table. The table follows a magic number and a version in
        // version 2, and starts the file in version 1.
        let mut bytes = [0; 8 + 1024];
        file.read_exact_at(&mut bytes[..1024], 0).ok()?;
        let is_newer = bytes.starts_with(b"\xfftOc");
        if is_newer {
            file.read_exact_at(&mut bytes, 0).ok()?;
        }
        let end = if is_newer { 1032 } else { 1024 };
        Some(u32::from_be_bytes(bytes[end - 4..end].try_into().ok()?))
    }

    /// Returns the packs that a geometric repack would combine.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::InvalidInput`] if a pack has too many objects to be compared.
    pub(super) fn progression(&self, factor: u32) -> Result<Progression> {
        let stems = self.stems.iter();
        let taken = stems.filter(|stem| {
            !self.is_kept(stem) && !self.is_cruft(stem) && !self.has(stem, "promisor")
        });
        let mut counts: Vec<u32> = taken.filter_map(|stem| self.count(stem)).collect();
        counts.sort_unstable();
        Progression::of(&counts, factor)
    }
}

/// The packs that a geometric repack merges, where packs are sorted by their number of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Progression {
    /// The number of smallest packs to merge.
    pub(super) split: usize,
    /// The number of all packs.
    pub(super) packs: usize,
}

impl Progression {
    /// Computes the progression of packs with these sorted numbers of objects.
    pub(super) fn of(counts: &[u32], factor: u32) -> Result<Self> {
        let too_large = || {
            Error::new(
                ErrorKind::InvalidInput,
                "a pack is too large to be compared",
            )
        };
        let mut split = counts.len().saturating_sub(1);
        while split > 0 {
            let least = counts[split - 1].checked_mul(factor);
            if counts[split] < least.ok_or_else(too_large)? {
                split += 1;
                break;
            }
            split -= 1;
        }
        let mut total: u64 = counts[..split].iter().map(|&count| u64::from(count)).sum();
        for &count in &counts[split..] {
            let least = total.checked_mul(factor.into()).ok_or_else(too_large)?;
            if u64::from(count) >= least {
                break;
            }
            split += 1;
            total += u64::from(count);
        }
        Ok(Progression {
            split,
            packs: counts.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_forms_a_progression_stays() {
        let split = |counts: &[u32]| Progression::of(counts, 2).expect("small").split;
        assert_eq!(split(&[]), 0);
        assert_eq!(split(&[7]), 0);
        assert_eq!(split(&[1, 2, 9]), 0);
        assert_eq!(split(&[3, 3]), 2);
        assert_eq!(split(&[1, 1, 9]), 2);
        assert_eq!(split(&[4, 4, 9]), 3);
        assert!(Progression::of(&[u32::MAX, u32::MAX], 2).is_err());
    }

    #[test]
    fn broken_indexes_have_no_count() {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(directory.path().join("pack")).expect("a directory");
        let write = |name: &str, bytes: &[u8]| {
            std::fs::write(directory.path().join("pack").join(name), bytes).expect("a file");
        };
        for (name, length) in [("pack-a", 0), ("pack-b", 1023), ("pack-c", 1024)] {
            write(&format!("{name}.pack"), b"");
            write(&format!("{name}.idx"), &vec![0; length]);
        }
        write("pack-d.pack", b"");
        let packs = OwnPacks::in_objects(directory.path());
        let counts: Vec<_> = packs.stems().map(|stem| packs.count(stem)).collect();
        assert_eq!(counts, [None, None, Some(0)]);
    }
}
