//! The five operations of report 004, each with its preparation.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::MeasuredProgram;
use crate::process::{CounterDirectory, ProcessCounters, Used, git, used};
use crate::relay;
use crate::workload::Workload;

/// All runs of one program for one operation on one workload.
pub(crate) struct OperationRow {
    pub(crate) workload: &'static str,
    pub(crate) operation: &'static str,
    pub(crate) peer: String,
    pub(crate) is_pronto: bool,
    pub(crate) raw_bytes: u64,
    pub(crate) wire_bytes: u64,
    pub(crate) runs: Vec<Used>,
    pub(crate) counted: ProcessCounters,
}

impl OperationRow {
    /// Returns the minimum, median and maximum of a figure.
    pub(crate) fn spread(&self, figure: impl Fn(&Used) -> f64) -> (f64, f64, f64) {
        let mut values: Vec<f64> = self.runs.iter().map(figure).collect();
        values.sort_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
        (
            at(0),
            at(values.len() / 2),
            at(values.len().saturating_sub(1)),
        )
    }
}

/// The figures of a run: of this side, and of the server if there is a server.
struct Outcome {
    client: Used,
    server: Option<relay::RelayRecord>,
}

/// A run: prepares its data, executes the operation, and checks the result.
type RunOperation =
    fn(&Workload, &MeasuredProgram, &Path, Option<&CounterDirectory>) -> Result<Outcome, String>;

/// Measures all operations with all programs: one round that counts copies, then `runs` timed
/// rounds.
pub(crate) fn all(
    workload: &Workload,
    peers: &[MeasuredProgram],
    runs: usize,
) -> Result<Vec<OperationRow>, String> {
    let mut rows = Vec::new();
    stage(workload)?;
    let operations: [(&str, RunOperation); 4] = [
        ("add files", add),
        ("commit", commit),
        ("checkout", checkout),
        ("pull", pull),
    ];
    for (operation, run) in operations {
        rows.extend(one(workload, peers, runs, operation, run)?);
    }
    Ok(rows)
}

fn one(
    workload: &Workload,
    peers: &[MeasuredProgram],
    runs: usize,
    operation: &'static str,
    run: RunOperation,
) -> Result<Vec<OperationRow>, String> {
    let row = |peer: &MeasuredProgram, operation| OperationRow {
        workload: workload.name,
        operation,
        peer: peer.name.clone(),
        is_pronto: peer.is_pronto,
        raw_bytes: workload.raw_bytes,
        wire_bytes: 0,
        runs: Vec::new(),
        counted: ProcessCounters::default(),
    };
    let mut clients: Vec<OperationRow> = peers.iter().map(|peer| row(peer, operation)).collect();
    let mut servers: Vec<OperationRow> = peers.iter().map(|peer| row(peer, "serve")).collect();
    let fresh = workload.place.join("run");
    for round in 0..=runs {
        for ((peer, client), server) in peers.iter().zip(&mut clients).zip(&mut servers) {
            let _ = std::fs::remove_dir_all(&fresh);
            let counts = match round {
                0 => Some(CounterDirectory::new(workload.place.join("counts"))?),
                _ => None,
            };
            let outcome = run(workload, peer, &fresh, counts.as_ref())?;
            if let Some(seen) = outcome.server {
                client.wire_bytes = seen.wire_bytes;
                server.wire_bytes = seen.wire_bytes;
            }
            if let Some(counts) = counts {
                (client.counted, server.counted) = counts.read()?;
                continue;
            }
            client.runs.push(outcome.client);
            server.runs.extend(outcome.server.map(|seen| seen.server));
        }
    }
    let _ = std::fs::remove_dir_all(&fresh);
    if operation == "pull" {
        servers.extend(clients);
        return Ok(servers);
    }
    Ok(clients)
}

fn command(
    peer: &MeasuredProgram,
    directory: &Path,
    counts: Option<&CounterDirectory>,
) -> Result<Command, String> {
    let mut command = Command::new(&peer.program);
    command.arg("-C").arg(directory);
    if let Some(counts) = counts {
        counts.of(&mut command)?;
    }
    Ok(command)
}

fn alone(client: Used) -> Outcome {
    Outcome {
        client,
        server: None,
    }
}

fn add(
    workload: &Workload,
    peer: &MeasuredProgram,
    fresh: &Path,
    counts: Option<&CounterDirectory>,
) -> Result<Outcome, String> {
    copy(&workload.tree, fresh, "-al")?;
    git(fresh, &["init", "-q", "-b", "main"])?;
    let mut command = command(peer, fresh, counts)?;
    command.args(["add", "-f", "."]);
    let outcome = alone(used(command)?);
    let id = git(fresh, &["write-tree"])?;
    expect(workload, &id)?;
    Ok(outcome)
}

