//! Tests the server over its socket.

use super::*;
use crate::client;
use std::os::unix::net::UnixListener;
use std::process::Command;
use test_support::{Need, Scratch, lacks, need};

struct TestServer(Scratch);

impl TestServer {
    fn new() -> TestServer {
        TestServer::of(Scratch::new())
    }

    fn of(scratch: Scratch) -> TestServer {
        let place = TestServer(scratch);
        std::fs::create_dir_all(place.git_dir()).expect("a directory");
        place
    }

    fn git_dir(&self) -> PathBuf {
        self.0.path().join("top/.git")
    }

    fn address(&self) -> MonitorAddress {
        MonitorAddress::in_repository(&self.git_dir())
    }

    fn socket(&self) -> PathBuf {
        self.git_dir().join(self.address().name)
    }

    fn server(&self) -> io::Result<MonitorServer> {
        self.server_with(SourceChoice::Any)
    }

    fn server_with(&self, source: SourceChoice) -> io::Result<MonitorServer> {
        let top = self.0.path().join("top");
        let settings = Settings {
            source,
            ..Settings::default()
        };
        MonitorServer::new(&top, &self.git_dir(), &self.address(), settings)
    }
}

/// Stops listening. Dropping the listener is not sufficient, because a child process of another
/// test may have inherited it until its program starts.
fn close(listener: &UnixListener) {
    rustix::net::shutdown(listener, rustix::net::Shutdown::Both).expect("it listens");
}

#[test]
fn there_is_one_monitor_at_a_time() {
    let place = TestServer::new();
    // A socket on which no process is listening.
    close(&UnixListener::bind(place.socket()).expect("a socket"));
    let first = place.server().expect("it is the first");
    let kind = |server: io::Result<MonitorServer>| server.err().map(|error| error.kind());
    assert_eq!(kind(place.server()), Some(io::ErrorKind::AddrInUse));
    // The claim holds even if the socket is removed.
    std::fs::remove_file(place.socket()).expect("it is there");
    assert_eq!(kind(place.server()), Some(io::ErrorKind::AddrInUse));
    let other = UnixListener::bind(place.socket()).expect("a socket");
    drop(first);
    assert!(place.socket().exists(), "it is another's");
    close(&other);
    drop(place.server().expect("it is alone"));
    assert!(!place.socket().exists());
}

#[test]
fn answers_are_given_after_a_move_and_until_the_end() {
    let place = TestServer::new();
    let server = place.server().expect("it is alone");
    let thread = std::thread::spawn(move || server.run());
    let moved = place.0.path().join("moved");
    std::fs::rename(place.0.path().join("top"), &moved).expect("it is there");
    // The top directory was renamed, so the monitor exits.
    let ended = thread.join().expect("it does not panic");
    ended.expect("it was the end");
    assert!(!moved.join(".git").join(place.address().name).exists());
}

#[test]
fn a_doubt_answers_everything_until_its_reason_is_gone() {
    let place = TestServer::new();
    let server = place.server().expect("it is alone");
    let mut state = server.shared.lock();
    let MonitorResponse::Everything { token } = state.answer(&"builtin:fake".into()) else {
        panic!("it is not its token");
    };
    std::fs::write(place.0.path().join("top/file"), "x").expect("a file");
    let MonitorResponse::Paths { paths, token } = state.answer(&token) else {
        panic!("it is its token");
    };
    assert_eq!(paths, ["file"]);
    state.watcher.set_doubt(Doubt::Limit);
    let is_all = |answer: MonitorResponse| matches!(answer, MonitorResponse::Everything { .. });
    assert!(is_all(state.answer(&token)));
    let Some(before) = state.begun.checked_sub(2 * DOUBT) else {
        return;
    };
    state.begun = before;
    let answer = state.answer(&token);
    let token = answer.token().to_owned();
    assert!(is_all(answer));
    assert!(!is_all(state.answer(&token)));
}

#[test]
fn who_takes_no_clients_is_not_waited_for() {
    let place = TestServer::new();
    let listener = UnixListener::bind(place.socket()).expect("a socket");
    rustix::net::listen(&listener, 1).expect("a shorter queue");
    let patience = Duration::from_millis(100);
    let mut streams = Vec::new();
    let error = loop {
        match client::connect_within(&place.address(), patience) {
            Ok(stream) => streams.push(stream),
            Err(error) => break error,
        }
        assert!(streams.len() < 10);
    };
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
}

