//! A session: the trace of one process.

use std::borrow::Cow;
use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use crate::chrome::Chrome;
use crate::destination::Destination;
use crate::record::{Event, Parameter, Record};
use crate::settings::Settings;
use crate::sid::Sid;
use crate::subscriber::Listener;
use crate::thread::{self, Thread};
use crate::{basic, event, normal, perf, performance, redact};

/// The program that is traced.
#[derive(Clone, Debug)]
pub struct Program {
    /// The version of the program.
    pub version: String,
    /// All arguments, including the name of the program.
    pub arguments: Vec<String>,
    /// The time at which the process began.
    pub begun: Instant,
}

/// A trace that is being written. Clones share it. `Send + Sync`: every method writes to each open
/// trace and may be called from any thread.
#[derive(Clone, Debug)]
pub struct Session(Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    program: Program,
    sid: Sid,
    parent_name: Option<String>,
    normal: Destination,
    perf: Destination,
    event: Destination,
    basic: Destination,
    performance: Destination,
    chrome: Option<Chrome>,
    event_nesting: usize,
    threads: AtomicUsize,
    has_repository: AtomicBool,
    shows_passwords: bool,
    is_over: AtomicBool,
}

impl Session {
    /// Opens the traces, makes the calling thread the main one, records the start of the process,
    /// and subscribes to the events of libraries. Problems with destinations are returned as
    /// warnings; a trace that cannot be written never stops a command.
    pub fn begin(settings: &Settings, mut program: Program) -> (Self, Vec<String>) {
        if !settings.shows_passwords {
            program.arguments = redact::all(&program.arguments);
        }
        let mut warnings = Vec::new();
        let sid = Sid::new(settings.parent_sid.as_ref());
        let mut open = |target| Destination::open(target, settings, sid.own(), &mut warnings);
        let (normal, perf) = (open(&settings.normal), open(&settings.perf));
        let (event, performance) = (open(&settings.event), open(&settings.performance));
        let basic = open(&settings.basic);
        let chrome = settings.chrome.as_ref().and_then(|path| {
            let failed = |error| {
                warnings.push(format!(
                    "could not open trace '{}': {error}",
                    path.display()
                ));
            };
            Chrome::create(path).map_err(failed).ok()
        });
        let inner = Arc::new(Inner {
            sid,
            parent_name: settings
                .parent_name
                .as_ref()
                .map(|name| name.to_string_lossy().into()),
            normal,
            perf,
            event,
            basic,
            performance,
            chrome,
            event_nesting: settings.event_nesting,
            threads: AtomicUsize::new(0),
            has_repository: AtomicBool::new(false),
            shows_passwords: settings.shows_passwords,
            is_over: AtomicBool::new(false),
            program,
        });
        thread::set_main(Arc::downgrade(&inner), inner.program.begun);
        inner.emit(Event::Version, file!(), line!());
        inner.emit(
            Event::Start {
                arguments: &inner.program.arguments,
            },
            file!(),
            line!(),
        );
        let names = ancestry();
        if !names.is_empty() {
            inner.emit(Event::Ancestry { names: &names }, file!(), line!());
        }
        // In tests another subscriber may be installed; it then receives the regions.
        let _ = tracing::subscriber::set_global_default(Listener::new(Arc::clone(&inner)));
        (Session(inner), warnings)
    }

    /// Returns the id of the session, after those of its parents.
    pub fn id(&self) -> &str {
        &self.0.sid.text
    }

