//! The requested traces and their destinations.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Duplicates the inherited descriptor with the given number.
pub type Duplicate = fn(i32) -> io::Result<OwnedFd>;

/// The traces that the environment and the command line request.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Settings {
    pub(crate) normal: TraceTarget,
    pub(crate) perf: TraceTarget,
    pub(crate) event: TraceTarget,
    pub(crate) basic: TraceTarget,
    pub(crate) performance: TraceTarget,
    /// The maximum nesting of regions in `GIT_TRACE2_EVENT` (`GIT_TRACE2_EVENT_NESTING`).
    pub(crate) event_nesting: usize,
    /// The maximum number of files in a trace directory (`GIT_TRACE2_MAX_FILES`); zero for no
    /// limit.
    pub(crate) max_files: usize,
    pub(crate) warns: bool,
    /// Whether passwords in URLs are shown (`GIT_TRACE2_REDACT` is false).
    pub(crate) shows_passwords: bool,
    pub(crate) parent_sid: Option<OsString>,
    pub(crate) parent_name: Option<OsString>,
    pub(crate) duplicate: Option<Duplicate>,
    pub(crate) chrome: Option<PathBuf>,
}

/// The settings of one trace: its destination, and whether the time and the source position are
/// omitted.
#[derive(Debug, Default)]
pub(crate) struct TraceTarget {
    pub(crate) variable: &'static str,
    pub(crate) value: Option<OsString>,
    pub(crate) is_brief: bool,
}

type Get<'a> = &'a dyn Fn(&str) -> Option<OsString>;

impl Settings {
    /// Reads the settings from environment variables. Returns `None` if no trace is requested.
    pub fn from_variables(get: Get<'_>) -> Option<Self> {
        let target = |variable: &'static str, brief: &str| {
            let value = get(variable).filter(|value| !is_off(value))?;
            let is_brief = !brief.is_empty() && get(brief).is_some_and(|value| is_true(&value));
            Some(TraceTarget {
                variable,
                value: Some(value),
                is_brief,
            })
        };
        let normal = target("GIT_TRACE2", "GIT_TRACE2_BRIEF");
        let perf = target("GIT_TRACE2_PERF", "GIT_TRACE2_PERF_BRIEF");
        let event = target("GIT_TRACE2_EVENT", "GIT_TRACE2_EVENT_BRIEF");
        let basic = target("GIT_TRACE", "GIT_TRACE_BARE");
        let performance = target("GIT_TRACE_PERFORMANCE", "GIT_TRACE_BARE");
        if basic.is_none()
            && normal.is_none()
            && perf.is_none()
            && event.is_none()
            && performance.is_none()
        {
            return None;
        }
        let mut settings = Self::without_git_traces(get);
        settings.normal = normal.unwrap_or_default();
        settings.perf = perf.unwrap_or_default();
        settings.event = event.unwrap_or_default();
        settings.basic = basic.unwrap_or_default();
        settings.performance = performance.unwrap_or_default();
        Some(settings)
    }

    /// Reads the settings without any of Git's traces, for use with
    /// [`with_chrome`](Self::with_chrome).
    pub fn without_git_traces(get: Get<'_>) -> Self {
        let number = |name: &str| get(name)?.to_str()?.trim().parse::<usize>().ok();
        Settings {
            event_nesting: number("GIT_TRACE2_EVENT_NESTING")
                .filter(|&n| n > 0)
                .unwrap_or(2),
            max_files: number("GIT_TRACE2_MAX_FILES").unwrap_or(0),
            warns: number("GIT_TRACE2_DST_DEBUG").is_some_and(|level| level > 0),
            shows_passwords: get("GIT_TRACE2_REDACT").is_some_and(|value| is_false(&value)),
            parent_sid: get("GIT_TRACE2_PARENT_SID").filter(|sid| !sid.is_empty()),
            parent_name: get("GIT_TRACE2_PARENT_NAME").filter(|name| !name.is_empty()),
            ..Settings::default()
        }
    }

    /// Sets the function that duplicates inherited descriptors, for destinations that are
    /// descriptor numbers.
    #[must_use]
    pub fn with_duplicate(mut self, duplicate: Duplicate) -> Self {
        self.duplicate = Some(duplicate);
        self
    }

    /// Adds a trace for Chrome and Perfetto in the file `path`.
    #[must_use]
    pub fn with_chrome(mut self, path: PathBuf) -> Self {
        self.chrome = Some(path);
        self
    }
}

/// Returns whether `value` disables a trace.
pub(crate) fn is_off(value: &OsString) -> bool {
    let bytes = value.as_bytes();
    bytes.is_empty() || bytes == b"0" || bytes.eq_ignore_ascii_case(b"false")
}

fn is_false(value: &OsString) -> bool {
    let bytes = value.as_bytes();
    [&b""[..], b"0", b"false", b"no", b"off"]
        .iter()
        .any(|no| bytes.eq_ignore_ascii_case(no))
}

fn is_true(value: &OsString) -> bool {
    let bytes = value.as_bytes();
    [&b"true"[..], b"yes", b"on"]
        .iter()
        .any(|yes| bytes.eq_ignore_ascii_case(yes))
        || value
            .to_str()
            .and_then(|text| text.parse::<i64>().ok())
            .is_some_and(|n| n != 0)
}
