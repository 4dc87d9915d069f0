//! The attack suite. Each row has a hostile server, repository, peer or user, and the conditions
//! that must hold after a command has dealt with it. Every row runs with pronto, and with stock git
//! as control.
//!
//! `README.md` in this directory describes how to write a row. `docs/security.md` lists the
//! published vulnerabilities that the rows cover.

#![expect(clippy::print_stdout, reason = "a test says what git holds by now")]

mod attack;
mod control;
mod documents;
mod judge;
mod objects;
mod pack;
mod process;
mod rows;
mod sandbox;
mod servers;
mod snapshot;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use test_support::report_missing_reference;

use crate::attack::Program;

/// The default number of rows in parallel. Rows mostly wait for processes, so this may exceed the
/// number of processors.
const THREADS: usize = 6;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(THREADS);
    let control = control::find();
    if let Err(reason) = &control {
        let missing = format!("the control runs of the attack suite: {reason}");
        report_missing_reference(&missing);
    }
    let mut trials = Vec::new();
    for row in rows::all() {
        let row = Arc::new(row);
        for program in [Program::Pronto, Program::Git] {
            if program == Program::Git && control.is_err() {
                continue;
            }
            let name = format!("{}: {}/{}", program.name(), row.class, row.name);
            let row = Arc::clone(&row);
            trials.push(Trial::ignorable_test(name, move || run(&row, program)));
        }
    }
    let documents = Trial::test("docs/security.md names rows that exist", || {
        documents::check("| CVE-", 4).map_err(Failed::from)
    });
    trials.push(documents);
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn run(row: &rows::Row, program: Program) -> Result<Completion, Failed> {
    match judge::judge(row, program) {
        Ok(None) => Ok(Completion::Completed),
        Ok(Some(reason)) => Ok(Completion::ignored_with(reason)),
        Err(report) => Err(Failed::from(report)),
    }
}
