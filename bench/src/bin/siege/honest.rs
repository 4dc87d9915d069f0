//! Honest clients: users with a token and an address of their own.

use std::net::Ipv4Addr;
use std::thread;
use std::time::{Duration, Instant};

use bench::load::Result;
use bench::load::client::LoadClient;
use bench::load::fetch;

use crate::site::{SiegeServer, SiegeSite};

/// The pause between two requests of a client.
const PAUSE: Duration = Duration::from_millis(30);

const REPOSITORY: &str = "small";

/// The durations of requests.
#[derive(Debug, Default)]
pub(crate) struct RequestTimes {
    pub(crate) all: Vec<Duration>,
    pub(crate) failed: usize,
    /// The first failure; `None` if all requests succeeded.
    pub(crate) error: Option<String>,
}

/// Runs `clients` clients for the given time.
pub(crate) fn run(
    site: &SiegeSite,
    server: &SiegeServer,
    clients: u8,
    time: Duration,
) -> RequestTimes {
    let mut all = RequestTimes::default();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..clients)
            .map(|number| scope.spawn(move || work(site, server, number, time)))
            .collect();
        for one in threads {
            let Ok(times) = one.join() else {
                all.failed += 1;
                continue;
            };
            all.all.extend(times.all);
            all.failed += times.failed;
            all.error = all.error.take().or(times.error);
        }
    });
    all
}

fn work(site: &SiegeSite, server: &SiegeServer, number: u8, time: Duration) -> RequestTimes {
    let mut times = RequestTimes::default();
    let login = format!("alice:{}", site.alice);
    let client = LoadClient::new(&format!("http://{}/", server.http), Some(&login));
    let Ok(client) = client.map(|client| client.from(Ipv4Addr::new(127, 0, 0, 2 + number))) else {
        return times;
    };
    let end = Instant::now() + time;
    for step in 0.. {
        let begun = Instant::now();
        if begun > end {
            break;
        }
        match one(site, &client, step) {
            Ok(()) => times.all.push(begun.elapsed()),
            Err(error) => {
                times.failed += 1;
                times.error.get_or_insert(error);
            }
        }
        thread::sleep(PAUSE);
    }
    times
}

/// Makes one request: two of six are clones, three list refs, and one is a push.
fn one(site: &SiegeSite, client: &LoadClient, step: u32) -> Result<()> {
    match step % 6 {
        1 | 4 => fetch::clone(client, REPOSITORY).map(|_| ()),
        5 => match site.changes.push(client, REPOSITORY) {
            Err(error) if error.contains("no commits left") => {
                fetch::nothing(client, REPOSITORY).map(|_| ())
            }
            pushed => pushed,
        },
        _ => fetch::nothing(client, REPOSITORY).map(|_| ()),
    }
}
