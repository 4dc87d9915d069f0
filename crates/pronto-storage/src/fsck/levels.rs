//! The severity of each finding: `fsck.<msg-id>`, `fsck.skipList`, and options.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use bstr::{BStr, BString, ByteSlice};
use pronto_config::config::{Config, value};
use pronto_config::path;
use pronto_hash::{ObjectId, oid};
use pronto_repository::{Error, ErrorKind, Result};

use super::{Level, Message};

/// The severity of each finding.
#[derive(Clone, Debug, Default)]
pub struct Levels {
    strict: bool,
    changed: HashMap<Message, Level>,
    skipped: HashSet<ObjectId>,
    /// The longest name in a tree that is not too long, in bytes, if it is not Git's own.
    longest_name: Option<i64>,
}

/// The longest name in a tree that is not too long, in bytes.
const LONGEST_NAME: i64 = 4096;

impl Levels {
    /// Git's own, where warnings are errors: for what comes from elsewhere.
    pub fn strict() -> Self {
        Levels {
            strict: true,
            ..Levels::default()
        }
    }

    /// Returns the severity of `message`.
    pub fn of(&self, message: Message) -> Level {
        match self.changed.get(&message) {
            Some(level) => *level,
            None if self.strict && message.level() == Level::Warn => Level::Error,
            None => message.level(),
        }
    }

    /// Returns whether a name in a tree with so many bytes is too long.
    pub(super) fn is_too_long(&self, length: usize) -> bool {
        let longest = self.longest_name.unwrap_or(LONGEST_NAME);
        i64::try_from(length).is_ok_and(|length| length > longest)
    }

    /// Returns whether findings about the object `id` are suppressed.
    pub fn skips(&self, id: &oid) -> bool {
        !self.skipped.is_empty() && self.skipped.contains(id)
    }

    /// Takes a list as options have it: `id=level` and `skiplist=path`, between blanks, commas or
    /// bars.
    ///
    /// # Errors
    /// It is malformed, names what is not known, or a list that cannot be read.
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

    /// Sets the severity of the message called `name`.
    ///
    /// # Errors
    /// There is no such message or level, or the severity may not be lowered.
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
        if parsed != Level::Error && message.level() == Level::Fatal {
            return Err(wrong(format!("Cannot demote {name} to {level}")));
        }
        self.changed.insert(message, parsed);
        Ok(())
    }

    /// Takes a file of ids, one a line, of which nothing is to be said.
    ///
    /// # Errors
    /// It cannot be read, or holds something else.
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

    /// Reads the configuration under `prefix` (`fetch.fsck.`, `receive.fsck.`, `fsck.`). Calls
    /// `warn` for unknown names.
    ///
    /// # Errors
    /// A level is unknown, or a list of ids cannot be read.
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
                // As in Git, only options may name a length.
                parse_level(level)?;
                self.set(name.as_bstr(), level)?;
            } else {
                warn(name.into());
            }
        }
        Ok(())
    }
}

fn parse_level(text: &BStr) -> Result<Level> {
    match text.as_bytes() {
        b"error" => Ok(Level::Error),
        b"warn" => Ok(Level::Warn),
        b"ignore" => Ok(Level::Ignore),
        _ => Err(wrong(format!("Unknown fsck message type: '{text}'"))),
    }
}

fn wrong(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidInput, message)
}
