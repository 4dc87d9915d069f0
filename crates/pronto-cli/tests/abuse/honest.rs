//! An honest client that sends requests during the whole attack.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::client::{Connection, RequestIds};
use crate::tls::Tls;
use crate::wire::{FETCH, V2, command, post};

/// The pause between two requests.
const PAUSE: Duration = Duration::from_millis(100);

/// The timeout of a request, on a busy machine.
const LONGEST: Duration = Duration::from_secs(10);

/// An honest client: Alice, with the address of this machine.
pub(crate) struct Honest {
    stop: Sender<()>,
    thread: JoinHandle<Result<usize, String>>,
}

/// The address of the server, and the login for it.
#[derive(Clone)]
pub(crate) struct Access {
    pub(crate) server: SocketAddr,
    pub(crate) tls: Option<Tls>,
    pub(crate) token: String,
    pub(crate) ids: RequestIds,
}

impl Honest {
    pub(crate) fn start(access: Access) -> Self {
        let (stop, stopped) = channel();
        let thread = std::thread::spawn(move || {
            let mut rounds = 0;
            loop {
                ask(&access)?;
                rounds += 1;
                match stopped.recv_timeout(PAUSE) {
                    Err(RecvTimeoutError::Timeout) => {}
                    _ => return Ok(rounds),
                }
            }
        });
        Honest { stop, thread }
    }

    /// Stops the client, and returns the first failure of its requests.
    pub(crate) fn end(self) -> Result<(), String> {
        drop(self.stop);
        match self.thread.join() {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(problem)) => Err(format!("an honest client is not served: {problem}")),
            Err(_) => Err("an honest client has no connection".to_owned()),
        }
    }
}

/// Lists refs.
fn ask(access: &Access) -> Result<(), String> {
    let begun = Instant::now();
    let connected = Connection::try_open(
        Ipv4Addr::LOCALHOST,
        access.server,
        access.tls.as_ref(),
        &access.ids,
    );
    let mut connection = connected.map_err(|error| format!("it cannot connect: {error}"))?;
    let headers = format!("{V2}authorization: Bearer {}\r\n", access.token);
    let body = command("ls-refs", ["ref-prefix refs/heads/"]);
    connection.send(post("team/a", FETCH, &headers, &body));
    let answer = connection.answer()?;
    if answer.status != 200 || !answer.text().contains("refs/heads/main") {
        return Err(format!("{}{}", answer.head, answer.text()));
    }
    match begun.elapsed() < LONGEST {
        true => Ok(()),
        false => Err(format!("it waits for {:?}", begun.elapsed())),
    }
}