    /// Returns the variables that the environment of child processes must contain.
    pub fn child_variables(&self, command: &str) -> [(&'static str, OsString); 2] {
        [
            ("GIT_TRACE2_PARENT_SID", self.0.sid.text.clone().into()),
            ("GIT_TRACE2_PARENT_NAME", self.hierarchy(command).into()),
        ]
    }

    fn hierarchy(&self, command: &str) -> String {
        match &self.0.parent_name {
            Some(parent) => format!("{parent}/{command}"),
            None => command.to_owned(),
        }
    }

    /// Records the command, with the arguments that follow its name.
    pub fn command_name(&self, name: &str, arguments: &[String]) {
        let hierarchy = self.hierarchy(name);
        self.0.emit(
            Event::CommandName {
                name,
                arguments: &self.0.shown(arguments),
                hierarchy: &hierarchy,
            },
            file!(),
            line!(),
        );
    }

    /// Records the mode of the command.
    pub fn command_mode(&self, mode: &str) {
        self.0.emit(Event::CommandMode { mode }, file!(), line!());
    }

    /// Records the repository of the command by its worktree.
    pub fn repository(&self, worktree: &str) {
        self.0.has_repository.store(true, Relaxed);
        self.0
            .emit(Event::Repository { worktree }, file!(), line!());
    }

    /// Records a setting that the trace was asked to record. Passwords in a URL are left out.
    pub fn parameter(&self, mut parameter: Parameter) {
        if let Some(value) = parameter.value.take() {
            let shown = self.0.shown(&[value]).first().cloned();
            parameter.value = shown;
        }
        let parameter = &parameter;
        self.0
            .emit(Event::Parameter { parameter }, file!(), line!());
    }

    /// Records that `alias` expanded to `arguments`.
    pub fn alias(&self, alias: &str, arguments: &[String]) {
        let arguments = &*self.0.shown(arguments);
        self.0
            .emit(Event::Alias { alias, arguments }, file!(), line!());
    }

    /// Records that an error was reported.
    pub fn error(&self, message: &str) {
        self.0.emit(Event::Error { message }, file!(), line!());
    }

    /// Records that the process is about to execute another program.
    pub fn exec(&self, arguments: &[String]) {
        let arguments = &*self.0.shown(arguments);
        self.0.emit(Event::Exec { arguments }, file!(), line!());
    }

    /// Records that a signal is about to end the process. Nothing is written afterwards.
    pub fn signal(&self, number: i32) {
        self.0.emit(Event::Signal { number }, file!(), line!());
        self.0.is_over.store(true, Relaxed);
    }

    /// Records that the process is about to exit with `code`. Nothing is written afterwards.
    pub fn exit(&self, code: u8) {
        let code = i32::from(code);
        self.0.emit(Event::Exit { code }, file!(), line!());
        if self.0.performance.is_open() && !self.0.is_over.load(Relaxed) {
            let lasted = self.0.program.begun.elapsed();
            let (trace, arguments) = (&self.0.performance, &self.0.program.arguments);
            trace.write(performance::command(arguments, lasted, trace.is_brief));
        }
        self.0.emit(Event::AtExit { code }, file!(), line!());
        self.0.is_over.store(true, Relaxed);
    }
}

impl Inner {
    /// Returns `arguments` in the form that traces show.
    pub(crate) fn shown<'a>(&self, arguments: &'a [String]) -> Cow<'a, [String]> {
        match self.shows_passwords {
            true => arguments.into(),
            false => redact::all(arguments).into(),
        }
    }

    pub(crate) fn next_thread(&self) -> usize {
        self.threads.fetch_add(1, Relaxed) + 1
    }

    /// Writes `event` for the calling thread.
    pub(crate) fn emit(self: &Arc<Self>, event: Event<'_>, file: &str, line: u32) {
        thread::with(self, |thread| self.emit_as(event, file, line, thread));
    }

    /// Writes `event` for `thread`.
    pub(crate) fn emit_as(&self, event: Event<'_>, file: &str, line: u32, thread: &Thread) {
        if self.is_over.load(Relaxed) {
            return;
        }
        let place = place(file);
        let record = Record {
            event,
            file: &place,
            line,
            thread: &thread.name,
            nesting: thread.nesting(),
            absolute: self.program.begun.elapsed(),
            has_repository: self.has_repository.load(Relaxed),
            depth: self.sid.depth,
            sid: &self.sid.text,
            version: &self.program.version,
        };
        if let Some(chrome) = &self.chrome {
            chrome.write(&record);
        }
        if self.normal.is_open()
            && let Some(line) = normal::line(&record, self.normal.is_brief)
        {
            self.normal.write(line);
        }
        if self.perf.is_open() {
            self.perf.write(perf::line(&record, self.perf.is_brief));
        }
        if self.event.is_open()
            && let Some(line) = event::line(&record, self.event.is_brief, self.event_nesting)
        {
            self.event.write(line);
        }
        if self.basic.is_open()
            && let Some(line) = basic::line(&record, self.basic.is_brief)
        {
            self.basic.write(line);
        }
        if self.performance.is_open()
            && let Some(line) = performance::region(&record, self.performance.is_brief)
        {
            self.performance.write(line);
        }
    }
}

/// Shortens the path of a source file to crate and file, because the columns are narrow.
fn place(file: &str) -> String {
    file.strip_prefix("crates/")
        .unwrap_or(file)
        .replacen("/src/", "/", 1)
}

/// Returns the names of the parent processes, nearest first.
fn ancestry() -> Vec<String> {
    const DEPTH_LIMIT: usize = 10;
    let mut names = Vec::new();
    let mut process = "self".to_owned();
    for _ in 0..=DEPTH_LIMIT {
        let Ok(text) = std::fs::read_to_string(format!("/proc/{process}/stat")) else {
            break;
        };
        let (Some(open), Some(close)) = (text.find('('), text.rfind(')')) else {
            break;
        };
        if process != "self" {
            names.push(text[open + 1..close].to_owned());
        }
        match text[close + 1..].split_whitespace().nth(1) {
            Some(parent) if parent != "0" => process = parent.to_owned(),
            _ => break,
        }
    }
    names
}
