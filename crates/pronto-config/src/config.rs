//! The configuration: the values of all files, in the order in which Git reads them, and getters
//! that convert values with Git's rules.

mod best;
pub mod color;
mod command;
pub mod edit;
mod include;
mod key;
mod load;
mod lock_holder;
pub mod parse;
mod place;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use bstr::{BStr, BString, ByteSlice};

pub use crate::url::{NormalUrl, UrlMatch, UrlParts};
pub use crate::value;
pub use key::{ConfigKey, canonical};
pub use load::Loader;
pub use place::{BranchInTables, RepositoryPaths};

use crate::{Error, ErrorKind, Result, pattern};

/// Compiles an extended regular expression for keys or values.
///
/// # Errors
/// Fails with [`ErrorKind::InvalidInput`] if the expression is malformed.
pub fn pattern(text: &BStr) -> Result<regex::bytes::Regex> {
    pattern::compile(text, false)
}

/// Reads the configuration that applies without a repository.
///
/// # Errors
/// Fails with [`ErrorKind::Config`] if a file cannot be read or parsed.
pub fn without_repository(environment: &crate::Environment) -> Result<Config> {
    let mut loader = Loader::new(environment, None);
    loader.system()?.global().command();
    loader.load()
}

/// The scope of a value, as `--show-scope` prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConfigScope {
    /// The configuration of the system (`--system`).
    System,
    /// The configuration of the user (`--global`).
    Global,
    /// The configuration of the repository (`--local`).
    Local,
    /// The configuration of one worktree (`--worktree`).
    Worktree,
    /// The configuration of one command: the option `-c` and the environment.
    Command,
    /// A file or blob that the caller named (`--file`, `--blob`).
    Unknown,
}

impl ConfigScope {
    /// Returns the name that `--show-scope` prints.
    pub fn name(self) -> &'static str {
        match self {
            ConfigScope::System => "system",
            ConfigScope::Global => "global",
            ConfigScope::Local => "local",
            ConfigScope::Worktree => "worktree",
            ConfigScope::Command => "command",
            ConfigScope::Unknown => "unknown",
        }
    }
}

/// The kind of a source of values, as `--show-origin` prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OriginKind {
    /// A configuration file.
    File,
    /// A blob of the repository (`--blob`).
    Blob,
    /// Standard input.
    StandardInput,
    /// The option `-c` or the environment.
    CommandLine,
}

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigOrigin {
    /// The scope of the values.
    pub scope: ConfigScope,
    /// The kind of the source.
    pub kind: OriginKind,
    /// The name of the source in messages: a path in Git's spelling, or the name of a blob as
    /// given.
    pub name: BString,
    /// The path of the file, if the source is a file.
    pub path: Option<PathBuf>,
}

impl ConfigOrigin {
    /// Returns the location as messages print it: `in file .git/config`.
    pub fn location(&self) -> String {
        match self.kind {
            OriginKind::File => format!("in file {}", self.name),
            OriginKind::Blob => format!("in blob {}", self.name),
            OriginKind::StandardInput => "in standard input".into(),
            OriginKind::CommandLine => format!("in command line {}", self.name),
        }
    }

    /// Returns the prefix that `--show-origin` prints.
    pub fn prefix(&self) -> &'static str {
        match self.kind {
            OriginKind::File => "file",
            OriginKind::Blob => "blob",
            OriginKind::StandardInput => "standard input",
            OriginKind::CommandLine => "command line",
        }
    }
}

#[derive(Clone, Debug)]
struct Entry {
    key: Range<u32>,
    value: Option<Range<u32>>,
    origin: u32,
    line: u32,
}

/// One configured value.
#[derive(Clone, Copy, Debug)]
pub struct ConfigEntry<'a> {
    /// The key in canonical form: the section and the variable in lower case.
    pub key: &'a BStr,
    /// The value, or `None` for a key without `=`, which means true.
    pub value: Option<&'a BStr>,
    /// The source of the value.
    pub origin: &'a ConfigOrigin,
    /// The line number, counted from one, or zero if the source has no lines.
    pub line: u32,
}

