//! The place where clients come to: made, held and removed by one monitor at a time.

use crate::client::{Address, is_listening};
use pronto_io::dir::Directory;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// Where a monitor keeps its own, in the directory of the repository.
const OWN: &str = "fsmonitor--daemon";

/// A claim to be the monitor of a repository, held by a lock that goes with the process.
pub(super) struct Claim {
    /// Addresses are short, and the repository may be renamed: a path through the open directory
    /// always fits, and always leads there.
    git_dir: Directory,
    /// Where the socket is.
    directory: Directory,
    name: String,
    lock: File,
}

/// A claim with a socket that listens.
pub(super) struct Socket {
    claim: Claim,
    listener: UnixListener,
    /// Device and number of the socket.
    identity: Option<(u64, u64)>,
}

impl Claim {
    fn socket(&self) -> PathBuf {
        self.directory.open_path().join(&self.name)
    }

    /// The directory for cookies, made if it has to be.
    pub(super) fn make_cookies(&self) -> io::Result<PathBuf> {
        let cookies = self.git_dir.open_path().join(OWN).join("cookies");
        std::fs::create_dir_all(&cookies)?;
        Ok(cookies)
    }

    fn identity(&self) -> Option<(u64, u64)> {
        let metadata = self.socket().symlink_metadata().ok()?;
        Some((metadata.dev(), metadata.ino()))
    }

    /// Makes the socket, in place of one that nobody listens to any more.
    pub(super) fn listen(self) -> io::Result<Socket> {
        let path = self.socket();
        let listener = match UnixListener::bind(&path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                // One of git's does not know of the lock.
                let address = Address {
                    directory: self.directory.open_path(),
                    name: self.name.clone(),
                };
                if is_listening(&address) {
                    return Err(error);
                }
                std::fs::remove_file(&path)?;
                UnixListener::bind(&path)?
            }
            bound => bound?,
        };
        listener.set_nonblocking(true)?;
        Ok(Socket {
            identity: self.identity(),
            claim: self,
            listener,
        })
    }
}

impl Socket {
    /// Claims to be the monitor of the repository at `git_dir`, to be asked at `address`.
    ///
    /// # Errors
    /// `AddrInUse` if there is another one.
    pub(super) fn claim(git_dir: &Path, address: &Address) -> io::Result<Claim> {
        if is_listening(address) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        std::fs::create_dir_all(git_dir.join(OWN))?;
        let lock = File::open(git_dir.join(OWN))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => return Err(io::ErrorKind::AddrInUse.into()),
            Err(std::fs::TryLockError::Error(error)) => return Err(error),
        }
        Ok(Claim {
            git_dir: Directory::open(git_dir)?,
            directory: Directory::open(&address.directory)?,
            name: address.name.clone(),
            lock,
        })
    }

    pub(super) fn listener(&self) -> &UnixListener {
        &self.listener
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // Another one may have put its own there.
        if self.identity.is_some() && self.claim.identity() == self.identity {
            let _ = std::fs::remove_file(self.claim.socket());
        }
        let _ = self.claim.lock.unlock();
    }
}
