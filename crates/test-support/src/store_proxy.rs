//! A proxy before an HTTP server that makes requests fail, by a plan that a seed decides.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::Random;

/// The share of requests that go wrong, in percent each. Their sum is at most 100.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// The connection is cut before the server gets the request.
    pub cut: u64,
    /// The request waits for up to a tenth of a second.
    pub delayed: u64,
    /// The answer is 500, or 503 with `Retry-After`; the server does not get the request.
    pub refused: u64,
    /// The server gets the request, and its answer is lost.
    pub lost: u64,
    /// The server gets the request, and the answer is 500.
    pub denied: u64,
    /// The body of the answer ends too early.
    pub truncated: u64,
    /// The answer is 503, and the server gets the request some time later.
    pub late: u64,
}

impl Faults {
    /// Some of everything.
    #[must_use]
    pub fn some() -> Self {
        Faults {
            cut: 3,
            delayed: 10,
            refused: 4,
            lost: 3,
            denied: 3,
            truncated: 3,
            late: 2,
        }
    }
}

/// The course of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Passed,
    Cut,
    Delayed(Duration),
    Refused { retry_after: bool },
    Lost,
    Denied,
    Truncated,
    Late(Duration),
}

/// A proxy on a port of the loopback interface. Its threads end with the process.
pub struct StoreProxy {
    address: SocketAddr,
    plan: Arc<Mutex<Plan>>,
}

struct Plan {
    random: Random,
    faults: Faults,
    requests: u64,
    failed: u64,
    /// Requests that the server will get later.
    pending: u64,
    /// The server does not see this header, like one that ignores it.
    hidden: Option<&'static str>,
}

impl StoreProxy {
    /// Starts a proxy before the server at `upstream`. Nothing fails at first.
    ///
    /// # Panics
    /// If no port is free.
    #[must_use]
    pub fn start(upstream: SocketAddr, seed: u64) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let plan = Arc::new(Mutex::new(Plan {
            random: Random::new(seed),
            faults: Faults::default(),
            requests: 0,
            failed: 0,
            pending: 0,
            hidden: None,
        }));
        let shared = Arc::clone(&plan);
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let plan = Arc::clone(&shared);
                std::thread::spawn(move || {
                    let link = Link { upstream, plan };
                    // A connection that breaks is what this is for.
                    let _ = link.serve(connection);
                });
            }
        });
        StoreProxy { address, plan }
    }

    /// Returns its address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Makes requests fail from here on. Waits for requests that the server was to get later.
    pub fn set(&self, faults: Faults) {
        lock(&self.plan).faults = faults;
        while lock(&self.plan).pending > 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Hides a header, whose name is given in lower case, from the server.
    pub fn hide_header(&self, name: &'static str) {
        lock(&self.plan).hidden = Some(name);
    }

    /// Returns the number of requests.
    #[must_use]
    pub fn requests(&self) -> u64 {
        lock(&self.plan).requests
    }

    /// Returns the number of requests that went wrong.
    #[must_use]
    pub fn failed(&self) -> u64 {
        lock(&self.plan).failed
    }
}

impl Plan {
    fn draw(&mut self) -> Fate {
        let faults = self.faults;
        self.requests += 1;
        let lot = self.random.below(100);
        let wait = Duration::from_millis(self.random.below(100));
        let retry_after = self.random.below(2) == 0;
        let shares = [
            (faults.cut, Fate::Cut),
            (faults.delayed, Fate::Delayed(wait)),
            (faults.refused, Fate::Refused { retry_after }),
            (faults.lost, Fate::Lost),
            (faults.denied, Fate::Denied),
            (faults.truncated, Fate::Truncated),
            (faults.late, Fate::Late(wait * 5)),
        ];
        let mut below = 0;
        for (share, fate) in shares {
            below += share;
            if lot < below {
                self.failed += u64::from(!matches!(fate, Fate::Delayed(_)));
                self.pending += u64::from(matches!(fate, Fate::Late(_)));
                return fate;
            }
        }
        Fate::Passed
    }
}

fn lock(plan: &Mutex<Plan>) -> MutexGuard<'_, Plan> {
    plan.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Clone)]
