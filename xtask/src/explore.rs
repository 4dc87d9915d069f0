//! `cargo xtask explore`: random scenarios with git and with pronto.
//!
//! A scenario is a function of a seed and a number. Its result with pronto is compared with that of the reference
//! git; scenarios with a difference are made smaller and grouped by cause. A call that pronto leaves to git is
//! counted as a refusal, not as a difference.
//!
//! `[--program PATH]`, `[--seed N]`, `[--count N | --seconds N]`, `[--replay SEED:NUMBER]`, `[--table FILE]`,
//! `[--keep DIRECTORY]`.

mod compare;
mod generate;
mod index;
mod process;
mod recipes;
mod report;
mod rules;
mod run;
mod scenario;
mod shrink;
mod snapshot;
mod tree;
mod words;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use generate::Generator;
use process::Watchdog;
use report::{Group, Report};
use run::Bench;
use scenario::Scenario;

/// The number of scenarios without `--count` and `--seconds`.
const COUNT: u64 = 1000;

/// The file system in memory.
const MEMORY: &str = "/dev/shm";

/// The arguments of a run.
#[derive(Debug)]
struct Options {
    program: Option<PathBuf>,
    seed: u64,
    /// The number of the first scenario.
    first: u64,
    count: u64,
    limit: Option<Duration>,
    table: Option<PathBuf>,
    keep: Option<PathBuf>,
}

/// Runs scenarios and returns an error if there are differences.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Vec<String> {
    let result = Options::parse(arguments).and_then(|options| explore(root, &options));
    result.unwrap_or_else(|problem| vec![format!("explore: {problem}")])
}

impl Options {
    fn parse(arguments: &[&str]) -> Result<Self, String> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let mut options = Options {
            program: None,
            seed: now.as_secs(),
            first: 0,
            count: COUNT,
            limit: None,
            table: None,
            keep: None,
        };
        let mut arguments = arguments.iter();
        while let Some(&name) = arguments.next() {
            let value = *arguments
                .next()
                .ok_or_else(|| format!("{name} needs a value"))?;
            let number = |text: &str| {
                text.parse::<u64>()
                    .map_err(|_| format!("'{text}' is no number"))
            };
            match name {
                "--program" => options.program = Some(PathBuf::from(value)),
                "--seed" => options.seed = number(value)?,
                "--count" => options.count = number(value)?,
                "--seconds" => {
                    options.limit = Some(Duration::from_secs(number(value)?));
                    options.count = u64::MAX;
                }
                "--replay" => {
                    let (seed, first) =
                        value.split_once(':').ok_or("--replay needs SEED:NUMBER")?;
                    (options.seed, options.first) = (number(seed)?, number(first)?);
                    options.count = 1;
                }
                "--table" => options.table = Some(PathBuf::from(value)),
                "--keep" => options.keep = Some(PathBuf::from(value)),
                _ => return Err(format!("unknown argument '{name}'")),
            }
        }
        Ok(options)
    }

    fn program(&self, root: &Path) -> Result<PathBuf, String> {
        if let Some(program) = &self.program {
            return std::path::absolute(program).map_err(|error| error.to_string());
        }
        crate::build_release(root)?;
        Ok(crate::released_pronto(root))
    }

    /// Returns the number after the last scenario.
    fn end(&self) -> u64 {
        self.first.saturating_add(self.count)
    }
}

