//! The request lines of a fetch, as a server reads them (`gitprotocol-pack(5)`, `gitprotocol-v2(5)`).
//!
//! Each line is parsed separately, so that the server can respond to a malformed line at once, as Git
//! does.

use bstr::{BStr, ByteSlice};
use pronto_hash::{Kind, ObjectId};

use crate::error::{Error, malformed};

/// The depth that stands for the complete history.
pub const INFINITE_DEPTH: u32 = 0x7fff_ffff;

/// One line of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestLine<'a> {
    /// A wanted object (`want`).
    Want {
        /// The id of the object.
        id: ObjectId,
        /// The rest of the line: in versions 0 and 1 the capabilities of the client.
        rest: &'a BStr,
    },
    /// A wanted ref (`want-ref`).
    WantRef(&'a BStr),
    /// An object that the client has (`have`).
    Have(ObjectId),
    /// A shallow commit of the client (`shallow`).
    Shallow(ObjectId),
    /// The maximum number of commits from each want (`deepen`).
    Deepen(u32),
    /// The oldest committer date (`deepen-since`).
    DeepenSince(u64),
    /// A ref whose history is excluded (`deepen-not`).
    DeepenNot(&'a BStr),
    /// The depth of [`Deepen`](RequestLine::Deepen) is relative to the shallow boundary of the client
    /// (`deepen-relative`).
    DeepenRelative,
    /// An object filter (`filter`).
    Filter(&'a BStr),
    /// Deltas may have bases that only the client has (`thin-pack`).
    ThinPack,
    /// Deltas may refer to their bases by offset (`ofs-delta`).
    OffsetDeltas,
    /// Progress messages are suppressed (`no-progress`).
    NoProgress,
    /// Annotated tags of sent objects are sent, too (`include-tag`).
    IncludeTag,
    /// All responses are sent in a side band (`sideband-all`).
    SidebandAll,
    /// The protocols over which the client can download packs (`packfile-uris`).
    PackfileUris(&'a BStr),
    /// The client has sent all haves (`done`).
    Done,
    /// The server must not send the pack before [`Done`](RequestLine::Done) (`wait-for-done`).
    WaitForDone,
    /// An unknown line.
    Unknown,
}

impl<'a> RequestLine<'a> {
    /// Parses a line of the first part of a request in versions 0 and 1 (wants, shallow lines, depth).
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) and Git's message if a known
    /// line is malformed.
    pub fn of_needs(line: &'a [u8], kind: Kind) -> Result<RequestLine<'a>, Error> {
        if let Some(rest) = line.strip_prefix(b"want ") {
            let (id, rest) = leading_id(rest, kind).ok_or_else(|| {
                let line = line.as_bstr();
                let message = format!(
                    "git upload-pack: protocol error, expected to get object ID, not '{line}'"
                );
                malformed(message)
            })?;
            return Ok(RequestLine::Want { id, rest });
        }
        Ok(Self::limit(line, kind)?.unwrap_or(RequestLine::Unknown))
    }

    /// Parses a line of the negotiation in versions 0 and 1.
    ///
    /// # Errors
    /// As for [`of_needs`](Self::of_needs).
    pub fn of_negotiation(line: &'a [u8], kind: Kind) -> Result<RequestLine<'a>, Error> {
        match line {
            b"done" => Ok(RequestLine::Done),
            _ => Ok(Self::have(line, kind)?.unwrap_or(RequestLine::Unknown)),
        }
    }

    /// Parses an argument of the command `fetch` of version 2.
    ///
    /// # Errors
    /// As for [`of_needs`](Self::of_needs).
    pub fn of_fetch(line: &'a [u8], kind: Kind) -> Result<RequestLine<'a>, Error> {
        if let Some(rest) = line.strip_prefix(b"want ") {
            let (id, rest) = leading_id(rest, kind).ok_or_else(|| {
                let line = line.as_bstr();
                let message =
                    format!("git upload-pack: protocol error, expected to get oid, not '{line}'");
                malformed(message)
            })?;
            return Ok(RequestLine::Want { id, rest });
        }
        let after = |prefix: &str| line.strip_prefix(prefix.as_bytes()).map(BStr::new);
        if let Some(name) = after("want-ref ") {
            return Ok(RequestLine::WantRef(name));
        }
        if let Some(protocols) = after("packfile-uris ") {
            return Ok(RequestLine::PackfileUris(protocols));
        }
        Ok(match line {
            b"thin-pack" => RequestLine::ThinPack,
            b"ofs-delta" => RequestLine::OffsetDeltas,
            b"no-progress" => RequestLine::NoProgress,
            b"include-tag" => RequestLine::IncludeTag,
            b"sideband-all" => RequestLine::SidebandAll,
            b"done" => RequestLine::Done,
            b"wait-for-done" => RequestLine::WaitForDone,
            b"deepen-relative" => RequestLine::DeepenRelative,
            _ => match Self::have(line, kind)? {
                Some(have) => have,
                None => Self::limit(line, kind)?.unwrap_or(RequestLine::Unknown),
            },
        })
    }

    fn have(line: &'a [u8], kind: Kind) -> Result<Option<RequestLine<'a>>, Error> {
        let Some(hex) = line.strip_prefix(b"have ") else {
            return Ok(None);
        };
        match leading_id(hex, kind) {
            Some((id, _)) => Ok(Some(RequestLine::Have(id))),
            None => {
                let hex = hex.as_bstr();
                let message = format!("git upload-pack: expected SHA1 object, got '{hex}'");
                Err(malformed(message))
            }
        }
    }

    /// Parses a line that limits the objects to send.
    fn limit(line: &'a [u8], kind: Kind) -> Result<Option<RequestLine<'a>>, Error> {
        let after = |prefix: &str| line.strip_prefix(prefix.as_bytes()).map(BStr::new);
        let shown = line.as_bstr();
        if let Some(hex) = after("shallow ") {
            let found = leading_id(hex, kind);
            let (id, _) =
                found.ok_or_else(|| malformed(format!("invalid shallow line: {shown}")))?;
            return Ok(Some(RequestLine::Shallow(id)));
        }
        if let Some(text) = after("deepen ") {
            let depth = number(text)
                .map(ParsedNumber::as_int)
                .filter(|depth| *depth > 0);
            let depth = depth.and_then(|depth| u32::try_from(depth).ok());
            let depth = depth.ok_or_else(|| malformed(format!("Invalid deepen: {shown}")))?;
            return Ok(Some(RequestLine::Deepen(depth)));
        }
        if let Some(text) = after("deepen-since ") {
            let time = number(text).map(ParsedNumber::as_time);
            let time = time.filter(|time| !matches!(*time, 0 | u64::MAX));
            let time = time.ok_or_else(|| malformed(format!("Invalid deepen-since: {shown}")))?;
            return Ok(Some(RequestLine::DeepenSince(time)));
        }
        if let Some(name) = after("deepen-not ") {
            return Ok(Some(RequestLine::DeepenNot(name)));
        }
        Ok(after("filter ").map(RequestLine::Filter))
    }
}

/// Splits the object id at the start of `text` from the rest, which need not be separated.
fn leading_id(text: &[u8], kind: Kind) -> Option<(ObjectId, &BStr)> {
    let (hex, rest) = text.split_at_checked(kind.len_in_hex())?;
    let id = pronto_hash::parse_hex(hex).ok()?;
    Some((id, rest.as_bstr()))
}

/// A number as the C library parses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ParsedNumber {
    is_negative: bool,
    /// The absolute value, limited to 64 bits.
    magnitude: u64,
}

impl ParsedNumber {
    /// Returns the result of `strtol` as an `int`.
    fn as_int(self) -> i32 {
        let limited = match i64::try_from(self.magnitude) {
            Ok(value) if self.is_negative => -value,
            Ok(value) => value,
            Err(_) if self.is_negative => i64::MIN,
            Err(_) => i64::MAX,
        };
        limited as i32
    }

    /// Returns the result of `strtoumax`.
    fn as_time(self) -> u64 {
        match self.is_negative {
            true => self.magnitude.wrapping_neg(),
            false => self.magnitude,
        }
    }
}

/// Parses `text` as a decimal, octal or hexadecimal number. An empty text is zero.
fn number(text: &[u8]) -> Option<ParsedNumber> {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let start = text.iter().position(|byte| !is_space(byte));
    let text = start.map_or(&b""[..], |start| &text[start..]);
    let (is_negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let (base, digits) = match digits {
        [b'0', b'x' | b'X', rest @ ..] if !rest.is_empty() => (16, rest),
        [b'0', ..] => (8, digits),
        _ => (10, digits),
    };
    let mut magnitude = 0u64;
    for digit in digits {
        let value = char::from(*digit).to_digit(base)?;
        magnitude = magnitude
            .checked_mul(u64::from(base))
            .and_then(|shifted| shifted.checked_add(u64::from(value)))
            .unwrap_or(u64::MAX);
    }
    Some(ParsedNumber {
        is_negative,
        magnitude,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789012345678901234567890123456789";

    fn fetch(line: &str) -> Result<RequestLine<'_>, String> {
        RequestLine::of_fetch(line.as_bytes(), Kind::Sha1)
            .map_err(|error| error.message().to_owned())
    }

    #[test]
    fn ids_may_be_followed_by_anything() {
        let id = pronto_hash::parse_hex(ID.as_bytes()).expect("an id");
        let line = format!("want {ID} side-band");
        let parsed = RequestLine::of_needs(line.as_bytes(), Kind::Sha1).expect("a line");
        let rest = " side-band".into();
        assert_eq!(parsed, RequestLine::Want { id, rest });
        assert_eq!(fetch(&format!("have {ID}x")), Ok(RequestLine::Have(id)));
        assert!(fetch("have 0123").is_err() && fetch(&format!("want  {ID}")).is_err());
    }

    #[test]
    fn numbers_are_read_as_by_the_c_library() {
        assert_eq!(fetch("deepen 0x10"), Ok(RequestLine::Deepen(16)));
        assert_eq!(fetch("deepen 010"), Ok(RequestLine::Deepen(8)));
        assert_eq!(fetch("deepen +3"), Ok(RequestLine::Deepen(3)));
        assert_eq!(
            fetch("deepen 2147483647"),
            Ok(RequestLine::Deepen(INFINITE_DEPTH))
        );
        assert_eq!(fetch("deepen 4294967297"), Ok(RequestLine::Deepen(1)));
        for wrong in [
            "",
            "0",
            "-1",
            "1x",
            "2147483648",
            "09",
            "99999999999999999999",
        ] {
            let line = format!("deepen {wrong}");
            assert_eq!(fetch(&line), Err(format!("Invalid deepen: {line}")));
        }
        assert_eq!(
            fetch("deepen-since 1700000000"),
            Ok(RequestLine::DeepenSince(1_700_000_000))
        );
        assert!(fetch("deepen-since -1").is_err() && fetch("deepen-since 0").is_err());
    }

    #[test]
    fn what_belongs_to_the_other_version_is_unknown() {
        assert_eq!(fetch("sideband"), Ok(RequestLine::Unknown));
        let needs = |line: &'static str| RequestLine::of_needs(line.as_bytes(), Kind::Sha1).ok();
        for line in ["thin-pack", "deepen-relative", "done", "have 12"] {
            assert_eq!(needs(line), Some(RequestLine::Unknown));
        }
        let later =
            |line: &'static str| RequestLine::of_negotiation(line.as_bytes(), Kind::Sha1).ok();
        assert_eq!(later("done"), Some(RequestLine::Done));
        assert_eq!(later("deepen 0"), Some(RequestLine::Unknown));
    }
}
