//! Quotas of a repository, checked under a lock that excludes other pushes.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant};

use pronto_io::error::IoContext as _;
use rustix::fs::{FlockOperation, flock};

use super::ReceivedPush;
use crate::{Error, ErrorKind, Repository, Result};

/// The timeout for the lock while other pushes change refs.
const PATIENCE: Duration = Duration::from_secs(60);

/// The pause between two attempts to acquire the lock.
const PAUSE: Duration = Duration::from_millis(5);

/// The start of the names of quarantine directories below `objects`.
const QUARANTINE: &str = "tmp_objdir-";

/// The quotas of a repository, which must hold after a push.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PushBounds {
    /// The limit for the bytes of objects and pack indexes.
    pub bytes: Option<Bound>,
    /// The limit for the number of refs.
    pub refs: Option<Bound>,
}

/// A limit with its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bound {
    /// The limit.
    pub most: u64,
    /// The origin for the error message, such as `quota for 'team/**'`.
    pub origin: String,
}

impl Bound {
    /// Returns the limit `most`. `origin` names the source of the limit.
    pub fn new(most: u64, origin: impl Into<String>) -> Self {
        Bound {
            most,
            origin: origin.into(),
        }
    }
}

/// The growth of a repository by a push.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Growth {
    /// The bytes of the received objects and pack indexes.
    pub bytes: u64,
    /// The number of created refs.
    pub refs: u64,
}

/// The exclusive right of one push to grow a repository. Other pushes wait until the value is
/// dropped.
#[derive(Debug)]
#[must_use = "others may grow the repository when it is dropped"]
pub struct GrowthTurn {
    /// The lock; `None` on a file system without advisory locks.
    _lock: Option<File>,
}

impl PushBounds {
    /// Returns whether there are no limits.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_none() && self.refs.is_none()
    }

    /// Waits until no other push with bounds grows the repository. The lock is an advisory lock on
    /// the directory `refs`; no file is created.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Locked`] if other pushes hold the lock longer than the timeout, and
    /// with [`ErrorKind::Io`] if the directory cannot be opened.
    pub fn turn(&self, repository: &Repository) -> Result<GrowthTurn> {
        let directory = repository.common_dir().join("refs");
        let directory = File::open(&directory).context(ErrorKind::Io, "cannot lock", &directory)?;
        let begun = Instant::now();
        loop {
            match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    return Ok(GrowthTurn {
                        _lock: Some(directory),
                    });
                }
                Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => {}
                Err(_) => return Ok(GrowthTurn { _lock: None }),
            }
            if begun.elapsed() >= PATIENCE {
                let message = "timeout: another push holds the lock of the repository";
                return Err(Error::new(ErrorKind::Locked, message));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Returns the reason why the repository may not grow by `growth`; `None` if it may. The result
    /// is valid while the caller holds a [`turn`](Self::turn).
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the repository cannot be read.
    pub fn refusal(&self, repository: &Repository, growth: Growth) -> Result<Option<String>> {
        if let Some(bound) = self.bytes.as_ref().filter(|_| growth.bytes > 0) {
            let bytes = object_bytes(&repository.objects_dir())?;
            if bytes.saturating_add(growth.bytes) > bound.most {
                let (most, origin) = (bound.most, &bound.origin);
                return Ok(Some(format!(
                    "the push is too large: the repository has {bytes} of {most} bytes: {origin}"
                )));
            }
        }
        if let Some(bound) = self.refs.as_ref().filter(|_| growth.refs > 0) {
            let refs = repository.refs().all("refs/")?.len() as u64;
            if refs.saturating_add(growth.refs) > bound.most {
                let (most, origin) = (bound.most, &bound.origin);
                return Ok(Some(format!(
                    "the repository has {refs} of {most} refs: {origin}"
                )));
            }
        }
        Ok(None)
    }
}

/// Returns the total size of all files below the directory `objects`, without quarantines.
/// Directories may disappear meanwhile.
///
/// # Errors
/// Fails with [`ErrorKind::Io`] if a directory cannot be read.
pub fn object_bytes(objects: &Path) -> Result<u64> {
    let mut bytes = 0;
    let mut directories = vec![objects.to_owned()];
    while let Some(directory) = directories.pop() {
        let entries = match fs::read_dir(&directory) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            entries => entries.context(ErrorKind::Io, "cannot read", &directory)?,
        };
        for entry in entries {
            let entry = entry.context(ErrorKind::Io, "cannot read", &directory)?;
            let name = entry.file_name();
            let is_quarantine = name.to_string_lossy().starts_with(QUARANTINE);
            match entry.metadata() {
                Ok(found) if found.is_dir() && !is_quarantine => directories.push(entry.path()),
                Ok(found) if found.is_file() => bytes += found.len(),
                _ => {}
            }
        }
    }
    Ok(bytes)
}

impl ReceivedPush<'_> {
    /// Acquires the right to grow the repository, and fails all commands if the push exceeds a
    /// limit. Returns `None` without limits, or if the limits are checked when a view is landed.
    pub(super) fn check_bounds(&mut self) -> Result<Option<GrowthTurn>> {
        let bounds = &self.options.bounds;
        if bounds.is_empty() || self.options.landing.is_some() {
            return Ok(None);
        }
        let turn = bounds.turn(self.repository)?;
        let received = self.quarantine.as_ref();
        let received = received.map(|quarantine| object_bytes(quarantine.path()));
        let refs = self.repository.refs();
        let mut growth = Growth {
            bytes: received.transpose()?.unwrap_or_default(),
            refs: 0,
        };
        for command in self.commands.iter().filter(|command| command.is_open()) {
            let name = self.full_name(command.name.as_ref());
            let creates = !command.deletes() && refs.find(&name)?.is_none();
            growth.refs += u64::from(creates);
        }
        if let Some(reason) = bounds.refusal(self.repository, growth)? {
            self.bands.error(&reason);
            self.fail_all(&reason);
        }
        Ok(Some(turn))
    }
}
