//! The measurements of one server.

use std::fs::OpenOptions;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::Measure;
use bench::load::Result;
use bench::load::client::LoadClient;
use bench::load::counts::{median, percentile};
use bench::load::fetch;
use bench::load::group::GroupSampler;
use bench::load::push::PreparedPushes;
use bench::load::server::BenchServer;

/// The names of the repositories: a large one, one with many refs and packs, and a small one.
const LARGE: &str = "large.git";
const MANY: &str = "many.git";
const SMALL: &str = "small.git";

/// The number of consecutive requests whose processor time is measured together.
const REPEATED: u32 = 5;

const MIB: f64 = 1024.0 * 1024.0;

/// A running measurement.
struct ScenarioRun<'a> {
    measure: &'a Measure,
    client: LoadClient,
    server: BenchServer,
    /// The pushes to `many.git` and to `small.git`.
    changes: [PreparedPushes; 2],
}

type ServeScenario = fn(&ScenarioRun<'_>) -> Result<Map<String, Value>>;

/// All scenarios, in the order in which they run.
const SCENARIOS: [(&str, ServeScenario); 7] = [
    ("clone", one_clone),
    ("clones at once", many_clones),
    ("fetch of nothing", fetches),
    ("push of one commit", pushes),
    ("idle connections", idle),
    ("idle connections after a request", idle_after_request),
    ("mixed load", mixed),
];

/// Measures a server and appends the results.
pub(crate) fn run(measure: &Measure) -> Result<()> {
    for wanted in &measure.scenario {
        if !SCENARIOS.iter().any(|(name, _)| name == wanted) {
            let names = SCENARIOS.map(|(name, _)| name).join(", ");
            return Err(format!(
                "there is no scenario '{wanted}', but these: {names}"
            ));
        }
    }
    let client = LoadClient::new(&measure.url, measure.login.as_deref())?;
    let many = PreparedPushes::make(&measure.templates.join(MANY), measure.runs * REPEATED + 1)?;
    let small = PreparedPushes::make(&measure.templates.join(SMALL), measure.operations / 10 + 1)?
        .leave_at_most(measure.branches);
    let server = BenchServer::start(&measure.server, client.address)?;
    let run = ScenarioRun {
        measure,
        client,
        server,
        changes: [many, small],
    };
    for (name, scenario) in SCENARIOS {
        if !measure.scenario.is_empty() && !measure.scenario.iter().any(|wanted| wanted == name) {
            continue;
        }
        let mut result = scenario(&run).unwrap_or_else(|error| {
            let mut result = Map::new();
            result.insert("failure".to_owned(), error.into());
            result
        });
        result.insert("server".to_owned(), measure.name.clone().into());
        result.insert("scenario".to_owned(), name.into());
        let line = Value::from(result).to_string();
        println!("{line}");
        append(measure, &line)?;
    }
    Ok(())
}

fn append(measure: &Measure, line: &str) -> Result<()> {
    let path = &measure.results;
    let failed = |error| format!("cannot write '{}': {error}", path.display());
    let file = OpenOptions::new().append(true).create(true).open(path);
    writeln!(file.map_err(failed)?, "{line}").map_err(failed)
}

/// The resources that the server used in a measurement.
struct ServerCost {
    processor: f64,
    peak: f64,
    wall: f64,
}

impl ScenarioRun<'_> {
    /// Runs `act`, and measures the server until it is idle.
    fn measured<T>(&self, act: impl FnOnce() -> Result<T>) -> Result<(T, ServerCost)> {
        self.server.settle();
        let sampler = GroupSampler::start(&self.server.group);
        let before = self.server.group.seconds();
        let begun = Instant::now();
        let result = act();
        let wall = begun.elapsed().as_secs_f64();
        self.server.settle();
        let processor = self.server.group.seconds() - before;
        let peak = sampler.finish() / MIB;
        let taken = ServerCost {
            processor,
            peak,
            wall,
        };
        result.map(|result| (result, taken))
    }

    /// Runs `act` several times in each of several rounds. Returns the processor time and the
    /// elapsed time of one run.
    fn repeated(&self, act: &dyn Fn() -> Result<()>) -> Result<Map<String, Value>> {
        // The first run may read files that are not in the page cache.
        act()?;
        let (mut processor, mut wall, mut peak) = (Vec::new(), Vec::new(), 0.0_f64);
        for _ in 0..self.measure.runs {
            let (_, taken) = self.measured(|| (0..REPEATED).try_for_each(|_| act()))?;
            processor.push(taken.processor / f64::from(REPEATED) * 1e3);
            wall.push(taken.wall / f64::from(REPEATED) * 1e3);
            peak = peak.max(taken.peak);
        }
        Ok(fields(json!({
            "processor_ms": median(&processor),
            "wall_ms": median(&wall),
            "peak_mib": peak,
        })))
    }
}

fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn one_clone(run: &ScenarioRun<'_>) -> Result<Map<String, Value>> {
    fetch::clone(&run.client, LARGE)?;
    let (mut processor, mut first, mut wall) = (Vec::new(), Vec::new(), Vec::new());
    let (mut bytes, mut peak) = (0, 0.0_f64);
    for _ in 0..run.measure.runs {
        let (clone, taken) = run.measured(|| fetch::clone(&run.client, LARGE))?;
        processor.push(taken.processor * 1e3);
        first.push(clone.first.as_secs_f64() * 1e3);
        wall.push(clone.all.as_secs_f64() * 1e3);
        peak = peak.max(taken.peak);
        bytes = clone.bytes;
    }
    Ok(fields(json!({
        "processor_ms": median(&processor),
        "first_byte_ms": median(&first),
        "wall_ms": median(&wall),
        "peak_mib": peak,
        "pack_mib": bytes as f64 / MIB,
    })))
}

