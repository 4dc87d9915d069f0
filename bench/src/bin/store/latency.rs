//! Measures clones, fetches and pushes with an object store of high latency.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bench::load::counts::{median, percentile};
use bench::load::group::GroupSampler;
use bench::load::push::PreparedPushes;
use bench::load::{Result, fetch};

use crate::bucket::BenchBucket;
use crate::site::{ServedClient, SiteOptions, SiteRole, StoreSite};

const MIB: f64 = 1024.0 * 1024.0;

/// The size of a ranged read. Parallel reads of this size measure the rate of the store itself.
const RANGE_BYTES: u64 = 8 << 20;
const READERS: u64 = 8;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// The repository to clone
    #[arg(long)]
    repository: PathBuf,
    /// Rates of the store's link in MiB/s at which it is cloned
    #[arg(long, value_delimiter = ',', default_value = "120,600")]
    rates: Vec<u64>,
    /// Clients that push at once
    #[arg(long, default_value_t = 64)]
    clients: u32,
    /// Pushes of each client
    #[arg(long, default_value_t = 30)]
    pushes: u32,
    /// Pushes in a second by all clients together, apart from the runs without a pause
    #[arg(long, default_value_t = 100)]
    pace: u32,
    /// Repetitions of clones
    #[arg(long, default_value_t = 3)]
    runs: u32,
}

pub(crate) fn run(start: &SiteOptions, options: &Options) -> Result<()> {
    let site = StoreSite::new(start)?;
    site.import(&options.repository, "large")?;
    for rate in &options.rates {
        clones(&site, start, options, *rate)?;
    }
    site.bucket.slow(Duration::ZERO, 0);
    fetches(&site, start)?;
    let small = small(&site)?;
    for (clients, pace, elsewhere) in [
        (1, None, 0),
        (options.clients, None, 0),
        (options.clients, None, 1),
        (options.clients, Some(options.pace), 0),
    ] {
        site.bucket.slow(Duration::ZERO, 0);
        let load = Pushing {
            name: format!("pushed-{clients}-{}-{elsewhere}", pace.unwrap_or(0)),
            clients,
            elsewhere,
            count: options.pushes,
            pace,
        };
        site.import(&small, &load.name)?;
        pushes(&site, start, &load, &small)?;
    }
    Ok(())
}

/// A load of clients that push in parallel.
struct Pushing {
    /// The name of the repository.
    name: String,
    clients: u32,
    /// The number of clients that push to a second server.
    elsewhere: u32,
    /// The number of pushes of each client.
    count: u32,
    /// The number of pushes of all clients together per second. `None`: each client pushes as soon
    /// as its previous push has ended.
    pace: Option<u32>,
}

impl Pushing {
    /// Returns the time from the start of the run at which a push of a client is due.
    fn due(&self, client: u32, push: u32) -> Option<Duration> {
        let pace = f64::from(self.pace?);
        let before = f64::from(push) * f64::from(self.clients) + f64::from(client);
        Some(Duration::from_secs_f64(before / pace))
    }

    /// Pushes as client `client`. Returns the duration of each push, counted from its due time.
    fn push(
        &self,
        client: u32,
        begun: Instant,
        changes: &PreparedPushes,
        served: &ServedClient,
    ) -> Result<Vec<Duration>> {
        let mut times = Vec::new();
        for push in 0..self.count {
            let now = Instant::now();
            let due = self.due(client, push).map_or(now, |after| begun + after);
            std::thread::sleep(due.saturating_duration_since(now));
            changes.push(&served.client, &self.name)?;
            times.push(due.elapsed());
        }
        Ok(times)
    }
}

/// Creates a repository with a branch.
fn small(site: &StoreSite) -> Result<PathBuf> {
    let path = site.path("small.git");
    crate::growth::history(&path, 100, 1)?;
    Ok(path)
}

/// Measures clones with an empty cache, and plain reads of the largest object by eight connections.
fn clones(site: &StoreSite, start: &SiteOptions, options: &Options, rate: u64) -> Result<()> {
    let (mut first, mut ours, mut plain, mut peak) = (Vec::new(), Vec::new(), Vec::new(), 0.0_f64);
    let mut calls = 0;
    for run in 0..options.runs {
        site.bucket.slow(start.delay, 0);
        let served = site.serve(&format!("cold-{rate}-{run}"), SiteRole::Both)?;
        site.bucket.slow(start.delay, rate << 20);
        let before = site.bucket.calls();
        let sampler = GroupSampler::start(&served.server.group);
        let clone = fetch::clone(&served.client, "large")?;
        peak = peak.max(sampler.finish());
        let taken = site.bucket.calls().since(before);
        calls = taken.all();
        first.push(clone.first.as_secs_f64() * 1e3);
        ours.push(taken.sent as f64 / clone.all.as_secs_f64() / MIB);
        plain.push(read_plainly(&site.bucket)?);
        if run == 0 {
            println!(
                "clone at {rate} MiB/s: {} bytes in {:.2} s, {} bytes of the store, cache {} bytes",
                clone.bytes,
                clone.all.as_secs_f64(),
                taken.sent,
                served.cache_bytes()
            );
        }
    }
    let trips = median(&first) / (start.delay.as_secs_f64() * 1e3);
    println!(
        "cold clone at {rate} MiB/s: first byte {:.0} ms ({trips:.1} round trips), {:.0} MiB/s of the store's {:.0} ({:.0} %), {calls} calls, {:.0} MiB anonymous",
        median(&first),
        median(&ours),
        median(&plain),
        100.0 * median(&ours) / median(&plain),
        peak / MIB
    );
    Ok(())
}

