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
#[path = "../../../pronto-store/tests/stored/lib.rs"]
mod stored;
mod tls;
mod wire;

#[path = "../attacks/pack.rs"]
#[allow(dead_code, reason = "the other half of the suite uses the rest")]
mod pack;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};

use stored::Place;

/// Rows mostly wait for servers and processes, so more of them run at once than there are processors.
const THREADS: usize = 4;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(THREADS);
    let mut trials = Vec::new();
    for row in rows::all() {
        let name = format!("{}/{}", row.class, row.name);
        let row = Arc::new(row);
        let mut add = |name: String, place| {
            let row = Arc::clone(&row);
            let judge = move || judge::judge(&row, place).map_err(Failed::from);
            trials.push(Trial::test(name, judge));
        };
        if row.not_in_a_store.is_none() {
            add(format!("store/{name}"), Place::Store);
        }
        add(name, Place::Directory);
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}
