//! The most that a repository may hold, checked under the lock that makes it true.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant};

use pronto_io::error::IoContext as _;
use rustix::fs::{FlockOperation, flock};

use super::Push;
use crate::{Error, ErrorKind, Repository, Result};

/// The longest wait for other pushes that are about to change refs.
const PATIENCE: Duration = Duration::from_secs(60);

/// The pause between two attempts to get the lock.
const PAUSE: Duration = Duration::from_millis(5);

/// The start of the names of quarantines below `objects`.
const QUARANTINE: &str = "tmp_objdir-";

/// The most that a repository may hold after a push.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bounds {
    /// The most bytes of objects, with their indexes.
    pub bytes: Option<Bound>,
    /// The most refs.
    pub refs: Option<Bound>,
}

/// A bound, and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bound {
    /// The largest number.
    pub most: u64,
    /// The origin for the error message, such as `quota for 'team/**'`.
    pub origin: String,
}

impl Bound {
    /// Allows up to `most`. `origin` says who has set the bound.
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
    /// The bytes of the received objects, with their indexes.
    pub bytes: u64,
    /// The number of refs that are created.
    pub refs: u64,
}

/// The turn of one push to grow a repository. Others wait until it is dropped.
#[derive(Debug)]
#[must_use = "others may grow the repository when it is dropped"]
pub struct Turn {
    /// `None` on a file system without advisory locks.
    _lock: Option<File>,
}

impl Bounds {
    /// Returns whether there is no bound.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_none() && self.refs.is_none()
    }

    /// Waits until no other push with bounds grows the repository. The lock is an advisory one on the directory
    /// `refs`; no file is created.
    ///
    /// # Errors
    /// [`ErrorKind::Locked`]: others take too long.
    pub fn turn(&self, repository: &Repository) -> Result<Turn> {
        let directory = repository.common_dir().join("refs");
        let directory = File::open(&directory).context(ErrorKind::Io, "cannot lock", &directory)?;
        let begun = Instant::now();
        loop {
            match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    return Ok(Turn {
                        _lock: Some(directory),
                    });
                }
                Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => {}
                Err(_) => return Ok(Turn { _lock: None }),
            }
            if begun.elapsed() >= PATIENCE {
                let message = "another push changes the repository for too long";
                return Err(Error::new(ErrorKind::Locked, message));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Returns why the repository may not grow so much; `None` if it may. The answer holds during a
    /// [`turn`](Self::turn).
    ///
    /// # Errors
    /// The repository cannot be read.
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

/// Returns the bytes of all files below the directory `objects`, without those in quarantines. Directories may
/// disappear meanwhile.
///
/// # Errors
/// A directory cannot be read.
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

impl Push<'_> {
    /// Waits for the turn of this push to grow the repository, and fails all commands if it may not grow so much.
    /// Returns `None` without bounds; they hold at the landing of a view.
    pub(super) fn check_bounds(&mut self) -> Result<Option<Turn>> {
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
