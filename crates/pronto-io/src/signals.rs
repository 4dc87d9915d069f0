//! Handles SIGINT and other signals that end a process. The first signal interrupts the operation.
//! If the operation does not end within a second, or at a second signal, the handler removes the
//! paths of [guards](crate::cleanup), and the process dies of the signal.
//!
//! The handler does all of this itself. A thread that waits for signals would be simpler, but would
//! add a tenth to the run time of a short command.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, Ordering::SeqCst};
use std::{mem, ptr};

use libc::c_int;

use crate::cleanup;
use crate::interrupt::Interrupt;

/// The time in seconds that an operation has to stop after the interrupt.
const GRACE: u32 = 1;

/// The signals that request a process to end.
const WATCHED: [c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// The first signal that was received, or 0.
static CAUGHT: AtomicI32 = AtomicI32::new(0);

/// Set by the thread that ends the process, and never reset.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// The interrupt flag of the first signal, and the drain flag, which replaces the interrupt flag
/// once. Each is null or a flag that is never freed.
static INTERRUPT: AtomicPtr<AtomicBool> = AtomicPtr::new(ptr::null_mut());
static DRAIN: AtomicPtr<AtomicBool> = AtomicPtr::new(ptr::null_mut());

/// The flag that SIGHUP sets instead, each time. Null or never freed.
static RELOAD: AtomicPtr<AtomicBool> = AtomicPtr::new(ptr::null_mut());

/// Makes the first of SIGINT, SIGTERM, SIGHUP and SIGQUIT trigger `interrupt`. Signals that were
/// ignored at the start of the process stay ignored. Costs five system calls, and one for each
/// ignored signal. Call this before other threads exist. A later call replaces the interrupt, whose
/// flag is never freed.
///
/// # Errors
/// Fails with the errors of `sigaction(2)`.
pub fn watch(interrupt: &Interrupt) -> io::Result<()> {
    INTERRUPT.store(interrupt.leak(), SeqCst);
    // The inherited signal mask must not block the alarm.
    unblock(libc::SIGALRM);
    for signal in WATCHED {
        let before = handle(signal)?;
        if before.sa_sigaction == libc::SIG_IGN {
            // SAFETY: ignoring a signal runs no code.
            unsafe { libc::sigaction(signal, &raw const before, ptr::null_mut()) };
        }
    }
    Ok(())
}

/// Makes the first signal trigger only `drain`. The second signal then has the effect of a first
/// signal. May be called from any thread. The flag is never freed.
pub fn drain_first(drain: &Interrupt) {
    DRAIN.store(drain.leak(), SeqCst);
}

/// Makes every SIGHUP trigger only `reload`. May be called from any thread. The flag is never
/// freed.
pub fn reload_on_hangup(reload: &Interrupt) {
    RELOAD.store(reload.leak(), SeqCst);
}

/// Ends the process if a signal has requested that: removes the paths of guards, calls `farewell`
/// with the number of the signal, and dies of the signal. Otherwise returns at once, for one atomic
/// load. May be called from any thread; all threads but the first one wait for the end.
pub fn exit_if_signalled(farewell: impl FnOnce(i32)) {
    let signal = CAUGHT.load(SeqCst);
    if signal == 0 {
        return;
    }
    if !IS_ENDING.swap(true, SeqCst) {
        cleanup::remove_all();
        farewell(signal);
        die_of(signal);
    }
    // Another thread, or the handler in it, is ending the process.
    loop {
        std::thread::park();
    }
}

/// Ends the process with the default action of `signal`, or with the exit code 128 + `signal` if
/// that action does not end processes. May be called from any thread and from signal handlers.
pub fn die_of(signal: i32) -> ! {
    // SAFETY: functions that POSIX allows in signal handlers; the default action runs no Rust code.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
        unblock(signal);
        // The default action of this signal does not end the process.
        libc::_exit(128 + signal)
    }
}

/// Unblocks `signal` in this thread.
fn unblock(signal: c_int) {
    // SAFETY: functions that POSIX allows in signal handlers, with a set that lives on the stack.
    unsafe {
        let mut only: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut only);
        libc::sigaddset(&raw mut only, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const only, ptr::null_mut());
    }
}

/// Installs `on_signal` as the handler of `signal`. Returns the previous action.
fn handle(signal: c_int) -> io::Result<libc::sigaction> {
    // SAFETY: `on_signal` does what handlers may do alone; both actions live on the stack, and
    // all zeros are valid for them.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = on_signal as extern "C" fn(c_int) as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        let mut old: libc::sigaction = mem::zeroed();
        if libc::sigaction(signal, &raw const action, &raw mut old) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(old)
    }
}

