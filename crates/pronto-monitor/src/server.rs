//! The monitor process: watches a worktree and answers clients over a socket.
//!
//! One thread waits for events and clients. Each connected client has its own thread, and the
//! threads share the state under a lock. An answer costs a cookie, a check of the mounts, and the
//! paths in the answer. A cookie is a file that is created and removed; its event shows that all
//! earlier events have been read.

mod mounts;
mod socket;

use crate::client::MonitorAddress;
use crate::credentials::is_trusted;
use crate::protocol::{LONGEST_REQUEST_BYTES, read_message, write_message};
use crate::watch::{Doubt, SourceChoice, WatchedPaths, Watcher};
use crate::{Journal, MonitorResponse};
use bstr::{BString, ByteSlice};
use mounts::Mounts;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use socket::MonitorSocket;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

/// The timeout for the event of a cookie.
const PATIENCE: Duration = Duration::from_secs(1);
/// The timeout for receiving a request, and for sending the answer.
const CLIENT_PATIENCE: Duration = Duration::from_secs(10);
/// The maximum number of simultaneous clients. Further clients are rejected.
const MOST_CLIENTS: usize = 64;
/// The pause after a client could not be accepted because of missing resources.
const PAUSE: Duration = Duration::from_millis(50);
/// The time after which the monitor restarts its watches if it may have missed changes.
const DOUBT: Duration = Duration::from_secs(60);
/// The interval between checks that the worktree still exists, while there are no events.
const LOOK: Timespec = Timespec {
    tv_sec: 60,
    tv_nsec: 0,
};

/// A monitor with a listening socket. `Send`; [`run`](Self::run) starts its threads.
pub struct MonitorServer {
    socket: MonitorSocket,
    events: OwnedFd,
    shared: Arc<SharedMonitor>,
    stopped: UnixStream,
}

/// The options of a monitor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// Watch worktrees on network file systems, although changes by other machines are not reported
    /// (`fsmonitor.allowRemote`).
    pub allow_remote: bool,
    /// The source of change events.
    pub source: SourceChoice,
}

/// The state that all threads share.
struct SharedMonitor {
    state: Mutex<MonitorState>,
    /// A socket to which a byte is written to stop the monitor.
    stop: UnixStream,
    clients: AtomicUsize,
}

struct MonitorState {
    watcher: Watcher,
    journal: Journal,
    cookies: PathBuf,
    next_cookie: u64,
    mounts: Mounts,
    /// A mount below the top whose changes the kernel does not report to any watcher.
    dark_mount: Option<Doubt>,
    /// The time at which the watches were last started.
    begun: Instant,
}

impl MonitorServer {
    /// Watches `root`, the worktree of the repository at `git_dir`, and listens at `address`. Costs
    /// as much as [`Watcher::new`].
    ///
    /// # Errors
    /// Fails with `AddrInUse` if another monitor is listening. Fails with other errors if the
    /// system provides no watches or no list of mounts, or if the socket cannot be created.
    pub fn new(
        root: &Path,
        git_dir: &Path,
        address: &MonitorAddress,
        settings: Settings,
    ) -> io::Result<MonitorServer> {
        let socket = MonitorSocket::claim(git_dir, address)?;
        let cookies = socket.make_cookies()?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.unwrap_or_default().as_nanos();
        let mut journal = Journal::new(format!("{}.{now}", std::process::id()));
        let path = root.canonicalize()?;
        let mut mounts = Mounts::new(&path, settings.allow_remote)?;
        let places = WatchedPaths {
            root,
            cookies: &cookies,
            mounts: &mounts.below(&path)?,
        };
        let watcher = Watcher::new(places, settings.source, &mut journal)?;
        let events = watcher.descriptor().try_clone_to_owned()?;
        let (stop, stopped) = UnixStream::pair()?;
        stop.set_nonblocking(true)?;
        let state = MonitorState {
            watcher,
            journal,
            cookies,
            next_cookie: 0,
            dark_mount: mounts.doubt(&path),
            mounts,
            begun: Instant::now(),
        };
        Ok(MonitorServer {
            socket: socket.listen()?,
            events,
            shared: Arc::new(SharedMonitor {
                state: Mutex::new(state),
                stop,
                clients: AtomicUsize::new(0),
            }),
            stopped,
        })
    }

    /// Answers requests until a client stops the monitor or the worktree is removed. Then removes
    /// the socket, unless the socket now belongs to another monitor.
    ///
    /// # Errors
    /// Fails with the errors of waiting for events and of watching.
    pub fn run(self) -> io::Result<()> {
        loop {
            let mut descriptors = [
                PollFd::new(self.socket.listener(), PollFlags::IN),
                PollFd::new(&self.events, PollFlags::IN),
                PollFd::new(&self.stopped, PollFlags::IN),
            ];
            match poll(&mut descriptors, Some(&LOOK)) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let [client, event, stop] = descriptors.map(|it| !it.revents().is_empty());
            if stop {
                return Ok(());
            }
            if event || !client {
                let mut state = self.shared.lock();
                let caught_up = state.catch_up();
                if state.watcher.has_ended() {
                    return Ok(());
                }
                caught_up?;
            }
            if client {
                self.admit();
            }
        }
    }

