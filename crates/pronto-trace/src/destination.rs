//! The destination of a trace: standard error, an inherited descriptor, a file, a directory, or a
//! socket.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::settings::{Settings, TraceTarget};
use crate::warning::TraceWarning;

/// The name of the file that marks a directory with too many traces (`trace2.maxFiles`).
const SENTINEL: &str = "git-trace2-discard";

const ATTEMPTS: usize = 10;

/// An open destination. Each line is written with one system call, so that several processes can
/// share the destination. The first failure closes it.
#[derive(Debug, Default)]
pub(crate) struct TraceDestination {
    sink: Mutex<Option<TraceSink>>,
    pub(crate) is_brief: bool,
}

#[derive(Debug)]
enum TraceSink {
    Stderr,
    File(File),
    Stream(UnixStream),
    Datagrams(UnixDatagram),
}

impl TraceDestination {
    /// Opens the destination of `target`. Adds failures to `warnings`.
    pub(crate) fn open(
        target: &TraceTarget,
        settings: &Settings,
        own_sid: &str,
        warnings: &mut Vec<TraceWarning>,
    ) -> Self {
        let variable = target.variable;
        let is_trace2 = variable.starts_with("GIT_TRACE2");
        let opened = match &target.value {
            None => Ok(None),
            Some(value) => open(value, settings, is_trace2.then_some(own_sid)),
        };
        let shown = |value: &Option<std::ffi::OsString>| {
            value
                .as_deref()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned()
        };
        let sink = match opened {
            Ok(sink) => sink,
            Err(DestinationError::Malformed) if is_trace2 => {
                let value = shown(&target.value);
                warnings.push(TraceWarning::UnknownValue { variable, value });
                None
            }
            Err(DestinationError::Malformed) => {
                let value = shown(&target.value);
                warnings.push(TraceWarning::UnknownTraceValue { variable, value });
                None
            }
            Err(DestinationError::Failed(error)) => {
                if settings.warns || !is_trace2 {
                    let value = shown(&target.value);
                    let reason = error.to_string();
                    warnings.push(TraceWarning::NotOpened {
                        variable,
                        value,
                        reason,
                    });
                }
                None
            }
        };
        TraceDestination {
            sink: Mutex::new(sink),
            is_brief: target.is_brief,
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.lock().is_some()
    }

    /// Writes `line` and a newline.
    pub(crate) fn write(&self, mut line: String) {
        line.push('\n');
        let mut sink = self.lock();
        let written = match &mut *sink {
            None => return,
            Some(TraceSink::Stderr) => io::stderr().write(line.as_bytes()),
            Some(TraceSink::File(file)) => file.write(line.as_bytes()),
            Some(TraceSink::Stream(stream)) => stream.write(line.as_bytes()),
            Some(TraceSink::Datagrams(socket)) => socket.send(line.as_bytes()),
        };
        if written.is_err() {
            *sink = None;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<TraceSink>> {
        self.sink.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum DestinationError {
    Malformed,
    Failed(io::Error),
}

impl From<io::Error> for DestinationError {
    fn from(error: io::Error) -> Self {
        DestinationError::Failed(error)
    }
}

fn open(
    value: &OsStr,
    settings: &Settings,
    own_sid: Option<&str>,
) -> Result<Option<TraceSink>, DestinationError> {
    let bytes = value.as_bytes();
    if bytes == b"1" || bytes.eq_ignore_ascii_case(b"true") {
        return Ok(Some(TraceSink::Stderr));
    }
    if let (&[digit @ b'2'..=b'9'], Some(duplicate)) = (bytes, settings.duplicate) {
        let descriptor = duplicate(i32::from(digit - b'0'))?;
        return Ok(Some(TraceSink::File(descriptor.into())));
    }
    let path = Path::new(value);
    if path.is_absolute() {
        return match own_sid {
            Some(sid) if path.is_dir() => Ok(open_in(path, sid, settings.max_files)?),
            _ => {
                let file = OpenOptions::new().append(true).create(true).open(path)?;
                Ok(Some(TraceSink::File(file)))
            }
        };
    }
    match bytes.strip_prefix(b"af_unix:") {
        Some(rest) if own_sid.is_some() => connect(rest),
        _ => Err(DestinationError::Malformed),
    }
}

/// Creates a file with the session id as its name, unless the directory is full.
fn open_in(directory: &Path, sid: &str, max_files: usize) -> io::Result<Option<TraceSink>> {
    let create = |path: PathBuf| OpenOptions::new().write(true).create_new(true).open(path);
    if max_files > 0 {
        let sentinel = directory.join(SENTINEL);
        if sentinel.exists() {
            return Ok(None);
        }
        if std::fs::read_dir(directory)?.take(max_files).count() >= max_files {
            return create(sentinel).map(|file| Some(TraceSink::File(file)));
        }
    }
    let mut result = create(directory.join(sid));
    for attempt in 1..ATTEMPTS {
        if result.is_ok() {
            break;
        }
        result = create(directory.join(format!("{sid}.{attempt}")));
    }
    result.map(|file| Some(TraceSink::File(file)))
}

fn connect(rest: &[u8]) -> Result<Option<TraceSink>, DestinationError> {
    let stream = rest.strip_prefix(b"stream:");
    let datagrams = rest.strip_prefix(b"dgram:");
    let path = Path::new(OsStr::from_bytes(stream.or(datagrams).unwrap_or(rest)));
    if !path.is_absolute() {
        return Err(DestinationError::Malformed);
    }
    if datagrams.is_none() {
        match UnixStream::connect(path) {
            Ok(connected) => return Ok(Some(TraceSink::Stream(connected))),
            Err(error) if stream.is_some() => return Err(error.into()),
            Err(_) => {}
        }
    }
    let socket = UnixDatagram::unbound()?;
    socket.connect(path)?;
    Ok(Some(TraceSink::Datagrams(socket)))
}