/// All configured values, in the order in which they were read. The last value of a key is the
/// effective one.
///
/// Keys are written as for `git config`: `section.variable` or `section.subsection.variable`. Only
/// the subsection is case-sensitive. A lookup is a binary search over the distinct keys, which are
/// sorted on first use. `Send + Sync`.
#[derive(Clone, Debug, Default)]
pub struct Config {
    text: Vec<u8>,
    entries: Vec<Entry>,
    origins: Vec<ConfigOrigin>,
    by_key: OnceLock<Vec<u32>>,
}

impl Config {
    fn push_origin(&mut self, origin: ConfigOrigin) -> u32 {
        self.origins.push(origin);
        self.origins.len() as u32 - 1
    }

    fn push(&mut self, key: &[&[u8]], value: Option<&[u8]>, origin: u32, line: u32) {
        let key_start = self.text.len() as u32;
        key.iter()
            .for_each(|part| self.text.extend_from_slice(part));
        let key_end = self.text.len() as u32;
        let value = value.map(|value| {
            self.text.extend_from_slice(value);
            key_end..self.text.len() as u32
        });
        self.entries.push(Entry {
            key: key_start..key_end,
            value,
            origin,
            line,
        });
        self.by_key.take();
    }

    /// Removes all values of `key`, which must be in canonical form.
    pub fn remove(&mut self, key: &BStr) {
        let mut entries = std::mem::take(&mut self.entries);
        entries.retain(|entry| self.slice(&entry.key) != key);
        self.entries = entries;
        self.by_key.take();
    }

    fn slice(&self, range: &Range<u32>) -> &BStr {
        self.text[range.start as usize..range.end as usize].as_bstr()
    }

