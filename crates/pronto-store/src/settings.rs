//! The configuration of a repository in a store, and its `HEAD`.
//!
//! A repository has only the keys that a server reads. No key contains the name of a program or a
//! file, so that a user with write access to the store does not gain the rights of its servers.

use bstr::{BStr, BString, ByteSlice as _};
use bytes::Bytes;
use pronto::config::edit::Document;
use pronto::config::parse::{ConfigParser, Event};
use pronto::config::{self, value};
use pronto::fsck::Message;
use pronto_refs::RefNameRef;

use crate::blocking::{BlockingStore, StoredRepository};
use crate::change::{Configuration, PackPush, StoreChange};
use crate::manifest::MOST_CONFIG_BYTES;
use crate::refs::{self, ExpectedRefValue, RefDecision, RefUpdate, StoredRefValue};
use crate::{Error, ErrorKind, Result};

/// The keys that a repository of a store can have, in lower case. A key that is not listed here, in
/// [`SWITCHES`], or below `receive.fsck` is never read from a manifest, because the users with
/// write access to the store may not be the operators of its servers. A key that contains the name
/// of a program or a file must not be added here.
const KEYS: [&str; 33] = [
    "lsrefs.unborn",
    "receive.advertiseatomic",
    "receive.advertisepushoptions",
    "receive.autogc",
    "receive.certnonceseed",
    "receive.certnonceslop",
    "receive.denycurrentbranch",
    "receive.denydeletecurrent",
    "receive.denydeletes",
    "receive.denynonfastforwards",
    "receive.fsckobjects",
    "receive.hiderefs",
    "receive.keepalive",
    "receive.maxinputsize",
    "receive.procreceiverefs",
    "receive.shallowupdate",
    "receive.unpacklimit",
    "receive.updateserverinfo",
    "transfer.advertiseobjectinfo",
    "transfer.advertisesid",
    "transfer.fsckobjects",
    "transfer.hiderefs",
    "transfer.unpacklimit",
    "uploadarchive.allowunreachable",
    "uploadpack.advertisebundleuris",
    "uploadpack.allowanysha1inwant",
    "uploadpack.allowfilter",
    "uploadpack.allowreachablesha1inwant",
    "uploadpack.allowrefinwant",
    "uploadpack.allowsidebandall",
    "uploadpack.allowtipsha1inwant",
    "uploadpack.hiderefs",
    "uploadpack.keepalive",
];

/// The boolean keys of other sections that servers read.
const SWITCHES: [&str; 7] = [
    "daemon.exportok",
    "daemon.receivepack",
    "daemon.uploadarch",
    "daemon.uploadpack",
    "http.receivepack",
    "http.uploadarchive",
    "http.uploadpack",
];

/// The prefix of the keys with the severity of problems in received objects.
const LEVELS: &str = "receive.fsck.";

/// The number of retries of a change after a conflict with another change.
const TRIES: usize = 16;

/// The key that exports a repository to clients without a user if a server requires it. The key
/// corresponds to the file `git-daemon-export-ok` of a repository in a directory.
pub const EXPORT_OK: &str = "daemon.exportOk";

/// The file that exports a repository in a directory to clients without a user.
pub const EXPORT_OK_FILE: &str = "git-daemon-export-ok";

/// Returns the canonical form of a key that a repository in a store can have.
///
/// # Errors
/// Fails with [`ErrorKind::Options`] if the key is malformed, or servers do not read it, for
/// instance because it contains the name of a program or a file.
pub fn check_key(key: &BStr) -> Result<BString> {
    let canonical =
        config::canonical(key).map_err(|error| error.map_kind(|_| ErrorKind::Options))?;
    if is_read(canonical.as_bstr()) {
        return Ok(canonical);
    }
    let message =
        format!("servers do not read '{key}' from the configuration of a repository in a store");
    let hint = "use keys of receive, transfer, uploadpack, uploadarchive and lsrefs, or the keys \
                of http and daemon that enable services; keys that name programs or files belong \
                in the configuration of the user that runs the server";
    Err(Error::new(ErrorKind::Options, message).with_hint(hint))
}

