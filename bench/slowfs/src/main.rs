//! `slowfs REAL AT --metadata 1ms`: mounts a slow file system, and prints the counts of calls when
//! it ends.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that reports"
)]

use std::io::Read as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use slowfs::{CallFault, Folding, FsCall, Model, SlowMount};

/// Mount a directory as a slow file system until standard input ends, then print the number of
/// calls of each kind.
#[derive(Parser, Debug)]
struct Args {
    /// The directory that holds the files.
    real: PathBuf,
    /// The mount point.
    at: PathBuf,
    /// Delay of every metadata call: 1ms, 300us, 2s.
    #[arg(long, value_parser = duration)]
    metadata: Option<Duration>,
    /// Delay of one kind of call, such as lookup=1ms. Can be repeated.
    #[arg(long, value_parser = call_delay)]
    delay: Vec<(FsCall, Duration)>,
    /// Bytes per second, for reading and writing together.
    #[arg(long)]
    bandwidth: Option<u64>,
    /// Time in which the arm of a modelled disk moves from end to end.
    #[arg(long, value_parser = duration)]
    seek: Option<Duration>,
    /// The time for which the kernel may cache names and attributes.
    #[arg(long, value_parser = duration, default_value = "1s")]
    cache: Duration,
    /// Return attributes with directory listings, as NFS does.
    #[arg(long)]
    readdirplus: bool,
    /// Treat names that differ only in case as equal.
    #[arg(long)]
    fold_case: bool,
    /// Treat names that differ only in Unicode composition as equal.
    #[arg(long)]
    normalise: bool,
    /// A fault, such as write:17=28 (the 17th write fails with error number 28), write:3=short, or
    /// flush:0=late:5ms (each flush). Can be repeated.
    #[arg(long, value_parser = fault)]
    fault: Vec<(FsCall, u64, CallFault)>,
}

fn main() -> ExitCode {
    let arguments = Args::parse();
    let mut model = Model::default();
    model.bandwidth = arguments.bandwidth;
    model.seek = arguments.seek;
    model.cache = arguments.cache;
    model.lists_attributes = arguments.readdirplus;
    model.folding = match (arguments.fold_case, arguments.normalise) {
        (true, true) => Folding::CaseAndComposition,
        (false, true) => Folding::Composition,
        (true, false) => Folding::Case,
        (false, false) => Folding::None,
    };
    if let Some(delay) = arguments.metadata {
        model.delay_metadata(delay);
    }
    arguments
        .delay
        .iter()
        .for_each(|(call, delay)| model.delay(*call, *delay));
    arguments
        .fault
        .iter()
        .for_each(|(call, number, fault)| model.fault(*call, *number, *fault));
    match SlowMount::new(&arguments.real, &arguments.at, model) {
        Ok(mount) => {
            println!("mounted");
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            print!("{}", mount.model().summary());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!(
                "slowfs: cannot mount at '{}': {error}",
                arguments.at.display()
            );
            ExitCode::FAILURE
        }
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let digits = text
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(text.len());
    let number: u64 = text[..digits]
        .parse()
        .map_err(|_| format!("'{text}' has no number"))?;
    match &text[digits..] {
        "us" => Ok(Duration::from_micros(number)),
        "ms" => Ok(Duration::from_millis(number)),
        "s" => Ok(Duration::from_secs(number)),
        unit => Err(format!("'{unit}' is not us, ms or s")),
    }
}

fn call(name: &str) -> Result<FsCall, String> {
    FsCall::from_name(name).ok_or_else(|| {
        let names: Vec<String> = FsCall::ALL.into_iter().map(FsCall::name).collect();
        format!("'{name}' is not one of {}", names.join(", "))
    })
}

fn call_delay(text: &str) -> Result<(FsCall, Duration), String> {
    let (name, delay) = text.split_once('=').ok_or("not of the form CALL=TIME")?;
    Ok((call(name)?, duration(delay)?))
}

fn fault(text: &str) -> Result<(FsCall, u64, CallFault), String> {
    let form = "not of the form CALL:NUMBER=ERROR";
    let (left, right) = text.split_once('=').ok_or(form)?;
    let (name, number) = left.split_once(':').ok_or(form)?;
    let fault = match (right, right.strip_prefix("late:")) {
        ("short", _) => CallFault::Short,
        (_, Some(delay)) => CallFault::Late(duration(delay)?),
        (error, None) => CallFault::Error(error.parse().map_err(|_| form)?),
    };
    Ok((call(name)?, number.parse().map_err(|_| form)?, fault))
}
