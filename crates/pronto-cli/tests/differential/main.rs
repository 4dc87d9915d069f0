//! The differential suite. Each case is a shell script that runs twice in the same directory: the
//! command `vcs` is stock `git` in the first run and pronto in the second. Both runs must have the
//! same output and exit codes and leave the same repositories.
//!
//! Cases are in `cases/*.case`. `README.md` describes how to write one. The class `settings` is
//! generated from the table of settings.

mod case;
mod run;
mod settings;
mod snapshot;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use run::Missing;
use test_support::{INSTALL, report_skip};

/// Cases that run at once for each processor, because they wait for processes and files.
const FOR_EACH_PROCESSOR: usize = 2;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = processors * FOR_EACH_PROCESSOR;
    arguments.test_threads.get_or_insert(threads);
    if !run::git_is_installed() {
        report_skip(&"the differential suite needs stock git", &INSTALL);
        return ExitCode::SUCCESS;
    }
    let trials = case::all().into_iter().map(|case| {
        // In CI the case runs, and its failure names the missing program.
        let missing = run::missing(&case).filter(Missing::is_excused);
        if let Some(missing) = &missing {
            missing.report(&case.title);
        }
        let name = format!("{}: {}", case.file, case.title);
        let trial = Trial::test(name, move || run::compare(&case).map_err(Failed::from));
        trial.with_ignored_flag(missing.is_some())
    });
    let trials = trials.chain(settings::trials()).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}
