//! Parses bundle lists, in the format of configuration files or as the lines of a server's
//! response.

use std::collections::HashMap;
use std::fmt;

use bstr::{BStr, BString, ByteSlice};

use pronto_wire::address::without_credentials;

use super::address::resolve;
use crate::config::parse::{ConfigParser, Event};
use crate::config::{ConfigKey, value};

/// The largest number of bundles in a list.
const MOST_ENTRIES: usize = 1 << 16;

/// The limit for the total size of the resolved URLs of a list. Each relative URL is resolved to a
/// copy of the base URL.
const MOST_ADDRESS_BYTES: usize = 16 << 20;

/// The bundles of a list that a clone needs (`bundle.mode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// All bundles.
    All,
    /// Any single bundle: the others have the same objects.
    Any,
}

/// A heuristic for the order of the bundles (`bundle.heuristic`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Heuristic {
    /// Newer bundles have larger creation tokens (`creationToken`).
    CreationToken,
}

/// A bundle of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// The id in the list.
    pub id: BString,
    /// The resolved URL (`bundle.<id>.uri`).
    pub uri: Option<BString>,
    /// The creation token (`bundle.<id>.creationToken`); 0 if there is none.
    pub creation_token: u64,
}

/// A list of bundles (`git bundle-uri`, "BUNDLE LISTS").
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BundleList {
    /// The bundles that are needed (`bundle.mode`); unset, all of them.
    pub mode: Option<Mode>,
    /// The heuristic for the order of the bundles (`bundle.heuristic`).
    pub heuristic: Option<Heuristic>,
    /// The bundles, in the order in which the list names them.
    pub entries: Vec<Entry>,
    /// The creation tokens that are not numbers.
    pub bad_tokens: Vec<BString>,
}

/// The fault of a malformed list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadList {
    /// The line with this number of a file is malformed.
    FileLine(u32),
    /// The line with this number and content of a response is malformed.
    AnswerLine(usize, BString),
    /// The total size of the URLs of the list exceeds the limit. Contains their base URL.
    Addresses(BString),
}

impl fmt::Display for BadList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadList::FileLine(line) => write!(f, "bad config line {line}"),
            BadList::AnswerLine(number, line) => {
                write!(f, "error on bundle-uri response line {number}: {line}")
            }
            BadList::Addresses(base) => write!(
                f,
                "the addresses of the bundle list at '{base}' have more than {MOST_ADDRESS_BYTES} bytes"
            ),
        }
    }
}

impl std::error::Error for BadList {}

/// The number that Git gives the first line of a response in messages.
const FIRST_LINE: usize = 2;

/// The reason why a key or a value cannot be in a list.
#[derive(Clone, Copy, Debug)]
enum ListFault {
    /// The line is malformed.
    Line,
    /// The total size of the URLs exceeds the limit.
    Addresses,
}

impl BundleList {
    /// Parses the text of a file. URLs are relative to `base`. Included files are not read.
    ///
    /// # Errors
    /// Fails if a line is malformed or has an invalid value, or the list exceeds a limit: 65,536
    /// bundles, or 16 MiB of URLs.
    pub fn parse(text: &[u8], base: &BStr) -> Result<Self, BadList> {
        let mut reading = ListParser::new(base);
        let mut parser = ConfigParser::new(text);
        loop {
            let event = parser
                .next_event()
                .map_err(|bad| BadList::FileLine(bad.0))?;
            match event {
                None => return Ok(reading.list),
                Some(Event::Entry) => {
                    let key = [&parser.section[..], &parser.name].concat();
                    let value = parser.value.as_deref().map(BStr::new);
                    let set = reading.set(key.as_bstr(), value);
                    let line = BadList::FileLine(parser.entry_line);
                    set.map_err(|fault| reading.refuse(fault, line))?;
                }
                Some(_) => {}
            }
        }
    }

    /// Parses the lines of a server's response (`bundle-uri`). URLs are relative to `base`.
    ///
    /// # Errors
    /// Fails if a line is malformed or has an invalid value, or the list exceeds a limit: 65,536
    /// bundles, or 16 MiB of URLs.
    pub fn parse_lines(lines: &[BString], base: &BStr) -> Result<Self, BadList> {
        let mut reading = ListParser::new(base);
        for (at, line) in lines.iter().enumerate() {
            let parts = line.split_once_str("=");
            let parts = parts.filter(|(key, value)| !key.is_empty() && !value.is_empty());
            let set = parts
                .ok_or(ListFault::Line)
                .and_then(|(key, value)| reading.set(key.as_bstr(), Some(value.as_bstr())));
            set.map_err(|fault| {
                reading.refuse(fault, BadList::AnswerLine(at + FIRST_LINE, line.clone()))
            })?;
        }
        Ok(reading.list)
    }

