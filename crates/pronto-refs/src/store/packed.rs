//! The packed refs: reads and searches the sorted file `packed-refs` in place.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bstr::{BStr, ByteSlice};
use pronto_hash::{Kind, ObjectId};
use pronto_io::view::{FileView, ViewAccess, ViewIdentity};

use pronto_config::{Error, ErrorKind, Result};

/// The contents of `packed-refs`, mapped or read into memory.
#[derive(Debug)]
pub(crate) struct PackedRefs {
    /// The identity and the length of the file, to detect a replaced file.
    stamp: (ViewIdentity, u64),
    content: PackedBytes,
    /// The offset of the first ref, after the header line.
    start: usize,
    hash: Kind,
    /// Whether the file peels all tags (`fully-peeled`): a ref without a peeled id is not a tag.
    pub(crate) is_fully_peeled: bool,
}

#[derive(Debug)]
enum PackedBytes {
    Mapped(FileView, PathBuf),
    Owned(Vec<u8>),
}

/// One ref in `packed-refs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackedRef<'a> {
    pub(crate) name: &'a BStr,
    pub(crate) id: ObjectId,
    pub(crate) peeled: Option<ObjectId>,
}

/// Returns `known` if the file has not changed, and otherwise reads the file again.
pub(super) fn refresh(
    known: Option<Arc<PackedRefs>>,
    file: &Path,
    hash: Kind,
) -> Result<Option<Arc<PackedRefs>>> {
    if let Some(known) = known
        && std::fs::metadata(file).is_ok_and(|now| stamp_of(&now) == known.stamp)
    {
        return Ok(Some(known));
    }
    let view = match FileView::open(file, ViewAccess::Auto) {
        Ok(view) => view,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(file, error)),
    };
    PackedRefs::new(view, file, hash).map(|packed| Some(Arc::new(packed)))
}

fn stamp_of(metadata: &std::fs::Metadata) -> (ViewIdentity, u64) {
    let identity = ViewIdentity {
        device: metadata.dev(),
        inode: metadata.ino(),
        modified: (metadata.mtime(), metadata.mtime_nsec()),
    };
    (identity, metadata.len())
}

impl PackedRefs {
    fn new(view: FileView, file: &Path, hash: Kind) -> Result<Self> {
        let stamp = (view.identity(), view.len());
        let content = match view.bytes() {
            Some(_) => PackedBytes::Mapped(view, file.to_owned()),
            None => {
                let mut bytes = Vec::new();
                let whole = view.read(0, view.len() as usize, &mut bytes);
                let whole = whole.map(<[u8]>::to_vec);
                let whole = whole.map_err(|error| unreadable(file, error))?;
                PackedBytes::Owned(whole)
            }
        };
        let mut packed = PackedRefs {
            stamp,
            content,
            start: 0,
            hash,
            is_fully_peeled: false,
        };
        let is_sorted = packed.read_header(file)?;
        if !is_sorted {
            packed.sort();
        }
        packed.check(file)?;
        packed.intact()?;
        Ok(packed)
    }

    /// Checks that the bytes read so far are the contents of the file. Call this before the bytes
    /// are used for a result.
    pub(crate) fn intact(&self) -> Result<()> {
        match &self.content {
            PackedBytes::Mapped(view, file) => {
                view.verify().map_err(|error| unreadable(file, error))
            }
            PackedBytes::Owned(_) => Ok(()),
        }
    }

    /// Reads the header line. Returns whether the header declares the file as `sorted`.
    fn read_header(&mut self, file: &Path) -> Result<bool> {
        let bytes = self.bytes();
        if !bytes.starts_with(b"#") {
            return Ok(false);
        }
        let end = bytes.find_byte(b'\n').unwrap_or(bytes.len());
        let line = bytes[..end].as_bstr();
        let Some(traits) = line.strip_prefix(b"# pack-refs with:") else {
            let message = format!("unexpected line in {}: {line}", file.display());
            return Err(Error::new(ErrorKind::Reference, message));
        };
        let has = |word: &str| traits.fields().any(|known| known == word.as_bytes());
        let (is_sorted, is_fully_peeled) = (has("sorted"), has("fully-peeled"));
        self.start = (end + 1).min(bytes.len());
        self.is_fully_peeled = is_fully_peeled;
        Ok(is_sorted)
    }

    fn bytes(&self) -> &[u8] {
        match &self.content {
            PackedBytes::Mapped(view, _) => view.bytes().unwrap_or_default(),
            PackedBytes::Owned(bytes) => bytes,
        }
    }

    fn lines(&self) -> &[u8] {
        &self.bytes()[self.start..]
    }

    /// Sorts the refs in memory, for a file from an old writer that is not declared as sorted.
    fn sort(&mut self) {
        let hex = self.hash.len_in_hex();
        let mut records: Vec<&[u8]> = Vec::new();
        let mut rest = self.lines();
        while !rest.is_empty() {
            let length = record_length(rest);
            records.push(&rest[..length]);
            rest = &rest[length..];
        }
        records.sort_by_key(|record| name_in(record, hex));
        let mut sorted = Vec::with_capacity(self.lines().len());
        for record in records {
            sorted.extend_from_slice(record);
        }
        self.start = 0;
        self.content = PackedBytes::Owned(sorted);
    }

