//! SIGINT and its kin: the operation is asked to stop, what it made is removed, and the process
//! dies by the signal itself, so that the shell knows.

use std::io;
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pronto_io::interrupt::Interrupt;
use pronto_trace::Session;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

/// How long an operation has to notice the interrupt and to unwind.
const GRACE: Duration = Duration::from_secs(1);

/// Waits for signals on behalf of one command. Cloning shares it.
#[derive(Clone, Debug)]
pub(crate) struct Watch(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// The first signal that came.
    signal: AtomicI32,
    /// Held for good by whoever ends the process.
    ending: Mutex<()>,
    /// Triggered by the first signal instead, if there is one.
    drain: Mutex<Option<Interrupt>>,
    trace: Option<Session>,
}

impl Watch {
    /// Starts a thread that waits for signals, and triggers `interrupt` on the first. Signals
    /// that were ignored when the process started stay so.
    pub(crate) fn start(interrupt: Interrupt, trace: Option<Session>) -> io::Result<Self> {
        let watch = Watch(Arc::new(Shared {
            trace,
            ..Shared::default()
        }));
        let shared = watch.clone();
        let wanted = [SIGINT, SIGTERM, SIGHUP, SIGQUIT].into_iter();
        let wanted = wanted.filter(|signal| !pronto_io::process::ignores_signal(*signal));
        let mut signals = Signals::new(wanted)?;
        std::thread::Builder::new()
            .name("signals".into())
            .spawn(move || {
                while let Some(signal) = signals.forever().next() {
                    if shared.drain() {
                        continue;
                    }
                    shared.0.signal.store(signal, SeqCst);
                    interrupt.trigger();
                    let end = Instant::now() + GRACE;
                    // A second signal means: now.
                    while Instant::now() < end && signals.pending().next().is_none() {
                        std::thread::sleep(Duration::from_millis(10));
                    }
                    shared.end_if_asked();
                    return;
                }
            })?;
        Ok(watch)
    }

    /// The first signal triggers `drain` and does nothing else, the second is as the first would be.
    pub(crate) fn drain_first(&self, drain: Interrupt) {
        *self.0.drain.lock().unwrap_or_else(PoisonError::into_inner) = Some(drain);
    }

    /// Whether there was something to drain.
    fn drain(&self) -> bool {
        let mut drain = self.0.drain.lock().unwrap_or_else(PoisonError::into_inner);
        drain.take().map(|drain| drain.trigger()).is_some()
    }

    /// Cleans up and dies, if a signal has come; else returns at once.
    pub(crate) fn end_if_asked(&self) {
        let signal = self.0.signal.load(SeqCst);
        if signal == 0 {
            return;
        }
        let _forever = self.0.ending.lock().unwrap_or_else(PoisonError::into_inner);
        pronto_io::cleanup::remove_all();
        gix_tempfile::registry::cleanup_tempfiles();
        if let Some(trace) = &self.0.trace {
            trace.signal(signal);
        }
        // Only returns if the signal is blocked.
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::ExitStatusExt;
    use std::path::Path;
    use std::process::{Child, Command, Stdio};

    use rustix::process::{Pid, Signal, kill_process};

    use super::*;

    const VARIABLE: &str = "PRONTO_TEST_SIGNALS";

    /// Not a test by itself: what runs in the process that gets the signals.
    #[test]
    fn in_a_process_of_its_own() {
        let Some(file) = std::env::var_os(VARIABLE) else {
            return;
        };
        let interrupt = Interrupt::new();
        let watch = Watch::start(interrupt.clone(), None).expect("signals can be watched");
        let _guard = pronto_io::cleanup::Guard::new(&file);
        std::fs::write(&file, b"half").expect("a file");
        println!("\nready");
        while !interrupt.is_triggered() {
            std::thread::sleep(Duration::from_millis(1));
        }
        if Path::new(&file).with_extension("stuck").exists() {
            std::thread::sleep(Duration::from_secs(60));
        }
        watch.end_if_asked();
    }

    /// Starts the process above and waits until it waits for signals.
    fn start(program: &mut Command, file: &Path) -> Child {
        let mut child = program
            .args([
                "--exact",
                "signals::tests::in_a_process_of_its_own",
                "--nocapture",
            ])
            .env(VARIABLE, file)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("this binary runs");
        let stdout = child.stdout.take().expect("it is piped");
        let ready = BufReader::new(stdout)
            .lines()
            .any(|line| line.is_ok_and(|line| line == "ready"));
        assert!(ready, "it says when it is ready");
        child
    }

    fn own_binary() -> Command {
        Command::new(std::env::current_exe().expect("this binary has a path"))
    }

    fn send(child: &Child, signal: Signal) {
        let process = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        kill_process(process.expect("a process"), signal).expect("it runs still");
    }

    #[test]
    fn it_cleans_up_and_dies_of_the_signal() {
        let directory = tempfile::tempdir().expect("a directory");
        for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
            let file = directory.path().join("file");
            let mut child = start(&mut own_binary(), &file);
            assert!(file.exists());
            send(&child, signal);
            let status = child.wait().expect("it ends");
            assert_eq!(status.signal(), Some(signal.as_raw()));
            assert!(!file.exists());
        }
    }

    #[test]
    fn an_operation_that_does_not_stop_is_not_waited_for() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("file");
        std::fs::write(file.with_extension("stuck"), b"").expect("a file");
        let mut child = start(&mut own_binary(), &file);
        let begun = Instant::now();
        send(&child, Signal::INT);
        assert_eq!(child.wait().expect("it ends").signal(), Some(SIGINT));
        assert!(begun.elapsed() < Duration::from_secs(30));
        assert!(!file.exists());
    }

    #[test]
    fn what_was_ignored_from_the_start_stays_so() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("file");
        let mut program = Command::new("sh");
        program
            .args(["-c", "trap '' HUP; exec \"$0\" \"$@\""])
            .arg(own_binary().get_program());
        let mut child = start(&mut program, &file);
        send(&child, Signal::HUP);
        std::thread::sleep(Duration::from_millis(50));
        assert!(child.try_wait().expect("it can be asked").is_none());
        send(&child, Signal::TERM);
        assert_eq!(child.wait().expect("it ends").signal(), Some(SIGTERM));
    }
}
