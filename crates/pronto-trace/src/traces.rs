//! The open traces of a process.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use crate::chrome::Chrome;
use crate::destination::TraceDestination;
use crate::record::{Event, ThreadPosition, TraceRecord};
use crate::settings::Settings;
use crate::sid::Sid;
use crate::warning::TraceWarning;
use crate::{basic, event, normal, perf, performance, redact};

/// The program that is traced.
#[derive(Clone, Debug)]
pub struct TracedProgram {
    /// The version of the program.
    pub version: String,
    /// All arguments, including the program name.
    pub arguments: Vec<String>,
    /// The time at which the process started.
    pub begun: Instant,
}

/// The open traces of one process.
#[derive(Debug)]
pub(crate) struct Traces {
    pub(crate) program: TracedProgram,
    pub(crate) sid: Sid,
    pub(crate) parent_name: Option<String>,
    normal: TraceDestination,
    perf: TraceDestination,
    event: TraceDestination,
    basic: TraceDestination,
    pub(crate) performance: TraceDestination,
    chrome: Option<Chrome>,
    event_nesting: usize,
    threads: AtomicUsize,
    pub(crate) has_repository: AtomicBool,
    shows_passwords: bool,
    pub(crate) is_over: AtomicBool,
}

impl Traces {
    /// Opens the traces in `settings`. Failures of destinations are returned as warnings.
    pub(crate) fn open(settings: &Settings, program: TracedProgram) -> (Self, Vec<TraceWarning>) {
        let mut warnings = Vec::new();
        let sid = Sid::new(settings.parent_sid.as_ref());
        let mut open = |target| TraceDestination::open(target, settings, sid.own(), &mut warnings);
        let (normal, perf) = (open(&settings.normal), open(&settings.perf));
        let (event, performance) = (open(&settings.event), open(&settings.performance));
        let basic = open(&settings.basic);
        let chrome = settings.chrome.as_ref().and_then(|path| {
            let failed = |error: std::io::Error| {
                warnings.push(TraceWarning::NotCreated {
                    path: path.display().to_string(),
                    reason: error.to_string(),
                });
            };
            Chrome::create(path).map_err(failed).ok()
        });
        let traces = Traces {
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
        };
        (traces, warnings)
    }

    /// Returns `arguments`, with passwords redacted if necessary.
    pub(crate) fn shown<'a>(&self, arguments: &'a [String]) -> Cow<'a, [String]> {
        match self.shows_passwords {
            true => arguments.into(),
            false => redact::all(arguments).into(),
        }
    }

    pub(crate) fn next_thread(&self) -> usize {
        self.threads.fetch_add(1, Relaxed) + 1
    }

    /// Records `event` for `thread`.
    pub(crate) fn emit_as(
        &self,
        event: Event<'_>,
        file: &str,
        line: u32,
        thread: ThreadPosition<'_>,
    ) {
        if self.is_over.load(Relaxed) {
            return;
        }
        let place = place(file);
        let record = TraceRecord {
            event,
            file: &place,
            line,
            thread: thread.name,
            nesting: thread.nesting,
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

/// Shortens the path of a source file to the crate and the file, because the columns are narrow.
fn place(file: &str) -> String {
    file.strip_prefix("crates/")
        .unwrap_or(file)
        .replacen("/src/", "/", 1)
}
