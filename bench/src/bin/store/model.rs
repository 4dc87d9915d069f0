//! Simulates many servers that share one object store, with the measured costs of one server.
//!
//! Clients clone repeatedly. A balancer assigns each clone to the server with the fewest clones. A
//! clone waits for the probe of the store, and then alternately uses the processor and the link of
//! its server until it is done. The store serves all servers in parallel.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bench::load::Result;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Numbers of servers
    #[arg(long, value_delimiter = ',', default_value = "1,2,5,10,20")]
    servers: Vec<u64>,
    /// Clients that clone at once, for each server
    #[arg(long, default_value_t = 32)]
    clients: u64,
    /// Cores of a server
    #[arg(long, default_value_t = 2)]
    cores: u64,
    /// Milliseconds of processor time of a clone
    #[arg(long, default_value_t = 250.0)]
    processor: f64,
    /// Size of a clone in MiB
    #[arg(long, default_value_t = 303.0)]
    size: f64,
    /// MiB in a second that the link of a server carries
    #[arg(long, default_value_t = 1200.0)]
    link: f64,
    /// Milliseconds of a call of the store
    #[arg(long, default_value_t = 50.0)]
    call: f64,
    /// Serial calls of a clone
    #[arg(long, default_value_t = 1.0)]
    calls: f64,
    /// Seconds that are simulated
    #[arg(long, default_value_t = 300.0)]
    seconds: f64,
}

/// The number of times that a clone uses the processor and the link.
const TURNS: u64 = 50;

/// A moment in nanoseconds.
type Moment = u64;

struct ModelledServer {
    /// The times at which each core and the link become free.
    cores: Vec<Moment>,
    link: Moment,
    /// The number of clones that the server runs.
    load: u64,
}

/// The continuation of a clone at the time `at`.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    at: Moment,
    server: usize,
    begun: Moment,
    turns_left: u64,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    println!("| servers | clones in a second | for each server | P99 |");
    println!("|---|---|---|---|");
    for count in &options.servers {
        let mut times = simulate(options, *count);
        times.sort_unstable();
        let rate = times.len() as f64 / options.seconds;
        let slow = times.get(times.len() * 99 / 100).copied().unwrap_or(0);
        println!(
            "| {count} | {rate:.1} | {:.2} | {:.1} s |",
            rate / *count as f64,
            slow as f64 / 1e9
        );
    }
    Ok(())
}

/// Simulates `count` servers, and returns the durations of the completed clones.
fn simulate(options: &Options, count: u64) -> Vec<Moment> {
    let moment = |seconds: f64| (seconds * 1e9) as Moment;
    let wait = moment(options.call * options.calls / 1e3);
    let processor = moment(options.processor / 1e3) / TURNS;
    let link = moment(options.size / options.link) / TURNS;
    let mut servers: Vec<ModelledServer> = (0..count)
        .map(|_| ModelledServer {
            cores: vec![0; options.cores as usize],
            link: 0,
            load: 0,
        })
        .collect();
    let mut events = BinaryHeap::new();
    // Clients start one after another, so that their clones are not synchronised.
    for client in 0..count * options.clients {
        let begun = client * 7_000_003 % moment(1.0);
        events.push(Reverse(begin(&mut servers, begun, wait)));
    }
    let mut times = Vec::new();
    while let Some(Reverse(event)) = events.pop() {
        if event.at > moment(options.seconds) {
            break;
        }
        if event.turns_left == 0 {
            servers[event.server].load -= 1;
            times.push(event.at - event.begun);
            events.push(Reverse(begin(&mut servers, event.at, wait)));
            continue;
        }
        let server = &mut servers[event.server];
        let core = server.cores.iter_mut().min();
        let computed = core.map_or(event.at, |core| {
            *core = event.at.max(*core) + processor;
            *core
        });
        server.link = server.link.max(computed) + link;
        events.push(Reverse(Event {
            at: server.link,
            turns_left: event.turns_left - 1,
            ..event
        }));
    }
    times
}

/// Assigns a clone to the server with the fewest clones.
fn begin(servers: &mut [ModelledServer], begun: Moment, wait: Moment) -> Event {
    let least = servers
        .iter()
        .enumerate()
        .min_by_key(|(_, server)| server.load);
    let server = least.map_or(0, |(at, _)| at);
    servers[server].load += 1;
    Event {
        at: begun + wait,
        server,
        begun,
        turns_left: TURNS,
    }
}
