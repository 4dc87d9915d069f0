//! Refspecs of a fetch: `+refs/heads/*:refs/remotes/origin/*`.

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;

use crate::{Error, ErrorKind, Result};

/// A fetch refspec: the refs to fetch, and their names in this repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refspec {
    /// The source: a ref name, which may be abbreviated or contain one `*`, or an object id. Empty
    /// for `HEAD`.
    pub source: BString,
    /// The local ref to update; `None` if there is no destination.
    pub destination: Option<BString>,
    /// Allow updates that are not fast-forwards (`+`).
    pub force: bool,
    /// Exclude the refs that match `source` (`^`).
    pub negative: bool,
}

impl Refspec {
    /// Parses one refspec.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::InvalidInput`] if the text is malformed.
    pub fn parse(text: &BStr) -> Result<Self> {
        let invalid = || Error::new(ErrorKind::InvalidInput, format!("invalid refspec '{text}'"));
        gix_refspec::parse(text, gix_refspec::parse::Operation::Fetch).map_err(|_| invalid())?;
        let (force, negative, rest) = match text.as_bytes() {
            [b'+', rest @ ..] => (true, false, rest),
            [b'^', rest @ ..] => (false, true, rest),
            rest => (false, false, rest),
        };
        let (source, destination) = match rest.split_once_str(":") {
            Some((source, destination)) => (source, Some(destination)),
            None => (rest, None),
        };
        let source: BString = match source {
            b"@" => "HEAD".into(),
            source => source.into(),
        };
        Ok(Refspec {
            source,
            destination: destination
                .filter(|name| !name.is_empty())
                .map(|name| name.into()),
            force,
            negative,
        })
    }

    /// Whether the refspec is a pattern with `*`.
    pub fn is_pattern(&self) -> bool {
        self.source.contains(&b'*')
    }

    /// Returns the object id, if the source is a full object id.
    pub fn exact_id(&self) -> Option<ObjectId> {
        pronto_hash::parse_hex(&self.source).ok()
    }

    /// Returns the local name of the remote ref `name`, if the refspec is a matching pattern. The
    /// inner value is `None` if there is no destination.
    pub fn expand(&self, name: &BStr) -> Option<Option<BString>> {
        let middle = match_pattern(self.source.as_bstr(), name)?;
        Some(
            self.destination
                .as_ref()
                .map(|destination| match destination.split_once_str("*") {
                    Some((before, after)) => [before, middle, after].concat().into(),
                    None => destination.clone(),
                }),
        )
    }

    /// Returns the remote name of the local ref `name`, if the refspec is a pattern whose
    /// destination matches.
    pub fn source_of(&self, name: &BStr) -> Option<BString> {
        let destination = self.destination.as_ref()?;
        if !self.is_pattern() {
            let full = local_name(destination.as_bstr());
            return (full == name).then(|| self.source.clone());
        }
        let middle = match_pattern(destination.as_bstr(), name)?;
        let (before, after) = self.source.split_once_str("*")?;
        Some([before, middle, after].concat().into())
    }

    /// Whether this negative refspec excludes `name`.
    pub fn excludes(&self, name: &BStr) -> bool {
        self.negative
            && match self.is_pattern() {
                true => match_pattern(self.source.as_bstr(), name).is_some(),
                false => self.source == name,
            }
    }

    /// Adds the ref prefixes to request, so that the server need not list all refs.
    pub fn add_prefixes(&self, out: &mut Vec<BString>) {
        if self.negative || self.exact_id().is_some() {
            return;
        }
        if self.is_pattern() {
            let end = self.source.find_byte(b'*').unwrap_or(self.source.len());
            out.push(self.source[..end].into());
            return;
        }
        let name = match self.source.is_empty() {
            true => BStr::new("HEAD"),
            false => self.source.as_bstr(),
        };
        out.extend(expansions(name));
    }
}

impl std::fmt::Display for Refspec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = match (self.force, self.negative) {
            (true, _) => "+",
            (_, true) => "^",
            _ => "",
        };
        write!(f, "{sign}{}", self.source)?;
        match &self.destination {
            Some(destination) => write!(f, ":{destination}"),
            None => Ok(()),
        }
    }
}

/// Returns the part of `name` that matches the `*` of `pattern`.
fn match_pattern<'a>(pattern: &BStr, name: &'a BStr) -> Option<&'a [u8]> {
    let (before, after) = pattern.split_once_str("*")?;
    name.strip_prefix(before)
        .and_then(|rest| rest.strip_suffix(after))
}

/// Returns the full names that an abbreviated name may resolve to, in the order of precedence.
pub(crate) fn expansions(name: &BStr) -> impl Iterator<Item = BString> {
    crate::refs::name::candidates(name)
}

/// Returns the full local ref name of an abbreviated destination.
pub fn local_name(name: &BStr) -> BString {
    if name.starts_with(b"refs/") {
        return name.into();
    }
    let is_kind = [&b"heads/"[..], b"tags/", b"remotes/"]
        .iter()
        .any(|kind| name.starts_with(kind));
    let prefix: &[u8] = if is_kind { b"refs/" } else { b"refs/heads/" };
    [prefix, name].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> Refspec {
        Refspec::parse(text.into()).expect("well formed")
    }

    #[test]
    fn patterns_map_both_ways() {
        let spec = spec("+refs/heads/*:refs/remotes/origin/*");
        assert!(spec.force && spec.is_pattern());
        let there = BStr::new("refs/heads/a/b");
        let here = BString::from("refs/remotes/origin/a/b");
        assert_eq!(spec.expand(there), Some(Some(here.clone())));
        assert_eq!(spec.source_of(here.as_bstr()).expect("mapped"), there);
        assert_eq!(spec.expand("refs/tags/a".into()), None);
    }

    #[test]
    fn names_are_completed() {
        let spec = spec("main:copy");
        assert_eq!(local_name("copy".into()), "refs/heads/copy");
        assert_eq!(
            spec.source_of("refs/heads/copy".into()).expect("mapped"),
            "main"
        );
        let mut prefixes = Vec::new();
        spec.add_prefixes(&mut prefixes);
        assert!(prefixes.contains(&"refs/heads/main".into()));
        Refspec::parse("a..b:c".into()).expect_err("not a name");
    }
}
