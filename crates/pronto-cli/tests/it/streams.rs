//! Closed and full output streams.

use std::fs::OpenOptions;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use crate::support::{pronto, stderr};

#[test]
fn a_closed_pipe_ends_the_command_by_the_signal() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = pronto()
        .arg("help")
        .stdout(writer)
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs")
        .wait_with_output()
        .expect("it ends");
    assert_eq!(output.status.signal(), Some(13));
    assert_eq!(stderr(&output), "");
}

#[test]
fn a_full_device_is_reported() {
    let full = OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .expect("Linux has /dev/full");
    let output = pronto()
        .arg("version")
        .stdout(full)
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs")
        .wait_with_output()
        .expect("it ends");
    assert_eq!(output.status.code(), Some(128));
    assert_eq!(
        stderr(&output),
        "fatal: write failure on standard output: No space left on device\n"
    );
}