    /// Checks that the last line is complete: otherwise, refs of a truncated file would be lost
    /// silently.
    fn check(&self, file: &Path) -> Result<()> {
        let lines = self.lines();
        if lines.is_empty() || lines.ends_with(b"\n") {
            return Ok(());
        }
        let line = lines.lines().next_back().unwrap_or_default();
        let message = format!(
            "unterminated line in {}: {}",
            file.display(),
            line.as_bstr()
        );
        Err(Error::new(ErrorKind::Reference, message))
    }

    /// Returns the ref with the full name `name`, by a binary search over the lines.
    pub(crate) fn find(&self, name: &BStr) -> Option<PackedRef<'_>> {
        let at = self.lower_bound(name);
        let found = self.parse(&self.lines()[at..])?;
        (found.name == name).then_some(found)
    }

    /// Iterates over all refs from the first one that does not sort before `name`.
    pub(crate) fn iter_from(&self, name: &BStr) -> impl Iterator<Item = PackedRef<'_>> {
        let mut rest = &self.lines()[self.lower_bound(name)..];
        std::iter::from_fn(move || {
            while !rest.is_empty() {
                let found = self.parse(rest);
                rest = &rest[record_length(rest)..];
                if found.is_some() {
                    return found;
                }
            }
            None
        })
    }

    /// Returns the start of the first record whose name does not sort before `name`.
    fn lower_bound(&self, name: &BStr) -> usize {
        let lines = self.lines();
        let hex = self.hash.len_in_hex();
        let (mut low, mut high) = (0, lines.len());
        while low < high {
            let mut begin = line_start(lines, low + (high - low) / 2);
            while begin > low && lines[begin] == b'^' {
                begin = line_start(lines, begin - 1);
            }
            let begin = begin.max(low);
            if name_in(&lines[begin..], hex) < name.as_bytes() {
                low = begin + record_length(&lines[begin..]);
            } else {
                high = begin;
            }
        }
        low
    }

    fn parse<'a>(&self, record: &'a [u8]) -> Option<PackedRef<'a>> {
        let hex = self.hash.len_in_hex();
        let mut lines = record[..record_length(record)].lines();
        let line = lines.next()?;
        let id = pronto_hash::parse_hex(line.get(..hex)?).ok()?;
        if !line.get(hex)?.is_ascii_whitespace() {
            return None;
        }
        let peeled = lines
            .next()
            .and_then(|line| pronto_hash::parse_hex(line.strip_prefix(b"^")?).ok());
        let name = line[hex + 1..].as_bstr();
        Some(PackedRef { name, id, peeled })
    }
}

fn unreadable(file: &Path, error: std::io::Error) -> Error {
    let message = format!("couldn't read {}", file.display());
    Error::new(ErrorKind::Io, message).because(error)
}

fn name_in(record: &[u8], hex: usize) -> &[u8] {
    let end = record.find_byte(b'\n').unwrap_or(record.len());
    record[..end].get(hex + 1..).unwrap_or_default()
}

fn line_start(lines: &[u8], at: usize) -> usize {
    lines[..at].rfind_byte(b'\n').map_or(0, |end| end + 1)
}

/// Returns the length of the first ref line with the peeled line that follows.
fn record_length(lines: &[u8]) -> usize {
    let mut length = lines.find_byte(b'\n').map_or(lines.len(), |end| end + 1);
    while lines.get(length) == Some(&b'^') {
        let rest = &lines[length..];
        length += rest.find_byte(b'\n').map_or(rest.len(), |end| end + 1);
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(text: &str) -> Result<PackedRefs> {
        let view = FileView::from_bytes(text.as_bytes().to_vec());
        PackedRefs::new(view, Path::new("packed-refs"), Kind::Sha1)
    }

    #[test]
    fn names_are_found_in_files_of_any_age() {
        let id = |digit: char| digit.to_string().repeat(40);
        let (a, b, c, d) = (id('a'), id('b'), id('c'), id('d'));
        let unsorted = format!("{b} refs/b\n{a} refs/a\n^{d}\n{c} refs/c\n");
        let header = "# pack-refs with: peeled fully-peeled sorted \n";
        let sorted = format!("{header}{a} refs/a\n^{d}\n{b} refs/b\n{c} refs/c\n");
        for text in [unsorted, sorted] {
            let packed = packed(&text).expect("it is well formed");
            for (name, id) in [("refs/a", &a), ("refs/b", &b), ("refs/c", &c)] {
                let found = packed.find(name.into()).expect("it is there");
                assert_eq!(&found.id.to_string(), id);
                assert_eq!(found.peeled.is_some(), name == "refs/a");
            }
            for name in ["refs", "refs/aa", "refs/d", ""] {
                assert_eq!(packed.find(name.into()), None);
            }
            let names = packed.iter_from("refs/b".into()).map(|found| found.name);
            assert_eq!(names.collect::<Vec<_>>(), ["refs/b", "refs/c"]);
        }
    }

    #[test]
    fn a_file_cut_short_is_refused() {
        assert!(packed(&"a".repeat(20)).is_err());
        assert!(packed("# something else\n").is_err());
        assert!(packed("").is_ok());
        let junk = packed("^^^\n\n^\nxyz\n").expect("junk lines are skipped");
        assert_eq!(junk.iter_from("".into()).count(), 0);
        assert_eq!(junk.find("xyz".into()), None);
    }
}
