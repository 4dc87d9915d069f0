//! The identities in commits and tags: authors, committers and taggers.

use bstr::{BStr, BString, ByteSlice};
use gix_date::Time;
use pronto_io::short::Short as _;

/// The parsed parts of a line `NAME <EMAIL> SECONDS ZONE`, as they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdentityRef<'a> {
    /// The name, without white space at its start and end.
    pub name: &'a BStr,
    /// The email address, without white space at its start and end.
    pub email: &'a BStr,
    /// The digits of the seconds since 1970-01-01 UTC, or `None` if the date is malformed.
    pub seconds: Option<&'a [u8]>,
    /// The time zone as a sign and digits, or `None` if the date is malformed.
    pub zone: Option<&'a [u8]>,
}

impl<'a> IdentityRef<'a> {
    /// Parses a line as Git does: the email address is between the first `<` and the next `>`, and
    /// the date follows the last `>`. Returns `None` if there is no email address.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let begin = line.position_of(b'<')?;
        let (name, rest) = (&line[..begin], &line[begin + 1..]);
        let email = &rest[..rest.position_of(b'>')?];
        let date = date_of(line);
        Some(IdentityRef {
            name: name.trim_ascii().as_bstr(),
            email: email.trim_ascii().as_bstr(),
            seconds: date.map(|(seconds, _)| seconds),
            zone: date.map(|(_, zone)| zone),
        })
    }

    /// Returns the time with the offset of its zone, or `None` if the date is malformed or out of
    /// range.
    pub fn time(self) -> Option<Time> {
        let seconds = self.seconds?.to_str().ok()?.parse().ok()?;
        let zone: i32 = self.zone?.to_str().ok()?.parse().ok()?;
        let minutes = (zone / 100).checked_mul(60)? + zone % 100;
        Some(Time {
            seconds,
            offset: minutes.checked_mul(60)?,
        })
    }

    /// Returns the seconds in a line: the first word after the last `>`. The rest of the line may
    /// be malformed.
    pub fn seconds_of(line: &[u8]) -> Option<i64> {
        let after = line.last_position_of(b'>')? + 1;
        let word = line[after..].fields().next()?;
        word.to_str().ok()?.parse().ok()
    }
}

/// Returns the time of the first header line `name` (such as `tagger`) of a commit or a tag, in
/// seconds since the epoch. Returns `None` if there is no such line, or if the line has no time.
pub fn header_time(content: &[u8], name: &str) -> Option<i64> {
    let line = crate::headers::value(content, name)?;
    IdentityRef::seconds_of(line).filter(|seconds| *seconds >= 0)
}

/// Returns the digits of the seconds, and the time zone, after the last `>` of a line.
fn date_of(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let after = line.last_position_of(b'>')? + 1;
    let rest = line[after..].trim_ascii_start();
    let (seconds, rest) = digits(rest)?;
    let rest = rest.trim_ascii_start();
    if !matches!(rest.first(), Some(b'+' | b'-')) {
        return None;
    }
    let (zone, _) = digits(&rest[1..])?;
    Some((seconds, &rest[..=zone.len()]))
}

/// Splits a text after its leading digits. Returns `None` if there are none.
fn digits(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (count > 0).then(|| text.split_at(count))
}

/// A name, an email address and a time, as in commits, tags and reflogs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The name.
    pub name: BString,
    /// The email address.
    pub email: BString,
    /// The time, with the offset of its time zone.
    pub time: Time,
}

impl Signature {
    /// Appends the line `NAME <EMAIL> SECONDS ZONE`.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.name);
        out.extend_from_slice(b" <");
        out.extend_from_slice(&self.email);
        out.extend_from_slice(b"> ");
        out.extend_from_slice(self.date().as_bytes());
    }

    fn date(&self) -> String {
        let minutes = self.time.offset / 60;
        let sign = if minutes < 0 { '-' } else { '+' };
        let (hours, rest) = (minutes.abs() / 60, minutes.abs() % 60);
        format!("{} {sign}{hours:02}{rest:02}", self.time.seconds)
    }
}

