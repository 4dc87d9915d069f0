//! The differential suite. Each case is a shell script that runs twice in the same directory: the
//! command `vcs` is git 2.55 in the first run and pronto in the second. Both runs must have the
//! same output and exit codes, and leave the same repositories.
//!
//! Cases are in `cases/*.case`. `README.md` describes how to write a case. The class [`settings`]
//! is generated from the table of settings, [`obstacles`] creates files that block changes of refs,
//! and [`pairs`] compares each native command with two of its options.

mod case;
mod obstacles;
mod pairs;
mod run;
mod settings;
mod snapshot;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use test_support::git;
use test_support::{INSTALL, may_skip, report_missing_reference, report_skip};

/// The number of cases in parallel for each processor. Cases mostly wait for processes and files.
const FOR_EACH_PROCESSOR: usize = 2;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = processors * FOR_EACH_PROCESSOR;
    arguments.test_threads.get_or_insert(threads);
    let Some(oracle) = git::reference() else {
        report_missing_reference(&"the differential suite needs git 2.55");
        return ExitCode::SUCCESS;
    };
    let trials = case::all().into_iter().map(|case| {
        // In CI, the case runs, and its failure names the missing program.
        let missing = case.missing_need().filter(|_| may_skip());
        let is_skipped = missing.is_some();
        if let Some(program) = missing {
            report_skip(&format!("'{}' needs '{program}'", case.title), &INSTALL);
        }
        let name = format!("{}: {}", case.file, case.title);
        let trial = Trial::test(name, move || {
            run::compare(&case, oracle).map_err(Failed::from)
        });
        trial.with_ignored_flag(is_skipped)
    });
    let pairs = pairs::SUBJECTS.iter().map(|subject| {
        let name = format!("pairs: {} {}", subject.name, subject.arguments);
        Trial::test(name.trim_end().to_owned(), move || {
            pairs::compare(oracle, subject).map_err(Failed::from)
        })
    });
    let generated = settings::trials().into_iter().chain(obstacles::trials());
    let trials = trials.chain(generated).chain(pairs);
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