    fn entry(&self, entry: &Entry) -> ConfigEntry<'_> {
        ConfigEntry {
            key: self.slice(&entry.key),
            value: entry.value.as_ref().map(|value| self.slice(value)),
            origin: &self.origins[entry.origin as usize],
            line: entry.line,
        }
    }

    /// Returns all values, in the order in which they were read.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = ConfigEntry<'_>> {
        self.entries.iter().map(|entry| self.entry(entry))
    }

    /// Returns all values of `key`, in the order in which they were read.
    pub fn entries(
        &self,
        key: impl AsRef<[u8]>,
    ) -> impl DoubleEndedIterator<Item = ConfigEntry<'_>> {
        let key = ConfigKey::lookup(key.as_ref());
        let by_key = self.by_key.get_or_init(|| {
            let mut order: Vec<u32> = (0..self.entries.len() as u32).collect();
            order.sort_by_key(|&at| self.slice(&self.entries[at as usize].key));
            order
        });
        let name = |at: &u32| self.slice(&self.entries[*at as usize].key);
        let start = by_key.partition_point(|at| name(at) < key.as_bstr());
        let length = by_key[start..].partition_point(|at| name(at) == key.as_bstr());
        by_key[start..start + length]
            .iter()
            .map(|&at| self.entry(&self.entries[at as usize]))
    }

    /// Returns the effective value of `key`, which is the last one.
    pub fn entry_of(&self, key: impl AsRef<[u8]>) -> Option<ConfigEntry<'_>> {
        self.entries(key).next_back()
    }

    /// Returns whether `key` is set, with or without a value.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        self.entry_of(key).is_some()
    }

    /// Returns the last value of `key` without conversion. A key without a value returns an empty
    /// string.
    pub fn raw(&self, key: impl AsRef<[u8]>) -> Option<&BStr> {
        self.entry_of(key)
            .map(|entry| entry.value.unwrap_or_default())
    }

    /// Returns the last value of `key`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if the key has no value.
    pub fn string(&self, key: impl AsRef<[u8]>) -> Result<Option<&BStr>> {
        self.entry_of(key).map(|entry| entry.string()).transpose()
    }

    /// Returns all values of `key`, in the order in which they were read. Skips entries without a
    /// value.
    pub fn strings(&self, key: impl AsRef<[u8]>) -> impl Iterator<Item = &BStr> {
        self.entries(key).filter_map(|entry| entry.value)
    }

    /// Returns the values of a multi-valued key for which an empty value clears the earlier ones
    /// (`credential.helper`, `http.extraHeader`).
    pub fn list(&self, key: impl AsRef<[u8]>) -> Vec<&BStr> {
        let mut list = Vec::new();
        for value in self.strings(key) {
            if value.is_empty() {
                list.clear();
            } else {
                list.push(value);
            }
        }
        list
    }

    /// Returns the value of `key` as a boolean.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if the value is not a boolean.
    pub fn bool(&self, key: impl AsRef<[u8]>) -> Result<Option<bool>> {
        self.entry_of(key).map(|entry| entry.bool()).transpose()
    }

    /// Returns the value of `key` as a boolean, or `default` if the key is not set.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if the value is not a boolean.
    pub fn bool_or(&self, key: impl AsRef<[u8]>, default: bool) -> Result<bool> {
        Ok(self.bool(key)?.unwrap_or(default))
    }

    /// Returns the value of `key` as an integer with an optional unit (`k`, `m`, `g`).
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if the value is not an integer or is out of range.
    pub fn i64(&self, key: impl AsRef<[u8]>) -> Result<Option<i64>> {
        self.entry_of(key).map(|entry| entry.i64()).transpose()
    }

    /// Returns the value of `key` as an integer in the range of C's `int`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if the value is not an integer or is out of range.
    pub fn i32(&self, key: impl AsRef<[u8]>) -> Result<Option<i32>> {
        self.entry_of(key).map(|entry| entry.i32()).transpose()
    }

    /// Returns the value of `key` as an unsigned integer with an optional unit (`k`, `m`, `g`).
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if the value is not an integer or is out of range.
    pub fn u64(&self, key: impl AsRef<[u8]>) -> Result<Option<u64>> {
        self.entry_of(key).map(|entry| entry.u64()).transpose()
    }

    /// Returns the value of `key` as a boolean or an integer.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if the value is neither a boolean nor an integer.
    pub fn bool_or_i64(&self, key: impl AsRef<[u8]>) -> Result<Option<BoolOrInt>> {
        self.entry_of(key)
            .map(|entry| entry.bool_or_i64())
            .transpose()
    }

    /// Returns the value of `key` as a path, with `~/` and `~user/` expanded. Returns `None` if the
    /// key is not set, and for a path with the prefix `:(optional)` that does not exist.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if the key has no value, or if the home directory is
    /// unknown.
    pub fn path(&self, key: impl AsRef<[u8]>, home: Option<&Path>) -> Result<Option<PathBuf>> {
        match self.entry_of(key) {
            Some(entry) => entry.path(home),
            None => Ok(None),
        }
    }

    /// Returns the distinct subsections of `section`, in order of first appearance, such as the
    /// names of the remotes for the section `remote`.
    pub fn subsections(&self, section: &str) -> Vec<&BStr> {
        let mut names: Vec<&BStr> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for entry in self.iter() {
            let parts = ConfigKey::split(entry.key);
            if let Some(name) = parts.subsection
                && parts.section == section
                && seen.insert(name)
            {
                names.push(name);
            }
        }
        names
    }

    /// Returns the value of the key `section.<url>.variable` whose URL matches `url` best, or of
    /// `section.variable` if none matches.
    pub fn for_url(
        &self,
        section: &str,
        variable: &str,
        url: &NormalUrl,
    ) -> Option<ConfigEntry<'_>> {
        best::best(self, section, variable, url)
    }
}

