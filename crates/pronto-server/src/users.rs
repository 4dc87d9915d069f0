//! The file of users, which contains the hashes of their tokens and their public keys. The server
//! and the commands change the file under a lock.

pub(crate) mod text;

use std::collections::HashSet;
use std::io::ErrorKind as Io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pronto_io::error::IoContext as _;
use pronto_io::lock_file::{LockFile, Marking};
use serde::{Deserialize, Serialize};

use crate::keys::UserKey;
use crate::names::is_user_name;
use crate::secret;
use crate::token::{self, TokenHash};
use crate::{Error, ErrorKind, Result};

/// The largest size in bytes of the file of users.
pub(crate) const LARGEST_BYTES: u64 = 64 << 20;

/// The largest number of users.
pub(crate) const MOST_USERS: usize = 100_000;

/// The largest number of tokens of a user.
pub(crate) const MOST_TOKENS: usize = 100;

/// The largest number of public keys of a user.
pub(crate) const MOST_KEYS: usize = 50;

/// The largest length in bytes of a public key line that is added, which fits an RSA key of 8192
/// bits with a comment.
pub(crate) const LONGEST_KEY_BYTES: usize = 2048;

/// The longest wait for the lock of the file.
const PATIENCE: Duration = Duration::from_secs(5);

/// A user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// The name of the user (`name`).
    pub name: String,
    /// The time at which the user was added, in seconds since 1970 (`added`).
    #[serde(default)]
    pub added: u64,
    /// The tokens, oldest first (`token`).
    #[serde(default, rename = "token", skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<UserToken>,
    /// The public keys for SSH and netsync, oldest first (`key`).
    #[serde(default, rename = "key", skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<StoredUserKey>,
}

/// A token of a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserToken {
    /// The SHA-256 of the token in hexadecimal digits (`sha256`).
    pub sha256: String,
    /// The time at which the token was created, in seconds since 1970 (`created`).
    #[serde(default)]
    pub created: u64,
}

/// A public key of a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredUserKey {
    /// The key as a line of OpenSSH, `TYPE BASE64 COMMENT` (`public`).
    pub public: String,
    /// The time at which the key was added, in seconds since 1970 (`added`).
    #[serde(default)]
    pub added: u64,
}

/// The content of the file of users.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Users {
    /// All users, sorted by name.
    #[serde(default, rename = "user")]
    pub users: Vec<User>,
}

impl Users {
    /// Reads the file. A missing file contains no users.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Config`] if the file cannot be read, or is malformed.
    pub fn read(path: &Path) -> Result<Self> {
        let links = pronto_io::untrusted::SymlinkPolicy::Follow;
        let bytes = match pronto_io::untrusted::read(path, links, LARGEST_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == Io::NotFound => return Ok(Users::default()),
            Err(error) => return Err(error).context(ErrorKind::Config, "cannot read", path),
        };
        Self::parse(&bytes).map_err(|error| error.at_path(path))
    }

    /// Parses the text of the file.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Config`] if the text is too long or malformed, contains too many
    /// users, or contains a name or hash that is invalid or appears twice.
    pub fn parse(text: &[u8]) -> Result<Self> {
        let malformed = |message: String| Error::new(ErrorKind::Config, message);
        if text.len() as u64 > LARGEST_BYTES {
            return Err(malformed(format!(
                "it is larger than {LARGEST_BYTES} bytes"
            )));
        }
        let Ok(text) = std::str::from_utf8(text) else {
            return Err(malformed("it is not UTF-8".to_owned()));
        };
        let mut users = Users {
            users: text::parse(text, MOST_USERS)?,
        };
        users.users.sort_by(|one, other| one.name.cmp(&other.name));
        for pair in users.users.windows(2) {
            if let [one, other] = pair
                && one.name == other.name
            {
                return Err(malformed(format!("user '{}' appears twice", one.name)));
            }
        }
        users.check()?;
        Ok(users)
    }

    /// Checks that all names, tokens and keys are valid, and that none of them appears twice.
    fn check(&self) -> Result<()> {
        let malformed = |message: String| Err(Error::new(ErrorKind::Config, message));
        let mut hashes = HashSet::new();
        let mut keys = HashSet::new();
        for User {
            name,
            tokens,
            keys: own,
            ..
        } in &self.users
        {
            if !is_user_name(name) {
                return malformed(format!("invalid user name '{name}'"));
            }
            for token in tokens {
                let Some(hash) = TokenHash::parse(&token.sha256) else {
                    return malformed(format!(
                        "a token of user '{name}' is not a SHA-256 digest of 64 hexadecimal digits"
                    ));
                };
                if !hashes.insert(hash) {
                    return malformed(format!("a token of user '{name}' appears twice"));
                }
            }
            for key in own {
                let key = UserKey::parse(&key.public).map_err(|error| {
                    let message = format!("malformed key of user '{name}': {}", error.message());
                    Error::new(ErrorKind::Config, message)
                })?;
                if !keys.insert(key.hash()) {
                    let key = key.fingerprint();
                    return malformed(format!("key {key} of user '{name}' appears twice"));
                }
            }
        }
        Ok(())
    }

