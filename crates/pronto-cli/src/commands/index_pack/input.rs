//! The input of a pack that is not a named file.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use pronto_io::descriptor;
use pronto_io::error::IoContext;
use pronto_io::progress::{Meter, Progress, ProgressMessage};
use pronto_odb::Inventory;
use pronto_pack::indexer::{self, ExistingObjects, Inspect};
use pronto_pack::{Error, ErrorKind};

use super::Args;
use crate::Context;

/// Standard input, preceded by the bytes that the caller has read from it.
pub(crate) struct PackInput {
    header: Vec<u8>,
    at: usize,
    file: File,
}

impl PackInput {
    /// Opens standard input after the header `VERSION,COUNT` of a pack, if one is given
    /// (`--pack_header`).
    ///
    /// # Errors
    /// Fails if the header is malformed, or if standard input is closed.
    pub(crate) fn new(header: Option<&str>) -> Result<PackInput, Error> {
        let header = match header {
            Some(text) => parse_header(text).ok_or_else(|| {
                Error::new(ErrorKind::Unsupported, format!("bad --pack_header: {text}"))
            })?,
            None => Vec::new(),
        };
        let file = descriptor::duplicate(0).map_err(|error| {
            Error::new(ErrorKind::Io, "cannot read standard input").because(error)
        })?;
        Ok(PackInput {
            header,
            at: 0,
            file: file.into(),
        })
    }

    /// Returns a function that reports whether a read would return without blocking.
    ///
    /// # Errors
    /// Fails if no more file descriptors can be opened.
    pub(super) fn readiness(&self) -> Result<impl Fn() -> bool + Sync + use<>, Error> {
        let file = self.file.try_clone().map_err(|error| {
            Error::new(ErrorKind::Io, "cannot read standard input").because(error)
        })?;
        Ok(move || descriptor::is_readable(&file))
    }

    /// Returns whether the input is a regular file.
    pub(crate) fn is_file(&self) -> bool {
        self.file
            .metadata()
            .is_ok_and(|metadata| metadata.is_file())
    }
}

fn parse_header(text: &str) -> Option<Vec<u8>> {
    let (version, count) = text.split_once(',')?;
    let number = |text: &str| match text {
        "" => Some(0),
        text => text.parse::<u64>().ok(),
    };
    let mut header = b"PACK".to_vec();
    for number in [number(version)?, number(count)?] {
        header.extend_from_slice(&(number as u32).to_be_bytes());
    }
    Some(header)
}

impl Read for PackInput {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let header = &self.header[self.at..];
        if header.is_empty() {
            return self.file.read(out);
        }
        let len = header.len().min(out.len());
        out[..len].copy_from_slice(&header[..len]);
        self.at += len;
        Ok(len)
    }
}

/// Creates the directory of packs if necessary.
pub(super) fn make_directory(path: &Path) -> Result<(), Error> {
    match std::fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        result => result.context(ErrorKind::Io, "unable to create directory", path),
    }
}

/// Returns the error for a call with neither a pack nor a repository. The checks of the arguments
/// exclude this case.
#[cold]
pub(super) fn no_input() -> Error {
    Error::new(ErrorKind::Missing, "--stdin requires a git repository")
}

/// The progress output that the arguments request.
#[derive(Default)]
pub(crate) struct IndexWatch {
    all: bool,
    resolving: bool,
    end: bool,
}

impl IndexWatch {
    pub(super) fn asked_for(args: &Args) -> Self {
        IndexWatch {
            all: args.verbose > 0,
            resolving: args.show_resolving_progress,
            end: args.report_end_of_input,
        }
    }

    /// Calls `work` with the inventory of existing objects and the inspector.
    pub(super) fn over<T>(
        &self,
        inventory: Option<&Inventory>,
        inspect: Option<&dyn Inspect>,
        context: &mut Context,
        work: impl FnOnce(&indexer::IndexContext<'_>) -> T,
    ) -> T {
        let mut progress = context.prompt_progress(self.all || self.resolving);
        if !self.all {
            progress = Arc::new(OnlyResolving(progress));
        }
        work(&indexer::IndexContext {
            existing: inventory.map(|inventory| inventory as &dyn ExistingObjects),
            progress: &*progress,
            interrupt: Some(&context.interrupt),
            arrived: self.end.then_some(&report_end),
            inspect,
            ..indexer::IndexContext::default()
        })
    }
}

/// Writes a NUL byte to standard error (`--report-end-of-input`): the sender waits for it as the
/// end of the pack.
fn report_end() {
    // A failure means that the reader of standard error is gone.
    let _ = io::stderr().write_all(b"\0");
}

/// A progress observer that shows only the phase "Resolving deltas".
struct OnlyResolving(Arc<dyn Progress>);

impl Progress for OnlyResolving {
    fn begin(&self, title: &'static str, total: Option<u64>) -> Meter {
        match title {
            "Resolving deltas" => self.0.begin(title, total),
            _ => Meter::new(title, total),
        }
    }

    fn message(&self, message: ProgressMessage<'_>) {
        self.0.message(message);
    }
}