/// Returns whether servers read the key `canonical` from repositories of a store.
pub(crate) fn is_read(canonical: &BStr) -> bool {
    let mut keys = KEYS.iter().chain(&SWITCHES);
    let problem = canonical.strip_prefix(LEVELS.as_bytes());
    keys.any(|key| key.as_bytes() == canonical.as_bytes())
        || problem.is_some_and(|name| Message::named(name).is_some())
}

/// Returns the part of the configuration of a manifest that servers read. Other keys are omitted,
/// because the operator of the server did not set them.
///
/// # Errors
/// Fails with [`ErrorKind::Corrupt`] if the configuration is malformed.
pub(crate) fn readable(config: &[u8]) -> Result<Vec<u8>> {
    let mut document = Document::default();
    for (key, value) in Settings::parse(config)?.entries() {
        document.add(key.as_bstr(), value.as_bstr());
    }
    Ok(document.as_bytes().to_vec())
}

/// The configuration of a repository in a store, for reading and changing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    document: Document,
}

impl Settings {
    /// Parses the configuration of a generation.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Corrupt`] if the configuration is malformed.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let document = Document::parse(bytes.to_vec()).map_err(|bad| {
            let message = format!("malformed configuration at line {}", bad.line);
            Error::new(ErrorKind::Corrupt, message)
        })?;
        Ok(Settings { document })
    }

    /// Returns the configuration in Git's format.
    pub fn as_bytes(&self) -> &[u8] {
        self.document.as_bytes()
    }

    /// Returns all keys that servers read, in canonical form, with their values, in file order.
    pub fn entries(&self) -> Vec<(BString, BString)> {
        let mut entries = self.all();
        entries.retain(|(key, value)| is_read(key.as_bstr()) && !value.contains(&0));
        entries
    }

    /// Returns the keys, in canonical form, that are set although no server reads them. A user with
    /// write access to the store has set them without [`set`](Self::set).
    pub fn unread_keys(&self) -> Vec<BString> {
        let mut keys: Vec<BString> = self.all().into_iter().map(|(key, _)| key).collect();
        keys.retain(|key| !is_read(key.as_bstr()));
        keys
    }

    fn all(&self) -> Vec<(BString, BString)> {
        let mut parser = ConfigParser::new(self.document.as_bytes());
        let mut entries = Vec::new();
        // The text was parsed successfully before.
        while let Ok(Some(event)) = parser.next_event() {
            if event == Event::Entry {
                let key = [&parser.section[..], &parser.name].concat();
                // A key without a value is true.
                let value = parser.value.as_deref().unwrap_or(b"true");
                entries.push((key.into(), value.into()));
            }
        }
        entries
    }

    /// Returns the values of a key.
    ///
    /// # Errors
    /// Fails for the same reasons as [`check_key`].
    pub fn values(&self, key: &BStr) -> Result<Vec<BString>> {
        let key = check_key(key)?;
        let entries = self.entries().into_iter();
        let found = entries.filter(|(name, _)| *name == key);
        Ok(found.map(|(_, value)| value).collect())
    }

    /// Replaces all values of a key by one value.
    ///
    /// # Errors
    /// Fails for the same reasons as [`check_key`], and with [`ErrorKind::Options`] if the value
    /// must be a boolean and is not.
    pub fn set(&mut self, key: &BStr, value: &BStr) -> Result<()> {
        let canonical = check_value(key, value)?;
        // All values are replaced, so that no previous value remains.
        let _ = self
            .document
            .set(canonical.as_bstr(), value, true, |_| true);
        Ok(())
    }

    /// Adds a value to a key.
    ///
    /// # Errors
    /// Fails for the same reasons as [`set`](Self::set).
    pub fn add(&mut self, key: &BStr, value: &BStr) -> Result<()> {
        let canonical = check_value(key, value)?;
        self.document.add(canonical.as_bstr(), value);
        Ok(())
    }

    /// Removes all values of a key, even if servers do not read the key. Returns whether the key
    /// had any value.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Options`] if the key is malformed.
    pub fn unset(&mut self, key: &BStr) -> Result<bool> {
        let canonical = config::canonical(key);
        let canonical = canonical.map_err(|error| error.map_kind(|_| ErrorKind::Options))?;
        Ok(self
            .document
            .unset(canonical.as_bstr(), true, |_| true)
            .is_ok())
    }
}