    /// Adds a user without tokens.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::InvalidName`] if the name is not allowed, and with
    /// [`ErrorKind::Exists`] if it is in use.
    pub fn add(&mut self, name: &str) -> Result<()> {
        if !is_user_name(name) {
            let message = format!("invalid user name '{name}'");
            return Err(Error::new(ErrorKind::InvalidName, message));
        }
        let at = (self.users).binary_search_by(|user| user.name.as_str().cmp(name));
        let Err(at) = at else {
            let message = format!("user '{name}' already exists");
            return Err(Error::new(ErrorKind::Exists, message));
        };
        if self.users.len() >= MOST_USERS {
            return Err(too_many(format!(
                "cannot add a user: the limit is {MOST_USERS} users"
            )));
        }
        let user = User {
            name: name.to_owned(),
            added: now(),
            tokens: Vec::new(),
            keys: Vec::new(),
        };
        self.users.insert(at, user);
        Ok(())
    }

    /// Removes a user with all tokens and keys.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::NotFound`] if no user has this name.
    pub fn remove(&mut self, name: &str) -> Result<()> {
        self.find(name)?;
        self.users.retain(|user| user.name != name);
        Ok(())
    }

    /// Creates a token for a user, and returns the token, which is stored nowhere else. With
    /// [`TokenMode::Replace`], all other tokens of the user are revoked.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Denied`] if the user has the largest number of tokens, with
    /// [`ErrorKind::NotFound`] if the user does not exist, and with [`ErrorKind::Io`] if the system
    /// provides no random bytes.
    pub fn add_token(&mut self, name: &str, mode: TokenMode) -> Result<String> {
        let user = self.find(name)?;
        let token = token::generate()?;
        if mode == TokenMode::Replace {
            user.tokens.clear();
        }
        if user.tokens.len() >= MOST_TOKENS {
            let message =
                format!("cannot add a token: user '{name}' already has {MOST_TOKENS} tokens");
            return Err(too_many(message).with_hint("replace them by one"));
        }
        user.tokens.push(UserToken {
            sha256: TokenHash::of(token.as_bytes()).to_string(),
            created: now(),
        });
        Ok(token)
    }

    /// Adds a public key to a user.
    ///
    /// # Errors
    /// - [`ErrorKind::Denied`] if the user has the largest number of keys.
    /// - [`ErrorKind::Malformed`] if the comment is too long.
    /// - [`ErrorKind::NotFound`] if the user does not exist.
    /// - [`ErrorKind::Exists`] if a user has the key already.
    pub fn add_key(&mut self, name: &str, key: &UserKey) -> Result<()> {
        if key.line().len() > LONGEST_KEY_BYTES {
            let message = format!("the key is longer than {LONGEST_KEY_BYTES} bytes");
            return Err(Error::new(ErrorKind::Malformed, message).with_hint("shorten the comment"));
        }
        let has = |known: &StoredUserKey| {
            UserKey::parse(&known.public).is_ok_and(|k| k.hash() == key.hash())
        };
        if let Some(user) = self.users.iter().find(|user| user.keys.iter().any(has)) {
            let message = format!("user '{}' already has this key", user.name);
            return Err(Error::new(ErrorKind::Exists, message));
        }
        let user = self.find(name)?;
        if user.keys.len() >= MOST_KEYS {
            let message = format!("cannot add a key: user '{name}' already has {MOST_KEYS} keys");
            return Err(too_many(message).with_hint("remove one first"));
        }
        user.keys.push(StoredUserKey {
            public: key.line().to_owned(),
            added: now(),
        });
        Ok(())
    }

    /// Removes a public key of a user, given its fingerprint or its netsync format.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::NotFound`] if the user or the key does not exist.
    pub fn remove_key(&mut self, name: &str, fingerprint: &str) -> Result<()> {
        let user = self.find(name)?;
        let count = user.keys.len();
        user.keys.retain(|key| {
            let key = UserKey::parse(&key.public);
            key.is_ok_and(|key| !key.is_called(fingerprint))
        });
        match user.keys.len() < count {
            true => Ok(()),
            false => {
                let message = format!("user '{name}' has no key '{fingerprint}'");
                Err(Error::new(ErrorKind::NotFound, message))
            }
        }
    }

    fn find(&mut self, name: &str) -> Result<&mut User> {
        let found = self.users.iter_mut().find(|user| user.name == name);
        found.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("no user '{name}'")))
    }
}

/// The handling of the other tokens of a user who gets a new token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenMode {
    /// The other tokens stay valid.
    Add,
    /// The other tokens are revoked.
    Replace,
}

