//! `serve --store --generations`: generations in a PostgreSQL database.

use rustix::process::Signal;
use test_support::postgres::{PostgresServer, shows_password};
use test_support::skip;

use crate::serve::{Server, wait_until};
use crate::serve_store::{World, address, get};

macro_rules! start {
    () => {
        match PostgresServer::start() {
            Some(server) => server,
            None => skip!("postgresql is not installed"),
        }
    };
}

/// Starts a server whose generations are at `database`.
fn serve(world: &World, cache: &str, database: &str) -> Server {
    let text = format!(
        "create_on_push = true\n[http]\nmetrics = \"loopback\"\nlisten = [\"127.0.0.1:0\"]\n[[grant]]\nrepository = \"**\"\n\
         users = [\"anonymous\"]\nrole = \"admin\"\n[store]\nurl = \"{}\"\ncache = \"{cache}\"\n\
         generations = \"{database}\"\npatience_seconds = 1\n",
        world.url
    );
    let file = format!("{cache}.toml");
    std::fs::write(world.scratch.join(&file), text).expect("a file");
    Server::start(world.scratch.path(), &["--config", &file], "serving at")
}

const REFS: &str = "/r/info/refs?service=git-upload-pack";

#[test]
fn a_server_waits_for_its_database_and_goes_on_after_a_crash() {
    let mut database = start!();
    let world = World::new();
    database.crash();
    let one = serve(&world, "one", &database.url());
    let answer = get(&one, REFS);
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("\r\nretry-after: 5\r\n"), "{answer}");
    assert!(get(&one, "/healthz").starts_with("HTTP/1.1 503 "));
    database.resume();
    wait_until(|| get(&one, "/healthz").starts_with("HTTP/1.1 200 "));

    let two = serve(&world, "two", &database.url());
    let work = world.work.clone();
    world.commit(&work, "a");
    world.git(&work, &["push", "-q", &address(&one, "r"), "main"]);
    let url = address(&two, "r");
    world.git(world.scratch.path(), &["clone", "-q", &url, "clone"]);
    assert!(world.scratch.join("clone/a").exists());
    database.crash();
    assert!(get(&two, REFS).starts_with("HTTP/1.1 503 "));
    database.resume();
    wait_until(|| get(&two, REFS).starts_with("HTTP/1.1 200 "));
    let id = world.commit(&work, "b");
    world.git(&work, &["push", "-q", &url, "main"]);
    let listed = world.git(
        &work,
        &["ls-remote", &address(&one, "r"), "refs/heads/main"],
    );
    assert!(listed.starts_with(&id), "{listed}");
    let metrics = get(&two, "/metrics");
    for call in ["create", "read", "list"] {
        let counter = format!("pronto_server_store_calls_total{{call=\"database_{call}\"}}");
        assert!(metrics.contains(&counter), "{counter}: {metrics}");
    }
    one.signal(Signal::TERM);
    let log = one.end();
    assert!(
        log.contains("\"generation\":") && log.contains("\"calls\":"),
        "{log}"
    );
    assert!(log.contains("database 'postgres' at"), "{log}");
    assert!(!shows_password(&log), "{log}");
}

#[test]
fn commands_take_generations_from_a_database() {
    let database = start!();
    let world = World::new();
    world.commit(&world.work, "a");
    let generations = database.url();
    let run = |words: &[&str]| {
        let arguments = [&["store", "--generations", &generations], words].concat();
        let (success, out, err) = world.pronto(&arguments);
        assert!(success, "{words:?}: {err}");
        out
    };
    run(&["import", "work", &world.url, "r"]);
    assert_eq!(run(&["list", &world.url]), "r\n");
    assert!(run(&["list", &world.url, "r"]).starts_with("1\t"));
    assert!(run(&["verify", &world.url]).ends_with(" 0 problems\n"));
    run(&["upkeep", &world.url]);
    run(&["export", &world.url, "r", "exported"]);
    assert!(world.scratch.join("exported/HEAD").exists());
    // Into a store with generations of its own, and back.
    std::fs::create_dir(world.scratch.join("plain")).expect("a directory");
    let plain = format!("file://{}", world.scratch.join("plain").display());
    run(&["copy", &world.url, "r", &plain, "r"]);
    let arguments = ["store", "copy", &plain, "r", &world.url, "again"];
    let target = ["--target-generations", &generations];
    let (success, _, err) = world.pronto(&[&arguments[..], &target].concat());
    assert!(success, "{err}");
    assert_eq!(run(&["list", &world.url]), "again\nr\n");
    run(&["verify", &world.url]);

    let (success, _, err) = world.pronto(&["store", "verify", &world.url, "r"]);
    assert!(!success && err.contains("--generations"), "{err}");
    let wrong = generations.replace("se%2F", "secret%2Fse%2F");
    let words = [
        "serve",
        "--store",
        &world.url,
        "--generations",
        &wrong,
        "--check",
    ];
    let (success, _, err) = world.pronto(&words);
    assert!(
        !success && err.contains("password authentication failed"),
        "{err}"
    );
    assert!(
        err.contains("127.0.0.1") && !err.contains("secret") && !shows_password(&err),
        "{err}"
    );
    let words = [
        "serve",
        "--store",
        &world.url,
        "--generations",
        &generations,
        "--check",
    ];
    assert!(world.pronto(&words).0);
}
