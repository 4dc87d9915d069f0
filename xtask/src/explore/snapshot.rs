//! Describes a directory with repositories as parts that can be compared.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::index;

/// The parts of a directory and their texts: files with their modes, index entries and objects.
pub(super) type StateSnapshot = BTreeMap<SnapshotPart, String>;

/// The kind of a part, by which differences are grouped, and its path relative to the root.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SnapshotPart {
    pub(super) kind: &'static str,
    pub(super) path: String,
}

/// Takes the snapshot of the directory `root`.
///
/// # Errors
/// Fails if a file cannot be read.
pub(super) fn take(root: &Path) -> io::Result<StateSnapshot> {
    let mut taking = SnapshotBuilder {
        snapshot: StateSnapshot::new(),
        objects: BTreeMap::new(),
    };
    taking.directory(root, "")?;
    for (path, ids) in taking.objects {
        let ids: Vec<String> = ids.into_iter().collect();
        let part = SnapshotPart {
            kind: "objects",
            path,
        };
        taking.snapshot.insert(part, ids.join("\n"));
    }
    Ok(taking.snapshot)
}

/// An incomplete snapshot.
struct SnapshotBuilder {
    snapshot: StateSnapshot,
    /// The object ids in each object directory.
    objects: BTreeMap<String, BTreeSet<String>>,
}

