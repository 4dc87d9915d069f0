//! Timeouts of reads from the network.

use std::io::{self, Read};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Timeouts for the remote side.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Timeouts {
    /// The timeout for making a connection: all addresses of the host, the response of a proxy, and the
    /// TLS handshake, but not the host lookup.
    pub connect: Duration,
    /// The timeout for each of several addresses.
    pub connect_address: Duration,
    /// The longest time without a received byte. A server sends keepalive packets while it creates a
    /// pack, but not while it negotiates.
    pub idle: Duration,
    /// The timeout for the header of an HTTP response, regardless of the number of received bytes.
    pub head: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            // The default of curl, which Git uses.
            connect: Duration::from_secs(300),
            // This is shorter than the timeout of the system, so that a second address is tried.
            connect_address: Duration::from_secs(60),
            idle: Duration::from_secs(600),
            head: Duration::from_secs(1800),
        }
    }
}

/// The speed below which a transfer is aborted (`http.lowSpeedLimit`, `http.lowSpeedTime`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LowSpeed {
    /// The speed in bytes per second (`http.lowSpeedLimit`).
    pub limit: u64,
    /// The time for which a transfer may be slower (`http.lowSpeedTime`).
    pub time: Duration,
}

/// The shortest time over which a speed is measured.
const SPAN: Duration = Duration::from_secs(1);

/// Reads from a connection with timeouts. Only the time spent waiting counts.
#[derive(Debug)]
pub(super) struct ReadPace {
    idle: Duration,
    low: Option<LowSpeed>,
    waited: Duration,
    count: u64,
    /// The timeout that is currently set on the socket.
    set: Option<Duration>,
}

impl ReadPace {
    pub(super) fn new(idle: Duration, low: Option<LowSpeed>) -> Self {
        ReadPace {
            idle,
            low,
            waited: Duration::ZERO,
            count: 0,
            set: None,
        }
    }

    /// Reads available data. Waits at most for the timeouts, and until `left` has elapsed.
    pub(super) fn read(
        &mut self,
        mut stream: &TcpStream,
        buffer: &mut [u8],
        left: Option<Duration>,
    ) -> io::Result<usize> {
        let mut idle = self.idle;
        let mut left = left;
        loop {
            let slow = self.low.map(|low| low.time.saturating_sub(self.waited));
            let wait = [Some(idle), left, slow].into_iter().flatten().min();
            self.set_timeout(stream, wait.unwrap_or(idle))?;
            let start = Instant::now();
            let result = stream.read(buffer);
            let waited = start.elapsed();
            match result {
                Ok(count) => {
                    self.account(count, waited)?;
                    return Ok(count);
                }
                Err(error) if is_timeout(&error) || error.kind() == io::ErrorKind::Interrupted => {
                    self.account(0, waited)?;
                }
                Err(error) => return Err(error),
            }
            idle = idle.saturating_sub(waited);
            left = left.map(|left| left.saturating_sub(waited));
            if idle.is_zero() {
                let seconds = self.idle.as_secs();
                return Err(timed_out(format!(
                    "timeout: the remote end sent nothing for {seconds} seconds"
                )));
            }
            if left.is_some_and(|left| left.is_zero()) {
                return Err(timed_out("connection timed out".into()));
            }
        }
    }

    fn set_timeout(&mut self, stream: &TcpStream, wait: Duration) -> io::Result<()> {
        let wait = wait.max(Duration::from_millis(1));
        if self.set != Some(wait) {
            stream.set_read_timeout(Some(wait))?;
            self.set = Some(wait);
        }
        Ok(())
    }

    /// Records that `count` bytes were received after waiting for `waited`.
    fn account(&mut self, count: usize, waited: Duration) -> io::Result<()> {
        let Some(low) = self.low else {
            return Ok(());
        };
        self.waited += waited;
        self.count += count as u64;
        if self.waited < SPAN.min(low.time) {
            return Ok(());
        }
        let expected = u128::from(low.limit) * self.waited.as_millis() / 1000;
        if u128::from(self.count) >= expected {
            (self.waited, self.count) = (Duration::ZERO, 0);
            return Ok(());
        }
        if self.waited < low.time {
            return Ok(());
        }
        Err(timed_out(format!(
            "Operation too slow. Less than {} bytes/sec transferred the last {} seconds",
            low.limit,
            low.time.as_secs()
        )))
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

fn timed_out(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, message)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;

    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let ours = TcpStream::connect(address).expect("it listens");
        (ours, listener.accept().expect("it was called").0)
    }

    #[test]
    fn silence_ends() {
        let (ours, mut theirs) = pair();
        let mut pace = ReadPace::new(Duration::from_millis(50), None);
        let mut buffer = [0; 4];
        theirs.write_all(b"a").expect("it is open");
        assert_eq!(pace.read(&ours, &mut buffer, None).expect("a byte"), 1);
        let error = pace.read(&ours, &mut buffer, None).expect_err("silence");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let mut pace = ReadPace::new(Duration::from_secs(600), None);
        let left = Some(Duration::from_millis(50));
        let error = pace.read(&ours, &mut buffer, left).expect_err("silence");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn slow_transfers_end_and_fast_ones_do_not() {
        let low = LowSpeed {
            limit: 1000,
            time: Duration::from_secs(10),
        };
        let mut pace = ReadPace::new(Duration::from_secs(600), Some(low));
        let second = Duration::from_secs(1);
        for _ in 0..100 {
            pace.account(1000, second).expect("fast enough");
        }
        for _ in 0..9 {
            pace.account(999, second).expect("not for long");
        }
        pace.account(999, second).expect_err("too slow");
    }
}