/// A boolean or an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoolOrInt {
    /// A boolean word, such as `true` or `no`.
    Bool(bool),
    /// An integer.
    Int(i64),
}

impl<'a> ConfigEntry<'a> {
    /// Returns the value as a string.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if the key has no value.
    pub fn string(&self) -> Result<&'a BStr> {
        self.value.ok_or_else(|| {
            let missing = format!("missing value for '{}'", self.key);
            self.bad_variable().reported_after(missing)
        })
    }

    /// Returns the value as a boolean.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if the value is not a boolean.
    pub fn bool(&self) -> Result<bool> {
        value::parse_bool(self.value).ok_or_else(|| {
            let message = format!(
                "bad boolean config value '{}' for '{}'",
                self.value.unwrap_or_default(),
                self.key
            );
            Error::new(ErrorKind::ConfigValue, message)
        })
    }

    /// Returns the value as an integer with an optional unit (`k`, `m`, `g`).
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if the value is not an integer or is out of range.
    pub fn i64(&self) -> Result<i64> {
        let value = self.value.unwrap_or_default();
        value::parse_i64(value).map_err(|reason| self.bad_number_here(reason))
    }

    /// Returns the value as an integer in the range of C's `int`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if the value is not an integer or is out of range.
    pub fn i32(&self) -> Result<i32> {
        let value = self.value.unwrap_or_default();
        value::parse_i32(value).map_err(|reason| self.bad_number_here(reason))
    }

    /// Returns the value as an unsigned integer with an optional unit (`k`, `m`, `g`).
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if the value is not an integer or is out of range.
    pub fn u64(&self) -> Result<u64> {
        let value = self.value.unwrap_or_default();
        value::parse_u64(value).map_err(|reason| self.bad_number_here(reason))
    }

    /// Returns the value as a boolean or an integer.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if the value is neither a boolean nor an integer.
    pub fn bool_or_i64(&self) -> Result<BoolOrInt> {
        match value::parse_bool_word(self.value) {
            Some(word) => Ok(BoolOrInt::Bool(word)),
            None => self.i32().map(|number| BoolOrInt::Int(number.into())),
        }
    }

    /// Returns the value as a path, or `None` for a path with the prefix `:(optional)` that does
    /// not exist.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if the key has no value, or if the home directory is
    /// unknown.
    pub fn path(&self, home: Option<&Path>) -> Result<Option<PathBuf>> {
        let value = self.string()?;
        let (optional, text) = match value.strip_prefix(b":(optional)") {
            Some(text) => (true, text.as_bstr()),
            None => (false, value),
        };
        let Some(path) = crate::path::expand_user(text, home) else {
            let message = format!("failed to expand user dir in: '{text}'");
            return Err(Error::new(ErrorKind::ConfigValue, message));
        };
        Ok((!optional || path.exists()).then_some(path))
    }

    fn bad_number_here(&self, reason: value::BadNumber) -> Error {
        match self.origin.kind {
            OriginKind::CommandLine => self.bad_number("", reason),
            _ => self.bad_number(&format!(" {}", self.origin.location()), reason),
        }
    }

    fn bad_number(&self, place: &str, reason: value::BadNumber) -> Error {
        let message = format!(
            "bad numeric config value '{}' for '{}'{place}: {reason}",
            self.value.unwrap_or_default(),
            self.key
        );
        Error::new(ErrorKind::ConfigValue, message)
    }

    /// Returns the error for an invalid value of this variable.
    pub fn bad_variable(&self) -> Error {
        let message = match self.origin.kind {
            OriginKind::CommandLine => {
                format!("unable to parse '{}' from command-line config", self.key)
            }
            _ => format!(
                "bad config variable '{}' in file '{}' at line {}",
                self.key, self.origin.name, self.line
            ),
        };
        Error::new(ErrorKind::ConfigValue, message)
    }
}
