//! `pronto` and `pronto-server` act as one program: `pronto` finds `pronto-server` in every
//! installation, and both have the same version.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use bstr::ByteSlice as _;

use crate::support::{
    Scratch, copy_program, install, process, pronto, pronto_path, stderr, stdout,
};

/// Modules that only servers need. Symbols name them in two forms.
const OF_SERVERS: &[[&str; 2]] = &[
    ["tokio", "runtime"],
    ["hyper", "proto"],
    ["h2", "proto"],
    ["russh", "server"],
    ["object_store", "client"],
    ["reqwest", "async_impl"],
    ["tokio_postgres", "connect"],
    ["pronto_server", "http"],
    ["pronto_store", "repository"],
];

fn server_path() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_pronto-server"))
}

/// Puts both programs into `scratch`, `pronto-server` at `server`.
fn installed(scratch: &Scratch, server: &str) -> PathBuf {
    let server = scratch.join(server);
    fs::create_dir_all(server.parent().expect("it has one")).expect("a directory");
    copy_program(server_path(), &server).expect("it is copied");
    install(scratch, "usr/bin", "pronto", |from, to| {
        copy_program(from, to)
    })
}

fn print_config(program: &Path) -> Command {
    let mut command = process(program);
    command.args(["serve", "--print-config"]);
    command
}

fn run(command: &mut Command) -> Output {
    command
        .env("PRONTO_NO_FALLBACK", "1")
        .output()
        .expect("it starts")
}

fn assert_prints_config(command: &mut Command) {
    let output = run(command);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("drain_seconds"));
}

/// Whether `program` contains a symbol of the module `path`.
fn contains(program: &[u8], [krate, module]: &[&str; 2]) -> bool {
    let mangled = format!("{}{krate}{}{module}", krate.len(), module.len());
    program.contains_str(mangled) || program.contains_str(format!("{krate}..{module}"))
}

#[test]
fn the_program_of_small_calls_has_nothing_of_servers() {
    let (small, server) = (fs::read(pronto_path()), fs::read(server_path()));
    let (small, server) = (small.expect("it is there"), server.expect("it is there"));
    for module in OF_SERVERS {
        assert!(contains(&server, module), "{module:?} is named otherwise");
        assert!(!contains(&small, module), "{module:?}");
    }
    assert!(small.len() < server.len());
}

#[test]
fn the_server_is_found_beside_the_program() {
    let scratch = Scratch::new();
    let program = installed(&scratch, "usr/bin/pronto-server");
    assert_prints_config(&mut print_config(&program));
    // Under other names, from other directories, and with a `PATH` without the directory.
    for name in ["git", "pronto"] {
        let link = scratch.join(name);
        symlink(&program, &link).expect("a link");
        assert_prints_config(print_config(&link).env("PATH", "/nonexistent"));
    }
    assert_prints_config(print_config(Path::new("usr/bin/pronto")).current_dir(scratch.path()));
    let path = scratch.join("usr/bin");
    let mut by_name = process("/usr/bin/env");
    by_name.args(["pronto", "serve", "--print-config"]);
    assert_prints_config(by_name.env("PATH", &path));
}

#[test]
fn the_server_is_found_where_packages_keep_it() {
    let scratch = Scratch::new();
    let program = installed(&scratch, "usr/libexec/pronto/pronto-server");
    assert_prints_config(&mut print_config(&program));
}

