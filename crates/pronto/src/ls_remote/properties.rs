//! The properties of objects by which refs are sorted.

use bstr::{BStr, ByteSlice};

use super::Listed;
use crate::remote::from_store;
use crate::{Error, ErrorKind, ObjectKind, Repository, Result};

/// The part of an object that has to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// Its type and size.
    Header,
    /// Its dates, too.
    Content,
}

/// The properties of an object. Dates are seconds since 1970, and zero if the object has none.
#[derive(Default)]
pub(super) struct Properties {
    pub(super) type_name: &'static str,
    pub(super) size: u64,
    pub(super) author_date: u64,
    pub(super) committer_date: u64,
    pub(super) tagger_date: u64,
}

impl Properties {
    /// Reads the object of `listed`.
    ///
    /// # Errors
    /// It is not there, or cannot be read.
    pub(super) fn read(
        repository: &Repository,
        listed: &Listed,
        known: Known,
        buffer: &mut Vec<u8>,
    ) -> Result<Self> {
        let (id, name) = (listed.id, &listed.name);
        let missing = || Error::new(ErrorKind::Object, format!("missing object {id} for {name}"));
        let store = repository.objects()?;
        let header = store.header(&id).map_err(from_store)?.ok_or_else(missing)?;
        let mut properties = Properties {
            type_name: type_name(header.kind),
            size: header.size,
            ..Properties::default()
        };
        let has_dates = matches!(header.kind, ObjectKind::Commit | ObjectKind::Tag);
        if known == Known::Header || !has_dates {
            return Ok(properties);
        }
        store
            .find(&id, buffer)
            .map_err(from_store)?
            .ok_or_else(missing)?;
        let date = |who: &str| date(buffer, who);
        match header.kind {
            ObjectKind::Tag => properties.tagger_date = date("tagger "),
            _ => {
                properties.author_date = date("author ");
                properties.committer_date = date("committer ");
            }
        }
        Ok(properties)
    }
}

fn type_name(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Blob => "blob",
        ObjectKind::Commit => "commit",
        ObjectKind::Tag => "tag",
        ObjectKind::Tree => "tree",
    }
}

/// The date in the header line that starts with `who`; zero if there is none.
fn date(content: &[u8], who: &str) -> u64 {
    let mut lines = content.lines().take_while(|line| !line.is_empty());
    let Some(line) = lines.find_map(|line| line.strip_prefix(who.as_bytes())) else {
        return 0;
    };
    let Some((_, after)) = line.split_once_str("> ") else {
        return 0;
    };
    let digits = after.iter().take_while(|byte| byte.is_ascii_digit());
    let digits = BStr::new(&after[..digits.count()]);
    let parsed = digits.to_str().ok().and_then(|text| text.parse().ok());
    parsed.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_from_header_lines_only() {
        let content = b"tree x\nauthor a <a@b> 12 +0000\ncommitter x\n\ncommitter c <> 7 +0000\n";
        assert_eq!(date(content, "author "), 12);
        assert_eq!(date(content, "committer "), 0);
        assert_eq!(date(content, "tagger "), 0);
        let far = format!("tagger t <> {}0 +0000\n", u64::MAX);
        assert_eq!(date(far.as_bytes(), "tagger "), 0);
    }
}
