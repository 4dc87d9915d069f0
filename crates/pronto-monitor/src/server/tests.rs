//! The server, spoken to over its socket.

use super::*;
use crate::client::{self, SOCKET};
use std::os::unix::net::UnixListener;

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().expect("a directory"));
        std::fs::create_dir_all(place.git_dir()).expect("a directory");
        place
    }

    fn git_dir(&self) -> PathBuf {
        self.0.path().join("top/.git")
    }

    fn server(&self) -> io::Result<Server> {
        Server::new(&self.0.path().join("top"), &self.git_dir(), false)
    }
}

#[test]
fn there_is_one_monitor_at_a_time() {
    let place = Place::new();
    // A socket that nobody listens to.
    drop(UnixListener::bind(place.git_dir().join(SOCKET)).expect("a socket"));
    let first = place.server().expect("it is the first");
    let kind = |server: io::Result<Server>| server.err().map(|error| error.kind());
    assert_eq!(kind(place.server()), Some(io::ErrorKind::AddrInUse));
    // Even if the socket is gone.
    std::fs::remove_file(place.git_dir().join(SOCKET)).expect("it is there");
    assert_eq!(kind(place.server()), Some(io::ErrorKind::AddrInUse));
    let other = UnixListener::bind(place.git_dir().join(SOCKET)).expect("a socket");
    drop(first);
    assert!(place.git_dir().join(SOCKET).exists(), "it is another's");
    drop(other);
    drop(place.server().expect("it is alone"));
    assert!(!place.git_dir().join(SOCKET).exists());
}

#[test]
fn answers_are_given_after_a_move_and_until_the_end() {
    let place = Place::new();
    let server = place.server().expect("it is alone");
    let thread = std::thread::spawn(move || server.run());
    let moved = place.0.path().join("moved");
    std::fs::rename(place.0.path().join("top"), &moved).expect("it is there");
    // The top itself has moved: it ends.
    let ended = thread.join().expect("it does not panic");
    ended.expect("it was the end");
    assert!(!moved.join(".git").join(SOCKET).exists());
}

#[test]
fn a_doubt_answers_everything_until_its_reason_is_gone() {
    let place = Place::new();
    let server = place.server().expect("it is alone");
    let mut state = server.shared.lock();
    let Answer::Everything { token } = state.answer(&"builtin:fake".into()) else {
        panic!("it is not its token");
    };
    std::fs::write(place.0.path().join("top/file"), "x").expect("a file");
    let Answer::Paths { paths, token } = state.answer(&token) else {
        panic!("it is its token");
    };
    assert_eq!(paths, ["file"]);
    state.watcher.set_doubt(Doubt::Limit);
    let is_all = |answer: Answer| matches!(answer, Answer::Everything { .. });
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
    let place = Place::new();
    let listener = UnixListener::bind(place.git_dir().join(SOCKET)).expect("a socket");
    rustix::net::listen(&listener, 1).expect("a shorter queue");
    let patience = Duration::from_millis(100);
    let mut streams = Vec::new();
    let error = loop {
        match client::connect_within(&place.git_dir(), patience) {
            Ok(stream) => streams.push(stream),
            Err(error) => break error,
        }
        assert!(streams.len() < 10);
    };
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
}

#[test]
fn after_a_panic_everything_may_have_changed() {
    let place = Place::new();
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
    assert!(matches!(answer, Answer::Everything { .. }));
}
