//! Data of commits: parents, dates and messages.

use bstr::{BStr, ByteSlice};
use pronto_hash::{ObjectId, oid};

use crate::links::{CommitLinks, links_in};
use crate::{Error, ErrorKind, Repository, Result};

impl Repository {
    /// Returns the links of the commit `id`. `buffer` holds its content afterwards.
    ///
    /// # Errors
    /// It does not exist, is no commit, or is malformed.
    pub fn commit_links(&self, id: &oid, buffer: &mut Vec<u8>) -> Result<CommitLinks> {
        let mut links = self.uncut_links(id, buffer)?;
        let cut = self.shallow_commits()?;
        if !cut.is_empty()
            && cut.binary_search(&id.to_owned()).is_ok()
            && !self.grafts()?.contains(id)
        {
            links.parents.clear();
        }
        Ok(links)
    }

    /// Like [`commit_links`](Self::commit_links), wherever history was cut off.
    pub(crate) fn uncut_links(&self, id: &oid, buffer: &mut Vec<u8>) -> Result<CommitLinks> {
        let mut links = links_in(self.objects()?, id, buffer)?;
        if let Some(parents) = self.grafts()?.parents(id) {
            links.parents = parents.to_vec();
        }
        Ok(links)
    }

    /// The commits at which history was cut off, sorted.
    ///
    /// # Errors
    /// The file `shallow` cannot be read, or has a line that is no object id.
    pub fn shallow_commits(&self) -> Result<&[ObjectId]> {
        if let Some(known) = self.shallow.get() {
            return Ok(known);
        }
        let mut ids = Vec::new();
        match pronto_io::untrusted::content(self.shallow_path()) {
            Ok(text) => {
                for line in text.lines().filter(|line| !line.is_empty()) {
                    let Ok(id) = pronto_hash::parse_hex(line) else {
                        let message = format!("bad shallow line: {}", line.as_bstr());
                        return Err(Error::new(ErrorKind::Object, message));
                    };
                    ids.push(id);
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                let message = "could not read the shallow file";
                return Err(Error::new(ErrorKind::Io, message).because(error));
            }
        }
        ids.sort_unstable();
        Ok(self.shallow.get_or_init(|| ids))
    }
}

/// The message of a commit or a tag: what follows the first empty line.
pub(super) fn message(content: &[u8]) -> &BStr {
    let start = content.find(b"\n\n").map_or(content.len(), |at| at + 2);
    content[start..].as_bstr()
}

/// The first paragraph of the message, on one line.
pub(super) fn subject(content: &[u8]) -> String {
    let paragraph = message(content)
        .lines()
        .skip_while(|line| line.trim_ascii().is_empty());
    let lines: Vec<&[u8]> = paragraph
        .take_while(|line| !line.trim_ascii().is_empty())
        .collect();
    lines.join(&b' ').to_str_lossy().into_owned()
}

/// The day on which the author wrote it: `2005-04-07`.
pub(super) fn author_date(content: &[u8]) -> Option<String> {
    let author = content
        .lines()
        .find_map(|line| line.strip_prefix(b"author "))?;
    short_date(author)
}

/// The day in a line that ends with a name, an address, a time and a zone.
pub(super) fn short_date(who: &[u8]) -> Option<String> {
    let after = who.rfind_byte(b'>')? + 1;
    let time = gix_date::parse_header(who[after..].trim_ascii().to_str().ok()?)?;
    time.format(gix_date::time::format::SHORT).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::links::parse_commit as parse;

    #[test]
    fn commits_are_taken_apart() {
        let (a, b) = ("a".repeat(40), "b".repeat(40));
        let text = format!(
            "tree {a}\nparent {a}\nparent {b}\nauthor A <a@b> 1112911993 -0700\n\
             committer C <c@d> 1112912053 -0700\n\nOne\ntwo\n\nthree\n"
        );
        let links = parse(text.as_bytes()).expect("it is well formed");
        assert_eq!(links.tree.to_string(), a);
        assert_eq!(links.parents.len(), 2);
        assert_eq!(links.time, 1_112_912_053);
        assert_eq!(subject(text.as_bytes()), "One two");
        assert_eq!(author_date(text.as_bytes()).as_deref(), Some("2005-04-07"));
        for length in 0..80 {
            let _ = parse(&text.as_bytes()[..length]);
        }
        assert_eq!(parse(b"tree x\n"), None);
    }
}