/// Creates a worktree in which everything is staged, and a copy of its repository.
fn stage(workload: &Workload) -> Result<(), String> {
    let staged = workload.place.join("staged");
    copy(&workload.tree, &staged, "-a")?;
    git(&staged, &["init", "-q", "-b", "main"])?;
    // Wait until the second in which the files were written has passed.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    git(&staged, &["add", "-f", "."])?;
    std::fs::rename(staged.join(".git"), workload.place.join("staged.git"))
        .map_err(|error| error.to_string())
}

fn commit(
    workload: &Workload,
    peer: &MeasuredProgram,
    _: &Path,
    counts: Option<&CounterDirectory>,
) -> Result<Outcome, String> {
    let staged = workload.place.join("staged");
    let _ = std::fs::remove_dir_all(staged.join(".git"));
    copy(
        &workload.place.join("staged.git"),
        &staged.join(".git"),
        "-a",
    )?;
    let mut command = command(peer, &staged, counts)?;
    command.args(["commit", "-q", "-m", "all of it"]);
    let outcome = alone(used(command)?);
    let id = git(&staged, &["rev-parse", "main^{tree}"])?;
    expect(workload, &id)?;
    Ok(outcome)
}

fn checkout(
    workload: &Workload,
    peer: &MeasuredProgram,
    fresh: &Path,
    counts: Option<&CounterDirectory>,
) -> Result<Outcome, String> {
    let (from, to) = (text(&workload.origin), text(fresh));
    git(
        &workload.place,
        &["clone", "-q", "-n", "-s", from.as_str(), to.as_str()],
    )?;
    let mut command = command(peer, fresh, counts)?;
    command.args(["checkout", "-q", "main"]);
    let outcome = alone(used(command)?);
    let status = git(fresh, &["status", "--porcelain"])?;
    match status.is_empty() {
        true => Ok(outcome),
        false => Err(format!("{} left {status}", peer.name)),
    }
}

fn pull(
    workload: &Workload,
    peer: &MeasuredProgram,
    fresh: &Path,
    counts: Option<&CounterDirectory>,
) -> Result<Outcome, String> {
    let to = text(fresh);
    git(&workload.place, &["init", "-q", "-b", "main", to.as_str()])?;
    let seen: PathBuf = workload.place.join("seen");
    let _ = std::fs::remove_file(&seen);
    let url = format!("ssh://server{}", workload.origin.display());
    let program = text(&peer.program);
    let mut command = command(peer, fresh, counts)?;
    match peer.is_pronto {
        true => command.args(["sync", "--pull", "--name", "peer"]).args([
            "--as",
            unheard_of().as_str(),
            "--remote-program",
            program.as_str(),
            url.as_str(),
        ]),
        false => command.args(["fetch", "-q", "--upload-pack"]).args([
            format!("{program} upload-pack").as_str(),
            url.as_str(),
            "+refs/heads/*:refs/remotes/peer/*",
        ]),
    };
    command
        .env("GIT_SSH_COMMAND", relay::command(&seen)?)
        .env("GIT_SSH_VARIANT", "ssh");
    let mut client = used(command)?;
    let seen = relay::read(&seen)?;
    client.cpu_seconds = (client.cpu_seconds - seen.both_cpu_seconds).max(0.0);
    let id = git(fresh, &["rev-parse", "refs/remotes/peer/main^{tree}"])?;
    expect(workload, &id)?;
    Ok(Outcome {
        client,
        server: Some(seen),
    })
}

/// Returns an unused peer name. Each run uses a new repository.
fn unheard_of() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    format!("run-{}", now.unwrap_or_default().as_nanos())
}

/// Checks that `id` is the tree of the workload.
fn expect(workload: &Workload, id: &str) -> Result<(), String> {
    match git(&workload.origin, &["rev-parse", "main^{tree}"])? == id {
        true => Ok(()),
        false => Err(format!("another tree came of {}", workload.name)),
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn copy(from: &Path, to: &Path, how: &str) -> Result<(), String> {
    let status = Command::new("cp").arg(how).args([from, to]).status();
    match status.map_err(|error| error.to_string())?.success() {
        true => Ok(()),
        false => Err(format!("cannot copy '{}'", from.display())),
    }
}
