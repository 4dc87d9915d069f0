//! Object filters of partial clones (`git-rev-list(1)`, `--filter`).

use bstr::{BStr, BString, ByteSlice};
use gix_object::Kind as ObjectKind;
use pronto_config::config::value::parse_u64;
use pronto_repository::{Error, ErrorKind, Result};

/// The largest depth of nested combined filters.
const DEEPEST: usize = 16;

/// The largest number of filters in a combination.
const MOST_PARTS: usize = 256;

/// An object filter. An object that was requested by its id is sent regardless of the filter.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ObjectFilter {
    /// Omit all blobs (`blob:none`).
    BlobNone,
    /// Omit blobs of at least this number of bytes (`blob:limit=<n>`).
    BlobLimit(u64),
    /// Omit trees and blobs at this depth or below; root trees have depth 0 (`tree:<depth>`).
    TreeDepth(u64),
    /// Omit blobs at paths that the sparse-checkout patterns in this blob do not match
    /// (`sparse:oid=<blob>`).
    SparseOid(BString),
    /// Omit objects of other types (`object:type=<type>`).
    ObjectType(ObjectKind),
    /// Omit objects that any of these filters omits (`combine:<filter>+<filter>`).
    Combine(Vec<ObjectFilter>),
}

impl ObjectFilter {
    /// Parses a filter spec with at most 256 parts, which are nested at most 16 times.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::InvalidInput`] and Git's message if the spec is unknown or malformed.
    pub fn parse(spec: &BStr) -> Result<ObjectFilter> {
        parse(spec, 0, &mut 0)
    }

    /// Returns the name of the filter in `uploadpackfilter.<name>.allow`.
    pub fn config_name(&self) -> &'static str {
        match self {
            ObjectFilter::BlobNone => "blob:none",
            ObjectFilter::BlobLimit(_) => "blob:limit",
            ObjectFilter::TreeDepth(_) => "tree",
            ObjectFilter::SparseOid(_) => "sparse:oid",
            ObjectFilter::ObjectType(_) => "object:type",
            ObjectFilter::Combine(_) => "combine",
        }
    }

    /// Returns the filter spec, with numbers without unit suffixes.
    pub fn to_spec(&self) -> BString {
        match self {
            ObjectFilter::BlobNone => "blob:none".into(),
            ObjectFilter::BlobLimit(bytes) => format!("blob:limit={bytes}").into(),
            ObjectFilter::TreeDepth(depth) => format!("tree:{depth}").into(),
            ObjectFilter::SparseOid(name) => [b"sparse:oid=", name.as_slice()].concat().into(),
            ObjectFilter::ObjectType(kind) => format!("object:type={kind}").into(),
            ObjectFilter::Combine(parts) => {
                let parts: Vec<Vec<u8>> =
                    parts.iter().map(|part| encoded(&part.to_spec())).collect();
                [b"combine:".to_vec(), parts.join(&b'+')].concat().into()
            }
        }
    }
}

fn parse(spec: &BStr, depth: usize, count: &mut usize) -> Result<ObjectFilter> {
    *count += 1;
    if depth > DEEPEST || *count > MOST_PARTS {
        return fail("filter-spec has too many parts");
    }
    let unknown = || fail(format!("invalid filter-spec '{spec}'"));
    let after = |prefix: &str| spec.strip_prefix(prefix.as_bytes()).map(BStr::new);
    if spec == "blob:none" {
        return Ok(ObjectFilter::BlobNone);
    }
    if let Some(limit) = after("blob:limit=") {
        return match parse_u64(limit) {
            Ok(bytes) => Ok(ObjectFilter::BlobLimit(bytes)),
            Err(_) => unknown(),
        };
    }
    if let Some(depth) = after("tree:") {
        return match parse_u64(depth) {
            Ok(depth) => Ok(ObjectFilter::TreeDepth(depth)),
            Err(_) => fail("expected 'tree:<depth>'"),
        };
    }
    if let Some(name) = after("sparse:oid=") {
        return Ok(ObjectFilter::SparseOid(name.to_owned()));
    }
    if after("sparse:path=").is_some() {
        return fail("sparse:path filters support has been dropped");
    }
    if let Some(kind) = after("object:type=") {
        return match ObjectKind::from_bytes(kind) {
            Ok(kind) => Ok(ObjectFilter::ObjectType(kind)),
            Err(_) => fail(format!(
                "'{kind}' for 'object:type=<type>' is not a valid object type"
            )),
        };
    }
    if spec == "auto" {
        return fail("'auto' filter not supported by this command");
    }
    match after("combine:") {
        Some(parts) => combination(parts, depth, count),
        None => unknown(),
    }
}

