//! The destination of a trace: standard error, an inherited descriptor, a file, a directory, or a
//! socket.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::settings::{Settings, Target};
use crate::warning::Warning;

/// The name of the file that marks a directory with too many traces (`trace2.maxFiles`).
const SENTINEL: &str = "git-trace2-discard";

const ATTEMPTS: usize = 10;

/// An open destination. Each line is written with one system call, so that several processes can
/// share the destination. The first failure closes it.
#[derive(Debug, Default)]
pub(crate) struct Destination {
    sink: Mutex<Option<Sink>>,
    pub(crate) is_brief: bool,
}

#[derive(Debug)]
enum Sink {
    Stderr,
    File(File),
    Stream(UnixStream),
    Datagrams(UnixDatagram),
}

impl Destination {
    /// Opens the destination of `target`. Adds failures to `warnings`.
    pub(crate) fn open(
        target: &Target,
        settings: &Settings,
        own_sid: &str,
        warnings: &mut Vec<Warning>,
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
            Err(Refusal::Malformed) if is_trace2 => {
                let value = shown(&target.value);
                warnings.push(Warning::UnknownValue { variable, value });
                None
            }
            Err(Refusal::Malformed) => {
                let value = shown(&target.value);
                warnings.push(Warning::UnknownTraceValue { variable, value });
                None
            }
            Err(Refusal::Failed(error)) => {
                if settings.warns || !is_trace2 {
                    let value = shown(&target.value);
                    let reason = error.to_string();
                    warnings.push(Warning::NotOpened {
                        variable,
                        value,
                        reason,
                    });
                }
                None
            }
        };
        Destination {
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
            Some(Sink::Stderr) => io::stderr().write(line.as_bytes()),
            Some(Sink::File(file)) => file.write(line.as_bytes()),
            Some(Sink::Stream(stream)) => stream.write(line.as_bytes()),
            Some(Sink::Datagrams(socket)) => socket.send(line.as_bytes()),
        };
        if written.is_err() {
            *sink = None;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Sink>> {
        self.sink.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Refusal {
    Malformed,
    Failed(io::Error),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Refusal::Failed(error)
    }
}

fn open(
    value: &OsStr,
    settings: &Settings,
    own_sid: Option<&str>,
) -> Result<Option<Sink>, Refusal> {
    let bytes = value.as_bytes();
    if bytes == b"1" || bytes.eq_ignore_ascii_case(b"true") {
        return Ok(Some(Sink::Stderr));
    }
    if let (&[digit @ b'2'..=b'9'], Some(duplicate)) = (bytes, settings.duplicate) {
        let descriptor = duplicate(i32::from(digit - b'0'))?;
        return Ok(Some(Sink::File(descriptor.into())));
    }
    let path = Path::new(value);
    if path.is_absolute() {
        return match own_sid {
            Some(sid) if path.is_dir() => Ok(open_in(path, sid, settings.max_files)?),
            _ => {
                let file = OpenOptions::new().append(true).create(true).open(path)?;
                Ok(Some(Sink::File(file)))
            }
        };
    }
    match bytes.strip_prefix(b"af_unix:") {
        Some(rest) if own_sid.is_some() => connect(rest),
        _ => Err(Refusal::Malformed),
    }
}

/// Creates a file with the session id as its name, unless the directory is full.
fn open_in(directory: &Path, sid: &str, max_files: usize) -> io::Result<Option<Sink>> {
    let create = |path: PathBuf| OpenOptions::new().write(true).create_new(true).open(path);
    if max_files > 0 {
        let sentinel = directory.join(SENTINEL);
        if sentinel.exists() {
            return Ok(None);
        }
        if std::fs::read_dir(directory)?.take(max_files).count() >= max_files {
            return create(sentinel).map(|file| Some(Sink::File(file)));
        }
    }
    let mut result = create(directory.join(sid));
    for attempt in 1..ATTEMPTS {
        if result.is_ok() {
            break;
        }
        result = create(directory.join(format!("{sid}.{attempt}")));
    }
    result.map(|file| Some(Sink::File(file)))
}

fn connect(rest: &[u8]) -> Result<Option<Sink>, Refusal> {
    let stream = rest.strip_prefix(b"stream:");
    let datagrams = rest.strip_prefix(b"dgram:");
    let path = Path::new(OsStr::from_bytes(stream.or(datagrams).unwrap_or(rest)));
    if !path.is_absolute() {
        return Err(Refusal::Malformed);
    }
    if datagrams.is_none() {
        match UnixStream::connect(path) {
            Ok(connected) => return Ok(Some(Sink::Stream(connected))),
            Err(error) if stream.is_some() => return Err(error.into()),
            Err(_) => {}
        }
    }
    let socket = UnixDatagram::unbound()?;
    socket.connect(path)?;
    Ok(Some(Sink::Datagrams(socket)))
}