#[test]
fn options_before_the_command_aliases_and_directories_are_those_of_the_call() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.join("below")).expect("a directory");
    fs::write(scratch.join("below/server.toml"), "no = such\n").expect("a configuration");
    let mut command = pronto();
    command
        .current_dir(scratch.path())
        .args(["-C", "below", "-c", "alias.s=serve --check", "s"])
        .args(["--config", "server.toml"]);
    let output = run(&mut command);
    assert!(!output.status.success());
    assert!(
        stderr(&output).contains("below/server.toml"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_trace_is_that_of_the_server() {
    let scratch = Scratch::new();
    let trace = scratch.join("trace.json");
    let mut command = pronto();
    command.arg("--trace-chrome").arg(&trace);
    assert_prints_config(command.args(["serve", "--print-config"]));
    let trace = fs::read_to_string(&trace).expect("it is written");
    assert!(trace.contains("serve"), "{trace}");
    let parsed: Result<serde_json::Value, _> = serde_json::from_str(&trace);
    parsed.expect("it is complete");
}

#[test]
fn a_missing_server_is_named_with_where_it_is_looked_for() {
    let scratch = Scratch::new();
    let program = install(&scratch, "usr/bin", "pronto", copy_program);
    let output = run(&mut print_config(&program));
    let directory = program.parent().expect("it has one");
    let directory = fs::canonicalize(directory).expect("it is there");
    assert_eq!(output.status.code(), Some(128));
    let said = stderr(&output);
    for expected in [
        "fatal: 'serve' needs the program 'pronto-server', which is not installed",
        &format!("'{}'", directory.join("pronto-server").display()),
        "usr/libexec/pronto/pronto-server'",
        &format!("'pronto-server' {}", env!("CARGO_PKG_VERSION")),
    ] {
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn help_and_wrong_options_need_no_server() {
    let scratch = Scratch::new();
    let program = install(&scratch, "usr/bin", "pronto", copy_program);
    let call = |arguments: &[&str]| {
        let output = run(process(&program)
            .args(arguments)
            .env("PATH", "/nonexistent"));
        (output.status.code(), stdout(&output) + &stderr(&output))
    };
    let (code, said) = call(&["serve", "-h"]);
    assert_eq!(code, Some(129));
    assert!(said.contains("--tls-cert"), "{said}");
    let (code, said) = call(&["help", "store"]);
    assert_eq!(code, Some(0));
    assert!(said.contains("--target-generations"), "{said}");
    let (code, said) = call(&["serve", "--role=none", "--store=file:///x"]);
    assert_eq!(code, Some(129));
    assert!(said.contains("use 'serve', 'upkeep' or 'both'"), "{said}");
    // Git has a command of this name.
    let (_, said) = call(&["shell"]);
    assert!(said.contains("'shell' without --config"), "{said}");
    let (_, listed) = call(&["--list-native"]);
    for command in ["serve", "shell", "store"] {
        assert!(listed.lines().any(|line| line == command), "{listed}");
    }
}

#[test]
fn programs_of_two_versions_refuse_to_work_together() {
    let mut shell = process("/bin/sh");
    shell
        .args([
            "-c",
            r#"PRONTO_CALLER="$$;9.8.7;/x/pronto" exec "$0" serve --print-config"#,
        ])
        .arg(server_path());
    let output = run(&mut shell);
    assert_eq!(output.status.code(), Some(128));
    let expected = format!(
        "fatal: '/x/pronto' is version 9.8.7, but '{}' is version {}\n\
         hint: install both programs from one release of pronto\n",
        server_path().display(),
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(stderr(&output), expected);
    // What a parent has left behind concerns no child.
    let mut child = print_config(server_path());
    assert_prints_config(child.env("PRONTO_CALLER", "1;9.8.7;/x/pronto"));
}

#[test]
fn the_server_alone_runs_every_command() {
    let output = run(process(server_path()).arg("version"));
    assert!(stdout(&output).starts_with("pronto version "));
}

#[test]
fn a_static_program_looks_up_hosts() {
    let path = std::env::var("PATH").expect("a path");
    // Without `getent`, the C library in the program looks them up.
    for path in [path.as_str(), "/nonexistent"] {
        let mut command = Command::new(pronto_path());
        let output = run(command
            .args(["ls-remote", "git://localhost:1/repository"])
            .env("PATH", path));
        let said = stderr(&output);
        assert!(
            said.contains("localhost[0: 127.0.0.1]") || said.contains("localhost[0: ::1]"),
            "{said}"
        );
    }
    let output =
        run(Command::new(pronto_path()).args(["ls-remote", "git://no-such-host.invalid/x"]));
    assert!(
        stderr(&output).contains("unable to look up no-such-host.invalid"),
        "{}",
        stderr(&output)
    );
}
