//! The file `tables.list`: the names of the tables, oldest first.

use std::fmt;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::ErrorKind as Io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use pronto_io::error::IoContext;
use pronto_io::untrusted::{self, SymlinkPolicy};

use crate::reftable::UpdateIndexRange;
use crate::reftable::error::{Error, ErrorKind, Result};

/// The file name of the list.
pub(super) const TABLES_LIST: &str = "tables.list";

/// The suffix of the names of tables.
pub(super) const EXTENSION: &str = ".ref";

/// The largest list that is read, in bytes: three hundred thousand tables.
const LARGEST_LIST: u64 = 16 << 20;

/// The name of a table file in the directory of the stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TableName(String);

impl TableName {
    /// Returns the name `text` if it consists of letters, digits, `.`, `-` and `_`, and begins with
    /// a letter or a digit.
    pub fn new(text: &[u8]) -> Option<TableName> {
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b".-_".contains(byte);
        let is_name = text.first()?.is_ascii_alphanumeric() && text.iter().all(is_plain);
        let text = std::str::from_utf8(text).ok()?;
        is_name.then(|| TableName(text.to_owned()))
    }

    /// Returns a new unique name for a table of `limits`, in Git's form.
    pub(super) fn unique(limits: UpdateIndexRange) -> TableName {
        TableName::assemble(limits, random())
    }

    pub(super) fn assemble(limits: UpdateIndexRange, random: u32) -> TableName {
        let UpdateIndexRange { min, max } = limits;
        TableName(format!("0x{min:012x}-0x{max:012x}-{random:08x}{EXTENSION}"))
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether `git refs verify` accepts the name.
    pub fn is_usual(&self) -> bool {
        let Some(stem) = ["ref", "log"].iter().find_map(|extension| {
            let stem = self.0.strip_suffix(extension)?;
            stem.strip_suffix('.')
        }) else {
            return false;
        };
        let parts: Vec<&str> = stem.split('-').collect();
        let is_hex = |part: &str| {
            let digits = part.strip_prefix("0x").unwrap_or(part);
            u64::from_str_radix(digits, 16).is_ok()
        };
        parts.len() == 3 && parts.into_iter().all(is_hex)
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns an unpredictable number.
pub(super) fn random() -> u32 {
    RandomState::new().hash_one(0) as u32
}

/// The contents of `tables.list`, as read.
#[derive(Debug, Default)]
pub(super) struct TableList {
    pub(super) names: Vec<TableName>,
    /// The open file with its device and inode; `None` if there was no list.
    file: Option<(File, u64, u64)>,
}

impl TableList {
    /// Reads the list at `path`; the list is empty if the file does not exist.
    pub(super) fn read(path: &Path) -> Result<TableList> {
        let file = match untrusted::open(path, SymlinkPolicy::Follow) {
            Ok(file) => file,
            Err(error) if error.kind() == Io::NotFound => return Ok(TableList::default()),
            Err(error) => return Err(error).context(ErrorKind::Io, "cannot open", path),
        };
        let bytes = untrusted::read_open(&file, LARGEST_LIST);
        let bytes = bytes.context(ErrorKind::Io, "cannot read", path)?;
        let names = parse(&bytes).map_err(|error| error.at_path(path))?;
        let metadata = file
            .metadata()
            .context(ErrorKind::Io, "cannot stat", path)?;
        Ok(TableList {
            names,
            file: Some((file, metadata.dev(), metadata.ino())),
        })
    }

    /// Returns whether the list at `path` is still this one. A list is never modified, only
    /// replaced.
    pub(super) fn is_current(&self, path: &Path) -> Result<bool> {
        match (path.metadata(), &self.file) {
            (Ok(found), Some((_, device, inode))) => {
                Ok((found.dev(), found.ino()) == (*device, *inode))
            }
            (Ok(_), None) => Ok(false),
            (Err(error), file) if error.kind() == Io::NotFound => {
                Ok(file.is_none() || self.names.is_empty())
            }
            (Err(error), _) => Err(error).context(ErrorKind::Io, "cannot stat", path),
        }
    }
}

/// Parses the names in `bytes`, one on each line. Empty lines are ignored.
fn parse(bytes: &[u8]) -> Result<Vec<TableName>> {
    let mut names = Vec::new();
    let mut at = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let corrupt =
            |what: &str| Error::new(ErrorKind::Corrupt, what.to_owned()).at_offset(at as u64);
        let Some(name) = line.strip_suffix(b"\n") else {
            return Err(corrupt(
                "the last line of the list of reftables has no line feed",
            ));
        };
        if !name.is_empty() {
            let name = TableName::new(name);
            names.push(name.ok_or_else(|| corrupt("bad table name in the list of reftables"))?);
        }
        at += line.len();
    }
    Ok(names)
}

/// Returns the list of `names` in the format of the file.
pub(super) fn format<'a>(names: impl IntoIterator<Item = &'a TableName>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for name in names {
        bytes.extend_from_slice(name.as_str().as_bytes());
        bytes.push(b'\n');
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_leave_the_directory_are_no_names() {
        for bad in [
            "", ".", "..", "../x.ref", "a/b.ref", "/x", ".x", "a\0b", "-x",
        ] {
            assert_eq!(TableName::new(bad.as_bytes()), None, "{bad}");
            let list = format!("{bad}\n");
            assert_eq!(parse(list.as_bytes()).is_err(), !bad.is_empty(), "{bad}");
        }
        let limits = UpdateIndexRange { min: 1, max: 0xabc };
        let name = TableName::unique(limits);
        assert!(name.as_str().starts_with("0x000000000001-0x000000000abc-"));
        assert!(name.is_usual());
        assert_eq!(TableName::new(name.as_str().as_bytes()), Some(name.clone()));
        let list = format([&name, &name]);
        assert_eq!(parse(&list).expect("it is one"), [name.clone(), name]);
        let error = parse(b"a.ref\nb").expect_err("no end");
        assert_eq!(
            (error.kind(), error.offset()),
            (ErrorKind::Corrupt, Some(6))
        );
    }
}
