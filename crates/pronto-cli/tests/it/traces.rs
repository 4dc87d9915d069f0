//! Compares traces line by line with those of git.

use crate::support::{Scratch, process, pronto, stderr, stdout};

/// Returns the traces of `version` by pronto and by git, without the parts that must differ.
fn both(variable: &str, brief: &str) -> (Vec<String>, Vec<String>) {
    let trace = |mut command: std::process::Command| {
        let output = command
            .arg("version")
            .env(variable, "1")
            .env(brief, "1")
            .output();
        stderr(&output.expect("it runs"))
            .lines()
            .map(simplify)
            .collect::<Vec<_>>()
    };
    (trace(pronto()), trace(process("git")))
}

fn simplify(line: &str) -> String {
    let mut out = String::new();
    for (at, part) in line.split_inclusive([' ', ',', '"', ':']).enumerate() {
        let is_number = part.bytes().any(|byte| byte.is_ascii_digit());
        if at > 0 && is_number {
            out.push('N')
        } else {
            out.push_str(part)
        }
    }
    out
}

#[test]
fn the_trace_of_a_process_equals_that_of_git() {
    for (variable, brief) in [
        ("GIT_TRACE2", "GIT_TRACE2_BRIEF"),
        ("GIT_TRACE2_PERF", "GIT_TRACE2_PERF_BRIEF"),
        ("GIT_TRACE2_EVENT", "GIT_TRACE2_EVENT_BRIEF"),
    ] {
        let (ours, theirs) = both(variable, brief);
        let shape = |lines: &[String]| -> Vec<String> {
            lines
                .iter()
                .filter(|line| !line.contains("version") || line.contains("atexit"))
                .filter(|line| !line.contains("start") && !line.contains("ancestry"))
                .cloned()
                .collect()
        };
        assert_eq!(shape(&ours), shape(&theirs), "{variable}");
        assert_eq!(ours.len(), theirs.len(), "{variable}: {ours:?} {theirs:?}");
    }
}

#[test]
fn a_directory_gets_a_file_for_each_process() {
    let scratch = Scratch::new();
    for _ in 0..2 {
        let output = pronto()
            .arg("version")
            .env("GIT_TRACE2_EVENT", scratch.path())
            .output()
            .expect("it runs");
        assert_eq!(stderr(&output), "");
    }
    let files: Vec<_> = std::fs::read_dir(scratch.path())
        .expect("a directory")
        .collect();
    assert_eq!(files.len(), 2);
}

#[test]
fn a_descriptor_and_a_socket_may_be_named() {
    let output = process("sh")
        .args(["-c", "exec \"$0\" version 7>&1 >/dev/null"])
        .arg(crate::support::pronto_path())
        .env("GIT_TRACE2", "7")
        .output()
        .expect("it runs");
    assert!(
        stdout(&output).contains("cmd_name version (version)"),
        "{}",
        stderr(&output)
    );

    let scratch = Scratch::new();
    let path = scratch.path().join("socket");
    let listener = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
    let mut child = pronto()
        .arg("version")
        .env("GIT_TRACE2_EVENT", format!("af_unix:{}", path.display()))
        .spawn()
        .expect("it runs");
    let (mut stream, _) = listener.accept().expect("it connects");
    let mut text = String::new();
    std::io::Read::read_to_string(&mut stream, &mut text).expect("it writes");
    assert!(child.wait().expect("it ends").success());
    assert!(text.ends_with("\"code\":0}\n"), "{text}");
}

#[test]
fn an_invalid_destination_is_only_a_warning() {
    for (variable, words) in [
        ("GIT_TRACE2", "trace2: unknown value"),
        ("GIT_TRACE_PERFORMANCE", "unknown trace value"),
    ] {
        let output = pronto()
            .arg("version")
            .env(variable, "abc")
            .output()
            .expect("it runs");
        assert!(stderr(&output).starts_with(&format!("warning: {words} for '{variable}'")));
        assert_eq!(output.status.code(), Some(0));
    }
}

#[test]
fn the_chrome_format_has_its_own_file() {
    let scratch = Scratch::new();
    let path = scratch.path().join("trace.json");
    let output = pronto()
        .arg("--trace-chrome")
        .arg(&path)
        .arg("version")
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(0));
    let text = std::fs::read_to_string(path).expect("the trace was written");
    assert!(text.starts_with("[\n") && text.ends_with("{}]\n"));
}
