//! The files of a package, in memory, and the archive of them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;

use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

/// A file or a symbolic link of a package.
pub(super) enum PackageEntry {
    /// The content, and the permissions.
    File(Vec<u8>, u32),
    /// The target of the link.
    Link(String),
}

/// The files of a package by their path without a leading slash. Directories follow from the paths.
#[derive(Default)]
pub(super) struct PackageTree {
    entries: BTreeMap<String, PackageEntry>,
}

impl PackageTree {
    pub(super) fn add(&mut self, path: &str, content: impl Into<Vec<u8>>) {
        self.insert(path, PackageEntry::File(content.into(), 0o644));
    }

    pub(super) fn add_program(&mut self, path: &str, content: impl Into<Vec<u8>>) {
        self.insert(path, PackageEntry::File(content.into(), 0o755));
    }

    pub(super) fn add_link(&mut self, path: &str, target: &str) {
        self.insert(path, PackageEntry::Link(target.to_owned()));
    }

    fn insert(&mut self, path: &str, entry: PackageEntry) {
        self.entries.insert(path.to_owned(), entry);
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (&str, &PackageEntry)> {
        self.entries
            .iter()
            .map(|(path, entry)| (path.as_str(), entry))
    }

    /// Returns all directories, parents before children.
    pub(super) fn directories(&self) -> BTreeSet<&str> {
        let parts = |path: &str| {
            path.match_indices('/')
                .map(|(at, _)| at)
                .collect::<Vec<_>>()
        };
        self.entries
            .keys()
            .flat_map(|path| parts(path).into_iter().map(move |at| &path[..at]))
            .collect()
    }

    /// Returns the tree as a tar archive whose bytes depend only on the tree, `prefix` and `time`:
    /// sorted, owned by root. `prefix` is the directory around all paths.
    ///
    /// # Errors
    /// Fails if a path is longer than 100 bytes.
    pub(super) fn to_tar(&self, prefix: &str, time: u64) -> Result<Vec<u8>, String> {
        let mut archive = Builder::new(Vec::new());
        let mut append = |path: &str, kind: EntryType, mode: u32, content: &[u8], target: &str| {
            let mut header = Header::new_gnu();
            let end = match kind {
                EntryType::Directory if !path.is_empty() => "/",
                _ => "",
            };
            let name = format!("{prefix}/{path}{end}");
            put(&mut header.as_old_mut().name, &name)?;
            put(&mut header.as_old_mut().linkname, target)?;
            header.set_entry_type(kind);
            header.set_mode(mode);
            header.set_mtime(time);
            header.set_size(content.len() as u64);
            header.set_uid(0);
            header.set_gid(0);
            let owned = header
                .set_username("root")
                .and(header.set_groupname("root"));
            owned.map_err(|error| error.to_string())?;
            header.set_cksum();
            archive
                .append(&header, content)
                .map_err(|error| format!("{name}: {error}"))
        };
        append("", EntryType::Directory, 0o755, &[], "")?;
        for directory in self.directories() {
            append(directory, EntryType::Directory, 0o755, &[], "")?;
        }
        for (path, entry) in self.entries() {
            match entry {
                PackageEntry::File(content, mode) => {
                    append(path, EntryType::Regular, *mode, content, "")?;
                }
                PackageEntry::Link(target) => {
                    append(path, EntryType::Symlink, 0o777, &[], target)?;
                }
            }
        }
        archive.into_inner().map_err(|error| error.to_string())
    }
}

/// Writes `text` into a field of a header.
fn put(field: &mut [u8], text: &str) -> Result<(), String> {
    let room = field.get_mut(..text.len());
    let room = room.ok_or_else(|| format!("'{text}' is too long for an archive"))?;
    room.copy_from_slice(text.as_bytes());
    Ok(())
}

/// Compresses `content` as `gzip -9n` does: without a name and a time.
///
/// # Errors
/// Fails if the compression fails.
pub(super) fn gzip(content: &[u8]) -> Result<Vec<u8>, String> {
    let mut writer = GzBuilder::new().write(Vec::new(), Compression::best());
    let written = writer.write_all(content).and_then(|()| writer.finish());
    written.map_err(|error| format!("cannot compress: {error}"))
}
