//! The users of a running server. The server notices changes of the file of users within a second.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use crate::keys::{KeyHash, UserKey};
use crate::token::TokenHash;
use crate::users::{Users, change};
use crate::{Error, ErrorKind, Result};

/// The interval at which the file is checked for changes.
const RECHECK: Duration = Duration::from_millis(500);

/// The interval at which the file is checked while clients present unknown tokens and keys.
const RECHECK_UNKNOWN: Duration = Duration::from_millis(20);

/// The interval between two attempts to read a malformed file that has not changed.
const RECHECK_MALFORMED: Duration = Duration::from_secs(10);

/// The users of a running server, indexed by their tokens and keys.
#[derive(Debug)]
pub struct UserDirectory {
    path: PathBuf,
    state: Mutex<DirectoryState>,
    /// The lock for reading the file. The state is not locked during the read, so that lookups use
    /// the previous users.
    reading: Mutex<()>,
}

#[derive(Debug, Default)]
struct DirectoryState {
    known: Arc<UserIndex>,
    stamp: Option<UsersFileStamp>,
    /// The start time of the last completed check of the file.
    checked: Option<Instant>,
    /// The number of changes by this server, which apply at once, and their number at that check.
    changes: u64,
    seen_changes: u64,
    /// The last failed attempt to read: the version of the file, and the time.
    failed: Option<(Option<UsersFileStamp>, Instant)>,
}

impl DirectoryState {
    /// Returns whether the last check of the file is older than `age`.
    fn is_due(&self, age: Duration) -> bool {
        self.is_changed() || self.checked.is_none_or(|last| last.elapsed() >= age)
    }

    fn is_changed(&self) -> bool {
        self.changes != self.seen_changes
    }

    /// Returns whether the file has to be read.
    fn has_changed(&self, stamp: Option<UsersFileStamp>) -> bool {
        // A large file is slow to read, and any client can present an unknown token.
        let has_just_failed = self
            .failed
            .is_some_and(|(failed, at)| failed == stamp && at.elapsed() < RECHECK_MALFORMED);
        stamp != self.stamp && !has_just_failed
    }
}

/// The stat data that distinguishes two versions of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct UsersFileStamp {
    inode: u64,
    size_bytes: u64,
    seconds: i64,
    nanoseconds: i64,
}

/// The names of users, indexed by the hashes of tokens and keys.
#[derive(Debug, Default)]
pub struct UserIndex {
    by_token: HashMap<TokenHash, Arc<str>>,
    by_key: HashMap<KeyHash, Arc<str>>,
    /// The names in ascending order.
    names: Vec<Arc<str>>,
}

impl UserIndex {
    /// Returns the user of a token.
    pub fn user_of(&self, token: &[u8]) -> Option<&Arc<str>> {
        self.user_of_hash(&TokenHash::of(token))
    }

    /// Returns the user of the token with this hash.
    pub fn user_of_hash(&self, hash: &TokenHash) -> Option<&Arc<str>> {
        self.by_token.get(hash)
    }

    /// Returns the user of a public key.
    pub fn user_of_key(&self, key: &KeyHash) -> Option<&Arc<str>> {
        self.by_key.get(key)
    }

    /// Returns the user with this name.
    pub fn named(&self, name: &str) -> Option<&Arc<str>> {
        let found = self
            .names
            .binary_search_by(|known| known.as_ref().cmp(name));
        found.ok().and_then(|at| self.names.get(at))
    }

