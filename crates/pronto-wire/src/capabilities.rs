//! Capabilities of the remote side.

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::Kind;

use crate::error::{Error, ErrorKind};

/// The name of pronto in the protocol (`agent=`).
pub const AGENT: &str = concat!("pronto/", env!("CARGO_PKG_VERSION"));

/// The names and values of capabilities, in the order in which they were received. A name may occur
/// several times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(Vec<(BString, Option<BString>)>);

impl Capabilities {
    /// Parses capabilities that are separated by spaces, as they follow the first ref in versions 0 and
    /// 1.
    pub fn from_words(words: &[u8]) -> Self {
        let mut capabilities = Self::default();
        for word in words.fields() {
            capabilities.push(word);
        }
        capabilities
    }

    /// Adds one capability, `name` or `name=value`.
    pub fn push(&mut self, word: &[u8]) {
        let (name, value) = match word.split_once_str("=") {
            Some((name, value)) => (name, Some(value.into())),
            None => (word, None),
        };
        self.0.push((name.into(), value));
    }

    /// Returns whether the capability `name` is present, with or without a value.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(found, _)| found == name)
    }

    /// Returns the first value of `name`.
    pub fn value(&self, name: &str) -> Option<&BStr> {
        let found = self
            .0
            .iter()
            .find(|(found, value)| found == name && value.is_some())?;
        found.1.as_ref().map(|value| value.as_bstr())
    }

    /// Returns all values of `name`.
    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a BStr> {
        self.0
            .iter()
            .filter(move |(found, _)| found == name)
            .filter_map(|(_, value)| value.as_ref().map(|value| value.as_bstr()))
    }

    /// Returns whether `feature` is one of the words in the value of `name`, as in
    /// `fetch=shallow filter`.
    pub fn has_feature(&self, name: &str, feature: &str) -> bool {
        self.values(name)
            .any(|value| value.fields().any(|word| word == feature.as_bytes()))
    }

    /// Returns the hash function of the remote repository (`object-format`).
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Unsupported`] if the hash function is unknown.
    pub fn object_format(&self) -> Result<Kind, Error> {
        let Some(format) = self.value("object-format") else {
            return Ok(Kind::Sha1);
        };
        match format.as_bytes() {
            b"sha1" => Ok(Kind::Sha1),
            b"sha256" => Ok(Kind::Sha256),
            _ => Err(Error::new(
                ErrorKind::Unsupported,
                format!("unknown object format '{format}' specified by server"),
            )),
        }
    }

    /// Returns the number of capabilities.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no capabilities.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
