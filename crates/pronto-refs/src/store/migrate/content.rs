//! Reads all refs and reflogs of a repository.

use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;

use bstr::{BStr, BString, ByteSlice};
use pronto_config::{Error, ErrorKind, Result, path};
use pronto_io::error::IoContext;

use super::super::tables::{
    LogChange, RefStacks, StoredEntry, entries_of, from_tables, is_file, logged_names, target_of,
};
use super::super::{BrokenRef, LogLine, RefHost, RefTarget, Reference, References, name};

/// The root refs whose names do not end with `_HEAD`, apart from `HEAD`.
const OTHER_ROOTS: [&str; 6] = [
    "AUTO_MERGE",
    "BISECT_EXPECTED_REV",
    "HEAD",
    "MERGE_AUTOSTASH",
    "NOTES_MERGE_PARTIAL",
    "NOTES_MERGE_REF",
];

/// All refs and reflogs of a repository, in memory.
#[derive(Debug)]
pub(super) struct MigratedRefs {
    /// The refs: root refs first, then the others, each group sorted by name.
    pub(super) refs: Vec<Reference>,
    pub(super) logs: Vec<StoredLog>,
}

/// A reflog with entries.
#[derive(Debug)]
pub(super) struct StoredLog {
    pub(super) name: BString,
    /// The entries, oldest first.
    pub(super) entries: Vec<StoredEntry>,
}

impl MigratedRefs {
    /// Reads all refs, and all reflogs if `with_logs`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Unsupported`] if a ref is broken, and with [`ErrorKind::Io`] if a
    /// file cannot be read.
    pub(super) fn read(host: &dyn RefHost, with_logs: bool) -> Result<MigratedRefs> {
        let refs = host.refs();
        let mut content = MigratedRefs {
            refs: match refs.tables() {
                Some(tables) => roots_in_tables(tables)?,
                None => roots_in_files(refs)?,
            },
            logs: Vec::new(),
        };
        refs.for_each_or_broken("refs/", |found| {
            content.refs.push(match found {
                Ok(found) => Reference {
                    name: found.name.to_owned(),
                    target: match found.symbolic {
                        Some(to) => RefTarget::Symbolic(to.clone()),
                        None => RefTarget::Object(found.id),
                    },
                    peeled: found.peeled,
                },
                Err(BrokenRef::Dangling(name)) => match refs.find(name)? {
                    Some(found) => found,
                    None => return Err(cannot_migrate(name)),
                },
                Err(BrokenRef::Contents(name)) => return Err(cannot_migrate(name)),
            });
            Ok(ControlFlow::Continue(()))
        })?;
        for found in &mut content.refs {
            if let (RefTarget::Object(id), None) = (&found.target, found.peeled) {
                // The ref may point to a missing object, so an error is ignored.
                found.peeled = host.peel_tag(*id).ok().flatten();
            }
        }
        if with_logs {
            content.logs = match refs.tables() {
                Some(tables) => logs_in_tables(refs, tables)?,
                None => logs_in_files(refs)?,
            };
            content.logs.retain(|log| !log.entries.is_empty());
        }
        Ok(content)
    }
}

/// Returns the error for a ref that this migration does not support.
pub(super) fn cannot_migrate(name: &BStr) -> Error {
    let message = format!("migrating ref '{name}' is not implemented natively");
    Error::new(ErrorKind::Unsupported, message)
}