/// Checks a key and its value. Returns the key in canonical form.
fn check_value(key: &BStr, text: &BStr) -> Result<BString> {
    let canonical = check_key(key)?;
    let is_switch = SWITCHES.iter().any(|name| *name == canonical);
    if is_switch && value::parse_bool(Some(text)).is_none() {
        let message = format!("bad boolean value '{text}' for '{key}'");
        return Err(Error::new(ErrorKind::Options, message));
    }
    if text.contains(&0) {
        let message = format!("the value of '{key}' contains a NUL byte");
        return Err(Error::new(ErrorKind::Options, message));
    }
    Ok(canonical)
}

impl BlockingStore {
    /// Returns the configuration of the newest generation.
    ///
    /// # Errors
    /// Fails for the same reasons as [`latest`](crate::StoreRepository::latest), and with
    /// [`ErrorKind::Corrupt`] if the configuration is malformed.
    pub fn settings(&self, repository: &StoredRepository) -> Result<Settings> {
        let newest = self.wait(repository.latest())?;
        Settings::parse(&newest.manifest.config)
    }

    /// Changes the configuration. `edit` gets the configuration of the newest generation, and is
    /// called again after a conflict with another change. Returns the number of the generation with
    /// the result.
    ///
    /// # Errors
    /// Fails with the errors of `edit`, with [`ErrorKind::Options`] if the configuration would be
    /// too large, and for the same reasons as [`commit`](crate::StoreRepository::commit).
    pub fn configure(
        &self,
        repository: &StoredRepository,
        edit: impl Fn(&mut Settings) -> Result<()>,
    ) -> Result<u64> {
        let mut last = None;
        for _ in 0..TRIES {
            let newest = self.wait(repository.latest())?;
            let old = newest.manifest.config.clone();
            let mut settings = Settings::parse(&old)?;
            edit(&mut settings)?;
            let new = Bytes::copy_from_slice(settings.as_bytes());
            if new.len() > MOST_CONFIG_BYTES {
                let message = format!("the configuration would be too large: {} bytes", new.len());
                let hint = format!("the limit is {MOST_CONFIG_BYTES} bytes");
                return Err(Error::new(ErrorKind::Options, message).with_hint(hint));
            }
            if new == old {
                return Ok(newest.number());
            }
            let change = StoreChange::Configure(Configuration { old, new });
            match self.wait(repository.commit(change)) {
                Err(error) if error.kind() == ErrorKind::Conflict => last = Some(error),
                outcome => return outcome.map(|outcome| outcome.generation),
            }
        }
        let message = format!(
            "gave up: other processes keep changing the configuration of '{}'; try again",
            repository.name()
        );
        let error = Error::new(ErrorKind::Conflict, message);
        Err(match last {
            Some(last) => error.because(last),
            None => error,
        })
    }

    /// Returns the value of `HEAD` in the newest generation.
    ///
    /// # Errors
    /// Fails for the same reasons as [`latest`](crate::StoreRepository::latest).
    pub fn head(&self, repository: &StoredRepository) -> Result<Option<StoredRefValue>> {
        let newest = self.wait(repository.latest())?;
        refs::find(&newest.refs, "HEAD".into())
    }

