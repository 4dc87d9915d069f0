//! `cargo xtask explore`: compares git and pronto in random scenarios.
//!
//! A scenario is a function of a seed and a number. Its result with pronto is compared with that of
//! the reference git. Scenarios with a difference are shrunk and grouped by cause. A call that
//! pronto leaves to git is counted as a refusal, not as a difference. Differences in the list of
//! known differences are only counted. Any other difference is an error.
//!
//! `[--program PATH]`, `[--seed N]`, `[--count N | --seconds N]`, `[--replay SEED:NUMBER]`,
//! `[--table FILE]`, `[--keep DIRECTORY]`, `[--show-known]`, `[--teeth all|NAME,...|check
//! [--planted PATH]]`.

mod compare;
mod faults;
mod generate;
mod index;
mod known;
mod process;
mod recipes;
mod report;
mod rules;
mod run;
mod scenario;
mod shrink;
mod snapshot;
mod teeth;
mod tree;
mod words;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use compare::ComparisonResult;
use generate::Generator;
use known::KnownDifferences;
use process::Watchdog;
use recipes::Templates;
use report::{CauseGroup, Report};
use run::{Bench, ComparedPrograms};
use scenario::Scenario;

/// The default number of scenarios, without `--count` and `--seconds`.
const COUNT: u64 = 1000;

/// The file with the list of known differences.
const KNOWN: &str = "xtask/src/explore/known.txt";

/// The directory of a file system in memory.
const MEMORY: &str = "/dev/shm";

/// The parsed arguments.
#[derive(Debug)]
struct Options {
    program: Option<PathBuf>,
    seed: u64,
    /// The number of the first scenario.
    first: u64,
    count: u64,
    limit: Option<Duration>,
    /// The names of the faults to plant, or `all` (`--teeth`).
    teeth: Option<String>,
    /// A program that was built with the planted fault (`--planted`).
    planted: Option<PathBuf>,
    /// Whether known differences are shown like other differences (`--show-known`).
    is_showing_known: bool,
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
            teeth: None,
            planted: None,
            is_showing_known: false,
            table: None,
            keep: None,
        };
        let mut arguments = arguments.iter();
        while let Some(&name) = arguments.next() {
            if name == "--show-known" {
                options.is_showing_known = true;
                continue;
            }
            let value = *arguments
                .next()
                .ok_or_else(|| format!("{name} needs a value"))?;
            let number = |text: &str| {
                text.parse::<u64>()
                    .map_err(|_| format!("'{text}' is no number"))
            };
            match name {
                "--program" => options.program = Some(absolute(value)?),
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
                    options.is_showing_known = true;
                }
                "--planted" => options.planted = Some(absolute(value)?),
                "--teeth" => options.teeth = Some(value.to_owned()),
                "--table" => options.table = Some(PathBuf::from(value)),
                "--keep" => options.keep = Some(PathBuf::from(value)),
                _ => return Err(format!("unknown argument '{name}'")),
            }
        }
        Ok(options)
    }

    fn program(&self, root: &Path) -> Result<PathBuf, String> {
        if let Some(program) = &self.program {
            return Ok(program.clone());
        }
        crate::build_release(root)?;
        Ok(crate::released_pronto(root))
    }

    /// Returns the number after the last scenario.
    fn end(&self) -> u64 {
        self.first.saturating_add(self.count)
    }
}

fn absolute(path: &str) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|error| format!("'{path}': {error}"))
}

/// The state that all runs share.
#[derive(Debug)]
struct Machine {
    programs: ComparedPrograms,
    scratch: tempfile::TempDir,
    templates: Arc<Templates>,
    generator: Generator,
    known: KnownDifferences,
    /// The number of started runs. Each run has its own directories.
    runs: AtomicU64,
}

impl Machine {
    fn new(root: &Path, program: PathBuf) -> Result<Self, String> {
        let git = test_support::git::reference()
            .ok_or("there is no git 2.55 (cargo xtask reference-git)")?;
        let memory = Path::new(MEMORY);
        let scratch = match memory.is_dir() {
            true => tempfile::tempdir_in(memory),
            false => tempfile::tempdir(),
        };
        let scratch = scratch.map_err(|error| format!("cannot create a directory: {error}"))?;
        let templates = scratch.path().join("templates");
        std::fs::create_dir(&templates).map_err(|error| error.to_string())?;
        let list = root.join(KNOWN);
        let list = std::fs::read_to_string(&list)
            .map_err(|error| format!("cannot read '{}': {error}", list.display()))?;
        Ok(Machine {
            generator: generator(root, git, scratch.path())?,
            programs: ComparedPrograms {
                git: git.to_owned(),
                pronto: program,
                watchdog: Watchdog::start(),
            },
            templates: Arc::new(Templates::new(git, &templates)),
            scratch,
            known: KnownDifferences::parse(&list),
            runs: AtomicU64::new(0),
        })
    }