impl SnapshotBuilder {
    fn directory(&mut self, path: &Path, name: &str) -> io::Result<()> {
        let mut is_empty = true;
        for entry in fs::read_dir(path)? {
            is_empty = false;
            let entry = entry?;
            let file_name = entry.file_name().to_string_lossy().into_owned();
            let inner = match name {
                "" => file_name,
                name => format!("{name}/{file_name}"),
            };
            let metadata = entry.metadata()?;
            if metadata.is_dir() {
                self.directory(&entry.path(), &inner)?;
            } else if metadata.is_symlink() {
                let target = fs::read_link(entry.path())?.to_string_lossy().into_owned();
                self.add(&inner, format!("link to {target}"));
            } else {
                self.file(&entry.path(), &inner, metadata.permissions().mode())?;
            }
        }
        if is_empty && !is_in_repository(name) {
            self.add(name, "empty directory".to_owned());
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, name: &str, mode: u32) -> io::Result<()> {
        let name_in_repository = in_repository(name);
        let base = name.rsplit('/').next().unwrap_or(name);
        if let Some((before, object)) = name
            .split_once("objects/")
            .filter(|_| is_in_repository(name))
        {
            return self.object(path, before, object);
        }
        if let Some((stem, ending)) = pack_file(base) {
            // `pack-objects BASE` writes such a file. Its name contains a checksum of compressed
            // bytes.
            if ending == "idx" {
                let place = &name[..name.len() - base.len()];
                let ids = ids_of_pack(&fs::read(path)?);
                let objects = self.objects.entry(format!("{place}{stem}"));
                objects.or_default().extend(ids);
            }
            return Ok(());
        }
        let is_binary = name_in_repository
            .is_some_and(|name| name.split('/').any(|part| part == "reftable"))
            || base.starts_with("sharedindex.");
        if is_binary {
            return Ok(());
        }
        let content = fs::read(path)?;
        // `GIT_INDEX_FILE` may name an index outside of the repository.
        if content.starts_with(b"DIRC") {
            let part = SnapshotPart {
                kind: "index",
                path: name.to_owned(),
            };
            self.snapshot.insert(part, index::describe(&content));
            return Ok(());
        }
        let text = String::from_utf8_lossy(&content);
        self.add(name, format!("{:o}\n{text}", mode & 0o111));
        Ok(())
    }

    /// Records a file of an object directory. Compressed bytes and names of packs are ignored,
    /// because they may differ.
    fn object(&mut self, path: &Path, before: &str, name: &str) -> io::Result<()> {
        let ids = self.objects.entry(format!("{before}objects")).or_default();
        if let Some((folder, rest)) = name.split_once('/') {
            let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
            if folder.len() == 2 && is_hex(folder) && is_hex(rest) {
                ids.insert(format!("{folder}{rest}"));
                return Ok(());
            }
        }
        let ending = name.rsplit('.').next().unwrap_or_default();
        if name.starts_with("pack/") && ending == "idx" {
            ids.extend(ids_of_pack(&fs::read(path)?));
        } else if name.starts_with("pack/") && ["keep", "promisor"].contains(&ending) {
            self.add(&format!("{before}objects/pack/.{ending}"), String::new());
        } else if name == "info/alternates" {
            let text = fs::read_to_string(path)?;
            self.add(&format!("{before}objects/{name}"), text);
        } else if name.contains("tmp_") {
            self.add(&format!("{before}objects/temporary file"), String::new());
        }
        Ok(())
    }

    fn add(&mut self, name: &str, text: String) {
        let kind = match in_repository(name) {
            None => "file",
            Some(inner) if inner.starts_with("logs/") => "reflog",
            Some(inner) if inner.starts_with("refs/") || inner == "packed-refs" => "ref",
            Some("HEAD") => "HEAD",
            Some(inner) if inner.starts_with("config") => "configuration",
            Some(_) => "file of the repository",
        };
        let path = name.to_owned();
        self.snapshot.insert(SnapshotPart { kind, path }, text);
    }
}

/// Splits the name of a pack file into the parts before and after its checksum.
fn pack_file(name: &str) -> Option<(&str, &str)> {
    let (stem, rest) = name.rsplit_once('-')?;
    let (checksum, ending) = rest.split_once('.')?;
    let is_checksum =
        [40, 64].contains(&checksum.len()) && checksum.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_pack = is_checksum && ["pack", "idx", "rev"].contains(&ending);
    is_pack.then_some((stem, ending))
}

/// Returns the part of a path below the first component that ends with `.git`.
fn in_repository(name: &str) -> Option<&str> {
    name.match_indices(".git/")
        .next()
        .map(|(position, found)| &name[position + found.len()..])
}

fn is_in_repository(name: &str) -> bool {
    in_repository(name).is_some() || name.ends_with(".git")
}

/// Returns the object ids in a pack index (version 2).
fn ids_of_pack(bytes: &[u8]) -> Vec<String> {
    const TABLE: usize = 8;
    const IDS: usize = TABLE + 256 * 4;
    let number = |position: usize| {
        let word = bytes.get(position..position + 4)?;
        Some(u32::from_be_bytes(word.try_into().ok()?) as usize)
    };
    let Some(count) = number(IDS - 4).filter(|count| *count > 0) else {
        return Vec::new();
    };
    // The rest of the file has a CRC and an offset of 4 bytes for each object, and two checksums at
    // the end.
    let has_size = |size: usize| bytes.len() >= IDS + count * (size + 8) + 2 * size;
    let size = match has_size(32) && bytes.len() != IDS + count * 28 + 40 {
        true => 32,
        false => 20,
    };
    let ids = bytes.get(IDS..IDS + count * size).unwrap_or_default();
    ids.chunks(size).map(index::hex).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_told_apart_by_their_repository() {
        assert_eq!(in_repository("r/.git/HEAD"), Some("HEAD"));
        assert_eq!(
            in_repository("o.git/refs/heads/main"),
            Some("refs/heads/main")
        );
        assert_eq!(in_repository("r/.gitignore"), None);
    }

    #[test]
    fn files_of_packs_have_checksums_as_names() {
        let checksum = "0123456789".repeat(4);
        let file = |ending: &str| format!("x-{checksum}.{ending}");
        assert_eq!(pack_file(&file("idx")), Some(("x", "idx")));
        assert_eq!(pack_file(&file("txt")), None);
        assert_eq!(pack_file("x-12.idx"), None);
    }

    #[test]
    fn a_snapshot_has_kinds_of_parts() {
        let scratch = test_support::Scratch::new();
        let git = scratch.join("r/.git");
        fs::create_dir_all(git.join("refs/heads")).expect("a directory");
        fs::create_dir_all(git.join("objects/aa")).expect("a directory");
        fs::write(git.join("objects/aa").join("b".repeat(38)), "x").expect("a file");
        fs::write(git.join("refs/heads/main"), "id").expect("a file");
        fs::write(scratch.join("r/file"), "text").expect("a file");
        let snapshot = take(scratch.path()).expect("a snapshot");
        let parts: Vec<_> = snapshot
            .keys()
            .map(|part| (part.kind, part.path.as_str()))
            .collect();
        let expected = [
            ("file", "r/file"),
            ("objects", "r/.git/objects"),
            ("ref", "r/.git/refs/heads/main"),
        ];
        assert_eq!(parts, expected);
    }
}