fn explore(root: &Path, options: &Options) -> Result<Vec<String>, String> {
    let git =
        test_support::git::reference().ok_or("there is no git 2.55 (cargo xtask reference-git)")?;
    let program = options.program(root)?;
    let memory = Path::new(MEMORY);
    let scratch = match memory.is_dir() {
        true => tempfile::tempdir_in(memory),
        false => tempfile::tempdir(),
    };
    let scratch = scratch.map_err(|error| format!("cannot create a directory: {error}"))?;
    let generator = generator(root, git, scratch.path())?;
    println!("seed {}", options.seed);
    let began = Instant::now();
    let next = AtomicU64::new(options.first);
    let report = Mutex::new(Report::default());
    let watchdog = Watchdog::start();
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = jobs.min(usize::try_from(options.count).unwrap_or(jobs));
    let work = |job: usize| {
        let directory = scratch.path().join(job.to_string());
        std::fs::create_dir(&directory).map_err(|error| error.to_string())?;
        let mut bench = Bench::new(git, &program, &directory, watchdog.clone());
        let is_over = || options.limit.is_some_and(|limit| began.elapsed() >= limit);
        while !is_over() {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= options.end() {
                break;
            }
            let scenario = generator.scenario(options.seed, number);
            examine(&mut bench, &scenario, number, &report)?;
        }
        Ok::<_, String>(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs)
            .map(|job| scope.spawn(move || work(job)))
            .collect();
        let ends = workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or(Err("a worker panicked".to_owned())));
        ends.collect::<Result<(), String>>()
    })?;
    let report = report.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(keep) = &options.keep {
        // `tempfile` removes the original.
        let copied = tree::copy(scratch.path(), keep);
        copied.map_err(|error| format!("cannot copy to '{}': {error}", keep.display()))?;
    }
    finish(&report, options, began.elapsed())
}

/// Runs one scenario and adds its result to the report.
fn examine(
    bench: &mut Bench,
    scenario: &Scenario,
    number: u64,
    report: &Mutex<Report>,
) -> Result<(), String> {
    let lock = || report.lock().unwrap_or_else(PoisonError::into_inner);
    let (pronto, git) = bench.run(scenario)?;
    let command = scenario
        .calls
        .first()
        .map(scenario::Call::name)
        .unwrap_or_default();
    let Some(git) = git else {
        let message = pronto.refusal().unwrap_or_default().to_owned();
        let mut report = lock();
        report.scenarios += 1;
        *report
            .refusals
            .entry(command)
            .or_default()
            .entry(message)
            .or_default() += 1;
        return Ok(());
    };
    lock().scenarios += 1;
    let Some(difference) = compare::first(scenario, &git, &pronto) else {
        return Ok(());
    };
    let cause = difference.cause();
    if let Some(group) = lock().groups.get_mut(&cause) {
        group.hits += 1;
        return Ok(());
    }
    let has_cause = |smaller: &Scenario| {
        let Ok((pronto, Some(git))) = bench.run(smaller) else {
            return false;
        };
        compare::first(smaller, &git, &pronto).is_some_and(|found| found.cause() == cause)
    };
    let smallest = shrink::shrink(scenario, has_cause);
    let group = Group {
        hits: 0,
        number,
        smallest,
        difference,
    };
    lock().groups.entry(cause).or_insert(group).hits += 1;
    Ok(())
}

fn finish(report: &Report, options: &Options, elapsed: Duration) -> Result<Vec<String>, String> {
    print!("{}", report.differences(options.seed));
    if let Some(path) = &options.table {
        let written = std::fs::write(path, report.table());
        written.map_err(|error| format!("cannot write '{}': {error}", path.display()))?;
    }
    let refusals: u64 = report
        .refusals
        .values()
        .flat_map(|messages| messages.values())
        .sum();
    let rate = report.scenarios as f64 / elapsed.as_secs_f64();
    println!(
        "{} scenarios, {rate:.0} per second, {refusals} refusals",
        report.scenarios
    );
    Ok(match report.groups.len() {
        0 => Vec::new(),
        count => vec![format!(
            "explore: {count} groups of differences with the seed {}",
            options.seed
        )],
    })
}

/// Reads the table of settings, and the options of the commands from git.
fn generator(root: &Path, git: &Path, scratch: &Path) -> Result<Generator, String> {
    let mut generator = Generator::default();
    let table = std::fs::read_to_string(root.join("docs/settings.tsv"));
    generator
        .read_settings(&table.map_err(|error| format!("cannot read docs/settings.tsv: {error}"))?);
    for command in Generator::commands() {
        let output = Command::new(git)
            .args(command.split(' '))
            .arg("--git-completion-helper-all")
            .current_dir(scratch)
            .env("GIT_CEILING_DIRECTORIES", "/")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("cannot run git: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let options = text.split_whitespace().filter(|word| {
            let name = word.trim_end_matches('=');
            word.starts_with("--") && !words::EXCLUDED_OPTIONS.contains(&name)
        });
        let options: Vec<String> = options.map(str::to_owned).collect();
        generator.options.insert(command, options);
    }
    Ok(generator)
}
