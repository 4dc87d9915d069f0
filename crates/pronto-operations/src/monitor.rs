//! Runs, finds and stops the file system monitor of a worktree (`git fsmonitor--daemon`), a
//! background process.

use crate::{Error, ErrorKind, Repository, Result, path};
use bstr::ByteSlice;
use pronto_hash::{Kind, TrailerDigester};
use pronto_io::error::IoContext;
use pronto_monitor::client::{self, MonitorAddress};
#[cfg(target_os = "linux")]
use pronto_monitor::{
    server::{MonitorServer, Settings},
    watch::SourceChoice,
};
use std::fs::File;

/// Network file systems, on which sockets do not work, by their `statfs(2)` types. The list is that
/// of Git, because both programs must look for the socket at the same path.
#[cfg(target_os = "linux")]
const WITHOUT_SOCKETS: [u64; 7] = [
    0x0000_6969, // NFS
    0x0000_517B, // SMB
    0xFE53_4D42, // SMB2
    0xFF53_4D42, // CIFS
    0x5346_414F, // AFS
    0x7375_7245, // Coda
    0x6573_5546, // FUSE
];

/// Whether a monitor, of Git or of pronto, listens for this worktree.
pub fn is_listening(repository: &Repository) -> bool {
    address(repository).is_ok_and(|address| client::is_listening(&address))
}

/// Returns the socket path of the monitor of this worktree: in the git directory, or if that is on
/// a network file system, in `fsmonitor.socketDir` or the home directory.
///
/// # Errors
/// Fails with [`ErrorKind::Unsupported`] if a home directory is needed and unknown.
pub(crate) fn address(repository: &Repository) -> Result<MonitorAddress> {
    if has_sockets(repository) {
        return Ok(MonitorAddress::in_repository(repository.git_dir()));
    }
    let home = repository.environment().home();
    let configured = repository.config().path("fsmonitor.socketDir", home)?;
    let configured = configured.filter(|path| !path.as_os_str().is_empty());
    let Some(directory) = configured.or_else(|| home.map(Into::into)) else {
        let message = "no directory for the socket of fsmonitor: set fsmonitor.socketDir";
        return Err(Error::new(ErrorKind::Unsupported, message));
    };
    let top = repository.work_tree().unwrap_or(repository.git_dir());
    let mut hasher = TrailerDigester::new(Kind::Sha1);
    hasher.update(path::as_bytes(top));
    Ok(MonitorAddress::among_others(
        &directory,
        &hasher.finish().to_string(),
    ))
}

#[cfg(target_os = "linux")]
fn has_sockets(repository: &Repository) -> bool {
    let opened = pronto_io::dir::Directory::open(repository.git_dir());
    let found = opened.and_then(|directory| directory.file_system());
    !found.is_ok_and(|found| WITHOUT_SOCKETS.contains(&found.number()))
}

#[cfg(not(target_os = "linux"))]
fn has_sockets(repository: &Repository) -> bool {
    let opened = File::open(repository.git_dir());
    opened
        .and_then(|file| pronto_io::view::is_local(&file))
        .unwrap_or(true)
}

/// Stops the monitor of this worktree (`git fsmonitor--daemon stop`).
///
/// # Errors
/// Fails if no monitor runs.
pub fn stop(repository: &Repository) -> Result<()> {
    client::send(&address(repository)?, b"quit")
        .map(drop)
        .map_err(|error| {
            Error::new(ErrorKind::Io, "fsmonitor--daemon is not running").because(error)
        })
}

/// Runs the monitor of this worktree until [`stop`] is called or the worktree is removed
/// (`git fsmonitor--daemon run`).
///
/// # Errors
/// - [`ErrorKind::Locked`] if a monitor runs already.
/// - [`ErrorKind::Unsupported`] if the worktree or the repository is on a network file system,
///   whose changes are not reported, and `fsmonitor.allowRemote` is not set.
/// - [`ErrorKind::Io`] if the limit of inotify watches is reached.
/// - [`ErrorKind::NoWorkTree`] if there is no worktree.
#[cfg(target_os = "linux")]
pub fn run(repository: &Repository) -> Result<()> {
    let top = repository.require_work_tree()?;
    let allow_remote = repository
        .config()
        .bool_or("fsmonitor.allowRemote", false)?;
    if !allow_remote {
        for path in [top, repository.git_dir()] {
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
    let mut settings = Settings::default();
    settings.allow_remote = allow_remote;
    settings.source = source(repository)?;
    let address = address(repository)?;
    let server = MonitorServer::new(top, repository.git_dir(), &address, settings);
    server.map_err(failed)?.run().map_err(failed)
}

/// Returns the configured source of change events (`fsmonitor.source`).
#[cfg(target_os = "linux")]
fn source(repository: &Repository) -> Result<SourceChoice> {
    let Some(source) = repository.config().string("fsmonitor.source")? else {
        return Ok(SourceChoice::Any);
    };
    match source.as_bytes() {
        b"auto" => Ok(SourceChoice::Any),
        b"inotify" => Ok(SourceChoice::Inotify),
        b"fanotify" => Ok(SourceChoice::Fanotify),
        _ => {
            let message = format!(
                "bad value '{source}' for 'fsmonitor.source': use 'auto', 'inotify' or 'fanotify'"
            );
            Err(Error::new(ErrorKind::Config, message))
        }
    }
}
