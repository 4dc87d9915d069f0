//! `cargo run --release -p bench --bin lookups -- INDEX…`: measures operations on a pack index with
//! pronto, JGit and other programs: opening the index and finding one id, finding ids in random
//! order, and reading all ids and offsets.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that reports"
)]

mod measure;
mod synthetic;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use bench::plot::Bar;
use clap::Parser;
use measure::Figures;

/// Measure lookups in pack indexes beside JGit and other programs.
#[derive(Parser, Debug)]
#[command(name = "lookups")]
struct Args {
    /// Indexes to measure: a file, a repository (its largest pack), or `synthetic:OBJECTS`.
    #[arg(required = true)]
    indexes: Vec<String>,
    /// Directory for generated indexes, of 28 to 36 bytes for each object.
    #[arg(long, default_value = "bench/data")]
    data: PathBuf,
    /// JGit, built by `mvn -q -f bench/jgit package`. Skipped if it does not exist.
    #[arg(long, default_value = "bench/jgit/target/bench-jgit.jar")]
    jgit: PathBuf,
    /// Another program, such as `gix=bench/gix/target/release/bench-gix`. Its arguments are an
    /// index, the number of counted runs, and the maximum number of ids to look up. It prints a
    /// line for each figure: the name, a tab, seconds.
    #[arg(long, value_name = "NAME=PROGRAM", value_parser = parse_peer)]
    peer: Vec<(String, PathBuf)>,
    /// Draw a chart of each figure into this directory: `lookups-NUMBER-WHAT.svg`, where NUMBER is
    /// that of the index.
    #[arg(long, value_name = "DIRECTORY")]
    plots: Option<PathBuf>,
    /// Number of counted runs, after one that does not count.
    #[arg(long, default_value_t = 7)]
    runs: usize,
}

fn main() -> ExitCode {
    let arguments = Args::parse();
    let report = |(number, wanted): (usize, &String)| -> Result<(), String> {
        let path = find(wanted, &arguments.data)?;
        let ours = measure::pronto(&path, arguments.runs)?;
        println!("\n### {wanted}: {} objects\n", ours.objects);
        println!("| what | who | median | least | most |\n|---|---|---|---|---|");
        let mut all = vec![("pronto", ours.figures)];
        let mut add = |who, theirs| match theirs {
            Ok(theirs) => all.push((who, theirs)),
            Err(message) => println!("| all | {who} | {message} | | |"),
        };
        for (name, program) in &arguments.peer {
            add(name, ask(Command::new(program), &path, arguments.runs));
        }
        if arguments.jgit.exists() {
            add("jgit", ask(jgit(&arguments.jgit), &path, arguments.runs));
        }
        for what in &measure::all() {
            let taken = all.iter().filter_map(|(who, figures)| {
                let spread = spread(figures, what)?;
                Some((*who, spread))
            });
            let taken: Vec<_> = taken.collect();
            for (who, spread) in &taken {
                print_row(what, who, spread);
            }
            if let Some(directory) = &arguments.plots {
                plot(directory, number, wanted, what, &taken)?;
            }
        }
        Ok(())
    };
    for wanted in arguments.indexes.iter().enumerate() {
        if let Err(message) = report(wanted) {
            eprintln!("lookups: {message}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// The minimum, median and maximum in seconds.
type LookupSpread = (f64, f64, f64);

fn spread(figures: &Figures, what: &str) -> Option<LookupSpread> {
    let mut seconds: Vec<f64> = figures.of(what).collect();
    seconds.sort_by(f64::total_cmp);
    let median = *seconds.get(seconds.len() / 2)?;
    Some((*seconds.first()?, median, *seconds.last()?))
}

fn print_row(what: &str, who: &str, &(least, median, most): &LookupSpread) {
    let [median, least, most] = [median, least, most].map(shown);
    println!("| {what} | {who} | {median} | {least} | {most} |");
}

fn plot(
    directory: &Path,
    number: usize,
    index: &str,
    what: &str,
    taken: &[(&str, LookupSpread)],
) -> Result<(), String> {
    let bars: Vec<Bar> = taken
        .iter()
        .map(|(who, (least, median, most))| Bar {
            label: (*who).to_owned(),
            is_pronto: *who == "pronto",
            spread: (least * 1e6, median * 1e6, most * 1e6),
        })
        .collect();
    let file = format!("lookups-{number}-{}.svg", what.replace([' ', ','], "-"));
    let name = index.trim_end_matches('/').rsplit('/').next();
    let title = format!("{}: {what}, microseconds", name.unwrap_or(index));
    bench::plot::write(&directory.join(file), &title, &bars)
}

fn shown(seconds: f64) -> String {
    match seconds {
        ..1e-6 => format!("{:.1} ns", seconds * 1e9),
        1e-6..1e-3 => format!("{:.1} us", seconds * 1e6),
        1e-3..1.0 => format!("{:.2} ms", seconds * 1e3),
        _ => format!("{seconds:.2} s"),
    }
}

/// Returns the index that `wanted` names.
fn find(wanted: &str, data: &Path) -> Result<PathBuf, String> {
    if let Some(objects) = wanted.strip_prefix("synthetic:") {
        let objects = objects
            .parse()
            .map_err(|_| format!("'{objects}' is no number of objects"))?;
        return synthetic::make(objects, data).map_err(|error| format!("{wanted}: {error}"));
    }
    let path = PathBuf::from(wanted);
    if path.is_file() {
        return Ok(path);
    }
    let packs = ["objects/pack", ".git/objects/pack"].map(|below| path.join(below));
    let files = packs.iter().filter_map(|packs| packs.read_dir().ok());
    let indexes = files
        .flatten()
        .filter_map(|file| Some(file.ok()?.path()))
        .filter(|file| file.extension().is_some_and(|extension| extension == "idx"));
    let largest = indexes.max_by_key(|file| file.metadata().map_or(0, |file| file.len()));
    largest.ok_or_else(|| format!("there is no pack index in '{wanted}'"))
}

/// Returns the command that measures JGit, with a heap that holds the whole index.
fn jgit(jar: &Path) -> Command {
    let mut java = Command::new("java");
    java.args(["-XX:MaxRAMPercentage=70", "-jar"]).arg(jar);
    java.arg("lookups");
    java
}

/// Runs another program that measures the same operations.
fn ask(mut program: Command, index: &Path, runs: usize) -> Result<Figures, String> {
    let output = program
        .arg(index)
        .arg(runs.to_string())
        .arg(measure::MOST_IDS.to_string())
        .output()
        .map_err(|error| format!("cannot be run: {error}"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let first = errors.lines().next().unwrap_or_default();
        return Err(format!("failed: {first}"));
    }
    Figures::parse(&String::from_utf8_lossy(&output.stdout))
}

fn parse_peer(text: &str) -> Result<(String, PathBuf), String> {
    let (name, program) = text.split_once('=').ok_or("must be NAME=PROGRAM")?;
    Ok((name.to_owned(), program.into()))
}
