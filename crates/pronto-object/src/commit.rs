//! Parses and encodes commits.

use bstr::{BStr, BString};
use pronto_hash::ObjectId;

use crate::identity::IdentityRef;
use crate::{Signature, headers, message};

/// The content of a commit object. Each part is parsed on request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitRef<'a> {
    content: &'a [u8],
}

impl<'a> CommitRef<'a> {
    /// Creates a view of the content of a commit object, without its header (`commit SIZE`). Parses
    /// nothing yet.
    pub const fn new(content: &'a [u8]) -> Self {
        CommitRef { content }
    }

    /// Returns the id of the tree, or `None` if the first line is malformed.
    pub fn tree(self) -> Option<ObjectId> {
        let line = headers::lines(self.content).next()?;
        pronto_hash::parse_hex(headers::value_of(line, "tree")?).ok()
    }

    /// Returns the ids of the parents, in order. A malformed id is `None`.
    pub fn parents(self) -> impl Iterator<Item = Option<ObjectId>> + 'a {
        headers::lines(self.content)
            .skip(1)
            .map_while(|line| headers::value_of(line, "parent"))
            .map(|id| pronto_hash::parse_hex(id).ok())
    }

    /// Returns the author (`%an`, `%ae`, `%ad`), or `None` if the line is missing or has no email
    /// address. If there are several lines, the last one is used.
    pub fn author(self) -> Option<IdentityRef<'a>> {
        IdentityRef::parse(self.last_header("author")?)
    }

    /// Returns the committer (`%cn`, `%ce`, `%cd`), or `None` if the line is missing or has no
    /// email address. If there are several lines, the last one is used.
    pub fn committer(self) -> Option<IdentityRef<'a>> {
        IdentityRef::parse(self.last_header("committer")?)
    }

    /// Returns the encoding of the message (`i18n.commitEncoding`), or `None` for UTF-8.
    pub fn encoding(self) -> Option<&'a BStr> {
        self.header("encoding")
    }

    /// Returns the value of the first header line `name`, without its continuation lines.
    pub fn header(self, name: &str) -> Option<&'a BStr> {
        headers::value(self.content, name)
    }

    /// Returns the value of the last header line `name`, which Git's placeholders use if there are
    /// several.
    pub fn last_header(self, name: &str) -> Option<&'a BStr> {
        headers::last_value(self.content, name)
    }

    /// Returns the message, in its own encoding.
    pub fn message(self) -> &'a BStr {
        headers::message(self.content)
    }

    /// Returns the subject: the first paragraph of the message on one line (`%s`).
    pub fn subject(self) -> BString {
        message::subject(self.message())
    }
}

/// The tree, the parents and the commit time of a commit: the parts that a history walk needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitLinks {
    /// The id of the tree.
    pub tree: ObjectId,
    /// The ids of the parents, in order. Callers clear this list at the shallow boundary.
    pub parents: Vec<ObjectId>,
    /// The commit time, in seconds since 1970-01-01 UTC, or 0 if the committer line has no time.
    pub time: i64,
}

impl CommitLinks {
    /// Parses the content of a commit. Returns `None` if the tree or a parent is malformed, or if
    /// no line follows them.
    pub fn parse(content: &[u8]) -> Option<Self> {
        let mut lines = headers::lines(content);
        let tree = pronto_hash::parse_hex(headers::value_of(lines.next()?, "tree")?).ok()?;
        let mut parents = Vec::new();
        let mut line = lines.next()?;
        while let Some(parent) = headers::value_of(line, "parent") {
            parents.push(pronto_hash::parse_hex(parent).ok()?);
            line = lines.next()?;
        }
        // As in Git, the commit time is read only if the committer line directly follows the author
        // line.
        let committer = headers::value_of(line, "author")
            .and_then(|_| headers::value_of(lines.next()?, "committer"));
        let time = committer.and_then(IdentityRef::seconds_of).unwrap_or(0);
        Some(CommitLinks {
            tree,
            parents,
            time,
        })
    }
}

