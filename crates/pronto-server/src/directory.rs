//! The users as a running server knows them. It notices changes of their file within a second.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::keys::{KeyHash, UserKey};
use crate::token::TokenHash;
use crate::users::{Users, change};
use crate::{Error, ErrorKind, Result};

/// The time between two looks at the file.
const RECHECK: Duration = Duration::from_millis(500);

/// The time between two looks at the file while tokens and keys are asked for that it did not have.
const RECHECK_UNKNOWN: Duration = Duration::from_millis(20);

/// The time between two attempts to read a file that is malformed, and has not changed since.
const RECHECK_MALFORMED: Duration = Duration::from_secs(10);

/// The users as a server knows them, indexed by their tokens and keys.
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
    /// The last attempt that failed: the file, and when.
    failed: Option<(Option<Stamp>, Instant)>,
}

impl State {
    /// Reads the file again, if it has changed.
    fn look(&mut self, path: &Path) {
        let stamp = stamp(path);
        let has_just_failed = self
            .failed
            .is_some_and(|(failed, at)| failed == stamp && at.elapsed() < RECHECK_MALFORMED);
        if stamp == self.stamp || has_just_failed {
            return;
        }
        match Users::read(path) {
            Ok(users) => {
                self.known = Arc::new(Known::of(&users));
                self.stamp = stamp;
                self.failed = None;
            }
            // Reading a large file may take long, and anyone can ask for a token that is not known.
            Err(_) => self.failed = Some((stamp, Instant::now())),
        }
    }
}

/// Properties that differ between two versions of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    size_bytes: u64,
    seconds: i64,
    nanoseconds: i64,
}

/// Names of users by the hashes of tokens and keys.
#[derive(Debug, Default)]
pub struct Known {
    by_token: HashMap<TokenHash, Arc<str>>,
    by_key: HashMap<KeyHash, Arc<str>>,
    /// In their order.
    names: Vec<Arc<str>>,
}

impl Known {
    /// Returns the user of a token.
    pub fn user_of(&self, token: &[u8]) -> Option<&Arc<str>> {
        self.by_token.get(&TokenHash::of(token))
    }

    /// Returns the user of a public key.
    pub fn user_of_key(&self, key: &KeyHash) -> Option<&Arc<str>> {
        self.by_key.get(key)
    }

    /// Returns the user of that name.
    pub fn named(&self, name: &str) -> Option<&Arc<str>> {
        let found = self
            .names
            .binary_search_by(|known| known.as_ref().cmp(name));
        found.ok().and_then(|at| self.names.get(at))
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
            for key in &user.keys {
                if let Ok(key) = UserKey::parse(&key.public) {
                    known.by_key.insert(key.hash(), Arc::clone(&name));
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
        self.names.sort_unstable();
    }
}

impl Directory {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// The file cannot be read, or is malformed.
    pub fn open(path: PathBuf) -> Result<Self> {
        let stamp = stamp(&path);
        let known = Arc::new(Known::of(&Users::read(&path)?));
        let state = State {
            known,
            stamp,
            checked: Some(Instant::now()),
            failed: None,
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
        self.known_within(RECHECK)
    }

    /// Returns the user that `find` finds. Looks at the file again before it says that there is none, so that a new
    /// token or key counts at once.
    pub fn find(&self, find: impl Fn(&Known) -> Option<Arc<str>>) -> Option<Arc<str>> {
        find(&self.known()).or_else(|| find(&self.known_within(RECHECK_UNKNOWN)))
    }

    fn known_within(&self, age: Duration) -> Arc<Known> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = state.checked.is_none_or(|last| last.elapsed() >= age);
        if self.path().is_some() && is_due {
            state.checked = Some(Instant::now());
            state.look(&self.path);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::users::TokenMode;

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
    fn keys_lead_to_their_users() {
        let line = |letter: char| {
            let key = "AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqt";
            UserKey::parse(&format!("ssh-ed25519 {key}{letter} c")).expect("a key")
        };
        let (one, other) = (line('i'), line('j'));
        let mut users = Users::default();
        users.add("alice").expect("new");
        users.add("bob").expect("new");
        users.add_key("alice", &one).expect("new");
        let kind = |result: Result<()>| *result.expect_err("an error").kind();
        assert_eq!(kind(users.add_key("bob", &one)), ErrorKind::Exists);
        assert_eq!(kind(users.add_key("carol", &other)), ErrorKind::NotFound);
        users.add_key("bob", &other).expect("new");
        let text = toml::to_string(&users).expect("text");
        let read = Users::parse(text.as_bytes()).expect("as written");
        assert_eq!(read, users);
        let known = Known::of(&read);
        assert_eq!(
            known.user_of_key(&one.hash()).map(AsRef::as_ref),
            Some("alice")
        );
        assert_eq!(
            known.user_of_key(&other.hash()).map(AsRef::as_ref),
            Some("bob")
        );
        let twice = text.replace(other.line(), one.line());
        Users::parse(twice.as_bytes()).expect_err("one key for two users");
        users
            .remove_key("alice", &one.fingerprint())
            .expect("there");
        assert_eq!(
            kind(users.remove_key("alice", &one.fingerprint())),
            ErrorKind::NotFound
        );
        assert_eq!(Known::of(&users).user_of_key(&one.hash()), None);
    }
}
