//! Measures the cost of a link with high latency: the number of round trips until each repository
//! has the objects and refs of the other. pronto uses one netsync session, and git uses a fetch and
//! a push.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::process::{git, used};
use crate::{Args, MeasuredProgram, relay};

/// The number of commits in the shared history.
const COMMITS: usize = 2000;
/// The number of branches that do not change.
const BRANCHES: usize = 100;

/// A change of one or both sides since the last sync.
struct Case {
    name: &'static str,
    /// Whether the remote side has a new commit.
    there: bool,
    here: bool,
    /// The target: the largest number of round trips.
    asked: f64,
}

const CASES: [Case; 3] = [
    Case {
        name: "nothing new",
        there: false,
        here: false,
        asked: 3.0,
    },
    Case {
        name: "one commit more there",
        there: true,
        here: false,
        asked: 4.0,
    },
    Case {
        name: "one commit more on each side",
        there: true,
        here: true,
        asked: 6.0,
    },
];

/// Measures all cases and writes `link.md`.
pub(crate) fn run(
    arguments: &Args,
    data: &Path,
    peers: &[MeasuredProgram],
    round_trip: Duration,
) -> Result<(), String> {
    let place = data.join("link");
    let _ = std::fs::remove_dir_all(&place);
    std::fs::create_dir_all(&place).map_err(|error| error.to_string())?;
    let mut text = String::new();
    for (name, value) in bench::machine::properties(data) {
        let _ = writeln!(text, "- {name}: {value}");
    }
    let _ = writeln!(
        text,
        "- both sides have {COMMITS} commits and {} branches, and have met before; both directions: \
         `sync`, or `fetch` and then `push`\n\
         - the link takes {} ms in each direction; a relay in the place of ssh, whose own round trips are not among \
         these\n- medians of {} runs\n",
        BRANCHES + 1,
        round_trip.as_millis() / 2,
        arguments.runs
    );
    text.push_str(
        "| since then | who | s | without the link's delay, s | round trips | asked | bytes |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for peer in peers {
        make(&place.join(&peer.name), peer)?;
    }
    for case in &CASES {
        for peer in peers {
            eprintln!("{}: {}", case.name, peer.name);
            let made = place.join(&peer.name);
            let (mut near, mut far, mut bytes) = (Vec::new(), Vec::new(), 0);
            for _ in 0..arguments.runs {
                near.push(meet(&made, peer, case, Duration::ZERO)?.0);
                let (seconds, seen) = meet(&made, peer, case, round_trip / 2)?;
                far.push(seconds);
                bytes = seen;
            }
            let (near, far) = (median(near), median(far));
            let trips = (far - near) / round_trip.as_secs_f64();
            let asked = match peer.is_pronto {
                true => format!("{:.0}", case.asked),
                false => String::new(),
            };
            let _ = writeln!(
                text,
                "| {} | {} | {far:.3} | {near:.3} | {trips:.1} | {asked} | {bytes} |",
                case.name, peer.name
            );
        }
    }
    let _ = std::fs::remove_dir_all(&place);
    print!("{text}");
    std::fs::create_dir_all(&arguments.results).map_err(|error| error.to_string())?;
    std::fs::write(arguments.results.join("link.md"), text).map_err(|error| error.to_string())
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds.get(seconds.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Creates two repositories below `made` that are in sync.
fn make(made: &Path, peer: &MeasuredProgram) -> Result<(), String> {
    std::fs::create_dir_all(made).map_err(|error| error.to_string())?;
    git(made, &["init", "-q", "--bare", "-b", "main", "there.git"])?;
    let there = made.join("there.git");
    let mut commits = String::new();
    for number in 1..=COMMITS {
        let line = format!("{number}\n");
        let _ = write!(
            commits,
            "commit refs/heads/main\nmark :{number}\ncommitter A <a@x> {} +0000\ndata 1\nc\n\
             M 100644 inline f{}\ndata {}\n{line}\n",
            1_700_000_000 + number,
            number % 50,
            line.len()
        );
    }
    for branch in 0..BRANCHES {
        let _ = write!(
            commits,
            "reset refs/heads/b{branch}\nfrom :{}\n\n",
            branch + 1
        );
    }
    let stream = made.join("stream");
    std::fs::write(&stream, commits).map_err(|error| error.to_string())?;
    let mut import = Command::new("git");
    let input = std::fs::File::open(&stream).map_err(|error| error.to_string())?;
    import.current_dir(&there).args(["fast-import", "--quiet"]);
    let imported = import.stdin(input).status();
    if !imported.is_ok_and(|status| status.success()) {
        return Err("git fast-import failed".to_owned());
    }
    git(made, &["clone", "-q", "--bare", "there.git", "here.git"])?;
    // The runs use copies of these two repositories.
    git(&made.join("here.git"), &["remote", "remove", "origin"])?;
    for command in commands(made, peer, "")? {
        used(command)?;
    }
    Ok(())
}

/// Synchronises both repositories after the changes of `case`. Returns the seconds and the bytes.
fn meet(
    made: &Path,
    peer: &MeasuredProgram,
    case: &Case,
    delay: Duration,
) -> Result<(f64, u64), String> {
    let again = made.join("again");
    let _ = std::fs::remove_dir_all(&again);
    std::fs::create_dir(&again).map_err(|error| error.to_string())?;
    for (side, is_new) in [("there.git", case.there), ("here.git", case.here)] {
        let status = Command::new("cp")
            .arg("-a")
            .args([made.join(side), again.join(side)])
            .status();
        if !status.is_ok_and(|status| status.success()) {
            return Err(format!("cannot copy {side}"));
        }
        if is_new {
            let at = again.join(side);
            let made = ["commit-tree", "-p", "main", "-m", side, "main~1^{tree}"];
            let id = git(&at, &made)?;
            git(&at, &["update-ref", "refs/heads/main", id.trim()])?;
        }
    }
    let microseconds = delay.as_micros().to_string();
    let (mut bytes, start) = (0, Instant::now());
    for command in commands(&again, peer, &microseconds)? {
        used(command)?;
        bytes += relay::read(&again.join("seen"))?.wire_bytes;
    }
    let seconds = start.elapsed().as_secs_f64();
    let all = |side: &str| git(&again.join(side), &["rev-list", "--all", "--count"]);
    let commits = COMMITS + usize::from(case.here) + usize::from(case.there);
    for side in ["there.git", "here.git"] {
        if all(side)?.trim() != commits.to_string() {
            return Err(format!("{} did not bring all to {side}", peer.name));
        }
    }
    Ok((seconds, bytes))
}

/// Returns the commands that synchronise both sides.
fn commands(place: &Path, peer: &MeasuredProgram, delay: &str) -> Result<Vec<Command>, String> {
    let there: PathBuf = place.join("there.git");
    let url = format!("ssh://server{}", there.display());
    let program = peer.program.to_string_lossy().into_owned();
    let calls: Vec<Vec<String>> = match peer.is_pronto {
        true => vec![words(&[
            "sync",
            "--name",
            "peer",
            "--as",
            "mine",
            "--remote-program",
            &program,
            &url,
        ])],
        false => vec![
            words(&[
                "fetch",
                "-q",
                "--upload-pack",
                &format!("{program} upload-pack"),
                &url,
                "+refs/heads/*:refs/remotes/peer/*",
            ]),
            words(&[
                "push",
                "-q",
                "--receive-pack",
                &format!("{program} receive-pack"),
                &url,
                "+refs/heads/*:refs/remotes/mine/*",
            ]),
        ],
    };
    calls
        .into_iter()
        .map(|arguments| {
            let mut command = Command::new(&peer.program);
            command
                .arg("-C")
                .arg(place.join("here.git"))
                .args(arguments)
                .env("GIT_SSH_COMMAND", relay::command(&place.join("seen"))?)
                .env("GIT_SSH_VARIANT", "ssh")
                .env(relay::DELAY, delay);
            Ok(command)
        })
        .collect()
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}
