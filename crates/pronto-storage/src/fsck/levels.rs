//! The severity of each finding: `fsck.<msg-id>`, `fsck.skipList`, and options.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use bstr::{BStr, BString, ByteSlice};
use pronto_config::config::{Config, value};
use pronto_config::path;
use pronto_hash::{ObjectId, oid};
use pronto_repository::{Error, ErrorKind, Result};

use super::{FsckSeverity, Message};

/// The severities of the checks of `git fsck`.
#[derive(Clone, Debug, Default)]
pub struct Levels {
    strict: bool,
    changed: HashMap<Message, FsckSeverity>,
    skipped: HashSet<ObjectId>,
    /// The configured largest length of a name in a tree, in bytes; `None` for the default.
    longest_name: Option<i64>,
}

/// The default largest length of a name in a tree, in bytes.
const LONGEST_NAME: i64 = 4096;

impl Levels {
    /// Returns Git's default severities, with warnings as errors (`--strict`). Received objects are
    /// checked with them.
    pub fn strict() -> Self {
        Levels {
            strict: true,
            ..Levels::default()
        }
    }

    /// Returns the severity of `message`.
    pub fn of(&self, message: Message) -> FsckSeverity {
        match self.changed.get(&message) {
            Some(level) => *level,
            None if self.strict && message.level() == FsckSeverity::Warn => FsckSeverity::Error,
            None => message.level(),
        }
    }

    /// Returns whether a name in a tree with `length` bytes is too long.
    pub(super) fn is_too_long(&self, length: usize) -> bool {
        let longest = self.longest_name.unwrap_or(LONGEST_NAME);
        i64::try_from(length).is_ok_and(|length| length > longest)
    }

    /// Returns whether findings about the object `id` are suppressed (`fsck.skipList`).
    pub fn skips(&self, id: &oid) -> bool {
        !self.skipped.is_empty() && self.skipped.contains(id)
    }

    /// Applies a list of `<msg-id>=<severity>` and `skiplist=<path>` items, as in `--strict=<list>`.
    /// Blanks, commas or bars separate the items.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::InvalidInput`] if the list is malformed or names an unknown message id
    /// or severity, or [`ErrorKind::Io`] if a skip list cannot be read.
    pub fn set_all(&mut self, list: &BStr) -> Result<()> {
        for item in list.split(|byte| b" ,|".contains(byte)) {
            if item.is_empty() {
                continue;
            }
            let Some(at) = item.find_byteset(b"=:") else {
                if item.eq_ignore_ascii_case(b"skiplist") {
                    return Err(wrong("skiplist requires a path"));
                }
                let item = item.to_ascii_lowercase();
                return Err(wrong(format!("Missing '=': '{}'", item.as_bstr())));
            };
            let (name, value) = (item[..at].to_ascii_lowercase(), &item[at + 1..]);
            match name.as_slice() {
                b"skiplist" => self.skip(&path::from_bytes(value))?,
                name => self.set(name.as_bstr(), value.as_bstr())?,
            }
        }
        Ok(())
    }

    /// Sets the severity of the message id `name` (`fsck.<msg-id>`).
    ///
    /// # Errors
    /// Fails with [`ErrorKind::InvalidInput`] if the message id or severity is unknown, or if a fatal
    /// message would be demoted.
    pub fn set(&mut self, name: &BStr, level: &BStr) -> Result<()> {
        let message = Message::named(name);
        let message = message.ok_or_else(|| wrong(format!("Unhandled message id: {name}")))?;
        let (level, limit) = match level.find_byte(b':') {
            Some(at) if message == Message::LargePathname => {
                (level[..at].as_bstr(), Some(level[at + 1..].as_bstr()))
            }
            _ => (level, None),
        };
        if let Some(limit) = limit {
            let parsed = value::parse_i64(limit);
            let unable = |_| wrong(format!("unable to parse max tree entry len: {limit}"));
            self.longest_name = Some(parsed.map_err(unable)?);
        }
        let parsed = parse_level(level)?;
        if parsed != FsckSeverity::Error && message.level() == FsckSeverity::Fatal {
            return Err(wrong(format!("Cannot demote {name} to {level}")));
        }
        self.changed.insert(message, parsed);
        Ok(())
    }

    /// Reads a skip list: a file with one object id in each line (`fsck.skipList`). Findings about
    /// these objects are suppressed.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the file cannot be read, or [`ErrorKind::InvalidInput`] if a
    /// line is not an object id.
    pub fn skip(&mut self, file: &Path) -> Result<()> {
        let content = std::fs::read(file).map_err(|_| {
            let message = format!("could not open object name list: {}", file.display());
            Error::new(ErrorKind::Io, message)
        })?;
        for line in content.lines() {
            let line = match line.find_byte(b'#') {
                Some(comment) => &line[..comment],
                None => line,
            };
            let line = line.trim();
            if !line.is_empty() {
                let id = pronto_hash::parse_hex(line);
                let bad = |_| wrong(format!("invalid object name: {}", line.as_bstr()));
                self.skipped.insert(id.map_err(bad)?);
            }
        }
        Ok(())
    }

    /// Reads the settings under `prefix` (`fetch.fsck.`, `receive.fsck.`, `fsck.`). Calls `warn` with
    /// each unknown message id.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::InvalidInput`] if a severity is unknown, or [`ErrorKind::Io`] if a skip
    /// list cannot be read.
    pub fn configure(
        &mut self,
        config: &Config,
        prefix: &str,
        home: Option<&Path>,
        warn: &mut dyn FnMut(BString),
    ) -> Result<()> {
        for entry in config.iter() {
            let Some(name) = entry.key.strip_prefix(prefix.as_bytes()) else {
                continue;
            };
            if name == b"skiplist" {
                if let Some(file) = entry.path(home)? {
                    self.skip(&file)?;
                }
            } else if Message::named(name).is_some() {
                let level = entry.string()?;
                // As in Git, only options may set a maximum length.
                parse_level(level)?;
                self.set(name.as_bstr(), level)?;
            } else {
                warn(name.into());
            }
        }
        Ok(())
    }
}

fn parse_level(text: &BStr) -> Result<FsckSeverity> {
    match text.as_bytes() {
        b"error" => Ok(FsckSeverity::Error),
        b"warn" => Ok(FsckSeverity::Warn),
        b"ignore" => Ok(FsckSeverity::Ignore),
        _ => Err(wrong(format!("Unknown fsck message type: '{text}'"))),
    }
}

fn wrong(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidInput, message)
}
