//! Parses annotated tags.

use bstr::{BStr, BString, ByteSlice};
use gix_object::Kind;
use pronto_hash::ObjectId;

use crate::identity::IdentityRef;
use crate::{headers, message};

/// The content of a tag object. Each part is parsed on request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagRef<'a> {
    content: &'a [u8],
}

impl<'a> TagRef<'a> {
    /// Creates a view of the content of a tag object, without its header (`tag SIZE`). Parses
    /// nothing yet.
    pub const fn new(content: &'a [u8]) -> Self {
        TagRef { content }
    }

    /// Returns the id of the tagged object, or `None` if the first line is malformed.
    pub fn target(self) -> Option<ObjectId> {
        let line = headers::lines(self.content).next()?;
        pronto_hash::parse_hex(headers::value_of(line, "object")?).ok()
    }

    /// Returns the type of the tagged object, or `None` if the second line is malformed.
    pub fn target_kind(self) -> Option<Kind> {
        let line = headers::lines(self.content).nth(1)?;
        Kind::from_bytes(headers::value_of(line, "type")?).ok()
    }

    /// Returns the name of the tag, without `refs/tags/`.
    pub fn name(self) -> Option<&'a BStr> {
        headers::lines(self.content)
            .skip(2)
            .find_map(|line| headers::value_of(line, "tag"))
            .map(ByteSlice::as_bstr)
    }

    /// Returns the tagger, or `None` if the line is missing or has no email address.
    pub fn tagger(self) -> Option<IdentityRef<'a>> {
        IdentityRef::parse(headers::value(self.content, "tagger")?)
    }

    /// Returns the message, in its own encoding.
    pub fn message(self) -> &'a BStr {
        headers::message(self.content)
    }

    /// Returns the subject: the first paragraph of the message on one line (`%(subject)`).
    pub fn subject(self) -> BString {
        message::subject(self.message())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_read_part_by_part() {
        let id = "a".repeat(40);
        let text = format!(
            "object {id}\ntype commit\ntag v1\ntagger A <a@b> 17 +0100\n\nFirst\nline\n\nbody\n"
        );
        let tag = TagRef::new(text.as_bytes());
        assert_eq!(tag.target().map(|id| id.to_string()), Some(id));
        assert_eq!(tag.target_kind(), Some(Kind::Commit));
        assert_eq!(tag.name(), Some("v1".into()));
        let seconds = tag.tagger().and_then(IdentityRef::time);
        assert_eq!(seconds.map(|time| time.seconds), Some(17));
        assert_eq!(tag.subject(), "First line");
        for length in 0..text.len() {
            let tag = TagRef::new(&text.as_bytes()[..length]);
            let _ = (tag.target(), tag.target_kind(), tag.name(), tag.tagger());
        }
    }
}