/// Returns the sorted names of the files of root refs, including `HEAD`.
pub(super) fn root_names(refs: &References) -> Result<Vec<BString>> {
    let directory = &refs.common_dir;
    let failed = "cannot read directory";
    let entries = std::fs::read_dir(directory).context(ErrorKind::Io, failed, directory)?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.context(ErrorKind::Io, failed, directory)?;
        let name = BString::from(entry.file_name().as_bytes());
        if is_root(name.as_bstr()) {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

fn is_root(name: &BStr) -> bool {
    name::is_pseudo_syntax(name)
        && !is_file(name)
        && (name.ends_with(b"_HEAD") || OTHER_ROOTS.iter().any(|other| name == *other))
}

fn roots_in_files(refs: &References) -> Result<Vec<Reference>> {
    let mut found = Vec::new();
    for name in root_names(refs)? {
        match refs.find(&name) {
            Ok(Some(reference)) => found.push(reference),
            Ok(None) => {}
            Err(_) => return Err(cannot_migrate(name.as_bstr())),
        }
    }
    Ok(found)
}

fn roots_in_tables(tables: &RefStacks) -> Result<Vec<Reference>> {
    let snapshot = tables.shared()?.snapshot().map_err(from_tables)?;
    let mut records = snapshot.refs().map_err(from_tables)?;
    let mut found = Vec::new();
    while let Some(record) = records.next().map_err(from_tables)? {
        let name = record.name;
        if name.starts_with(b"refs/") {
            continue;
        }
        if !is_root(name) {
            return Err(cannot_migrate(name));
        }
        match target_of(name, record.value) {
            Ok(Some(target)) => found.push(Reference {
                name: name.to_owned(),
                target,
                peeled: record.value.target().map(ToOwned::to_owned),
            }),
            Ok(None) => {}
            Err(_) => return Err(cannot_migrate(name)),
        }
    }
    Ok(found)
}

fn logs_in_tables(refs: &References, tables: &RefStacks) -> Result<Vec<StoredLog>> {
    let snapshot = tables.shared()?.snapshot().map_err(from_tables)?;
    let mut logs = Vec::new();
    for name in logged_names(tables, &refs.common_dir)? {
        if !name::is_safe(name.as_bstr()) {
            return Err(cannot_migrate(name.as_bstr()));
        }
        let mut entries = entries_of(&snapshot, name.as_bstr())?;
        entries.retain(|entry| !entry.is_marker());
        logs.push(StoredLog { name, entries });
    }
    Ok(logs)
}

fn logs_in_files(refs: &References) -> Result<Vec<StoredLog>> {
    let mut logs = Vec::new();
    for name in names_of_log_files(refs)? {
        if !name::is_safe(name.as_bstr()) {
            return Err(cannot_migrate(name.as_bstr()));
        }
        let Some(log) = refs.log(&name)? else {
            continue;
        };
        let mut entries = Vec::new();
        for line in log.oldest_first() {
            entries.push(entry_of(&line).ok_or_else(|| cannot_migrate(name.as_bstr()))?);
        }
        logs.push(StoredLog { name, entries });
    }
    Ok(logs)
}

/// Converts a line of a reflog file to an entry; `None` if reftables cannot store the line.
fn entry_of(line: &LogLine<'_>) -> Option<StoredEntry> {
    let seconds = u64::try_from(line.seconds).ok()?;
    let who = format!("{} {seconds} {}", line.who.to_str().ok()?, line.zone);
    let change = LogChange {
        old: line.old,
        new: line.new,
    };
    Some(StoredEntry::new(0, &change, &who, line.message))
}

/// Returns the sorted names of all files below `logs/`.
fn names_of_log_files(refs: &References) -> Result<Vec<BString>> {
    let top = refs.common_dir.join("logs");
    let failed = "cannot read directory";
    let mut names = Vec::new();
    let mut directories = vec![BString::default()];
    while let Some(directory) = directories.pop() {
        let full = top.join(path::borrow(directory.as_bstr()));
        let entries = match std::fs::read_dir(&full) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            entries => entries.context(ErrorKind::Io, failed, &full)?,
        };
        for entry in entries {
            let entry = entry.context(ErrorKind::Io, failed, &full)?;
            let file_name = entry.file_name();
            if file_name.as_bytes().ends_with(b".lock") {
                continue;
            }
            let mut name = directory.clone();
            if !name.is_empty() {
                name.push(b'/');
            }
            name.extend_from_slice(file_name.as_bytes());
            match entry.file_type().context(ErrorKind::Io, failed, &full)? {
                kind if kind.is_dir() => directories.push(name),
                kind if kind.is_file() => names.push(name),
                _ => return Err(cannot_migrate(name.as_bstr())),
            }
        }
    }
    names.sort_unstable();
    Ok(names)
}