/// The content of a new commit.
#[derive(Clone, Debug)]
pub struct NewCommit {
    /// The id of the tree.
    pub tree: ObjectId,
    /// The ids of the parents, in order.
    pub parents: Vec<ObjectId>,
    /// The author (`GIT_AUTHOR_NAME`, `GIT_AUTHOR_EMAIL`, `GIT_AUTHOR_DATE`).
    pub author: Signature,
    /// The committer (`GIT_COMMITTER_NAME`, `GIT_COMMITTER_EMAIL`, `GIT_COMMITTER_DATE`).
    pub committer: Signature,
    /// The message.
    pub message: BString,
}

impl NewCommit {
    /// Returns the content of the commit object.
    pub fn encode(&self) -> Vec<u8> {
        let mut content = format!("tree {}\n", self.tree);
        for parent in &self.parents {
            content += &format!("parent {parent}\n");
        }
        let mut content = content.into_bytes();
        for (name, signature) in [("author", &self.author), ("committer", &self.committer)] {
            content.extend_from_slice(name.as_bytes());
            content.push(b' ');
            signature.write(&mut content);
            content.push(b'\n');
        }
        content.push(b'\n');
        content.extend_from_slice(&self.message);
        content
    }
}

#[cfg(test)]
mod tests {
    use gix_date::Time;

    use super::*;

    fn id(digit: &str) -> ObjectId {
        pronto_hash::parse_hex(digit.repeat(40).as_bytes()).expect("it is an id")
    }

    fn signature(name: &str, seconds: i64) -> Signature {
        Signature {
            name: name.into(),
            email: "a@b".into(),
            time: Time {
                seconds,
                offset: -7 * 60 * 60,
            },
        }
    }

    #[test]
    fn a_written_commit_is_read_again() {
        let new = NewCommit {
            tree: id("a"),
            parents: vec![id("a"), id("b")],
            author: signature("A", 1_112_911_993),
            committer: signature("C", 1_112_912_053),
            message: "One\ntwo\n\nthree\n".into(),
        };
        let text = new.encode();
        let commit = CommitRef::new(&text);
        assert_eq!(commit.tree(), Some(id("a")));
        assert!(commit.parents().eq(new.parents.iter().map(|id| Some(*id))));
        let (author, committer) = (commit.author(), commit.committer());
        assert_eq!(author.map(|person| person.name), Some("A".into()));
        let time = committer.and_then(IdentityRef::time);
        assert_eq!(time, Some(new.committer.time));
        assert_eq!(commit.subject(), "One two");
        assert_eq!(commit.message(), new.message);
        assert_eq!(commit.encoding(), None);
        let links = CommitLinks::parse(&text).expect("it is well formed");
        assert_eq!((links.tree, links.parents), (new.tree, new.parents));
        assert_eq!(links.time, 1_112_912_053);
    }

    #[test]
    fn the_last_of_several_authors_counts() {
        let text =
            b"tree x\nauthor A <a@b> 1 +0000\nauthor B <a@b> 2 +0000\n\nauthor C <> 3 +0000\n";
        let commit = CommitRef::new(text);
        assert_eq!(commit.author().map(|it| it.name), Some("B".into()));
        assert_eq!(commit.header("author"), Some("A <a@b> 1 +0000".into()));
    }

    #[test]
    fn parts_of_a_commit_are_no_panic() {
        let new = NewCommit {
            tree: id("a"),
            parents: vec![id("b")],
            author: signature("A", 1),
            committer: signature("C", 2),
            message: "One\n".into(),
        };
        let text = new.encode();
        for length in 0..text.len() {
            let commit = CommitRef::new(&text[..length]);
            let _ = (commit.tree(), commit.author(), commit.committer());
            let _ = (commit.parents().count(), commit.subject());
            let _ = CommitLinks::parse(&text[..length]);
        }
        assert_eq!(CommitLinks::parse(b"tree x\n"), None);
    }
}