impl std::fmt::Display for Signature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} <{}> {}", self.name, self.email, self.date())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(line: &str) -> Option<(String, String, Option<i64>)> {
        let identity = IdentityRef::parse(line.as_bytes())?;
        let seconds = identity.time().map(|time| time.seconds);
        Some((
            identity.name.to_string(),
            identity.email.to_string(),
            seconds,
        ))
    }

    #[test]
    fn signatures_have_the_sign_and_the_minutes_of_their_zone() {
        for (offset, zone) in [
            (0, "+0000"),
            (5_400, "+0130"),
            (-27_000, "-0730"),
            (-60, "-0001"),
        ] {
            let signature = Signature {
                name: "A".into(),
                email: "a@b".into(),
                time: Time {
                    seconds: 17,
                    offset,
                },
            };
            assert_eq!(signature.to_string(), format!("A <a@b> 17 {zone}"));
        }
    }

    #[test]
    fn identities_are_split_as_git_splits_them() {
        let some = |name: &str, email: &str, seconds| Some((name.into(), email.into(), seconds));
        for (line, expected) in [
            ("A U Thor <a@b> 17 -0730", some("A U Thor", "a@b", Some(17))),
            ("<a@b> 17 +0000", some("", "a@b", Some(17))),
            ("A < a@b > 17 +0000", some("A", "a@b", Some(17))),
            ("A <a@b>", some("A", "a@b", None)),
            ("A <a@b> 17", some("A", "a@b", None)),
            ("A <a@b> x +0000", some("A", "a@b", None)),
            ("A <a>b> 17 +0000", some("A", "a", Some(17))),
            ("A <a@b> 99999999999999999999 +0000", some("A", "a@b", None)),
            ("A <a@b>  +0000", some("A", "a@b", None)),
            ("A a@b 17 +0000", None),
            ("A <a@b 17 +0000", None),
        ] {
            assert_eq!(parts(line), expected, "{line}");
        }
        let zone = |line: &str| {
            let identity = IdentityRef::parse(line.as_bytes())?;
            identity.time().map(|time| time.offset)
        };
        assert_eq!(zone("A <> 1 -0730"), Some(-(7 * 60 + 30) * 60));
        assert_eq!(zone("A <> 1 +99999999999"), None);
    }

    #[test]
    fn times_are_read_from_header_lines_only() {
        let tag = b"object x\ntag v\ntagger a <a@b> 17 +0100\n\ntagger b <> 3 +0000\n";
        assert_eq!(header_time(tag, "tagger"), Some(17));
        let none = [
            "object x\n\ntagger b <> 3 +0000\n",
            "tagger a <a@b> x\n\n",
            "tagger t <> -1 +0000\n",
            "tagger t <> 99999999999999999999 +0000\n",
            "tagger\n",
        ];
        for text in none {
            assert_eq!(header_time(text.as_bytes(), "tagger"), None, "{text}");
        }
    }

    #[test]
    fn a_written_signature_is_read_again() {
        for name in ["", "A", "A U Thor", "Ü. \u{1f600}"] {
            for seconds in [0, 1, 1_112_911_993, i64::MAX] {
                for minutes in [-1439, -90, -1, 0, 1, 59, 60, 345, 1439] {
                    let time = Time {
                        seconds,
                        offset: minutes * 60,
                    };
                    let signature = Signature {
                        name: name.into(),
                        email: "a@b".into(),
                        time,
                    };
                    let text = signature.to_string();
                    let identity = IdentityRef::parse(text.as_bytes()).expect("it has an address");
                    assert_eq!(identity.name, name);
                    assert_eq!(identity.time(), Some(time), "{text}");
                    assert_eq!(IdentityRef::seconds_of(text.as_bytes()), Some(seconds));
                }
            }
        }
    }
}