fn combination(text: &BStr, depth: usize, count: &mut usize) -> Result<ObjectFilter> {
    if text.is_empty() {
        return fail("expected something after combine:");
    }
    let mut parts = Vec::new();
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        // A plus sign at the very end is not a separator.
        let (part, after) = match rest.find_byte(b'+') {
            Some(end) => (&rest[..end], &rest[end + 1..]),
            None => (rest, &b""[..]),
        };
        if let Some(byte) = part.iter().find(|byte| is_reserved(**byte)) {
            let byte = BStr::new(std::slice::from_ref(byte));
            return fail(format!("must escape char in sub-filter-spec: '{byte}'"));
        }
        let part = decoded(part);
        parts.push(parse(part.as_bstr(), depth + 1, count)?);
        rest = after;
    }
    Ok(ObjectFilter::Combine(parts))
}

/// Returns whether a byte must be encoded as `%XX` in a part of a combination.
fn is_reserved(byte: u8) -> bool {
    byte <= b' ' || b"~`!@#$^&*()[]{}\\;'\",<>?".contains(&byte)
}

fn decoded(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [byte, after @ ..] = rest {
        let digit = |at: usize| {
            let byte = after.get(at).copied().map(char::from)?;
            byte.to_digit(16)
        };
        match (byte, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) if high + low > 0 => {
                out.push((high << 4 | low) as u8);
                rest = after.get(2..).unwrap_or_default();
            }
            _ => {
                out.push(*byte);
                rest = after;
            }
        }
    }
    out
}

fn encoded(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        match is_reserved(*byte) || matches!(byte, b'%' | b'+') || *byte > 0x7e {
            true => out.extend_from_slice(format!("%{byte:02x}").as_bytes()),
            false => out.push(*byte),
        }
    }
    out
}

fn fail<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::new(ErrorKind::InvalidInput, message.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(spec: &str) -> std::result::Result<ObjectFilter, String> {
        ObjectFilter::parse(spec.into()).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn combinations_are_decoded() {
        let parts = vec![
            ObjectFilter::BlobLimit(1024),
            ObjectFilter::SparseOid("a b+c".into()),
        ];
        let filter = ObjectFilter::Combine(parts);
        let spec = "combine:blob:limit=1k+sparse:oid=a%20b%2bc";
        assert_eq!(parsed(spec), Ok(filter.clone()));
        assert_eq!(parsed(&filter.to_spec().to_string()), Ok(filter));
        assert_eq!(
            parsed("combine:tree:3+"),
            Ok(ObjectFilter::Combine(vec![ObjectFilter::TreeDepth(3)]))
        );
    }

    #[test]
    fn wrong_specs_are_refused_in_gits_words() {
        let wrong = |spec: &str| parsed(spec).expect_err("it is wrong");
        assert_eq!(wrong("blob:limit=x"), "invalid filter-spec 'blob:limit=x'");
        assert_eq!(wrong("tree:-1"), "expected 'tree:<depth>'");
        assert_eq!(wrong("combine:"), "expected something after combine:");
        assert_eq!(wrong("combine:tree:1++tree:1"), "invalid filter-spec ''");
        let message = "must escape char in sub-filter-spec: '~'";
        assert_eq!(wrong("combine:sparse:oid=a~b+tree:1"), message);
    }

    #[test]
    fn nesting_and_parts_are_bounded() {
        let mut spec = BString::from("blob:none");
        for _ in 0..40 {
            spec = [b"combine:".to_vec(), encoded(&spec)].concat().into();
            if spec.len() > 1 << 16 {
                break;
            }
        }
        assert!(ObjectFilter::parse(spec.as_bstr()).is_err());
        let many = vec!["tree:1"; 300].join("+");
        assert!(parsed(&format!("combine:{many}")).is_err());
    }
}
