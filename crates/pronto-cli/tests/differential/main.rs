//! The differential suite: every case is a shell script that runs twice in the same place, once
//! with stock `git` behind the command `vcs` and once with pronto, handing nothing over. Both
//! runs must print the same, exit the same, and leave the same repositories behind.
//!
//! Cases live in `cases/*.case`; `README.md` beside them says how to write one.

mod case;
mod run;
mod snapshot;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use run::Missing;
use test_support::{INSTALL, report_skip};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    if !run::git_is_installed() {
        report_skip(&"the differential suite needs stock git", &INSTALL);
        return ExitCode::SUCCESS;
    }
    let trials = case::all().into_iter().map(|case| {
        // In CI the case runs, and its failure names what is missing.
        let missing = run::missing(&case).filter(Missing::is_excused);
        if let Some(missing) = &missing {
            missing.report(&case.title);
        }
        let name = format!("{}: {}", case.file, case.title);
        let trial = Trial::test(name, move || run::compare(&case).map_err(Failed::from));
        trial.with_ignored_flag(missing.is_some())
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
