//! An HTTP proxy that makes requests fail, with random choices from a seed.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::Random;

/// The probability of each fault, in percent. The sum must be at most 100.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProxyFaults {
    /// Cut the connection before the server receives the request.
    pub cut: u64,
    /// Delay the request by up to a tenth of a second.
    pub delayed: u64,
    /// Answer with 500, or with 503 and `Retry-After`. The server does not receive the request.
    pub refused: u64,
    /// Lose the answer, after the server has processed the request.
    pub lost: u64,
    /// Answer with 500, after the server has processed the request.
    pub denied: u64,
    /// Truncate the body of the answer.
    pub truncated: u64,
    /// Answer with 503, and send the request to the server some time later.
    pub late: u64,
}

impl ProxyFaults {
    /// Returns low probabilities for all faults.
    #[must_use]
    pub fn some() -> Self {
        ProxyFaults {
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

/// The fault, if any, that a request gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProxyFault {
    Passed,
    Cut,
    Delayed(Duration),
    Refused { retry_after: bool },
    Lost,
    Denied,
    Truncated,
    Late(Duration),
}

/// A proxy on a port of the loopback interface. Its threads run until the end of the process.
pub struct StoreProxy {
    address: SocketAddr,
    plan: Arc<Mutex<FaultPlan>>,
}

struct FaultPlan {
    random: Random,
    faults: ProxyFaults,
    requests: u64,
    failed: u64,
    /// The number of requests that the server will receive later.
    pending: u64,
    /// The header that is removed from requests, to simulate a server that ignores it.
    hidden: Option<&'static str>,
}

impl StoreProxy {
    /// Starts a proxy for the server at `upstream`. No request fails at first.
    ///
    /// # Panics
    /// Panics if no port is free.
    #[must_use]
    pub fn start(upstream: SocketAddr, seed: u64) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let plan = Arc::new(Mutex::new(FaultPlan {
            random: Random::new(seed),
            faults: ProxyFaults::default(),
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
                    let link = ProxyTarget { upstream, plan };
                    // An error of a connection is expected here.
                    let _ = link.serve(connection);
                });
            }
        });
        StoreProxy { address, plan }
    }

    /// Returns the address of the proxy.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the probabilities of faults. Waits until the server has received all late requests.
    pub fn set(&self, faults: ProxyFaults) {
        lock(&self.plan).faults = faults;
        while lock(&self.plan).pending > 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Removes a header from requests. `name` must be in lower case.
    pub fn hide_header(&self, name: &'static str) {
        lock(&self.plan).hidden = Some(name);
    }

    /// Returns the number of requests.
    #[must_use]
    pub fn requests(&self) -> u64 {
        lock(&self.plan).requests
    }

    /// Returns the number of requests that got a fault other than a delay.
    #[must_use]
    pub fn failed(&self) -> u64 {
        lock(&self.plan).failed
    }
}

impl FaultPlan {
    fn draw(&mut self) -> ProxyFault {
        let faults = self.faults;
        self.requests += 1;
        let lot = self.random.below(100);
        let wait = Duration::from_millis(self.random.below(100));
        let retry_after = self.random.below(2) == 0;
        let shares = [
            (faults.cut, ProxyFault::Cut),
            (faults.delayed, ProxyFault::Delayed(wait)),
            (faults.refused, ProxyFault::Refused { retry_after }),
            (faults.lost, ProxyFault::Lost),
            (faults.denied, ProxyFault::Denied),
            (faults.truncated, ProxyFault::Truncated),
            (faults.late, ProxyFault::Late(wait * 5)),
        ];
        let mut below = 0;
        for (share, fate) in shares {
            below += share;
            if lot < below {
                self.failed += u64::from(!matches!(fate, ProxyFault::Delayed(_)));
                self.pending += u64::from(matches!(fate, ProxyFault::Late(_)));
                return fate;
            }
        }
        ProxyFault::Passed
    }
}

fn lock(plan: &Mutex<FaultPlan>) -> MutexGuard<'_, FaultPlan> {
    plan.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Clone)]
struct ProxyTarget {
    upstream: SocketAddr,
    plan: Arc<Mutex<FaultPlan>>,
}

impl ProxyTarget {
    /// Answers the requests of a connection, one after another.
    fn serve(&self, connection: TcpStream) -> io::Result<()> {
        let mut output = connection.try_clone()?;
        let mut input = BufReader::new(connection);
        while let Some(request) = ProxiedRequest::read(&mut input)? {
            let fate = lock(&self.plan).draw();
            match fate {
                ProxyFault::Cut => return output.shutdown(Shutdown::Both),
                ProxyFault::Refused { retry_after: true } => output.write_all(SLOW_DOWN)?,
                ProxyFault::Refused { retry_after: false } => output.write_all(BROKEN)?,
                ProxyFault::Late(wait) => {
                    let link = self.clone();
                    std::thread::spawn(move || {
                        std::thread::sleep(wait);
                        let _ = link.forward(&request);
                        lock(&link.plan).pending -= 1;
                    });
                    output.write_all(SLOW_DOWN)?;
                }
                ProxyFault::Lost => {
                    self.forward(&request)?;
                    return output.shutdown(Shutdown::Both);
                }
                ProxyFault::Denied => {
                    self.forward(&request)?;
                    output.write_all(BROKEN)?;
                }
                ProxyFault::Truncated => {
                    let answer = self.forward(&request)?;
                    output.write_all(&answer[..answer.len() - answer.len() / 3])?;
                    return output.shutdown(Shutdown::Both);
                }
                ProxyFault::Delayed(wait) => {
                    std::thread::sleep(wait);
                    output.write_all(&self.forward(&request)?)?;
                }
                ProxyFault::Passed => output.write_all(&self.forward(&request)?)?,
            }
        }
        Ok(())
    }

    /// Sends a request to the server on a separate connection, and returns the answer.
    fn forward(&self, request: &ProxiedRequest) -> io::Result<Vec<u8>> {
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

/// Removes `Connection: close` from the header of an answer, because the connection to the client
/// stays open.
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
struct ProxiedRequest {
    /// The request line and the headers, without `Connection` and the empty line.
    head: String,
    body: Vec<u8>,
}

impl ProxiedRequest {
    /// Reads a request. Returns `None` at the end of the connection.
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
        Ok(Some(ProxiedRequest { head, body }))
    }
}