fn many_clones(run: &ScenarioRun<'_>) -> Result<Map<String, Value>> {
    let count = run.measure.clones;
    let (results, taken) = run.measured(|| {
        Ok(std::thread::scope(|scope| {
            let clone = || fetch::clone(&run.client, LARGE);
            let threads: Vec<_> = (0..count).map(|_| scope.spawn(clone)).collect();
            let results = threads.into_iter().map(|thread| thread.join());
            results
                .map(|result| result.unwrap_or_else(|_| Err("a clone has panicked".to_owned())))
                .collect::<Vec<_>>()
        }))
    })?;
    let done: Vec<_> = results.iter().flatten().collect();
    let failure = results.iter().find_map(|result| result.as_ref().err());
    let first: Vec<Duration> = done.iter().map(|clone| clone.first).collect();
    let bytes: u64 = done.iter().map(|clone| clone.bytes).sum();
    Ok(fields(json!({
        "count": count,
        "failures": count - u32::try_from(done.len()).unwrap_or(0),
        "first_failure": failure,
        "processor_ms": taken.processor * 1e3,
        "wall_ms": taken.wall * 1e3,
        "mib_per_second": bytes as f64 / MIB / taken.wall,
        "first_byte_p50_ms": percentile(&first, 0.5),
        "first_byte_p99_ms": percentile(&first, 0.99),
        "peak_mib": taken.peak,
    })))
}

fn fetches(run: &ScenarioRun<'_>) -> Result<Map<String, Value>> {
    let count = fetch::nothing(&run.client, MANY)?;
    let mut result = run.repeated(&|| fetch::nothing(&run.client, MANY).map(|_| ()))?;
    result.insert("refs".to_owned(), count.into());
    Ok(result)
}

fn pushes(run: &ScenarioRun<'_>) -> Result<Map<String, Value>> {
    run.repeated(&|| run.changes[0].push(&run.client, MANY))
}

fn idle(run: &ScenarioRun<'_>) -> Result<Map<String, Value>> {
    hold(run, &|client| client.connect())
}

/// Holds connections that have requested the refs of a small repository.
fn idle_after_request(run: &ScenarioRun<'_>) -> Result<Map<String, Value>> {
    if run.measure.url.starts_with("git://") {
        return Err("git:// has one request for each connection".to_owned());
    }
    hold(run, &|client| Ok(client.fetch(SMALL)?.into_stream()))
}

/// Opens connections, keeps them open, and measures their memory in the server.
fn hold(
    run: &ScenarioRun<'_>,
    open: &dyn Fn(&LoadClient) -> Result<TcpStream>,
) -> Result<Map<String, Value>> {
    run.server.settle();
    let before = run.server.group.anonymous();
    let processes = run.server.group.processes().len();
    let client = run.client.impatient();
    let mut held = Vec::new();
    let mut failure = None;
    for _ in 0..run.measure.idle {
        match open(&client) {
            Ok(stream) => held.push(stream),
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
    }
    run.server.settle();
    let after = run.server.group.anonymous();
    let more = run.server.group.processes().len().saturating_sub(processes);
    let open = held.iter().filter(|stream| is_silent(stream)).count();
    let kib = (after - before) / 1024.0;
    drop(held);
    run.server.settle();
    Ok(fields(json!({
        "count": run.measure.idle,
        "open": open,
        "first_failure": failure,
        "memory_mib": kib / 1024.0,
        "kib_per_connection": (open > 0).then(|| kib / open as f64),
        "processes": more,
    })))
}

/// Returns whether a connection is open and has nothing to read: neither an error nor its end.
fn is_silent(mut stream: &TcpStream) -> bool {
    let silent = stream.set_nonblocking(true);
    let read = silent.and_then(|()| stream.read(&mut [0; 16]));
    read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}

/// Runs a mix of fetches of nothing (7 of 10), clones (2) and pushes (1) of a small repository.
fn mixed(run: &ScenarioRun<'_>) -> Result<Map<String, Value>> {
    let next = AtomicU32::new(0);
    let work = || {
        let mut times = Vec::new();
        loop {
            let number = next.fetch_add(1, Relaxed);
            if number >= run.measure.operations {
                return times;
            }
            let begun = Instant::now();
            let done = match number % 10 {
                0 => run.changes[1].push(&run.client, SMALL),
                1 | 2 => fetch::clone(&run.client, SMALL).map(|_| ()),
                _ => fetch::nothing(&run.client, SMALL).map(|_| ()),
            };
            times.push((begun.elapsed(), done));
        }
    };
    let (results, taken) = run.measured(|| {
        Ok(std::thread::scope(|scope| {
            let threads: Vec<_> = (0..run.measure.clients)
                .map(|_| scope.spawn(work))
                .collect();
            let results = threads.into_iter().filter_map(|thread| thread.join().ok());
            results.flatten().collect::<Vec<_>>()
        }))
    })?;
    let times: Vec<Duration> = results.iter().map(|(time, _)| *time).collect();
    let failures = results.iter().filter(|(_, done)| done.is_err()).count();
    let failure = results.iter().find_map(|(_, done)| done.as_ref().err());
    Ok(fields(json!({
        "count": run.measure.operations,
        "failures": failures,
        "first_failure": failure,
        "processor_ms": taken.processor * 1e3,
        "operations_per_second": f64::from(run.measure.operations) / taken.wall,
        "p50_ms": percentile(&times, 0.5),
        "p99_ms": percentile(&times, 0.99),
        "peak_mib": taken.peak,
    })))
}