struct Link {
    upstream: SocketAddr,
    plan: Arc<Mutex<Plan>>,
}

impl Link {
    /// Answers the requests of a connection, one after the other.
    fn serve(&self, connection: TcpStream) -> io::Result<()> {
        let mut output = connection.try_clone()?;
        let mut input = BufReader::new(connection);
        while let Some(request) = Message::read(&mut input)? {
            let fate = lock(&self.plan).draw();
            match fate {
                Fate::Cut => return output.shutdown(Shutdown::Both),
                Fate::Refused { retry_after: true } => output.write_all(SLOW_DOWN)?,
                Fate::Refused { retry_after: false } => output.write_all(BROKEN)?,
                Fate::Late(wait) => {
                    let link = self.clone();
                    std::thread::spawn(move || {
                        std::thread::sleep(wait);
                        let _ = link.forward(&request);
                        lock(&link.plan).pending -= 1;
                    });
                    output.write_all(SLOW_DOWN)?;
                }
                Fate::Lost => {
                    self.forward(&request)?;
                    return output.shutdown(Shutdown::Both);
                }
                Fate::Denied => {
                    self.forward(&request)?;
                    output.write_all(BROKEN)?;
                }
                Fate::Truncated => {
                    let answer = self.forward(&request)?;
                    output.write_all(&answer[..answer.len() - answer.len() / 3])?;
                    return output.shutdown(Shutdown::Both);
                }
                Fate::Delayed(wait) => {
                    std::thread::sleep(wait);
                    output.write_all(&self.forward(&request)?)?;
                }
                Fate::Passed => output.write_all(&self.forward(&request)?)?,
            }
        }
        Ok(())
    }

    /// Sends a request on a connection of its own, and returns the answer.
    fn forward(&self, request: &Message) -> io::Result<Vec<u8>> {
        let mut connection = TcpStream::connect(self.upstream)?;
        let hidden = lock(&self.plan).hidden;
        let is_shown = |line: &&str| {
            let name = line.split(':').next().unwrap_or_default();
            hidden.is_none_or(|hidden| !name.eq_ignore_ascii_case(hidden))
        };
        let mut head: String = request
            .head
            .split_inclusive('\n')
            .filter(is_shown)
            .collect();
        head.push_str("Connection: close\r\n\r\n");
        connection.write_all(head.as_bytes())?;
        connection.write_all(&request.body)?;
        let mut answer = Vec::new();
        connection.read_to_end(&mut answer)?;
        Ok(without_close(answer))
    }
}

const SLOW_DOWN: &[u8] = b"HTTP/1.1 503 Slow Down\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n";
const BROKEN: &[u8] = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n";

/// Removes `Connection: close` from the head of an answer: the client's connection stays.
fn without_close(answer: Vec<u8>) -> Vec<u8> {
    let end = answer.windows(4).position(|part| part == b"\r\n\r\n");
    let Some(end) = end else { return answer };
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let mut kept = String::new();
    for line in head.split("\r\n") {
        if !line.to_ascii_lowercase().starts_with("connection:") {
            kept.push_str(line);
            kept.push_str("\r\n");
        }
    }
    [kept.as_bytes(), &answer[end + 2..]].concat()
}

/// A request.
struct Message {
    /// The lines, without `Connection` and the empty one.
    head: String,
    body: Vec<u8>,
}

impl Message {
    /// Reads a request; `None` at the end of the connection.
    fn read(input: &mut BufReader<TcpStream>) -> io::Result<Option<Self>> {
        let mut head = String::new();
        let mut len = 0;
        loop {
            let mut line = String::new();
            if input.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            if line.trim_end().is_empty() {
                break;
            }
            let lower = line.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                len = value.trim().parse().map_err(io::Error::other)?;
            }
            if lower.starts_with("transfer-encoding:") {
                return Err(io::Error::other("chunked requests are not expected"));
            }
            if !lower.starts_with("connection:") {
                head.push_str(&line);
            }
        }
        let mut body = vec![0; len];
        input.read_exact(&mut body)?;
        Ok(Some(Message { head, body }))
    }
}
