//! The monitor: watches a worktree and answers those who ask over its socket.
//!
//! One thread waits for events and clients; each client has a thread of its own for as long as it
//! asks, and they take turns at what is known. An answer costs a file that is made and removed
//! (its event tells that all before it were seen), a look at the mounts, and the paths in it.

mod mounts;
mod socket;

use crate::client::Address;
use crate::credentials::is_trusted;
use crate::protocol::{LONGEST_REQUEST_BYTES, read_message, write_message};
use crate::watch::{Doubt, Places, Source, Watcher};
use crate::{Answer, Journal};
use bstr::{BString, ByteSlice};
use mounts::Mounts;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use socket::Socket;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

/// How long a cookie may take to be seen.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long a client may take to ask, and to take the answer.
const CLIENT_PATIENCE: Duration = Duration::from_secs(10);
/// Clients that are talked to at once; further ones are sent away.
const MOST_CLIENTS: usize = 64;
/// After a client could not be let in: what is short may be there again.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a doubt stands before it is tried whether its reason is gone.
const DOUBT: Duration = Duration::from_secs(60);
/// Between two looks whether the worktree is still there, while nothing happens.
const LOOK: Timespec = Timespec {
    tv_sec: 60,
    tv_nsec: 0,
};

/// A monitor that listens. `Send`; [`run`](Self::run) starts the threads that it needs.
pub struct Server {
    socket: Socket,
    events: OwnedFd,
    shared: Arc<Shared>,
    stopped: UnixStream,
}

/// How a monitor is to watch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// What is mounted from another machine is taken to be watched, though nobody tells here what
    /// happens there.
    pub allow_remote: bool,
    /// Who tells of changes.
    pub source: Source,
}

/// What the threads have in common.
struct Shared {
    state: Mutex<State>,
    /// Written to when the monitor is to end.
    stop: UnixStream,
    clients: AtomicUsize,
}

struct State {
    watcher: Watcher,
    journal: Journal,
    cookies: PathBuf,
    next_cookie: u64,
    mounts: Mounts,
    /// What is mounted below of which changes go unseen: whatever the watcher goes through.
    dark_mount: Option<Doubt>,
    /// When it began the last time.
    begun: Instant,
}

impl Server {
    /// Watches `root`, the worktree of the repository at `git_dir`, and listens at `address`. Costs as
    /// much as [`Watcher::new`].
    ///
    /// # Errors
    /// `AddrInUse` if another one listens; the system gives no watches, or does not tell what is
    /// mounted; the socket cannot be made.
    pub fn new(
        (root, git_dir): (&Path, &Path),
        address: &Address,
        settings: Settings,
    ) -> io::Result<Server> {
        let socket = Socket::claim(git_dir, address)?;
        let cookies = socket.make_cookies()?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.unwrap_or_default().as_nanos();
        let mut journal = Journal::new(format!("{}.{now}", std::process::id()));
        let path = root.canonicalize()?;
        let mut mounts = Mounts::new(&path, settings.allow_remote)?;
        let places = Places {
            root,
            cookies: &cookies,
            mounts: &mounts.below(&path)?,
        };
        let watcher = Watcher::new(places, settings.source, &mut journal)?;
        let events = watcher.descriptor().try_clone_to_owned()?;
        let (stop, stopped) = UnixStream::pair()?;
        stop.set_nonblocking(true)?;
        let state = State {
            watcher,
            journal,
            cookies,
            next_cookie: 0,
            dark_mount: mounts.doubt(&path),
            mounts,
            begun: Instant::now(),
        };
        Ok(Server {
            socket: socket.listen()?,
            events,
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                stop,
                clients: AtomicUsize::new(0),
            }),
            stopped,
        })
    }

    /// Answers until somebody says that it is enough, or the worktree is gone. The socket is
    /// removed then, unless it is another one's by now.
    ///
    /// # Errors
    /// Those of waiting and of watching.
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

    /// Lets a client in. One that cannot be let in takes it that everything has changed.
    fn admit(&self) {
        let stream = match self.socket.listener().accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            // Descriptors or memory are short, or the client has gone again.
            Err(_) => return std::thread::sleep(PAUSE),
        };
        // The socket is for its owner alone, but its mode can be changed.
        if !is_trusted(&stream, || None) {
            return;
        }
        if self.shared.clients.fetch_add(1, Ordering::Relaxed) >= MOST_CLIENTS {
            self.shared.clients.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let guest = Guest(Arc::clone(&self.shared));
        // Without a thread to be had the client is sent away, and so is the guest.
        let _ = std::thread::Builder::new().spawn(move || {
            // A client that goes away is its own business.
            let _ = guest.0.converse(&stream);
            drop(guest);
        });
    }
}

/// A client that is talked to.
struct Guest(Arc<Shared>);

impl Drop for Guest {
    fn drop(&mut self) {
        self.0.clients.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| {
            // Who knows how far it came.
            self.state.clear_poison();
            let mut state = poisoned.into_inner();
            let doubt = Doubt::Failed(BString::default(), "a thread panicked".to_owned());
            state.watcher.set_doubt(doubt);
            state
        })
    }

    /// Ends the monitor. If that is said already there may be no more room.
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
                // Whoever waits for events has not heard of these.
                self.end();
            }
            answer
        };
        write_message(stream, &answer.encode())
    }
}

impl State {
    fn catch_up(&mut self) -> io::Result<()> {
        self.watcher.drain(&mut self.journal)
    }

    fn root(&self) -> io::Result<PathBuf> {
        std::fs::read_link(self.watcher.root().open_path())
    }

    fn is_doubted(&self) -> bool {
        self.watcher.doubt().is_some() || self.dark_mount.is_some()
    }

    fn begin_anew(&mut self) -> io::Result<()> {
        self.begun = Instant::now();
        let root = self.root()?;
        let mounts = self.mounts.below(&root)?;
        self.dark_mount = self.mounts.doubt(&root);
        self.watcher.set_mounts(mounts);
        self.watcher.start_anew(&mut self.journal)
    }

    fn answer(&mut self, request: &BString) -> Answer {
        let is_stale = self.is_doubted() && self.begun.elapsed() > DOUBT;
        if is_stale && self.begin_anew().is_err() {
            self.journal.start_anew();
            return self.journal.everything();
        }
        if self.is_doubted() {
            return self.journal.everything();
        }
        let is_sure = self.synchronise().unwrap_or(false);
        if !is_sure || request == "flush" {
            self.journal.start_anew();
        }
        if self.is_doubted() || self.watcher.has_ended() {
            return self.journal.everything();
        }
        self.journal.since(request.as_bstr())
    }

    /// Takes note of all that happened until now. `false` if that cannot be known.
    fn synchronise(&mut self) -> io::Result<bool> {
        let root = self.root()?;
        if self.mounts.have_changed(&root) {
            self.begin_anew()?;
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
                // Whoever asks is told that everything may have changed.
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
