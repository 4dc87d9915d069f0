//! Refspecs of a push: `+main:refs/heads/main`.

use bstr::{BStr, BString, ByteSlice};

use crate::refs::name::{self, Form};
use crate::{Error, ErrorKind, Result};

/// A push refspec: the local ref to push, and its name on the remote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushSpec {
    /// The source: a ref name, which may contain one `*`, or a revision. Empty for a deletion.
    pub source: BString,
    /// The destination: the name on the remote. `None` for the same name.
    pub destination: Option<BString>,
    /// Allow updates that are not fast-forwards (`+`).
    pub force: bool,
    /// Exclude the refs that match `source` (`^`).
    pub negative: bool,
    /// Push all branches that exist on both sides (`:`).
    pub matching: bool,
}

impl PushSpec {
    /// Parses one refspec.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::InvalidInput`] if the text is malformed.
    pub fn parse(text: &BStr) -> Result<Self> {
        parse(text)
            .ok_or_else(|| Error::new(ErrorKind::InvalidInput, format!("invalid refspec '{text}'")))
    }

    /// Whether the refspec is a pattern with `*`.
    pub fn is_pattern(&self) -> bool {
        self.source.contains(&b'*')
    }

    /// Whether the refspec names a single ref or object.
    pub(super) fn is_explicit(&self) -> bool {
        !self.is_pattern() && !self.matching && !self.negative
    }

    /// Returns the remote name of the local ref `name`, if the pattern matches.
    pub(super) fn expand(&self, name: &BStr) -> Option<BString> {
        let to = self.destination.as_ref().unwrap_or(&self.source);
        replace(self.source.as_bstr(), to.as_bstr(), name)
    }

    /// Returns the local name of the remote ref `name`, if the pattern matches.
    pub(super) fn expand_back(&self, name: &BStr) -> Option<BString> {
        let from = self.destination.as_ref().unwrap_or(&self.source);
        replace(from.as_bstr(), self.source.as_bstr(), name)
    }

    /// Whether this negative refspec excludes `name`.
    pub(super) fn excludes(&self, name: &BStr) -> bool {
        self.negative
            && match self.is_pattern() {
                true => middle(self.source.as_bstr(), name).is_some(),
                false => self.source == name,
            }
    }
}

fn parse(text: &BStr) -> Option<PushSpec> {
    let (force, negative, rest) = match text.as_bytes() {
        [b'+', rest @ ..] => (true, false, rest),
        [b'^', rest @ ..] => (false, true, rest),
        rest => (false, false, rest),
    };
    let (source, destination) = match rest.rfind_byte(b':') {
        Some(colon) => (rest.get(..colon)?, Some(rest.get(colon + 1..)?)),
        None => (rest, None),
    };
    let mut spec = PushSpec {
        source: match source {
            b"@" => "HEAD".into(),
            source => source.into(),
        },
        destination: destination.map(BString::from),
        force,
        negative,
        matching: false,
    };
    if negative {
        let is_id = pronto_hash::parse_hex(source).is_ok();
        let is_fine = destination.is_none() && !source.is_empty() && !is_id;
        return (is_fine && is_name(source)).then_some(spec);
    }
    if source.is_empty() && destination == Some(b"") {
        spec.matching = true;
        return Some(spec);
    }
    let has_star = |text: &[u8]| text.contains(&b'*');
    if let Some(destination) = destination
        && has_star(destination) != has_star(source)
    {
        return None;
    }
    if has_star(source) && !is_name(source) {
        return None;
    }
    let named = destination.unwrap_or(&spec.source);
    is_name(named).then_some(spec)
}

fn is_name(text: &[u8]) -> bool {
    let form = match text.contains(&b'*') {
        true => Form::OneLevelPattern,
        false => Form::OneLevel,
    };
    name::is_valid(text.as_bstr(), form)
}

/// Returns the part of `name` that matches the `*` of `pattern`.
fn middle<'a>(pattern: &BStr, name: &'a BStr) -> Option<&'a [u8]> {
    let (before, after) = pattern.split_once_str("*")?;
    name.strip_prefix(before)?.strip_suffix(after)
}

/// Returns `to` with its `*` replaced by the part of `name` that matches the `*` of `from`.
fn replace(from: &BStr, to: &BStr, name: &BStr) -> Option<BString> {
    let middle = middle(from, name)?;
    let (before, after) = to.split_once_str("*")?;
    Some([before, middle, after].concat().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refspecs_are_parsed() {
        let spec = |text: &str| PushSpec::parse(text.into());
        assert!(spec(":").expect("matching").matching);
        assert!(spec("+:").expect("matching").force);
        let delete = spec(":refs/heads/a").expect("a deletion");
        assert!(delete.source.is_empty() && delete.is_explicit());
        assert_eq!(spec("@").expect("HEAD").source, "HEAD");
        let wild = spec("refs/heads/*:refs/x/*").expect("a pattern");
        let (here, there) = (BStr::new("refs/heads/a/b"), BString::from("refs/x/a/b"));
        assert_eq!(wild.expand(here), Some(there.clone()));
        assert_eq!(wild.expand_back(there.as_bstr()).expect("maps back"), here);
        assert!(
            spec("^refs/heads/a*")
                .expect("negative")
                .excludes("refs/heads/ab".into())
        );
        for text in ["a:", "a:b..c", "a*:b", "a:b*", "^a:b", "^", "", "a b"] {
            spec(text).expect_err(text);
        }
    }
}
