//! The place where clients come to: made, held and removed by one monitor at a time.

use crate::client::{Address, CLOSED, is_listening};
use pronto_io::dir::Directory;
use rustix::fs::Mode;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketType};
use std::fs::{DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// Where a monitor keeps its own, in the directory of the repository.
const OWN: &str = "fsmonitor--daemon";
/// Clients that may wait to be let in.
const BACKLOG: i32 = 128;

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
        make_private(&cookies)?;
        Ok(cookies)
    }

    fn identity(&self) -> Option<(u64, u64)> {
        let metadata = self.socket().symlink_metadata().ok()?;
        Some((metadata.dev(), metadata.ino()))
    }

    /// Makes the socket, in place of one that nobody listens to any more.
    pub(super) fn listen(self) -> io::Result<Socket> {
        let path = self.socket();
        let listener = match bind(&path) {
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
                bind(&path)?
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

/// Makes a directory that is open to its owner alone, whatever the umask. One that is there already
/// becomes so if it can.
fn make_private(directory: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700).create(directory)?;
    let _ = std::fs::set_permissions(directory, Permissions::from_mode(0o700));
    Ok(())
}

/// A socket at `path` that its owner alone can connect to, whatever the umask.
fn bind(path: &Path) -> io::Result<UnixListener> {
    let address = SocketAddrUnix::new(path)?;
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, CLOSED, None)?;
    // Where the system lets a socket have a mode before it has a name, it never has another one.
    let _ = rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR);
    net::bind(&socket, &address)?;
    // Nobody can connect before it listens.
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
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
        make_private(&git_dir.join(OWN))?;
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