#[test]
fn after_a_panic_everything_may_have_changed() {
    let place = TestServer::new();
    let server = place.server().expect("it is alone");
    let token = server
        .shared
        .lock()
        .answer(&"fake".into())
        .token()
        .to_owned();
    let shared = Arc::clone(&server.shared);
    let thread = std::thread::spawn(move || {
        let _state = shared.lock();
        panic!("on purpose");
    });
    assert!(thread.join().is_err());
    let answer = server.shared.lock().answer(&token);
    assert!(matches!(answer, MonitorResponse::Everything { .. }));
}

/// A mount that is removed when the value is dropped.
struct Mounted(PathBuf);

impl Mounted {
    fn new(arguments: &[&str], at: PathBuf) -> Option<Mounted> {
        std::fs::create_dir_all(&at).expect("a directory");
        need!(Need::Mount);
        let mut command = Command::new("mount");
        let output = command.args(arguments).arg(&at).output();
        let output = output.expect("mount starts");
        assert!(output.status.success(), "{output:?}");
        Some(Mounted(at))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn with_marks_what_is_mounted_below_is_told() {
    let serve = |place: TestServer| {
        std::fs::create_dir(place.0.join("top/a")).expect("a directory");
        let server = place.server_with(SourceChoice::Fanotify);
        server.map(|server| (place, server))
    };
    // Not every file system can be marked, but tmpfs can.
    let memory = |error: io::Error| match error.kind() {
        io::ErrorKind::PermissionDenied => Err(error),
        _ => serve(TestServer::of(Scratch::within(Path::new("/dev/shm"))?)),
    };
    let (place, server) = match serve(TestServer::new()).or_else(memory) {
        Ok(made) => made,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            lacks!(Need::Fanotify, error);
        }
        Err(error) => {
            lacks!(Need::Fanotify, error);
        }
    };
    let top = place.0.join("top");
    let mut state = server.shared.lock();
    let from = top.join("a").display().to_string();
    let bound = Mounted::new(&["--bind", &from], top.join("bound"));
    let memory = Mounted::new(&["-t", "tmpfs", "none"], top.join("memory"));
    let (Some(bound), Some(memory)) = (bound, memory) else {
        return;
    };
    let MonitorResponse::Everything { token } = state.answer(&"builtin:fake".into()) else {
        panic!("mounts have come");
    };
    for (written, expected) in [
        (top.join("a/one"), vec!["a/one", "bound/one"]),
        (bound.0.join("two"), vec!["a/two", "bound/two"]),
        (memory.0.join("three"), vec!["memory/three"]),
    ] {
        let token = state.answer(&token).token().to_owned();
        std::fs::write(&written, "x").expect("a file");
        let MonitorResponse::Paths { mut paths, .. } = state.answer(&token) else {
            panic!("{written:?}: nothing was lost");
        };
        paths.sort();
        assert_eq!(paths, expected);
    }
    drop((bound, memory));
    assert!(matches!(
        state.answer(&token),
        MonitorResponse::Everything { .. }
    ));
    assert_eq!(state.watcher.doubt(), None);
}

#[test]
fn what_is_lost_takes_no_doubt_with_it() {
    let place = TestServer::new();
    let top = place.0.path().join("top");
    for name in ["file", "other"] {
        std::fs::write(top.join(name), "x").expect("a file");
    }
    let (file, other) = (top.join("file"), top.join("other"));
    need!(Need::Mount);
    let mut command = Command::new("mount");
    let output = command.arg("--bind").arg(&file).arg(&other).output();
    let output = output.expect("mount starts");
    assert!(output.status.success(), "{output:?}");
    let _mounted = Mounted(other);
    let server = place.server().expect("it is alone");
    let mut state = server.shared.lock();
    assert!(state.is_doubted());
    // Resets the journal, as after lost events.
    let MonitorState {
        watcher, journal, ..
    } = &mut *state;
    watcher.restart(journal).expect("it can be watched");
    assert!(state.is_doubted());
    let token = state.journal.token();
    assert!(matches!(
        state.answer(&token),
        MonitorResponse::Everything { .. }
    ));
}
