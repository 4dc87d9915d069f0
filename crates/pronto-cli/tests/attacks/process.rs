//! Runs the command of a row with limits.

use std::ffi::OsString;
use std::io::{Read, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use wait4::Wait4 as _;

use crate::attack::{Attack, Program, Scene};
use crate::control;

/// The maximum number of bytes kept of each stream.
const KEPT_BYTES: usize = 1 << 20;

/// The address space of a command in KiB, so that an attack cannot exhaust the memory of the
/// machine.
const SPACE_KIB: u64 = 3 << 20;

/// The time for which processes of the command may continue after its end.
const PATIENCE: Duration = Duration::from_secs(20);

/// The environment variable that names the row in all its processes.
const MARK: &str = "PRONTO_ATTACK_ROW";

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) is_timed_out: bool,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) peak_mebibytes: u64,
    pub(crate) survivors: Vec<String>,
}

impl Outcome {
    /// Returns both streams as text.
    pub(crate) fn said(&self) -> String {
        let mut text = String::from_utf8_lossy(&self.stdout).into_owned();
        text.push_str(&String::from_utf8_lossy(&self.stderr));
        text
    }

    pub(crate) fn end(&self) -> String {
        match (self.is_timed_out, self.code, self.signal) {
            (true, ..) => "no end".to_owned(),
            (_, Some(code), _) => format!("code {code}"),
            (_, _, signal) => format!("signal {}", signal.unwrap_or_default()),
        }
    }

    pub(crate) fn is_panic(&self) -> bool {
        let said = self.said();
        said.contains("panicked at") || said.contains("has overflowed its stack")
    }
}

/// Runs the command of `attack`, and waits for it and its descendants.
pub(crate) fn run(scene: &Scene, attack: &Attack) -> Outcome {
    static ROWS: AtomicUsize = AtomicUsize::new(0);
    let mark = format!(
        "{}-{}",
        std::process::id(),
        ROWS.fetch_add(1, Ordering::Relaxed)
    );
    let mut child = prepare(scene, attack, &mark)
        .spawn()
        .expect("the command starts");
    if let Some(mut pipe) = child.stdin.take() {
        let input = attack.input.clone();
        // Writing fails if the command ends before it has read everything.
        std::thread::spawn(move || _ = pipe.write_all(&input));
    }
    let stdout = drain(child.stdout.take().expect("it is a pipe"));
    let stderr = drain(child.stderr.take().expect("it is a pipe"));
    let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let id = id.expect("a process has an id");
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || _ = sender.send(child.wait4()));
    let bound = Duration::from_secs(attack.seconds);
    let (ended, is_timed_out) = match receiver.recv_timeout(bound) {
        Ok(ended) => (ended, false),
        Err(_) => {
            let _ = kill_process_group(id, Signal::KILL);
            (receiver.recv().expect("it is waited for"), true)
        }
    };
    let survivors = survivors(&mark, is_timed_out);
    let ended = ended.expect("it can be waited for");
    Outcome {
        code: ended.status.code(),
        signal: ended.status.signal(),
        is_timed_out,
        stdout: stdout.join().expect("no panic"),
        stderr: stderr.join().expect("no panic"),
        peak_mebibytes: peak_mebibytes(ended.rusage.maxrss),
        survivors,
    }
}

/// Returns the peak memory of a command. A process starts with the memory of its parent, so smaller
/// values have no meaning.
fn peak_mebibytes(bytes: u64) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.and_then(|line| line.split_ascii_whitespace().nth(1));
    let own_kib: u64 = number.and_then(|text| text.parse().ok()).unwrap_or(0);
    match bytes > own_kib << 10 {
        true => bytes >> 20,
        false => 0,
    }
}

fn prepare(scene: &Scene, attack: &Attack, mark: &str) -> Command {
    let program = match scene.program {
        Program::Pronto => Path::new(env!("CARGO_BIN_EXE_pronto")),
        Program::Git => control::find().expect("control runs are made only with it"),
    };
    let mut words = vec![program.as_os_str().to_owned()];
    words.extend(attack.arguments.iter().cloned());
    if attack.is_on_terminal {
        words = vec![
            "script".into(),
            "-qec".into(),
            quoted(&words),
            "/dev/null".into(),
        ];
    }
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(format!("ulimit -c 0; ulimit -v {SPACE_KIB}; exec \"$@\""))
        .arg("sh")
        .args(words)
        .current_dir(scene.path(&attack.directory))
        .env_clear()
        .env("PATH", path())
        .env("HOME", scene.path("home"))
        .env("TMPDIR", scene.path("tmp"))
        .env("LC_ALL", "C.UTF-8")
        .env("TERM", "xterm")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_CEILING_DIRECTORIES", scene.root())
        .env(MARK, mark)
        .stdin(match attack.input.is_empty() {
            true => Stdio::null(),
            false => Stdio::piped(),
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    match (attack.may_hand_over, control::find()) {
        (false, _) => _ = command.env("PRONTO_NO_FALLBACK", "1"),
        (true, Ok(git)) => _ = command.env("PRONTO_GIT", git),
        (true, Err(_)) => {}
    }
    command.envs(attack.variables.iter().map(|(name, value)| (name, value)));
    command
}

/// Returns `PATH` with the control git at its front.
pub(crate) fn path() -> OsString {
    let mut path = OsString::new();
    if let Some(programs) = control::programs() {
        path.push(programs);
        path.push(":");
    }
    path.push(std::env::var_os("PATH").unwrap_or_default());
    path
}

/// Quotes `words` as one command line for a shell.
fn quoted(words: &[OsString]) -> OsString {
    let mut line = OsString::new();
    for word in words {
        let bytes = std::os::unix::ffi::OsStrExt::as_bytes(word.as_os_str());
        let text = String::from_utf8_lossy(bytes).replace('\'', "'\\''");
        line.push(format!("'{text}' "));
    }
    line
}

/// Reads a stream to its end and returns its beginning.
fn drain(mut stream: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let (mut kept, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
        loop {
            match stream.read(&mut buffer) {
                Ok(0) | Err(_) => return kept,
                Ok(count) => {
                    let room = KEPT_BYTES.saturating_sub(kept.len()).min(count);
                    kept.extend_from_slice(&buffer[..room]);
                }
            }
        }
    })
}

/// Kills the processes of this row that have not ended, and returns their names.
fn survivors(mark: &str, is_timed_out: bool) -> Vec<String> {
    let end = Instant::now() + PATIENCE;
    loop {
        let left = marked(mark);
        if left.is_empty() {
            return Vec::new();
        }
        if is_timed_out || Instant::now() > end {
            left.iter()
                .for_each(|(id, _)| _ = kill_process(*id, Signal::KILL));
            // Processes that are killed together with the command do not count.
            let names = left.into_iter().map(|(_, name)| name);
            return names.filter(|_| !is_timed_out).collect();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the processes with the mark in their environment.
fn marked(mark: &str) -> Vec<(Pid, String)> {
    let wanted = format!("{MARK}={mark}").into_bytes();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let id = entry.file_name().to_str()?.parse().ok()?;
            let variables = std::fs::read(entry.path().join("environ")).ok()?;
            let has_mark = variables.split(|byte| *byte == 0).any(|one| one == wanted);
            let words = std::fs::read(entry.path().join("cmdline")).ok()?;
            let name = String::from_utf8_lossy(&words).replace('\0', " ");
            has_mark.then_some((Pid::from_raw(id)?, name))
        })
        .collect()
}
