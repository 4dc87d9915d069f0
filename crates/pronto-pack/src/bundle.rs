//! The header of a bundle: the refs and the prerequisites of a pack in a file
//! (`gitformat-bundle(5)`).
//!
//! The pack follows the header. Reading costs memory in proportion to the header, whose size is
//! bounded.

use std::fmt;
use std::io::{self, BufRead, Read};

use gix_object::bstr::{BStr, BString};
use pronto_hash::{Kind, ObjectId};

/// The largest length of a line.
const MOST_LINE_BYTES: u64 = 1 << 16;

/// The largest size of a header.
const MOST_HEADER_BYTES: usize = 1 << 30;

/// The version of a bundle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum BundleVersion {
    /// Version 2, which supports only SHA-1 and no filter.
    #[default]
    V2,
    /// Version 3, which adds capabilities for another hash function or an object filter.
    V3,
}

impl BundleVersion {
    /// Returns the number in the first line.
    pub fn number(self) -> u8 {
        match self {
            BundleVersion::V2 => 2,
            BundleVersion::V3 => 3,
        }
    }
}

/// A commit that the receiver of a bundle must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prerequisite {
    /// The id of the commit.
    pub id: ObjectId,
    /// The subject of the commit message, or an empty string.
    pub comment: BString,
}

/// A ref in a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleRef {
    /// The id of the object.
    pub id: ObjectId,
    /// The name of the ref: `HEAD` or a full name. Not validated.
    pub name: BString,
}

/// The header of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleHeader {
    /// The version.
    pub version: BundleVersion,
    /// The hash function of object ids (`object-format`).
    pub hash: Kind,
    /// The object filter of the bundle (`filter`).
    pub filter: Option<BString>,
    /// The commits that the receiver must have.
    pub prerequisites: Vec<Prerequisite>,
    /// The refs of the bundle.
    pub references: Vec<BundleRef>,
}

/// The reason why a header is malformed. `Display` writes Git's message.
#[derive(Debug)]
#[non_exhaustive]
pub enum BadHeader {
    /// The first line is not the signature of a bundle.
    Signature,
    /// The capability is unknown.
    Capability(BString),
    /// The hash function is unknown.
    Hash(BString),
    /// The line is neither a ref nor a prerequisite.
    Line(BString),
    /// A line or the whole header is too long.
    TooLong,
    /// The header cannot be read.
    Io(io::Error),
}

impl fmt::Display for BadHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadHeader::Signature => f.write_str("not a v2 or v3 bundle file"),
            BadHeader::Capability(name) => write!(f, "unknown capability '{name}'"),
            BadHeader::Hash(name) => write!(f, "unrecognized bundle hash algorithm: {name}"),
            BadHeader::Line(line) => write!(f, "unrecognized header: {line} ({})", line.len()),
            BadHeader::TooLong => f.write_str("the bundle header is too long"),
            BadHeader::Io(error) => write!(f, "cannot read the bundle: {error}"),
        }
    }
}

impl std::error::Error for BadHeader {}

/// Returns the version in `start`, the first bytes of a file; `None` if the file is not a bundle.
pub fn version_of(start: &[u8]) -> Option<BundleVersion> {
    match start.strip_prefix(b"# v")? {
        rest if rest.starts_with(b"2 git bundle\n") => Some(BundleVersion::V2),
        rest if rest.starts_with(b"3 git bundle\n") => Some(BundleVersion::V3),
        _ => None,
    }
}

impl BundleHeader {
    /// Reads the header. Afterwards, `source` is at the start of the pack.
    ///
    /// # Errors
    /// Fails with [`BadHeader`] if the header is malformed or too long, or cannot be read.
    pub fn read(source: &mut dyn BufRead) -> Result<Self, BadHeader> {
        let mut lines = HeaderLines {
            source,
            line: Vec::new(),
            room: MOST_HEADER_BYTES,
        };
        lines.next()?;
        let version = version_of(&lines.line).ok_or(BadHeader::Signature)?;
        let mut header = BundleHeader {
            version,
            hash: Kind::Sha1,
            filter: None,
            prerequisites: Vec::new(),
            references: Vec::new(),
        };
        loop {
            lines.next()?;
            let line = match lines.line.strip_suffix(b"\n") {
                Some(b"") => return Ok(header),
                Some(line) => line,
                // The file ends within the header.
                None if lines.line.is_empty() => return Err(BadHeader::Line(BString::default())),
                None => &lines.line,
            };
            match line {
                [b'@', capability @ ..] if version == BundleVersion::V3 => {
                    header.add(capability)?
                }
                [b'-', line @ ..] => {
                    let (id, rest) = split(line, header.hash)?;
                    let comment = rest.unwrap_or_default().trim_ascii_end().into();
                    header.prerequisites.push(Prerequisite { id, comment });
                }
                line => {
                    let (id, name) = split(line, header.hash)?;
                    let name = name
                        .map(|name| name.trim_ascii_end())
                        .filter(|it| !it.is_empty());
                    let name = name.ok_or_else(|| bad_line(line))?.into();
                    header.references.push(BundleRef { id, name });
                }
            }
        }
    }