    fn of(users: &Users) -> Self {
        let mut known = UserIndex::default();
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

    /// Adds a token that is not in a file.
    pub(crate) fn add(&mut self, name: &str, token: &[u8]) {
        let name: Arc<str> = name.into();
        self.by_token
            .insert(TokenHash::of(token), Arc::clone(&name));
        self.names.push(name);
        self.names.sort_unstable();
    }
}

impl UserDirectory {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Config` if the file cannot be read, or is malformed.
    pub fn open(path: PathBuf) -> Result<Self> {
        let stamp = stamp(&path);
        let known = Arc::new(UserIndex::of(&Users::read(&path)?));
        let state = DirectoryState {
            known,
            stamp,
            checked: Some(Instant::now()),
            ..DirectoryState::default()
        };
        Ok(UserDirectory {
            path,
            state: Mutex::new(state),
            reading: Mutex::default(),
        })
    }

    /// Creates a directory with one user who has one token, without a file.
    pub fn with_one(name: &str, token: &str) -> Self {
        let mut known = UserIndex::default();
        known.add(name, token.as_bytes());
        let state = DirectoryState {
            known: Arc::new(known),
            ..DirectoryState::default()
        };
        UserDirectory {
            path: PathBuf::new(),
            state: Mutex::new(state),
            reading: Mutex::default(),
        }
    }

    /// Returns the path of the file, or `None` if there is no file.
    pub fn path(&self) -> Option<&Path> {
        (!self.path.as_os_str().is_empty()).then_some(&*self.path)
    }

    /// Returns the users. The file is checked if the last check is half a second old. If the file
    /// has become unreadable or malformed, the previous users stay.
    pub fn known(&self) -> Arc<UserIndex> {
        self.known_within(RECHECK)
    }

    /// Returns the user that `find` finds. The file is checked again before the result is `None`,
    /// so that a new token or key applies at once.
    pub fn find(&self, find: impl Fn(&UserIndex) -> Option<Arc<str>>) -> Option<Arc<str>> {
        find(&self.known()).or_else(|| find(&self.known_within(RECHECK_UNKNOWN)))
    }

    fn known_within(&self, age: Duration) -> Arc<UserIndex> {
        let (is_due, is_changed) = {
            let state = self.state();
            (state.is_due(age), state.is_changed())
        };
        if self.path().is_some() && is_due {
            // Only a lookup that needs the newest users waits for another thread that reads the
            // file.
            let turn = match is_changed || age < RECHECK {
                true => Some(self.reading.lock().unwrap_or_else(PoisonError::into_inner)),
                false => match self.reading.try_lock() {
                    Ok(turn) => Some(turn),
                    Err(TryLockError::Poisoned(turn)) => Some(turn.into_inner()),
                    Err(TryLockError::WouldBlock) => None,
                },
            };
            if turn.is_some() && self.state().is_due(age) {
                self.look();
            }
        }
        Arc::clone(&self.state().known)
    }

    /// Reads the file again if it has changed. The caller must hold the lock for reading.
    fn look(&self) {
        // Changes after this point may be missing from the result of the read.
        let (begun, changes) = (Instant::now(), self.state().changes);
        let stamp = stamp(&self.path);
        let has_changed = self.state().has_changed(stamp);
        let read = has_changed.then(|| Users::read(&self.path));
        let read = read.map(|read| read.map(|users| Arc::new(UserIndex::of(&users))));
        let mut state = self.state();
        match read {
            Some(Ok(known)) => {
                state.known = known;
                state.stamp = stamp;
                state.failed = None;
            }
            Some(Err(_)) => state.failed = Some((stamp, Instant::now())),
            None => {}
        }
        state.checked = Some(begun);
        state.seen_changes = changes;
    }

    /// Locks the state. A panic of another thread does not make it inconsistent, because the fields
    /// change together.
    fn state(&self) -> MutexGuard<'_, DirectoryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the file. The change applies at once.
    ///
    /// # Errors
    /// Fails for the same reasons as [`change`], and with [`ErrorKind::Unsupported`] if the server
    /// was started without a file.
    pub fn change<T>(&self, act: impl FnOnce(&mut Users) -> Result<T>) -> Result<T> {
        let Some(path) = self.path() else {
            let message =
                "this server has no users file; start it with --config, and set 'users' there";
            return Err(Error::new(ErrorKind::Unsupported, message));
        };
        let result = change(path, act);
        self.state().changes += 1;
        result
    }
}

fn stamp(path: &Path) -> Option<UsersFileStamp> {
    let found = std::fs::metadata(path).ok()?;
    Some(UsersFileStamp {
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
        let directory = UserDirectory::open(path.clone()).expect("readable");
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
        assert_eq!(error.expect_err("taken").kind(), ErrorKind::Exists);
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
        let kind = |result: Result<()>| result.expect_err("an error").kind();
        assert_eq!(kind(users.add_key("bob", &one)), ErrorKind::Exists);
        assert_eq!(kind(users.add_key("carol", &other)), ErrorKind::NotFound);
        users.add_key("bob", &other).expect("new");
        let text = toml::to_string(&users).expect("text");
        let read = Users::parse(text.as_bytes()).expect("as written");
        assert_eq!(read, users);
        let known = UserIndex::of(&read);
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
        assert_eq!(UserIndex::of(&users).user_of_key(&one.hash()), None);
    }

    #[test]
    fn the_file_is_read_without_keeping_others_waiting() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("users.toml");
        change(&path, |users| users.add("alice")).expect("written");
        let directory = UserDirectory::open(path.clone()).expect("readable");
        directory.state().checked = None;
        change(&path, |users| users.add("bob")).expect("written");
        let is_known = |name: &str| directory.known().named(name).is_some();
        // Another thread holds the lock for reading.
        let turn = directory.reading.lock().expect("no panic");
        assert!(is_known("alice") && !is_known("bob"));
        std::thread::scope(|scope| {
            let named = || directory.find(|known| known.named("bob").cloned());
            let found = scope.spawn(named);
            let changed = scope.spawn(|| {
                let added = directory.change(|users| users.add("carol"));
                added.expect("written");
                directory.known().named("carol").cloned()
            });
            drop(turn);
            let names = [found, changed].map(|thread| thread.join().expect("no panic"));
            assert_eq!(names, [Some("bob".into()), Some("carol".into())]);
        });
        assert!(is_known("bob") && is_known("carol"));
    }
}
