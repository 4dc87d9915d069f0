//! The file system monitor of a repository, as a process that runs beside its commands.

use crate::{Error, ErrorKind, Repository, Result};
use pronto_io::error::IoContext;
use pronto_monitor::client;
use std::fs::File;

impl Repository {
    /// Whether a monitor, of whatever program, listens for this worktree.
    pub fn is_monitored(&self) -> bool {
        client::is_listening(self.git_dir())
    }

    /// Tells the monitor of this worktree to end.
    ///
    /// # Errors
    /// There is none.
    pub fn stop_monitor(&self) -> Result<()> {
        client::send(self.git_dir(), b"quit")
            .map(drop)
            .map_err(|error| {
                Error::new(ErrorKind::Io, "fsmonitor--daemon is not running").because(error)
            })
    }

    /// Is the monitor of this worktree until somebody [stops](Self::stop_monitor) it, or the
    /// worktree is gone.
    ///
    /// # Errors
    /// There is no work tree, or one already; the worktree or the repository is on a file system
    /// of another machine, whose changes nobody tells here, and `fsmonitor.allowRemote` does not
    /// say that it is to be tried; the system gives no more watches.
    #[cfg(target_os = "linux")]
    pub fn run_monitor(&self) -> Result<()> {
        let top = self.require_work_tree()?;
        let allow_remote = self.config().bool_or("fsmonitor.allowRemote", false)?;
        if !allow_remote {
            for path in [top, self.git_dir()] {
                let file = File::open(path).context(ErrorKind::Io, "cannot open", path)?;
                let local = pronto_io::view::is_local(&file);
                if !local.context(ErrorKind::Io, "cannot look at", path)? {
                    let message = format!(
                        "remote repository '{}' is incompatible with fsmonitor",
                        top.display()
                    );
                    return Err(Error::new(ErrorKind::Unsupported, message));
                }
            }
        }
        let failed = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::AddrInUse => {
                let message = format!("fsmonitor--daemon is already running '{}'", top.display());
                Error::new(ErrorKind::Locked, message)
            }
            _ => Error::new(ErrorKind::Io, "cannot watch")
                .at_path(top)
                .because(error),
        };
        let server = pronto_monitor::server::Server::new(top, self.git_dir(), allow_remote);
        server.map_err(failed)?.run().map_err(failed)
    }
}
