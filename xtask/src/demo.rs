//! `cargo xtask demo [DIRECTORY]`: runs everyday commands on a repository of 50,000 files with git
//! and pronto in turn, and prints their times side by side.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const FILES: usize = 50_000;
/// The number of files that the second commit changes.
const CHANGED: usize = 10_000;
const FILES_OF_A_DIRECTORY: usize = 50;
/// The number of runs of each command by each program, in turn. The median is printed.
const RUNS: usize = 3;
/// The number of runs of a command that takes less than a second. Such commands are more sensitive
/// to other load of the machine.
const RUNS_OF_SHORT_ONES: usize = 5;

/// A command of the demonstration.
struct DemoStep {
    title: &'static str,
    /// Runs the command once and returns the elapsed time.
    run: fn(&DemoStage<'_>) -> Result<Duration, String>,
}

/// A program and its copies of the repository.
struct DemoStage<'a> {
    program: &'a Path,
    source: &'a Path,
    clone: PathBuf,
}

/// Builds pronto, creates the repository, runs the commands, and verifies the clone with git.
/// Returns the errors.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Vec<String> {
    match demonstrate(root, arguments) {
        Ok(()) => Vec::new(),
        Err(message) => vec![format!("demo: {message}")],
    }
}

fn demonstrate(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let made = std::env::temp_dir().join(format!("pronto-demo-{}", std::process::id()));
    let directory = match arguments {
        [] => made,
        [directory] => std::path::absolute(directory).map_err(|error| error.to_string())?,
        _ => return Err("too many arguments".to_owned()),
    };
    if directory.exists() {
        return Err(format!("{} exists", directory.display()));
    }
    println!("building pronto without pronto-server: three minutes on two processors");
    succeed(
        crate::cargo()
            .args(["build", "--profile", "demo", "--package", "pronto-cli"])
            .arg("--no-default-features")
            .current_dir(root),
    )?;
    let result = compare(&crate::target(root).join("demo/pronto"), &directory);
    let removed = std::fs::remove_dir_all(&directory);
    result?;
    removed.map_err(|error| format!("cannot remove {}: {error}", directory.display()))
}

fn compare(pronto: &Path, directory: &Path) -> Result<(), String> {
    let source = directory.join("source.git");
    println!(
        "making a repository of {FILES} files in {}",
        directory.display()
    );
    println!(
        "then running each command {RUNS} to {RUNS_OF_SHORT_ONES} times with both programs in turn: a minute"
    );
    make_repository(&source)?;
    let stage = |program: &'static str, path| DemoStage {
        program: path,
        source: &source,
        clone: directory.join(program),
    };
    let stages = [stage("git", Path::new("git")), stage("pronto", pronto)];
    println!("\n{:<34} {:>9} {:>9}", "", "git", "pronto");
    for DemoStep { title, run } in STEPS {
        let [git, pronto] = measure(*run, &stages)?.map(median);
        println!(
            "{title:<34} {:>7.2} s {:>7.2} s   {:.1}x",
            git.as_secs_f64(),
            pronto.as_secs_f64(),
            git.as_secs_f64() / pronto.as_secs_f64()
        );
    }
    let clone = &stages[1].clone;
    succeed(git_in(clone).args(["fsck", "--full", "--strict", "--no-progress"]))?;
    let left = output(git_in(clone).args(["status", "--porcelain"]))?;
    if !left.is_empty() {
        return Err(format!("git finds changes in the clone of pronto:\n{left}"));
    }
    println!("\n'git fsck --full --strict' and 'git status' find nothing wrong with the clone.");
    Ok(())
}

