//! The file of users and the hashes of their tokens. The server and the commands change it under a
//! lock; a server notices changes by others within a second.

use std::collections::HashMap;
use std::io::ErrorKind as Io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pronto_io::error::IoContext as _;
use pronto_io::lock_file::{LockFile, Marking};
use serde::{Deserialize, Serialize};

use crate::names::is_user_name;
use crate::token::{self, TokenHash};
use crate::{Error, ErrorKind, Result};

/// The largest file of users.
const LARGEST_BYTES: u64 = 64 << 20;

/// How long a change waits for the lock.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often the file is looked at.
const RECHECK: Duration = Duration::from_millis(500);

/// A user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// The name.
    pub name: String,
    /// When the user was added, in seconds since 1970.
    #[serde(default)]
    pub added: u64,
    /// The tokens, oldest first.
    #[serde(default, rename = "token", skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<Token>,
}

/// A token of a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// The SHA-256 of the token in hexadecimal digits.
    pub sha256: String,
    /// When it was created, in seconds since 1970.
    #[serde(default)]
    pub created: u64,
}

/// The content of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Users {
    /// All users in the order of their names.
    #[serde(default, rename = "user")]
    pub users: Vec<User>,
}

impl Users {
    /// Reads the file; one that does not exist has no users.
    ///
    /// # Errors
    /// It cannot be read, or is malformed.
    pub fn read(path: &Path) -> Result<Self> {
        let links = pronto_io::untrusted::Links::Follow;
        let bytes = match pronto_io::untrusted::read(path, links, LARGEST_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == Io::NotFound => return Ok(Users::default()),
            Err(error) => return Err(error).context(ErrorKind::Config, "cannot read", path),
        };
        Self::parse(&String::from_utf8_lossy(&bytes)).map_err(|error| error.at_path(path))
    }

    /// Parses the text of the file.
    ///
    /// # Errors
    /// It is malformed; a name or a hash is not allowed, or appears twice.
    pub fn parse(text: &str) -> Result<Self> {
        let malformed = |message: String| Error::new(ErrorKind::Config, message);
        let mut users: Users = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            let line = 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
            malformed(format!(
                "line {line}: {}",
                error.message().replace('\n', " ")
            ))
        })?;
        users.users.sort_by(|one, other| one.name.cmp(&other.name));
        for pair in users.users.windows(2) {
            if let [one, other] = pair
                && one.name == other.name
            {
                return Err(malformed(format!("there are two users '{}'", one.name)));
            }
        }
        let mut hashes = HashMap::new();
        for user in &users.users {
            if !is_user_name(&user.name) {
                return Err(malformed(format!(
                    "'{}' cannot be the name of a user",
                    user.name
                )));
            }
            for token in &user.tokens {
                let hash = TokenHash::parse(&token.sha256).ok_or_else(|| {
                    malformed(format!("a token of '{}' is not a SHA-256", user.name))
                })?;
                if hashes.insert(hash, &user.name).is_some() {
                    return Err(malformed(format!(
                        "a token of '{}' appears twice",
                        user.name
                    )));
                }
            }
        }
        Ok(users)
    }

    /// Adds a user without tokens.
    ///
    /// # Errors
    /// The name is not allowed, or taken.
    pub fn add(&mut self, name: &str) -> Result<()> {
        if !is_user_name(name) {
            let message = format!("'{name}' cannot be the name of a user");
            return Err(Error::new(ErrorKind::InvalidName, message));
        }
        let at = (self.users).binary_search_by(|user| user.name.as_str().cmp(name));
        let Err(at) = at else {
            let message = format!("there is a user '{name}' already");
            return Err(Error::new(ErrorKind::Exists, message));
        };
        let user = User {
            name: name.to_owned(),
            added: now(),
            tokens: Vec::new(),
        };
        self.users.insert(at, user);
        Ok(())
    }

    /// Removes a user with all tokens.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn remove(&mut self, name: &str) -> Result<()> {
        self.find(name)?;
        self.users.retain(|user| user.name != name);
        Ok(())
    }

    /// Creates a token for a user, and returns it. It is the only copy. With `replaces` all others of
    /// the user are revoked.
    ///
    /// # Errors
    /// There is no such user, or the system provides no random bytes.
    pub fn add_token(&mut self, name: &str, mode: TokenMode) -> Result<String> {
        let user = self.find(name)?;
        let token = token::generate()?;
        if mode == TokenMode::Replace {
            user.tokens.clear();
        }
        user.tokens.push(Token {
            sha256: TokenHash::of(token.as_bytes()).to_string(),
            created: now(),
        });
        Ok(token)
    }

    fn find(&mut self, name: &str) -> Result<&mut User> {
        let found = self.users.iter_mut().find(|user| user.name == name);
        found.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no user '{name}'")))
    }
}

/// What happens to the other tokens of a user who gets one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenMode {
    /// They stay valid.
    Add,
    /// They are revoked.
    Replace,
}

/// Changes the file under its lock, and returns what `change` returns.
///
/// # Errors
/// Those of `change`; or the file is locked, or cannot be read or written.
pub fn change<T>(path: &Path, change: impl FnOnce(&mut Users) -> Result<T>) -> Result<T> {
    let locked = |error: pronto_io::lock_file::Error| error.map_kind(|_| ErrorKind::Io);
    let mut lock = LockFile::acquire(path, Marking::Marked, PATIENCE).map_err(locked)?;
    let mut users = Users::read(path)?;
    let result = change(&mut users)?;
    let text = toml::to_string(&users)
        .map_err(|error| Error::new(ErrorKind::Config, "cannot write users").because(error))?;
    let text = format!("# Managed by \"pronto serve user\" and \"pronto serve token\".\n\n{text}");
    use std::os::unix::fs::PermissionsExt as _;
    if let Some(file) = lock.file() {
        let only_owner = std::fs::Permissions::from_mode(0o600);
        let restricted = file.set_permissions(only_owner);
        restricted.context(ErrorKind::Io, "cannot write", path)?;
    }
    lock.wait_for(pronto_io::sync::SyncMethod::Flush);
    lock.write(text.as_bytes()).map_err(locked)?;
    lock.commit_to(path)
        .context(ErrorKind::Io, "cannot write", path)?;
    Ok(result)
}

