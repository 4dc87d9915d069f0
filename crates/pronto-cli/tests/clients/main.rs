//! Foreign clients of `pronto serve`: each client runs the same operations with pronto's server and
//! with git's own, over each transport. Both servers must end with the same objects and refs.
//!
//! `README.md` in this directory lists the clients and the operations.

mod client;
mod large;
mod pronto;
mod pushes;
mod report;
mod repositories;
mod scenario;
#[path = "../../../pronto-wire/tests/servers/lib.rs"]
mod servers;
mod stage;
mod state;
#[path = "../../../pronto-store/tests/stored/lib.rs"]
mod stored;

use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use libtest_mimic::{Arguments, Failed, Trial};

use client::Client;
use stage::{Stage, Transport};
use stored::Place;

/// The default number of trials in parallel. Trials mostly wait for processes, so this may exceed
/// the number of processors.
const THREADS: usize = 4;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(THREADS);
    let stages = [(); 2].map(|()| Arc::new(OnceLock::new()));
    let mut trials = Vec::new();
    for client in client::all() {
        let client = Arc::new(client);
        for transport in Transport::ALL {
            let places = [(Place::Directory, ""), (Place::Store, "store/")];
            for (stage, (place, prefix)) in stages.iter().zip(places) {
                let (stage, client) = (Arc::clone(stage), Arc::clone(&client));
                let name = format!("{prefix}{}/{transport}", client.name);
                trials.push(Trial::test(name, move || {
                    run(&stage, &client, transport, place).map_err(Failed::from)
                }));
            }
        }
    }
    let code = libtest_mimic::run(&arguments, trials).exit_code();
    for (stage, place) in stages.iter().zip(["", ".store"]) {
        if let Some(Some(stage)) = stage.get() {
            report::write(stage, place);
        }
    }
    code
}

/// Runs the trial of one client and one transport. The first trial starts the servers.
fn run(
    stage: &OnceLock<Option<Stage>>,
    client: &Client,
    transport: Transport,
    place: Place,
) -> Result<(), String> {
    let Some(stage) = stage.get_or_init(|| Stage::new(place)) else {
        return Ok(());
    };
    let directory = large::requested();
    match directory {
        Some(directory) => large::run(stage, client, transport, &directory),
        None => scenario::run(stage, client, transport),
    }
}
