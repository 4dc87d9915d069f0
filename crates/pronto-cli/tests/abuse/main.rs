//! The server half of the attack suite. Each row has one or more hostile clients of a running
//! `pronto serve`, and the conditions that must hold during and after the attack.
//!
//! `README.md` in this directory lists the classes, and describes how to write a row.

#![expect(clippy::print_stdout, reason = "a test says what it took")]

mod client;
mod document;
#[path = "../../../pronto-store/tests/it/hostile/form.rs"]
#[allow(dead_code, reason = "the tests of the store use the rest")]
mod form;
mod frames;
mod honest;
mod judge;
mod meter;
mod peer;
mod rows;
mod server;
mod site;
mod ssh;
mod stage;
#[path = "../../../pronto-store/tests/stored/lib.rs"]
mod stored;
mod tls;
mod wire;

#[path = "../attacks/documents.rs"]
mod documents;
#[path = "../attacks/pack.rs"]
#[allow(dead_code, reason = "the other half of the suite uses the rest")]
mod pack;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use stored::Place;

/// The default number of rows in parallel. Rows mostly wait for servers and processes, so this may
/// exceed the number of processors.
const THREADS: usize = 4;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(THREADS);
    let mut trials = Vec::new();
    for row in rows::all() {
        let name = row.full_name();
        let row = Arc::new(row);
        for place in [Place::Directory, Place::Store] {
            if row.is_of_a_bucket && place == Place::Directory {
                continue;
            }
            let row = Arc::clone(&row);
            let not_here = row.not_in_a_store.filter(|_| place == Place::Store);
            let judge = move || match not_here {
                Some(reason) => Ok(Completion::ignored_with(reason)),
                None => match judge::judge(&row, place) {
                    Ok(()) => Ok(Completion::Completed),
                    Err(problem) => Err(Failed::from(problem)),
                },
            };
            let name = match place {
                Place::Directory => name.clone(),
                Place::Store => format!("store/{name}"),
            };
            trials.push(Trial::ignorable_test(name, judge));
        }
    }
    let documents = Trial::test("docs/security.md names rows that exist", || {
        documents::check("| S", 3).map_err(Failed::from)
    });
    trials.push(documents);
    libtest_mimic::run(&arguments, trials).exit_code()
}