    fn add(&mut self, capability: &[u8]) -> Result<(), BadHeader> {
        if let Some(name) = capability.strip_prefix(b"object-format=") {
            self.hash = match name {
                b"sha1" => Kind::Sha1,
                b"sha256" => Kind::Sha256,
                other => return Err(BadHeader::Hash(other.into())),
            };
            return Ok(());
        }
        match capability.strip_prefix(b"filter=") {
            Some(filter) => self.filter = Some(filter.into()),
            None => return Err(BadHeader::Capability(capability.into())),
        }
        Ok(())
    }

    /// Appends the header to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("# v{} git bundle\n", self.version.number()).as_bytes());
        if self.version == BundleVersion::V3 {
            let hash = match self.hash {
                Kind::Sha256 => "sha256",
                _ => "sha1",
            };
            out.extend_from_slice(format!("@object-format={hash}\n").as_bytes());
            if let Some(filter) = &self.filter {
                out.extend_from_slice(&[b"@filter=", &filter[..], b"\n"].concat());
            }
        }
        for needed in &self.prerequisites {
            out.extend_from_slice(format!("-{} ", needed.id).as_bytes());
            out.extend_from_slice(&needed.comment);
            out.push(b'\n');
        }
        for reference in &self.references {
            out.extend_from_slice(format!("{} ", reference.id).as_bytes());
            out.extend_from_slice(&reference.name);
            out.push(b'\n');
        }
        out.push(b'\n');
    }
}

/// The lines of a header.
struct HeaderLines<'a> {
    source: &'a mut dyn BufRead,
    line: Vec<u8>,
    room: usize,
}

impl HeaderLines<'_> {
    /// Reads the next line including its newline; the line is empty at the end of the file.
    fn next(&mut self) -> Result<(), BadHeader> {
        self.line.clear();
        let mut limited = (&mut *self.source).take(MOST_LINE_BYTES);
        limited
            .read_until(b'\n', &mut self.line)
            .map_err(BadHeader::Io)?;
        let is_cut = self.line.len() as u64 == MOST_LINE_BYTES && !self.line.ends_with(b"\n");
        self.room = self
            .room
            .checked_sub(self.line.len())
            .ok_or(BadHeader::TooLong)?;
        match is_cut {
            true => Err(BadHeader::TooLong),
            false => Ok(()),
        }
    }
}

fn bad_line(line: &[u8]) -> BadHeader {
    BadHeader::Line(BStr::new(line.trim_ascii_end()).to_owned())
}

/// Splits a line into the id at its start and the text after a space.
fn split(line: &[u8], hash: Kind) -> Result<(ObjectId, Option<&[u8]>), BadHeader> {
    let length = hash.len_in_hex();
    let id = line
        .get(..length)
        .and_then(|hex| pronto_hash::parse_hex(hex).ok());
    let id = id.ok_or_else(|| bad_line(line))?;
    match line.get(length..) {
        None | Some([]) => Ok((id, None)),
        Some([blank, rest @ ..]) if blank.is_ascii_whitespace() => Ok((id, Some(rest))),
        Some(_) => Err(bad_line(line)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "1111111111111111111111111111111111111111";

    fn read(text: &str) -> Result<BundleHeader, BadHeader> {
        BundleHeader::read(&mut text.as_bytes())
    }

    #[test]
    fn headers_are_read_and_written() {
        let text = format!(
            "# v3 git bundle\n@object-format=sha1\n@filter=blob:none\n-{ID} a subject\n-{ID} \n\
             {ID} refs/heads/main\n{ID} HEAD\n\n"
        );
        let mut bytes = [text.as_bytes(), b"PACK"].concat();
        let mut source = &bytes[..];
        let header = BundleHeader::read(&mut source).expect("well formed");
        assert_eq!(source, b"PACK");
        assert_eq!(header.prerequisites[0].comment, "a subject");
        assert_eq!(header.references[1].name, "HEAD");
        bytes.clear();
        header.write(&mut bytes);
        assert_eq!(BStr::new(&bytes), text.as_str());
    }

    #[test]
    fn malformed_headers_are_refused() {
        let texts = [
            String::new(),
            "# v5 git bundle\n\n".into(),
            "# v2 git bundle\n".into(),
            format!("# v2 git bundle\n{ID} refs/heads/main\n"),
            format!("# v2 git bundle\n{ID}\n\n"),
            format!("# v2 git bundle\n{ID}refs/heads/main\n\n"),
            "# v2 git bundle\n1234 x\n\n".into(),
            "# v2 git bundle\n@filter=x\n\n".into(),
            "# v3 git bundle\n@other\n\n".into(),
            "# v3 git bundle\n@object-format=md5\n\n".into(),
            format!("# v3 git bundle\n@object-format=sha256\n{ID} HEAD\n\n"),
            format!("# v2 git bundle\n{ID} {}\n\n", "x".repeat(1 << 17)),
        ];
        for text in texts {
            read(&text).expect_err(&text);
        }
    }
}
