//! The server half of the attack suite. Each row is a hostile client, or many, of a running
//! `pronto serve`, and the conditions that must hold while and after it attacks.
//!
//! `README.md` in this directory lists the classes, and describes how to write a row.

#![expect(clippy::print_stdout, reason = "a test says what it took")]

mod client;
mod frames;
mod honest;
mod judge;
mod rows;
mod server;
mod site;
mod ssh;
mod stage;
mod tls;
mod wire;

#[path = "../attacks/pack.rs"]
#[allow(dead_code, reason = "the other half of the suite uses the rest")]
mod pack;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

/// Rows mostly wait for servers and processes, so more of them run at once than there are processors.
const THREADS: usize = 4;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(THREADS);
    let rows = rows::all().into_iter();
    let trials = rows.map(|row| {
        let name = format!("{}/{}", row.class, row.name);
        Trial::test(name, move || judge::judge(&row).map_err(Failed::from))
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
