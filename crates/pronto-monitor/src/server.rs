//! The monitor: watches a worktree and answers those who ask over its socket.

use crate::client::{SOCKET, is_listening};
use crate::protocol::{LONGEST_REQUEST_BYTES, read_message, write_message};
use crate::watch::Watcher;
use crate::{Answer, Journal};
use bstr::{BString, ByteSlice};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// How long a cookie may take to be seen.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long a client may take to ask, and to take the answer.
const CLIENT_PATIENCE: Duration = Duration::from_secs(10);

/// A monitor that listens.
pub struct Server {
    listener: UnixListener,
    socket: PathBuf,
    state: Arc<Mutex<State>>,
    /// Written to when the monitor is to end.
    stop: Arc<UnixStream>,
    stopped: UnixStream,
}

struct State {
    watcher: Watcher,
    journal: Journal,
    cookies: PathBuf,
    next_cookie: u64,
    mounts: Mounts,
}

impl Server {
    /// Watches `root`, the worktree of the repository at `git_dir`, and listens there.
    ///
    /// # Errors
    /// `AddrInUse` if another one listens; the system gives no watches; the socket cannot be made.
    pub fn new(root: &Path, git_dir: &Path) -> io::Result<Server> {
        if is_listening(git_dir) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let cookies = git_dir.join("fsmonitor--daemon/cookies");
        std::fs::create_dir_all(&cookies)?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.unwrap_or_default().as_nanos();
        let mut journal = Journal::new(format!("{}.{now}", std::process::id()));
        let mounts = Mounts::new(root);
        let watcher = Watcher::new(root, &cookies, &mut journal)?;
        let socket = git_dir.join(SOCKET);
        let listener = listen(git_dir, &socket)?;
        let (stop, stopped) = UnixStream::pair()?;
        let state = State {
            watcher,
            journal,
            cookies,
            next_cookie: 0,
            mounts,
        };
        Ok(Server {
            listener,
            socket,
            state: Arc::new(Mutex::new(state)),
            stop: Arc::new(stop),
            stopped,
        })
    }

    /// Answers until somebody says that it is enough, or the worktree is gone.
    ///
    /// # Errors
    /// Those of waiting and of watching.
    pub fn run(self) -> io::Result<()> {
        let result = self.serve();
        // Only its own: another one may have come in between.
        let _ = std::fs::remove_file(&self.socket);
        result
    }

    fn serve(&self) -> io::Result<()> {
        loop {
            // Beginning again makes a new descriptor.
            let events = self.lock().watcher.descriptor().try_clone_to_owned()?;
            let mut descriptors = [
                PollFd::new(&self.listener, PollFlags::IN),
                PollFd::new(&events, PollFlags::IN),
                PollFd::new(&self.stopped, PollFlags::IN),
            ];
            match poll(&mut descriptors, None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let [client, event, stop] = descriptors.map(|it| !it.revents().is_empty());
            if stop {
                return Ok(());
            }
            if event {
                let mut state = self.lock();
                state.catch_up()?;
                if state.watcher.has_ended() {
                    return Ok(());
                }
            }
            if client {
                let (stream, _) = match self.listener.accept() {
                    Ok(accepted) => accepted,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                    Err(error) => return Err(error),
                };
                let (state, stop) = (Arc::clone(&self.state), Arc::clone(&self.stop));
                std::thread::spawn(move || {
                    // A client that goes away is its own business.
                    let _ = converse(&stream, &state, &stop);
                });
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn converse(stream: &UnixStream, state: &Mutex<State>, stop: &UnixStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(CLIENT_PATIENCE))?;
    stream.set_write_timeout(Some(CLIENT_PATIENCE))?;
    let request = read_message(stream, LONGEST_REQUEST_BYTES)?;
    if request == b"quit" {
        write_message(stream, b"")?;
        return (&*stop).write_all(b"x");
    }
    let answer = {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.answer(&BString::from(request))
    };
    write_message(stream, &answer.encode())
}

impl State {
    fn catch_up(&mut self) -> io::Result<()> {
        self.watcher.drain(&mut self.journal)
    }

    fn answer(&mut self, request: &BString) -> Answer {
        let is_sure = self.synchronise().unwrap_or(false);
        if !is_sure || request == "flush" {
            self.journal.start_anew();
        }
        if self.watcher.doubt().is_some() || self.watcher.has_ended() {
            return self.journal.everything();
        }
        self.journal.since(request.as_bstr())
    }

    /// Takes note of all that happened until now. `false` if that cannot be known.
    fn synchronise(&mut self) -> io::Result<bool> {
        if self.mounts.have_changed() {
            self.watcher.start_anew(&mut self.journal)?;
        }
        self.next_cookie += 1;
        let name = format!("{}-{}", std::process::id(), self.next_cookie);
        let path = self.cookies.join(&name);
        File::create(&path)?;
        std::fs::remove_file(&path)?;
        let started = Instant::now();
        let generation = self.journal.generation();
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

/// Makes the socket, in place of one that nobody listens to any more.
fn listen(git_dir: &Path, socket: &Path) -> io::Result<UnixListener> {
    let directory = File::open(git_dir)?;
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(&directory);
    // Addresses are short: a path through the open directory always fits.
    let address = format!("/proc/self/fd/{descriptor}/{SOCKET}");
    let listener = match UnixListener::bind(&address) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            if is_listening(git_dir) {
                return Err(error);
            }
            std::fs::remove_file(socket)?;
            UnixListener::bind(&address)?
        }
        bound => bound?,
    };
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// The mounts that matter for a directory.
struct Mounts {
    table: Option<File>,
    root: Vec<u8>,
    known: Vec<u8>,
}

impl Mounts {
    fn new(root: &Path) -> Mounts {
        let mut mounts = Mounts {
            table: File::open("/proc/self/mountinfo").ok(),
            root: root.as_os_str().as_bytes().to_vec(),
            known: Vec::new(),
        };
        mounts.known = mounts.read();
        mounts
    }

    /// The lines whose mount point is at, above or below the root.
    fn read(&mut self) -> Vec<u8> {
        let mut content = Vec::new();
        if let Some(table) = &mut self.table {
            let read = table
                .rewind()
                .and_then(|()| table.read_to_end(&mut content));
            if read.is_err() {
                return Vec::new();
            }
        }
        let root = &self.root;
        let counts = |line: &&[u8]| {
            let point = line.split(|&byte| byte == b' ').nth(4).unwrap_or_default();
            let within = |one: &[u8], other: &[u8]| {
                one.strip_prefix(other)
                    .is_some_and(|rest| rest.is_empty() || rest[0] == b'/' || other == b"/")
            };
            within(point, root) || within(root, point)
        };
        let lines: Vec<&[u8]> = content
            .split(|&byte| byte == b'\n')
            .filter(counts)
            .collect();
        lines.join(&b'\n')
    }

    fn have_changed(&mut self) -> bool {
        let Some(table) = &self.table else {
            return false;
        };
        let descriptor = table.as_fd();
        let mut polled = [PollFd::new(&descriptor, PollFlags::PRI)];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        if !poll(&mut polled, Some(&now)).is_ok_and(|ready| ready > 0) {
            return false;
        }
        let now = self.read();
        let changed = now != self.known;
        self.known = now;
        changed
    }
}