    /// Returns the bundles in the order in which Git processes them.
    pub fn in_order(&self) -> Vec<&Entry> {
        let ids = self.entries.iter().map(|entry| entry.id.as_bstr());
        order(ids).into_iter().map(|at| &self.entries[at]).collect()
    }
}

/// A list that is being parsed.
struct ListParser<'a> {
    base: &'a BStr,
    list: BundleList,
    address_bytes_left: usize,
    /// The positions of the bundles in the list.
    places: HashMap<BString, usize>,
}

impl<'a> ListParser<'a> {
    fn new(base: &'a BStr) -> Self {
        ListParser {
            base,
            list: BundleList::default(),
            address_bytes_left: MOST_ADDRESS_BYTES,
            places: HashMap::new(),
        }
    }

    fn refuse(&self, fault: ListFault, line: BadList) -> BadList {
        match fault {
            ListFault::Line => line,
            ListFault::Addresses => BadList::Addresses(without_credentials(self.base)),
        }
    }

    /// Sets the value of one key. Unknown keys are ignored.
    fn set(&mut self, key: &BStr, set: Option<&BStr>) -> Result<(), ListFault> {
        let key = ConfigKey::split(key);
        if !key.section.eq_ignore_ascii_case(b"bundle") {
            return Err(ListFault::Line);
        }
        let variable = key.variable.to_ascii_lowercase();
        let Some(id) = key.subsection else {
            return self.set_own(&variable, set);
        };
        match variable.as_slice() {
            b"uri" => {
                let uri = set.and_then(|uri| resolve(self.base, uri));
                let uri = uri.ok_or(ListFault::Line)?;
                let left = self.address_bytes_left.checked_sub(uri.len());
                self.address_bytes_left = left.ok_or(ListFault::Addresses)?;
                if self.entry(id)?.uri.replace(uri).is_some() {
                    return Err(ListFault::Line);
                }
            }
            b"creationtoken" => {
                let text = set.unwrap_or_default();
                let entry = self.entry(id)?;
                match leading_number(text) {
                    Some(token) => entry.creation_token = token,
                    None => self.list.bad_tokens.push(text.into()),
                }
            }
            _ => {
                self.entry(id)?;
            }
        }
        Ok(())
    }

    fn set_own(&mut self, variable: &[u8], set: Option<&BStr>) -> Result<(), ListFault> {
        let list = &mut self.list;
        match variable {
            b"version" => match set.map(value::parse_i64) {
                Some(Ok(1)) => {}
                _ => return Err(ListFault::Line),
            },
            b"mode" => {
                list.mode = Some(match set.map(|mode| mode.as_bytes()) {
                    Some(b"all") => Mode::All,
                    Some(b"any") => Mode::Any,
                    _ => return Err(ListFault::Line),
                });
            }
            b"heuristic" if set == Some("creationToken".into()) => {
                list.heuristic = Some(Heuristic::CreationToken);
            }
            _ => {}
        }
        Ok(())
    }

    fn entry(&mut self, id: &BStr) -> Result<&mut Entry, ListFault> {
        let entries = &mut self.list.entries;
        let at = match self.places.get(id) {
            Some(at) => *at,
            None if entries.len() >= MOST_ENTRIES => return Err(ListFault::Line),
            None => {
                self.places.insert(id.into(), entries.len());
                entries.push(Entry {
                    id: id.into(),
                    uri: None,
                    creation_token: 0,
                });
                entries.len() - 1
            }
        };
        Ok(&mut entries[at])
    }
}

/// Returns the number at the start of `text`, as `scanf` reads it.
pub(super) fn leading_number(text: &BStr) -> Option<u64> {
    let text = text.trim_start();
    let end = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let digits = text.get(..end).filter(|digits| !digits.is_empty())?;
    let digits = std::str::from_utf8(digits).ok()?;
    Some(digits.parse().unwrap_or(u64::MAX))
}

/// The initial number of buckets of the hash table in which Git stores a list.
const FIRST_BUCKETS: usize = 64;