    /// Calls `examine` with each number of `numbers` on all processors, until `is_over` returns
    /// true.
    fn each(
        &self,
        numbers: Range<u64>,
        is_over: impl Fn(u64) -> bool + Sync,
        examine: impl Fn(&mut Bench, u64) -> Result<(), String> + Sync,
    ) -> Result<(), String> {
        let next = AtomicU64::new(numbers.start);
        let run = self.runs.fetch_add(1, Ordering::Relaxed);
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        let count = numbers.end.saturating_sub(numbers.start);
        let jobs = jobs.min(usize::try_from(count).unwrap_or(jobs));
        let work = |job: usize| {
            let directory = self.scratch.path().join(format!("{run:03}-{job:03}"));
            std::fs::create_dir(&directory).map_err(|error| error.to_string())?;
            let mut bench = Bench::new(&self.programs, &directory, Arc::clone(&self.templates));
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= numbers.end || is_over(number) {
                    break Ok::<_, String>(());
                }
                examine(&mut bench, number)?;
            }
        };
        std::thread::scope(|scope| {
            let work = &work;
            let workers: Vec<_> = (0..jobs)
                .map(|job| scope.spawn(move || work(job)))
                .collect();
            let ends = workers
                .into_iter()
                .map(|worker| worker.join().unwrap_or(Err("a worker panicked".to_owned())));
            ends.collect::<Result<(), String>>()
        })
    }
}

fn explore(root: &Path, options: &Options) -> Result<Vec<String>, String> {
    if let Some(names) = &options.teeth {
        return teeth::run(root, options, names);
    }
    let mut machine = Machine::new(root, options.program(root)?)?;
    println!("seed {}", options.seed);
    if options.is_showing_known {
        machine.known = KnownDifferences::default();
    }
    let began = Instant::now();
    let report = Mutex::new(Report::default());
    let is_over = |_| options.limit.is_some_and(|limit| began.elapsed() >= limit);
    machine.each(options.first..options.end(), is_over, |bench, number| {
        let scenario = machine.generator.scenario(options.seed, number);
        examine(
            &machine.known,
            bench,
            &NumberedScenario { number, scenario },
            &report,
        )
    })?;
    let report = report.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(keep) = &options.keep {
        // `tempfile` removes the original.
        let copied = tree::copy(machine.scratch.path(), keep);
        copied.map_err(|error| format!("cannot copy to '{}': {error}", keep.display()))?;
    }
    finish(&report, options, began.elapsed())
}

/// A scenario with its number in the sequence of the seed.
#[derive(Debug)]
struct NumberedScenario {
    number: u64,
    scenario: Scenario,
}

/// Runs one scenario and adds its result to the report.
fn examine(
    known: &KnownDifferences,
    bench: &mut Bench,
    numbered: &NumberedScenario,
    report: &Mutex<Report>,
) -> Result<(), String> {
    let lock = || report.lock().unwrap_or_else(PoisonError::into_inner);
    let NumberedScenario { number, scenario } = numbered;
    let (pronto, git) = bench.run(scenario)?;
    let command = scenario
        .calls
        .first()
        .map(scenario::ProgramCall::name)
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
    let judge = |scenario: &Scenario, git: &_, pronto: &_| {
        compare::judge(scenario, &compare::Outcomes { git, pronto }, known)
    };
    let difference = match judge(scenario, &git, &pronto) {
        ComparisonResult::Same => return Ok(()),
        ComparisonResult::Known(title) => {
            *lock().known.entry(title).or_default() += 1;
            return Ok(());
        }
        ComparisonResult::Different(difference) => difference,
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
        matches!(judge(smaller, &git, &pronto), ComparisonResult::Different(found) if found.cause() == cause)
    };
    let smallest = shrink::shrink(scenario, has_cause);
    let group = CauseGroup {
        hits: 0,
        number: *number,
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
    print!("{}", known::summary(&report.known));
    let known: u64 = report.known.values().sum();
    let rate = report.scenarios as f64 / elapsed.as_secs_f64();
    println!(
        "{} scenarios, {rate:.0} per second, {refusals} refusals, {known} with known differences",
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
