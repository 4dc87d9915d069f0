//! Runs one row with one program, and checks the effects.

use std::fmt::Write as _;
use std::path::PathBuf;

use crate::attack::{Attack, Exit, Program, Scene};
use crate::process::{self, Outcome};
use crate::rows::Row;
use crate::snapshot::{self, Snapshot};

/// The directories to which a command may write: its own directory, and the directory for temporary
/// files.
const WRITABLE: &[&str] = &["work", "tmp"];

const SIGPIPE: i32 = 13;

/// The variable that makes every row print the exit code of its command.
const VERBOSE: &str = "PRONTO_TEST_VERBOSE";

/// Runs `row` with `program`. Returns the reason if the row is skipped.
///
/// # Errors
/// Fails with the violated conditions and the output of the command.
pub(crate) fn judge(row: &Row, program: Program) -> Result<Option<String>, String> {
    if let (Program::Git, Some(reason)) = (program, row.only_pronto) {
        return Ok(Some(reason.to_owned()));
    }
    let mut scene = Scene::new(program);
    let attack = (row.arm)(&mut scene);
    let left_out = match program {
        Program::Git => attack.only_pronto.or(attack.skipped),
        Program::Pronto => attack.skipped,
    };
    if let Some(reason) = left_out {
        return Ok(Some(reason.to_owned()));
    }
    let before = protected(&scene, &attack);
    let outcome = process::run(&scene, &attack);
    let mut report = String::new();
    let after = protected(&scene, &attack);
    let changes = snapshot::differences(&before, &after);
    if !changes.is_empty() {
        _ = writeln!(report, "- what is outside of the clone changed:\n{changes}");
    }
    bounds(&attack, &outcome, program, &mut report);
    leaks(&scene, &mut report);
    terminal(&attack, &outcome, &mut report);
    for path in &attack.absent {
        if scene.path(path).symlink_metadata().is_ok() {
            _ = writeln!(report, "- '{}' stands there", path.display());
        }
    }
    for check in &attack.checks {
        if let Err(problem) = check(&scene, &outcome) {
            _ = writeln!(report, "- {problem}");
        }
    }
    if std::env::var_os(VERBOSE).is_some() {
        println!(
            "== {}: {}/{}: {}, {} MiB: {:?}",
            program.name(),
            row.class,
            row.name,
            outcome.end(),
            outcome.peak_mebibytes,
            outcome.said()
        );
    }
    if report.is_empty() {
        if let (Program::Git, Some(reason)) = (program, attack.git_differs) {
            println!("STALE: git holds {}/{}: {reason}", row.class, row.name);
        }
        return Ok(None);
    }
    if let (Program::Git, Some(reason)) = (program, attack.git_differs) {
        return Ok(Some(format!("git differs: {reason}")));
    }
    Err(format!(
        "{report}{:?} ended with {}\nstdout:\n{}\nstderr:\n{}",
        attack.arguments,
        outcome.end(),
        String::from_utf8_lossy(&outcome.stdout),
        String::from_utf8_lossy(&outcome.stderr),
    ))
}

/// Returns a snapshot of everything that must not change.
fn protected(scene: &Scene, attack: &Attack) -> Snapshot {
    let writable: Vec<PathBuf> = WRITABLE.iter().map(|name| scene.path(name)).collect();
    let mut found = snapshot::take(scene.root(), &writable);
    // The sandbox itself counts only as a directory.
    found.remove(scene.root());
    for path in &attack.kept {
        found.extend(snapshot::take(&scene.path(path), &[]));
    }
    found
}

fn bounds(attack: &Attack, outcome: &Outcome, program: Program, report: &mut String) {
    if outcome.is_timed_out {
        _ = writeln!(report, "- runs longer than {} s", attack.seconds);
    }
    if outcome.peak_mebibytes > attack.mebibytes {
        _ = writeln!(
            report,
            "- takes {} MiB of memory, more than {}",
            outcome.peak_mebibytes, attack.mebibytes
        );
    }
    for survivor in &outcome.survivors {
        _ = writeln!(report, "- leaves a process: {survivor}");
    }
    if outcome.is_panic() {
        report.push_str("- panics\n");
    }
    // Git ends by SIGPIPE when a server closes early. A shell treats that as any failure.
    let is_pipe = program == Program::Git && outcome.signal == Some(SIGPIPE);
    if let Some(signal) = outcome.signal.filter(|_| !outcome.is_timed_out && !is_pipe) {
        _ = writeln!(report, "- is killed by signal {signal}");
    }
    let is_right = match attack.exit {
        Exit::Any => true,
        Exit::Succeeds => outcome.code == Some(0),
        Exit::Fails => is_pipe || outcome.code.is_some_and(|code| code != 0),
    };
    if !is_right {
        _ = writeln!(report, "- ends with {}: {:?}", outcome.end(), attack.exit);
    }
}

/// Finds canaries in the logs of servers that must not receive them.
fn leaks(scene: &Scene, report: &mut String) {
    for server in &scene.servers {
        let log = server.log.bytes();
        let mut texts = vec![String::from_utf8_lossy(&log).into_owned()];
        texts.extend(decoded(&log));
        for secret in &scene.secrets {
            let is_owner = secret.owner == Some(server.port);
            if !is_owner && texts.iter().any(|text| text.contains(&secret.text)) {
                _ = writeln!(
                    report,
                    "- the server at port {} received {}:\n{}",
                    server.port, secret.text, texts[0]
                );
            }
        }
    }
}

/// Decodes the text after `Basic` in a log.
fn decoded(log: &[u8]) -> Vec<String> {
    const MARK: &[u8] = b"Basic ";
    let starts = log.windows(MARK.len()).enumerate();
    starts
        .filter(|(_, window)| window.eq_ignore_ascii_case(MARK))
        .map(|(at, _)| base64(&log[at + MARK.len()..]))
        .collect()
}

/// Returns the text before the first byte that is not base64.
fn base64(text: &[u8]) -> String {
    let (mut bits, mut count, mut bytes) = (0_u32, 0, Vec::new());
    for digit in text {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => break,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Finds control characters in terminal output. Colours are allowed.
fn terminal(attack: &Attack, outcome: &Outcome, report: &mut String) {
    let mut streams = vec![&outcome.stderr];
    if !attack.has_raw_output {
        streams.push(&outcome.stdout);
    }
    for bytes in streams {
        if let Some(line) = first_control(bytes, attack.is_on_terminal) {
            _ = writeln!(report, "- a control character is printed: {line:?}");
        }
    }
}

/// Returns the text around the first control character that is not allowed.
fn first_control(bytes: &[u8], is_terminal: bool) -> Option<String> {
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        if let Some(length) = sequence(&bytes[at..], is_terminal) {
            at += length;
            continue;
        }
        if byte < 0x20 && !b"\n\t\r".contains(&byte) || byte == 0x7f {
            let around = &bytes[at.saturating_sub(40)..bytes.len().min(at + 40)];
            return Some(String::from_utf8_lossy(around).into_owned());
        }
        at += 1;
    }
    None
}

/// Returns the length of an escape sequence that sets a colour or, on a terminal, clears the rest
/// of a line.
fn sequence(bytes: &[u8], is_terminal: bool) -> Option<usize> {
    let rest = bytes.strip_prefix(b"\x1b[")?;
    let length = rest
        .iter()
        .position(|byte| !byte.is_ascii_digit() && *byte != b';')?;
    match rest[length] {
        b'm' => Some(length + 3),
        b'K' if is_terminal => Some(length + 3),
        _ => None,
    }
}
