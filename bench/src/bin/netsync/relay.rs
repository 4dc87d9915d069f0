//! A replacement for ssh. The relay starts the other side, forwards the bytes, and records their
//! number and the resource usage of the other side.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use bench::sampler::{Sampled, Sampler};
use wait4::Wait4 as _;

use crate::process::Used;

/// The first argument that selects the relay.
pub(crate) const NAME: &str = "relay-of-bytes";

/// The environment variable with a delay in microseconds for each direction.
pub(crate) const DELAY: &str = "RELAY_DELAY_MICROSECONDS";

/// The directory for counters of the other side, below that of this side.
pub(crate) const SERVER: &str = "server";

const BUFFER_LEN: usize = 64 << 10;

/// The largest number of buffers in transit.
const LINE_BUFFERS: usize = 1024;

/// The record of a relay.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RelayRecord {
    /// The resource usage of the other side.
    pub(crate) server: Used,
    /// The resource usage of the relay and the other side together.
    pub(crate) both_cpu_seconds: f64,
    /// The number of bytes in both directions.
    pub(crate) wire_bytes: u64,
}

/// Returns the command that replaces ssh and writes its record to `file`.
pub(crate) fn command(file: &Path) -> Result<String, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    Ok(format!("'{}' {NAME} '{}'", own.display(), file.display()))
}

/// Reads the record of a relay from `file`.
pub(crate) fn read(file: &Path) -> Result<RelayRecord, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("no relay ran: {error}"))?;
    let numbers: Vec<f64> = text
        .split(' ')
        .filter_map(|word| word.trim().parse().ok())
        .collect();
    let [
        cpu_seconds,
        size,
        resident,
        anonymous,
        both_cpu_seconds,
        wire,
    ] = numbers[..]
    else {
        return Err(format!("'{}' is not what a relay writes", file.display()));
    };
    let memory = Sampled {
        size: size as u64,
        resident: resident as u64,
        anonymous: anonymous as u64,
    };
    Ok(RelayRecord {
        server: Used {
            cpu_seconds,
            memory,
        },
        both_cpu_seconds,
        wire_bytes: wire as u64,
    })
}

/// Runs as a relay with the arguments of ssh: `FILE [OPTION…] HOST COMMAND`.
pub(crate) fn run(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let (Some(file), Some(command)) = (words.next(), words.last()) else {
        return ExitCode::from(129);
    };
    match carry(&PathBuf::from(file), &command) {
        Ok(code) => ExitCode::from(code),
        Err(message) => {
            eprintln!("relay: {message}");
            ExitCode::FAILURE
        }
    }
}

fn carry(file: &Path, command: &OsString) -> Result<u8, String> {
    let mut shell = Command::new("sh");
    // Use `exec`, so that the measured process is the server.
    let mut line = OsString::from("exec ");
    line.push(command);
    shell
        .arg("-c")
        .arg(&line)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    if let Some(counts) = std::env::var_os("COUNTER_DIRECTORY") {
        shell.env("COUNTER_DIRECTORY", Path::new(&counts).join(SERVER));
    }
    let mut child = shell.spawn().map_err(|error| error.to_string())?;
    let sampler = Sampler::start(child.id());
    let (input, output) = (child.stdin.take(), child.stdout.take());
    // The thread is not joined: this side may keep its end open after the other side has ended.
    let there = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let sent = there.clone();
    let delay = std::env::var(DELAY).ok();
    let delay = Duration::from_micros(delay.and_then(|text| text.parse().ok()).unwrap_or(0));
    std::thread::spawn(move || {
        let stdin = std::io::stdin();
        if let Some(mut input) = input {
            pump(&mut stdin.lock(), &mut input, delay, |bytes| {
                sent.fetch_add(bytes, std::sync::atomic::Ordering::Relaxed);
            });
        }
    });
    let mut back = 0;
    if let Some(mut output) = output {
        let stdout = std::os::fd::AsFd::as_fd(&std::io::stdout()).try_clone_to_owned();
        let mut stdout = std::fs::File::from(stdout.map_err(|error| error.to_string())?);
        pump(&mut output, &mut stdout, delay, |bytes| back += bytes);
    }
    let ended = child.wait4().map_err(|error| error.to_string())?;
    let memory = sampler.finish();
    let cpu = (ended.rusage.utime + ended.rusage.stime).as_secs_f64();
    let own = own_cpu_seconds();
    let wire = back + there.load(std::sync::atomic::Ordering::Relaxed);
    let text = format!(
        "{cpu} {} {} {} {} {wire}\n",
        memory.size,
        memory.resident,
        memory.anonymous,
        cpu + own,
    );
    std::fs::write(file, text).map_err(|error| error.to_string())?;
    Ok(ended.status.code().map_or(255, |code| code as u8))
}

/// Returns the user and system time of this process in seconds.
fn own_cpu_seconds() -> f64 {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}

/// Forwards all bytes, each after `delay`, without limiting the bytes in transit.
fn pump(
    from: &mut impl Read,
    to: &mut (impl Write + Send),
    delay: Duration,
    mut count: impl FnMut(u64),
) {
    let (line, end) = mpsc::sync_channel::<(Instant, Vec<u8>)>(LINE_BUFFERS);
    let line = (!delay.is_zero()).then_some(line);
    std::thread::scope(|scope| {
        let Some(line) = line else {
            drop(end);
            let mut buffer = vec![0; BUFFER_LEN];
            while let Ok(bytes @ 1..) = from.read(&mut buffer) {
                count(bytes as u64);
                if deliver(to, &buffer[..bytes]).is_err() {
                    return;
                }
            }
            return;
        };
        scope.spawn(move || {
            for (due, bytes) in end {
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                if deliver(to, &bytes).is_err() {
                    return;
                }
            }
        });
        let mut buffer = vec![0; BUFFER_LEN];
        while let Ok(bytes @ 1..) = from.read(&mut buffer) {
            count(bytes as u64);
            let late = Instant::now() + delay;
            if line.send((late, buffer[..bytes].to_vec())).is_err() {
                return;
            }
        }
    });
}

fn deliver(to: &mut impl Write, bytes: &[u8]) -> std::io::Result<()> {
    to.write_all(bytes)?;
    to.flush()
}