    /// Sets `HEAD` to the ref `target`, which may not exist. Returns the number of the generation
    /// with the result.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Options`] if `target` is not the name of a branch, and for the same
    /// reasons as [`commit`](crate::StoreRepository::commit).
    pub fn set_head(&self, repository: &StoredRepository, target: &BStr) -> Result<u64> {
        if !target.starts_with(b"refs/heads/") || RefNameRef::new(target).is_err() {
            let message = format!("'{target}' is not a full branch name, such as refs/heads/main");
            return Err(Error::new(ErrorKind::Options, message));
        }
        let mut push = PackPush::default();
        push.updates.push(RefUpdate {
            name: "HEAD".into(),
            old: ExpectedRefValue::Any,
            new: Some(StoredRefValue::Symbolic(target.to_owned())),
        });
        let outcome = self.wait(repository.commit(StoreChange::Push(push)))?;
        match outcome.verdicts.first() {
            None | Some(RefDecision::Applied) => Ok(outcome.generation),
            Some(_) => {
                let message = format!("cannot change HEAD of '{}'", repository.name());
                Err(Error::new(ErrorKind::Conflict, message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_servers_read_are_set_and_others_are_refused() {
        let mut settings = Settings::default();
        for (key, value) in [
            ("receive.denyDeletes", "true"),
            ("receive.fsck.missingEmail", "ignore"),
            ("transfer.hideRefs", "refs/a"),
            ("uploadpack.allowFilter", "1"),
            ("lsRefs.unborn", "advertise"),
            ("http.receivePack", "no"),
            ("daemon.exportOk", "yes"),
        ] {
            settings.set(key.into(), value.into()).expect(key);
        }
        for key in [
            "core.fsmonitor",
            "core.hooksPath",
            "filter.x.clean",
            "alias.x",
            "include.path",
            "tar.x.command",
            "uploadpack.packObjectsHook",
            "receive.fsck.skipList",
            "remote.x.url",
            "core.bare",
            "hook.x.command",
            "receive.fsck.noSuchProblem",
            "receive.unknown",
            "transfer.bundleURI",
            "uploadpack.unknown",
            "extensions.objectFormat",
            "http.proxy",
            "receive.x.y",
            "user.name",
        ] {
            let error = settings.set(key.into(), "x".into()).expect_err(key);
            let expected = format!(
                "servers do not read '{key}' from the configuration of a repository in a store"
            );
            assert_eq!(error.to_string(), expected);
            let hint = error.hint().expect("it says which keys are read");
            assert!(hint.starts_with("use keys of receive, "), "{hint}");
        }
        let error = settings.set("receive".into(), "x".into());
        let error = error.expect_err("it is no variable");
        assert!(error.to_string().contains("section"), "{error}");
        let error = settings.set("http.uploadPack".into(), "maybe".into());
        let error = error.expect_err("it is no boolean");
        assert_eq!(
            error.to_string(),
            "bad boolean value 'maybe' for 'http.uploadPack'"
        );
    }

    #[test]
    fn what_a_manifest_may_not_set_is_left_out() {
        let written = b"[receive]\n\tdenyDeletes\n[tar \"x\"]\n\tcommand = sh\n\tremote = true\n\
            [include]\n\tpath = /etc/passwd\n[transfer]\n\thideRefs = \"a # b\"\n\
            [receive \"fsck\"]\n\tskipList = /x\n\tbadDate = ignore\n[core]\n\thooksPath = /x\n\
            [hook \"a\"]\n\tevent = update\n\tcommand = sh\n[uploadpack]\n\tpackObjectsHook = sh\n";
        let settings = Settings::parse(written).expect("well-formed");
        let read = readable(written).expect("well-formed");
        let read = Settings::parse(&read).expect("well-formed");
        assert_eq!(read.all(), settings.entries());
        let keys: Vec<String> = settings
            .entries()
            .iter()
            .map(|it| it.0.to_string())
            .collect();
        assert_eq!(
            keys,
            [
                "receive.denydeletes",
                "transfer.hiderefs",
                "receive.fsck.baddate"
            ]
        );
        assert_eq!(settings.unread_keys().len(), 8);
        readable(b"[receive").expect_err("it is malformed");
    }

    #[test]
    fn values_are_replaced_added_and_removed() {
        let mut settings = Settings::default();
        let key = BStr::new("transfer.hideRefs");
        settings.set(key, "refs/a".into()).expect("a key");
        settings.add(key, "refs/b \"c\"".into()).expect("a key");
        let values = settings.values("Transfer.hiderefs".into());
        assert_eq!(values.expect("a key"), ["refs/a", "refs/b \"c\""]);
        let again = Settings::parse(settings.as_bytes()).expect("well-formed");
        assert_eq!(again.entries().len(), 2);
        settings.set(key, "refs/d".into()).expect("a key");
        assert_eq!(settings.values(key).expect("a key"), ["refs/d"]);
        assert!(settings.unset(key).expect("a key"));
        assert!(!settings.unset(key).expect("a key"));
        assert_eq!(settings.as_bytes(), b"");
    }
}
