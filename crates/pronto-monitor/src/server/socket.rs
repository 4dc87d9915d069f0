//! The socket of a monitor. Only one monitor at a time owns it.

use crate::client::{CLOSED, MonitorAddress, is_listening};
use pronto_io::dir::Directory;
use rustix::fs::Mode;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketType};
use std::fs::{DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// The monitor's own directory in the directory of the repository.
const OWN: &str = "fsmonitor--daemon";
/// The maximum number of clients that wait to be accepted.
const BACKLOG: i32 = 128;

/// The exclusive right to be the monitor of a repository. The right is held by a lock, which the
/// kernel releases at the end of the process.
pub(super) struct MonitorClaim {
    /// The directory of the repository. Socket addresses are short, and the repository may be
    /// renamed. A path through the open directory is always short enough and stays valid.
    git_dir: Directory,
    /// The directory that contains the socket.
    directory: Directory,
    name: String,
    lock: File,
}

/// A claim with a listening socket.
pub(super) struct MonitorSocket {
    claim: MonitorClaim,
    listener: UnixListener,
    identity: Option<SocketIdentity>,
}

/// The identity of a socket, which distinguishes successive sockets at the same path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SocketIdentity {
    device: u64,
    inode: u64,
}

impl MonitorClaim {
    fn socket(&self) -> PathBuf {
        self.directory.open_path().join(&self.name)
    }

    /// Creates the directory for cookies if it does not exist, and returns its path.
    pub(super) fn make_cookies(&self) -> io::Result<PathBuf> {
        let cookies = self.git_dir.open_path().join(OWN).join("cookies");
        make_private(&cookies)?;
        Ok(cookies)
    }

    fn identity(&self) -> Option<SocketIdentity> {
        let metadata = self.socket().symlink_metadata().ok()?;
        Some(SocketIdentity {
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    /// Creates the socket. Replaces a socket on which no process is listening.
    pub(super) fn listen(self) -> io::Result<MonitorSocket> {
        let path = self.socket();
        let listener = match bind(&path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                // The monitor of Git does not take the lock, so the socket is tried as well.
                let address = MonitorAddress {
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
        Ok(MonitorSocket {
            identity: self.identity(),
            claim: self,
            listener,
        })
    }
}

/// Creates a directory with mode 0700, independent of the umask. The mode of an existing directory
/// is changed if possible.
fn make_private(directory: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700).create(directory)?;
    let _ = std::fs::set_permissions(directory, Permissions::from_mode(0o700));
    Ok(())
}

/// Creates a socket at `path` with mode 0600, independent of the umask.
fn bind(path: &Path) -> io::Result<UnixListener> {
    let address = SocketAddrUnix::new(path)?;
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, CLOSED, None)?;
    // On systems that support this, the socket never has another mode at its path.
    let _ = rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR);
    net::bind(&socket, &address)?;
    // No client can connect before `listen`.
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

impl MonitorSocket {
    /// Claims the right to be the monitor of the repository at `git_dir` with `address`.
    ///
    /// # Errors
    /// Fails with `AddrInUse` if there is another monitor.
    pub(super) fn claim(git_dir: &Path, address: &MonitorAddress) -> io::Result<MonitorClaim> {
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
        Ok(MonitorClaim {
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

impl Drop for MonitorSocket {
    fn drop(&mut self) {
        // Do not remove the socket if another monitor has replaced it.
        if self.identity.is_some() && self.claim.identity() == self.identity {
            let _ = std::fs::remove_file(self.claim.socket());
        }
        let _ = self.claim.lock.unlock();
    }
}
