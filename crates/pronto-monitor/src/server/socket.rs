//! The socket of a monitor. One monitor at a time owns it.

use crate::client::{Address, CLOSED, is_listening};
use pronto_io::dir::Directory;
use rustix::fs::Mode;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketType};
use std::fs::{DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// The monitor's own directory inside of the repository directory.
const OWN: &str = "fsmonitor--daemon";
/// The number of clients that may wait to be accepted.
const BACKLOG: i32 = 128;

/// The exclusive right to be the monitor of a repository, held by a lock that ends with the
/// process.
pub(super) struct Claim {
    /// Socket addresses are short, and the repository may be renamed. A path through the open
    /// directory always fits and stays valid.
    git_dir: Directory,
    /// The directory of the socket.
    directory: Directory,
    name: String,
    lock: File,
}

/// A claim with a listening socket.
pub(super) struct Socket {
    claim: Claim,
    listener: UnixListener,
    identity: Option<Identity>,
}

/// The identity of a socket, which distinguishes it from others at the same path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

impl Claim {
    fn socket(&self) -> PathBuf {
        self.directory.open_path().join(&self.name)
    }

    /// Creates the directory of cookies if necessary, and returns it.
    pub(super) fn make_cookies(&self) -> io::Result<PathBuf> {
        let cookies = self.git_dir.open_path().join(OWN).join("cookies");
        make_private(&cookies)?;
        Ok(cookies)
    }

    fn identity(&self) -> Option<Identity> {
        let metadata = self.socket().symlink_metadata().ok()?;
        Some(Identity {
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    /// Creates the socket, replacing one on which no process listens.
    pub(super) fn listen(self) -> io::Result<Socket> {
        let path = self.socket();
        let listener = match bind(&path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                // A monitor of git does not take the lock, so the socket is tried as well.
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

/// Creates a directory with access only for its owner, whatever the umask. The mode of an existing
/// directory is changed if possible.
fn make_private(directory: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700).create(directory)?;
    let _ = std::fs::set_permissions(directory, Permissions::from_mode(0o700));
    Ok(())
}

/// Creates a socket at `path` with access only for its owner, whatever the umask.
fn bind(path: &Path) -> io::Result<UnixListener> {
    let address = SocketAddrUnix::new(path)?;
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, CLOSED, None)?;
    // On systems that support this, the socket never has another mode under its name.
    let _ = rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR);
    net::bind(&socket, &address)?;
    // Connecting is impossible before `listen`.
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

impl Socket {
    /// Claims to be the monitor of the repository at `git_dir` with the given `address`.
    ///
    /// # Errors
    /// `AddrInUse` if there is another monitor.
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
        // Another monitor may have replaced the socket.
        if self.identity.is_some() && self.claim.identity() == self.identity {
            let _ = std::fs::remove_file(self.claim.socket());
        }
        let _ = self.claim.lock.unlock();
    }
}
