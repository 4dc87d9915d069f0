//! The differential suite: every case is a shell script that runs twice in the same place, once
//! with stock `git` behind the command `vcs` and once with pronto, handing nothing over. Both
//! runs must print the same, exit the same, and leave the same repositories behind.
//!
//! Cases live in `cases/*.case`; `README.md` beside them says how to write one.

#![expect(clippy::print_stdout, reason = "a test says what it skips")]

mod case;
mod run;
mod snapshot;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    if !run::git_is_installed() {
        return skip_loudly();
    }
    let trials = case::all().into_iter().map(|case| {
        let skipped = run::oracle(&case).is_none() || case.missing_need().is_some() && !in_ci();
        let name = format!("{}: {}", case.file, case.title);
        let trial = Trial::test(name, move || judge(&case).map_err(Failed::from));
        trial.with_ignored_flag(skipped)
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// Compares, and again if something differs: what git says and leaves depends on whether its steps
/// fall into one second, and the two runs may do so differently. What differs twice is an error;
/// with `PRONTO_TEST_ONCE` set so is what differs once.
fn judge(case: &case::Case) -> Result<(), String> {
    let Err(report) = run::compare(case) else {
        return Ok(());
    };
    if std::env::var_os("PRONTO_TEST_ONCE").is_some() {
        return Err(report);
    }
    run::compare(case)?;
    println!("DIFFERED ONCE: {report}");
    Ok(())
}

fn in_ci() -> bool {
    std::env::var_os("CI").is_some()
}

fn skip_loudly() -> ExitCode {
    println!("SKIPPED: the differential suite needs stock git on PATH");
    if in_ci() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}