/// Sets `flag` unless it is null. Returns whether the flag was set.
fn trigger(flag: *mut AtomicBool) -> bool {
    // SAFETY: null, or a flag that was leaked.
    let flag = unsafe { flag.as_ref() };
    flag.inspect(|flag| flag.store(true, SeqCst)).is_some()
}

/// The signal handler. It does only what POSIX allows in a handler: atomics and system calls, no
/// allocation, no lock.
extern "C" fn on_signal(signal: c_int) {
    if signal == libc::SIGHUP && trigger(RELOAD.load(SeqCst)) {
        return;
    }
    if signal != libc::SIGALRM {
        if trigger(DRAIN.swap(ptr::null_mut(), SeqCst)) {
            return;
        }
        if CAUGHT.compare_exchange(0, signal, SeqCst, SeqCst).is_ok() {
            trigger(INTERRUPT.load(SeqCst));
            // Without the alarm, a second signal still ends the process.
            if handle(libc::SIGALRM).is_ok() {
                // SAFETY: allowed in handlers.
                unsafe { libc::alarm(GRACE) };
            }
            return;
        }
    }
    let caught = CAUGHT.load(SeqCst);
    if caught != 0 && !IS_ENDING.swap(true, SeqCst) {
        cleanup::remove_all_in_handler();
        die_of(caught);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::ExitStatusExt;
    use std::path::{Path, PathBuf};
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use rustix::process::{Pid, Signal, kill_process};
    use test_support::{ignoring_signal, with_default_signals};

    use super::*;

    const VARIABLE: &str = "PRONTO_TEST_SIGNALS";

    /// Not a test by itself: the code of the child process that receives the signals.
    #[test]
    fn in_a_process_of_its_own() {
        let Some(file) = std::env::var_os(VARIABLE).map(PathBuf::from) else {
            return;
        };
        let interrupt = Interrupt::new();
        watch(&interrupt).expect("signals can be watched");
        let _guard = cleanup::Guard::new(&file);
        let tree = file.with_extension("tree");
        let guard = cleanup::Guard::new(&tree);
        std::fs::create_dir_all(tree.join("a/b")).expect("directories");
        let unwinding = file.with_extension("unwinding").exists();
        for number in 0..if unwinding { 1000 } else { 1 } {
            std::fs::write(tree.join(format!("a/b/{number}")), b"half").expect("a file");
        }
        std::fs::write(&file, b"half").expect("a file");
        println!("\nready");
        while !interrupt.is_triggered() {
            std::thread::sleep(Duration::from_millis(1));
        }
        if Path::new(&file).with_extension("stuck").exists() {
            std::thread::sleep(Duration::from_secs(60));
        }
        if unwinding {
            std::fs::write(file.with_extension("began"), b"").expect("a file");
            drop(guard);
        }
        exit_if_signalled(|_| ());
    }

    /// Starts the child process and waits until it has installed its handlers.
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

    fn own_path() -> PathBuf {
        std::env::current_exe().expect("this binary has a path")
    }

    fn own_binary() -> Command {
        with_default_signals(own_path())
    }

    /// Returns a command for this binary, which ignores `signal`.
    fn own_binary_ignoring(signal: &str) -> Command {
        ignoring_signal(signal, own_path())
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
        assert_eq!(child.wait().expect("it ends").signal(), Some(libc::SIGINT));
        assert!(begun.elapsed() < Duration::from_secs(30));
        assert!(!file.exists());
        assert!(!file.with_extension("tree").exists());
    }

    #[test]
    fn what_is_being_removed_is_removed_though_a_second_signal_comes() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("file");
        std::fs::write(file.with_extension("unwinding"), b"").expect("a file");
        let mut child = start(&mut own_binary(), &file);
        send(&child, Signal::INT);
        while !file.with_extension("began").exists() {
            std::thread::sleep(Duration::from_micros(100));
        }
        send(&child, Signal::INT);
        assert_eq!(child.wait().expect("it ends").signal(), Some(libc::SIGINT));
        assert!(!file.exists());
        assert!(!file.with_extension("tree").exists());
    }

    #[test]
    fn an_alarm_that_was_ignored_comes_nevertheless() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("file");
        std::fs::write(file.with_extension("stuck"), b"").expect("a file");
        let mut child = start(&mut own_binary_ignoring("ALRM"), &file);
        send(&child, Signal::TERM);
        assert_eq!(child.wait().expect("it ends").signal(), Some(libc::SIGTERM));
        assert!(!file.exists());
    }

    #[test]
    fn what_was_ignored_from_the_start_stays_so() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("file");
        let mut child = start(&mut own_binary_ignoring("HUP"), &file);
        send(&child, Signal::HUP);
        std::thread::sleep(Duration::from_millis(50));
        assert!(child.try_wait().expect("it can be asked").is_none());
        send(&child, Signal::TERM);
        assert_eq!(child.wait().expect("it ends").signal(), Some(libc::SIGTERM));
    }
}