/// Runs a command with both programs in turn. Returns the times of both.
fn measure(
    run: fn(&DemoStage<'_>) -> Result<Duration, String>,
    stages: &[DemoStage<'_>; 2],
) -> Result<[Vec<Duration>; 2], String> {
    let mut times = [Vec::new(), Vec::new()];
    let mut runs = RUNS_OF_SHORT_ONES;
    while times[0].len() < runs {
        for (stage, times) in stages.iter().zip(&mut times) {
            times.push(run(stage)?);
        }
        if times[0][0] > Duration::from_secs(1) {
            runs = RUNS;
        }
    }
    Ok(times)
}

const STEPS: &[DemoStep] = &[
    DemoStep {
        title: "clone, with checkout",
        run: |stage| {
            if stage.clone.exists() {
                std::fs::remove_dir_all(&stage.clone).map_err(|error| error.to_string())?;
            }
            let url = format!("file://{}", stage.source.display());
            stage.timed(
                &mut Command::new(stage.program),
                &["clone", "-q", &url],
                true,
            )
        },
    },
    DemoStep {
        title: "status",
        run: |stage| stage.timed(&mut stage.command(), &["status"], false),
    },
    DemoStep {
        title: "switch branches (10,000 files), back",
        run: |stage| {
            let there = stage.timed(&mut stage.command(), &["switch", "-q", "other"], false)?;
            let back = stage.timed(&mut stage.command(), &["switch", "-q", "main"], false)?;
            Ok(there + back)
        },
    },
    DemoStep {
        title: "status after touching all files",
        run: |stage| {
            succeed(
                Command::new("sh")
                    .args(["-c", "find . -name '*.txt' -exec touch {} +"])
                    .current_dir(&stage.clone),
            )?;
            stage.timed(&mut stage.command(), &["status"], false)
        },
    },
];

impl DemoStage<'_> {
    fn command(&self) -> Command {
        let mut command = Command::new(self.program);
        command.arg("-C").arg(&self.clone);
        command
    }

    /// Runs `command` with `arguments`, followed by the path of the clone if `names_clone`.
    fn timed(
        &self,
        command: &mut Command,
        arguments: &[&str],
        names_clone: bool,
    ) -> Result<Duration, String> {
        command.args(arguments).stdout(Stdio::null());
        if names_clone {
            command.arg(&self.clone);
        }
        let start = Instant::now();
        succeed(command)?;
        Ok(start.elapsed())
    }
}

/// Creates a repository with two branches: `main` with all files, and `other` with changes in some
/// of them.
fn make_repository(path: &Path) -> Result<(), String> {
    succeed(
        Command::new("git")
            .args(["init", "-q", "--bare", "-b", "main"])
            .arg(path),
    )?;
    let mut import = git_in(path)
        .args(["fast-import", "--quiet"])
        .stdin(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot run git: {error}"))?;
    let written = import
        .stdin
        .take()
        .map(|pipe| write_history(&mut std::io::BufWriter::new(pipe)));
    let status = import.wait().map_err(|error| error.to_string())?;
    match written {
        Some(Err(error)) => Err(format!("cannot write to git: {error}")),
        _ if status.success() => Ok(()),
        _ => Err(format!("'git fast-import' failed with {status}")),
    }
}

fn write_history(to: &mut impl std::io::Write) -> std::io::Result<()> {
    let versions = [("main", 0, FILES), ("other", 1, CHANGED)];
    for (branch, version, files) in versions {
        writeln!(
            to,
            "commit refs/heads/{branch}\ncommitter demo <demo@example.com> 1700000000 +0000\ndata 1\nx"
        )?;
        if version > 0 {
            writeln!(to, "from refs/heads/main")?;
        }
        for file in 0..files {
            let directory = file / FILES_OF_A_DIRECTORY;
            let (top, below) = (directory / 40, directory % 40);
            let text = format!("file {file}, version {version}\n").repeat(1 + file * 7 % 120);
            writeln!(to, "M 100644 inline d{top}/e{below}/f{file}.txt")?;
            write!(to, "data {}\n{text}\n", text.len())?;
        }
    }
    to.flush()
}

fn git_in(directory: &Path) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(directory);
    command
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let status = command
        .status()
        .map_err(|error| format!("cannot run {command:?}: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{command:?} failed with {status}"))
    }
}

fn output(command: &mut Command) -> Result<String, String> {
    let output = command
        .output()
        .map_err(|error| format!("cannot run {command:?}: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