/// Reads the largest object with plain requests, and returns the MiB per second.
fn read_plainly(bucket: &BenchBucket) -> Result<f64> {
    let (name, size) = bucket.largest().ok_or("the store is empty")?;
    let next = AtomicU64::new(0);
    let failure = Mutex::new(None);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..READERS {
            scope.spawn(|| {
                if let Err(error) = read_ranges(bucket, &name, size, &next) {
                    *failure
                        .lock()
                        .unwrap_or_else(std::sync::PoisonError::into_inner) =
                        Some(error.to_string());
                }
            });
        }
    });
    match failure.into_inner() {
        Ok(None) => Ok(size as f64 / MIB / begun.elapsed().as_secs_f64()),
        failure => Err(format!("cannot read '{name}': {failure:?}")),
    }
}

fn read_ranges(
    bucket: &BenchBucket,
    name: &str,
    size: u64,
    next: &AtomicU64,
) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(bucket.address)?;
    let mut buffer = vec![0; 256 * 1024];
    loop {
        let start = next.fetch_add(RANGE_BYTES, Relaxed);
        if start >= size {
            return Ok(());
        }
        let end = size.min(start + RANGE_BYTES);
        let head = format!(
            "GET /bucket/{name} HTTP/1.1\r\nRange: bytes={start}-{}\r\n\r\n",
            end - 1
        );
        stream.write_all(head.as_bytes())?;
        // The head of the answer ends with an empty line, and the body begins there.
        let mut seen = Vec::new();
        let begin = loop {
            let count = stream.read(&mut buffer)?;
            seen.extend_from_slice(&buffer[..count]);
            if let Some(at) = seen.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break at + 4;
            }
            if count == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        };
        let mut left = (end - start).saturating_sub((seen.len() - begin) as u64);
        while left > 0 {
            let count = stream.read(&mut buffer)? as u64;
            if count == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            left = left.saturating_sub(count);
        }
    }
}

/// Measures fetches of nothing with a warm cache.
fn fetches(site: &StoreSite, start: &SiteOptions) -> Result<()> {
    let served = site.serve("warm", SiteRole::Both)?;
    fetch::nothing(&served.client, "large")?;
    site.bucket.slow(start.delay, 0);
    let before = site.bucket.calls();
    let begun = Instant::now();
    let count = 10;
    for _ in 0..count {
        fetch::nothing(&served.client, "large")?;
    }
    let taken = site.bucket.calls().since(before);
    println!(
        "fetch of nothing, warm: {:.1} calls, {:.0} ms",
        taken.all() as f64 / f64::from(count),
        begun.elapsed().as_secs_f64() * 1e3 / f64::from(count)
    );
    Ok(())
}

/// Measures pushes to different branches of one repository.
fn pushes(
    site: &StoreSite,
    start: &SiteOptions,
    load: &Pushing,
    small: &std::path::Path,
) -> Result<()> {
    let changes = PreparedPushes::make(small, load.clients * load.count + 1)?;
    let served = site.serve(&load.name, SiteRole::Both)?;
    let second = match load.elsewhere {
        0 => None,
        _ => Some(site.serve(&format!("{}-second", load.name), SiteRole::Serve)?),
    };
    changes.push(&served.client, &load.name)?;
    site.bucket.slow(start.delay, 0);
    let before = site.bucket.calls();
    let processor = served.server.group.seconds();
    let sampler = GroupSampler::start(&served.server.group);
    let begun = Instant::now();
    let results = std::thread::scope(|scope| {
        let changes = &changes;
        let threads: Vec<_> = (0..load.clients)
            .map(|client| {
                let of_first = client >= load.elsewhere;
                let served = second.as_ref().filter(|_| !of_first).unwrap_or(&served);
                scope.spawn(move || load.push(client, begun, changes, served))
            })
            .collect();
        let results = threads.into_iter().map(|thread| thread.join());
        results
            .map(|result| result.unwrap_or_else(|_| Err("a push has panicked".to_owned())))
            .collect::<Result<Vec<_>>>()
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    let (elsewhere, here) = results.split_at(load.elsewhere as usize);
    if load.elsewhere > 0 {
        let times = elsewhere.concat();
        println!(
            "pushes of {} of {} clients to a second server: P50 {:.0} ms, P99 {:.0} ms; the others:",
            load.elsewhere,
            load.clients,
            percentile(&times, 0.5),
            percentile(&times, 0.99)
        );
    }
    let times = here.concat();
    let taken = site.bucket.calls().since(before);
    let each = |number: u64| number as f64 / times.len() as f64;
    println!(
        "pushes of {} clients{}: {:.1} in a second, P50 {:.0} ms, P99 {:.0} ms, {:.1} calls ({:.1} GET, {:.1} PUT) and {:.0} bytes written each, {:.1} ms of processor time, {:.0} MiB anonymous",
        load.clients,
        match load.pace {
            None => String::new(),
            Some(pace) => format!(", {pace} due in a second"),
        },
        times.len() as f64 / seconds,
        percentile(&times, 0.5),
        percentile(&times, 0.99),
        each(taken.all()),
        each(taken.gets + taken.missing),
        each(taken.puts),
        each(taken.received),
        (served.server.group.seconds() - processor) * 1e3 / times.len() as f64,
        sampler.finish() / MIB
    );
    Ok(())
}