/// Returns the order in which Git's hash table iterates over `ids`. Users can observe which bundle
/// is the first.
pub(super) fn order<'a>(ids: impl Iterator<Item = &'a BStr>) -> Vec<usize> {
    let mut buckets: Vec<Vec<usize>> = vec![Vec::new(); FIRST_BUCKETS];
    let mut hashes = Vec::new();
    for (at, id) in ids.enumerate() {
        let hash = hash(id);
        hashes.push(hash);
        let bucket = hash as usize % buckets.len();
        buckets[bucket].push(at);
        if hashes.len() > buckets.len() * 80 / 100 {
            let mut larger: Vec<Vec<usize>> = vec![Vec::new(); buckets.len() * 4];
            // The entry that was added last is the first in its bucket.
            for at in buckets.iter().flat_map(|bucket| bucket.iter().rev()) {
                let bucket = hashes[*at] as usize % larger.len();
                larger[bucket].push(*at);
            }
            buckets = larger;
        }
    }
    buckets
        .iter()
        .flat_map(|bucket| bucket.iter().rev().copied())
        .collect()
}

/// The hash function FNV-1 with 32 bits.
fn hash(text: &BStr) -> u32 {
    text.iter().fold(0x811c_9dc5, |hash: u32, byte| {
        hash.wrapping_mul(0x0100_0193) ^ u32::from(*byte)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "[bundle]\nversion = 1\nmode = any\nheuristic = creationToken\nnew = 1\n\
        [bundle \"a\"]\nuri = a.bundle\ncreationToken = 7x\n\
        [bundle \"b\"]\nuri = https://other/b\ncreationToken = x\nsize = 1\n";

    #[test]
    fn a_file_and_an_answer_say_the_same() {
        let file = BundleList::parse(LIST.as_bytes(), "https://host/".into()).expect("a list");
        let lines = [
            "bundle.version=1",
            "bundle.mode=any",
            "bundle.heuristic=creationToken",
            "bundle.a.uri=a.bundle",
            "bundle.a.creationToken=7x",
            "bundle.b.uri=https://other/b",
            "bundle.b.creationtoken=x",
        ];
        let lines: Vec<BString> = lines.iter().map(|line| BString::from(*line)).collect();
        let answer = BundleList::parse_lines(&lines, "https://host".into()).expect("a list");
        assert_eq!(file, answer);
        assert_eq!(file.mode, Some(Mode::Any));
        assert_eq!(file.heuristic, Some(Heuristic::CreationToken));
        assert_eq!(file.entries[0].uri, Some("https://host/a.bundle".into()));
        assert_eq!(file.entries[0].creation_token, 7);
        assert_eq!(file.bad_tokens, ["x"]);
    }

    #[test]
    fn broken_lists_are_refused_with_their_line() {
        let cases = [
            ("[bundle]\nversion = 2\n", 2),
            ("[bundle]\nmode = some\n", 2),
            ("[other]\nkey = 1\n", 2),
            ("junk\n", 1),
            ("[bundle \"a\"]\nuri\n", 2),
            ("[bundle \"a\"]\nuri = x\nuri = y\n", 3),
            ("[bundle \"a\"\nuri = x\n", 1),
        ];
        for (text, line) in cases {
            let bad = BundleList::parse(text.as_bytes(), "/".into()).expect_err(text);
            let BadList::FileLine(found) = bad else {
                panic!("{text}: {bad}");
            };
            assert!(found.abs_diff(line) <= 1, "{text}: {found}");
        }
        for line in ["", "bundle.version", "=1", "bundle.mode=", "other.mode=all"] {
            BundleList::parse_lines(&[line.into()], "/".into()).expect_err(line);
        }
    }

    #[test]
    fn a_list_has_so_many_bundles() {
        let lines = (0..=MOST_ENTRIES).map(|at| format!("bundle.{at}.uri=x").into());
        let lines: Vec<BString> = lines.collect();
        BundleList::parse_lines(&lines[1..], "/".into()).expect("not too many");
        let bad = BundleList::parse_lines(&lines, "/".into()).expect_err("too many");
        assert!(matches!(bad, BadList::AnswerLine(number, _) if number == lines.len() + 1));
    }

    #[test]
    fn the_addresses_of_a_list_are_bounded_together() {
        let base = format!("https://user:secret@host/{}/", "x".repeat(1 << 12));
        let lines = (0..1 << 13).map(|at| format!("bundle.{at}.uri={at}").into());
        let lines: Vec<BString> = lines.collect();
        BundleList::parse_lines(&lines[..1 << 11], base.as_str().into()).expect("not too long");
        let bad = BundleList::parse_lines(&lines, base.as_str().into()).expect_err("too long");
        assert!(matches!(bad, BadList::Addresses(_)), "{bad}");
        let text = bad.to_string();
        assert!(text.contains("https://host/x") && !text.contains("secret"));
    }

    #[test]
    fn bundles_come_in_the_order_of_gits_table() {
        let ids = ["a", "b", "c", "bad"];
        let order = order(ids.iter().map(|id| BStr::new(*id)));
        assert_eq!(order, [3, 2, 1, 0]);
    }
}