/// Changes the file under its lock, and returns the result of `change`. The new text is parsed
/// before it replaces the file, so that the limits of [`Users::parse`] apply to the writer, too.
///
/// # Errors
/// Fails with the errors of `change`, with [`ErrorKind::Io`] if the file is locked or cannot be
/// written, and with [`ErrorKind::Config`] if the file cannot be read, or the new text would be
/// invalid.
pub fn change<T>(path: &Path, change: impl FnOnce(&mut Users) -> Result<T>) -> Result<T> {
    let locked = |error: pronto_io::lock_file::Error| error.map_kind(|_| ErrorKind::Io);
    let lock = LockFile::acquire(path, Marking::Marked, PATIENCE).map_err(locked)?;
    let mut users = Users::read(path)?;
    let result = change(&mut users)?;
    let text = text_of(&users)?;
    secret::store(lock, path, text.as_bytes())?;
    Ok(result)
}

/// Returns the text of the file, after checking that parsing it returns the same users.
fn text_of(users: &Users) -> Result<String> {
    let text = text::write(&users.users)?;
    let unreadable = || {
        Error::new(
            ErrorKind::Config,
            "the changed users file cannot be read back",
        )
    };
    match Users::parse(text.as_bytes()) {
        Ok(read) if read == *users => Ok(text),
        Ok(_) => Err(unreadable()),
        Err(error) => Err(unreadable().because(error)),
    }
}

fn too_many(message: String) -> Error {
    Error::new(ErrorKind::Denied, message)
}

fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_files_are_refused() {
        for bad in [
            "x",
            "[[user]]",
            "[[user]]\nname = \"-\"",
            "[[user]]\nname = \"a\"\n[[user]]\nname = \"a\"",
            "[[user]]\nname = \"a\"\n[[user.token]]\nsha256 = \"0\"",
            "[[user]]\nname = \"a\"\n[[user.key]]\npublic = \"ssh-ed25519 AAAA\"",
        ] {
            Users::parse(bad.as_bytes()).expect_err(bad);
        }
    }

    fn numbered(count: usize) -> impl Iterator<Item = UserToken> {
        (0..count).map(|number| UserToken {
            sha256: format!("{number:064x}"),
            created: 0,
        })
    }

    #[test]
    fn tokens_are_bounded_for_each_user() {
        let mut users = Users::default();
        users.add("a").expect("new");
        users.add("b").expect("new");
        for _ in 0..MOST_TOKENS {
            users.add_token("a", TokenMode::Add).expect("room");
        }
        let error = users.add_token("a", TokenMode::Add).expect_err("no room");
        assert_eq!(error.kind(), ErrorKind::Denied);
        users.add_token("b", TokenMode::Add).expect("another user");
        users.add_token("a", TokenMode::Replace).expect("one only");
        users.add_token("a", TokenMode::Add).expect("room");
    }

    #[test]
    fn keys_are_bounded_for_each_user() {
        let mut users = Users::default();
        users.add("a").expect("new");
        let key = |number: usize, comment: &str| {
            UserKey::parse(&format!("ed25519:{number:064x} {comment}")).expect("a key")
        };
        let long = "x".repeat(LONGEST_KEY_BYTES);
        let error = users.add_key("a", &key(1, &long)).expect_err("too long");
        assert_eq!(error.kind(), ErrorKind::Malformed);
        for number in 0..MOST_KEYS {
            users.add_key("a", &key(number, "c")).expect("room");
        }
        let error = users
            .add_key("a", &key(MOST_KEYS, ""))
            .expect_err("no room");
        assert_eq!(error.kind(), ErrorKind::Denied);
        users
            .remove_key("a", &key(0, "").fingerprint())
            .expect("it is there");
        users.add_key("a", &key(MOST_KEYS, "")).expect("room again");
    }

    #[test]
    fn a_change_that_could_not_be_read_is_not_written() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("users.toml");
        change(&path, |users| users.add("a")).expect("written");
        let before = std::fs::read(&path).expect("a file");
        let too_long = "x".repeat(LARGEST_BYTES as usize);
        let changes: [&dyn Fn(&mut User); 4] = [
            &|user| user.name = "-".to_owned(),
            &|user| user.name.clone_from(&too_long),
            &|user| user.tokens.extend(numbered(1).chain(numbered(1))),
            &|user| {
                user.keys.push(StoredUserKey {
                    public: "ssh-ed25519 AAAA".to_owned(),
                    added: 0,
                });
            },
        ];
        for spoil in changes {
            let spoilt = change(&path, |users| {
                users.users.iter_mut().for_each(spoil);
                Ok(())
            });
            assert_eq!(spoilt.expect_err("refused").kind(), ErrorKind::Config);
            assert_eq!(std::fs::read(&path).expect("a file"), before);
        }
        change(&path, |users| users.add("b")).expect("it is not locked");
    }
}