/// The users as a server knows them, indexed by the hashes of their tokens.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    known: Arc<Known>,
    stamp: Option<Stamp>,
    checked: Option<Instant>,
}

/// What tells two versions of the file apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    size_bytes: u64,
    seconds: i64,
    nanoseconds: i64,
}

/// Names of users by the hashes of tokens.
#[derive(Debug, Default)]
pub struct Known {
    by_token: HashMap<TokenHash, Arc<str>>,
    names: Vec<Arc<str>>,
}

impl Known {
    /// Returns the user of a token.
    pub fn user_of(&self, token: &[u8]) -> Option<&Arc<str>> {
        self.by_token.get(&TokenHash::of(token))
    }

    /// Returns the user of that name.
    pub fn named(&self, name: &str) -> Option<&Arc<str>> {
        self.names.iter().find(|known| known.as_ref() == name)
    }

    fn of(users: &Users) -> Self {
        let mut known = Known::default();
        for user in &users.users {
            let name: Arc<str> = user.name.as_str().into();
            for token in &user.tokens {
                if let Some(hash) = TokenHash::parse(&token.sha256) {
                    known.by_token.insert(hash, Arc::clone(&name));
                }
            }
            known.names.push(name);
        }
        known
    }

    /// Adds a token that is in no file.
    pub(crate) fn add(&mut self, name: &str, token: &[u8]) {
        let name: Arc<str> = name.into();
        self.by_token
            .insert(TokenHash::of(token), Arc::clone(&name));
        self.names.push(name);
    }
}

impl Directory {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// It cannot be read, or is malformed.
    pub fn open(path: PathBuf) -> Result<Self> {
        let stamp = stamp(&path);
        let known = Arc::new(Known::of(&Users::read(&path)?));
        let state = State {
            known,
            stamp,
            checked: Some(Instant::now()),
        };
        Ok(Directory {
            path,
            state: Mutex::new(state),
        })
    }

    /// Makes a directory with one user who has one token, and no file.
    pub fn with_one(name: &str, token: &str) -> Self {
        let mut known = Known::default();
        known.add(name, token.as_bytes());
        let state = State {
            known: Arc::new(known),
            ..State::default()
        };
        Directory {
            path: PathBuf::new(),
            state: Mutex::new(state),
        }
    }

    /// Returns the file; `None` if there is none.
    pub fn path(&self) -> Option<&Path> {
        (!self.path.as_os_str().is_empty()).then_some(&*self.path)
    }

    /// Returns the users, after another look at the file if the last one was half a second ago. A file
    /// that has become unreadable or malformed leaves them as they were.
    pub fn known(&self) -> Arc<Known> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = state.checked.is_none_or(|last| last.elapsed() >= RECHECK);
        if self.path().is_some() && is_due {
            state.checked = Some(Instant::now());
            let stamp = stamp(&self.path);
            if stamp != state.stamp
                && let Ok(users) = Users::read(&self.path)
            {
                state.known = Arc::new(Known::of(&users));
                state.stamp = stamp;
            }
        }
        Arc::clone(&state.known)
    }

    /// Changes the file. The change counts at once.
    ///
    /// # Errors
    /// As for [`change`]; and there is no file if the server was started without one.
    pub fn change<T>(&self, act: impl FnOnce(&mut Users) -> Result<T>) -> Result<T> {
        let Some(path) = self.path() else {
            let message = "this server has no file of users; start it with a configuration";
            return Err(Error::new(ErrorKind::Unsupported, message));
        };
        let result = change(path, act);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.checked = None;
        result
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let found = std::fs::metadata(path).ok()?;
    Some(Stamp {
        inode: found.ino(),
        size_bytes: found.size(),
        seconds: found.mtime(),
        nanoseconds: found.mtime_nsec(),
    })
}

fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_lead_to_their_users() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("users.toml");
        let token = change(&path, |users| {
            users.add("bob")?;
            users.add("alice")?;
            users.add_token("alice", TokenMode::Add)
        });
        let token = token.expect("written");
        let directory = Directory::open(path.clone()).expect("readable");
        let user = |token: &str| directory.known().user_of(token.as_bytes()).cloned();
        assert_eq!(user(&token).as_deref(), Some("alice"));
        assert_eq!(user("wrong"), None);
        let text = std::fs::read_to_string(&path).expect("text");
        assert!(!text.contains(&token), "only the hash is stored");
        let replaced = directory.change(|users| users.add_token("alice", TokenMode::Replace));
        let replaced = replaced.expect("written");
        assert_eq!(user(&token), None);
        assert_eq!(user(&replaced).as_deref(), Some("alice"));
        directory
            .change(|users| users.remove("alice"))
            .expect("written");
        assert_eq!(user(&replaced), None);
        let error = directory.change(|users| users.add("bob"));
        assert_eq!(*error.expect_err("taken").kind(), ErrorKind::Exists);
    }

    #[test]
    fn malformed_files_are_refused() {
        for bad in [
            "x",
            "[[user]]",
            "[[user]]\nname = \"-\"",
            "[[user]]\nname = \"a\"\n[[user]]\nname = \"a\"",
            "[[user]]\nname = \"a\"\n[[user.token]]\nsha256 = \"0\"",
        ] {
            Users::parse(bad).expect_err(bad);
        }
    }
}