    /// Accepts a client. A client that is rejected must assume that every path has changed.
    fn admit(&self) {
        let stream = match self.socket.listener().accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            // Descriptors or memory are exhausted, or the client has disconnected.
            Err(_) => return std::thread::sleep(PAUSE),
        };
        // The mode of the socket permits only the owner, but the mode can be changed.
        if !is_trusted(&stream, || None) {
            return;
        }
        if self.shared.clients.fetch_add(1, Ordering::Relaxed) >= MOST_CLIENTS {
            self.shared.clients.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let guest = MonitorClient(Arc::clone(&self.shared));
        // If no thread can be started, the closure is dropped, which disconnects the client.
        let _ = std::thread::Builder::new().spawn(move || {
            // Errors of a client that disconnects are ignored.
            let _ = guest.0.converse(&stream);
            drop(guest);
        });
    }
}

/// A connected client.
struct MonitorClient(Arc<SharedMonitor>);

impl Drop for MonitorClient {
    fn drop(&mut self) {
        self.0.clients.fetch_sub(1, Ordering::Relaxed);
    }
}

impl SharedMonitor {
    fn lock(&self) -> MutexGuard<'_, MonitorState> {
        self.state.lock().unwrap_or_else(|poisoned| {
            // The state may be incomplete after a panic.
            self.state.clear_poison();
            let mut state = poisoned.into_inner();
            let doubt = Doubt::Failed(
                BString::default(),
                "internal error: a thread panicked".to_owned(),
            );
            state.watcher.set_doubt(doubt);
            state
        })
    }

    /// Stops the monitor. The write can fail only if the buffer is full because of earlier calls.
    fn end(&self) {
        let _ = (&self.stop).write(b"x");
    }

    fn converse(&self, stream: &UnixStream) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(CLIENT_PATIENCE))?;
        stream.set_write_timeout(Some(CLIENT_PATIENCE))?;
        let request = read_message(stream, LONGEST_REQUEST_BYTES)?;
        if request == b"quit" {
            let written = write_message(stream, b"");
            self.end();
            return written;
        }
        let answer = {
            let mut state = self.lock();
            let answer = state.answer(&BString::from(request));
            if state.watcher.has_ended() {
                // The thread in `run` has not read the events that this thread has read.
                self.end();
            }
            answer
        };
        write_message(stream, &answer.encode())
    }
}

impl MonitorState {
    fn catch_up(&mut self) -> io::Result<()> {
        self.watcher.drain(&mut self.journal)
    }

    fn root(&self) -> io::Result<PathBuf> {
        std::fs::read_link(self.watcher.root().open_path())
    }

    fn is_doubted(&self) -> bool {
        self.watcher.doubt().is_some() || self.dark_mount.is_some()
    }

    fn restart_watching(&mut self) -> io::Result<()> {
        self.begun = Instant::now();
        let root = self.root()?;
        let mounts = self.mounts.below(&root)?;
        self.dark_mount = self.mounts.doubt(&root);
        self.watcher.set_mounts(mounts);
        self.watcher.restart(&mut self.journal)
    }

    fn answer(&mut self, request: &BString) -> MonitorResponse {
        let is_stale = self.is_doubted() && self.begun.elapsed() > DOUBT;
        if is_stale && self.restart_watching().is_err() {
            self.journal.restart();
            return self.journal.everything();
        }
        if self.is_doubted() {
            return self.journal.everything();
        }
        let is_sure = self.synchronise().unwrap_or(false);
        if !is_sure || request == "flush" {
            self.journal.restart();
        }
        if self.is_doubted() || self.watcher.has_ended() {
            return self.journal.everything();
        }
        self.journal.since(request.as_bstr())
    }

    /// Processes all events up to now. Returns `false` if this cannot be confirmed by a cookie.
    fn synchronise(&mut self) -> io::Result<bool> {
        let root = self.root()?;
        if self.mounts.have_changed(&root) {
            self.restart_watching()?;
        }
        self.next_cookie += 1;
        let name = format!("{}-{}", std::process::id(), self.next_cookie);
        let path = self.cookies.join(&name);
        let generation = self.journal.generation();
        File::create(&path)?;
        std::fs::remove_file(&path)?;
        let started = Instant::now();
        loop {
            self.catch_up()?;
            if self.journal.generation() != generation {
                // After a reset, the answer is that every path may have changed.
                return Ok(true);
            }
            if self.watcher.take_cookie(name.as_bytes()) {
                return Ok(true);
            }
            let left = PATIENCE.saturating_sub(started.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            let timeout = Timespec {
                tv_sec: 0,
                tv_nsec: i64::from(left.subsec_millis().clamp(1, 100)) * 1_000_000,
            };
            let events = self.watcher.descriptor();
            match poll(&mut [PollFd::new(&events, PollFlags::IN)], Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests;
