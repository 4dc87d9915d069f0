//! Reports the errors in a received pack, in Git's words.

use std::path::Path;

use pronto::fsck::FsckInspector;
use pronto_pack::{Error, ErrorKind};

use crate::context::Context;
use crate::error::CliError;
use crate::terminal::progress::size;

/// The offset of the first entry of a pack.
const FIRST_ENTRY: u64 = 12;

/// Returns the error for a pack that could not be received, after printing the messages that
/// precede it in Git. `limit_bytes` is the largest permitted size of the pack.
pub(crate) fn report(error: Error, limit_bytes: Option<u64>, context: &mut Context) -> CliError {
    match (error.kind(), error.offset()) {
        (ErrorKind::Interrupted, _) => pronto_io::interrupt::Interrupted.into(),
        (kind, Some(offset)) if offset >= FIRST_ENTRY && is_malformed(kind) => {
            if let Some(remark) = remark(&error) {
                context.report_error(&remark);
            }
            let reason = error.message();
            CliError::fatal(format!("pack has bad object at offset {offset}: {reason}"))
        }
        (ErrorKind::PackTooLarge, _) => {
            let most = size(limit_bytes.unwrap_or(u64::MAX));
            CliError::fatal(format!("pack exceeds maximum allowed size ({most})"))
        }
        (ErrorKind::Duplicate, _) => {
            let id = error.object().unwrap_or_default();
            CliError::fatal(format!("The same object {id} appears twice in the pack"))
        }
        (ErrorKind::Collision, _) if error.path().is_some() => {
            context.report_error(error.message());
            let path = error.path().unwrap_or(Path::new(""));
            let kind = path.extension().unwrap_or_default().display();
            let path = match context.repository_if_any() {
                Ok(Some(repository)) => repository.display_path(path),
                _ => path.to_owned(),
            };
            let path = path.display();
            CliError::fatal(format!(
                "unable to rename temporary '*.{kind}' file to '{path}'"
            ))
        }
        (ErrorKind::Io, _) => error.into(),
        // Git finds this error while it reads, if trees precede the blobs.
        (ErrorKind::RejectedBlob { in_pack: true }, _) => {
            CliError::fatal("fsck error in packed object")
        }
        _ => CliError::fatal(error.message()),
    }
}

/// Prints the findings of the object checks in a pack.
pub(crate) fn print(inspector: &FsckInspector<'_>, context: &mut Context) {
    for report in inspector.take_reports() {
        match report.is_error {
            true => context.report_error(&report.to_string()),
            false => context.warn(&report.to_string()),
        }
    }
}

/// Returns the error of a fetch or clone. Refused objects are reported as by git, which runs the
/// check in another process and then prints `ending`.
pub(crate) fn refused(error: pronto::Error, ending: &str, context: &mut Context) -> CliError {
    if error.kind() != pronto::ErrorKind::Rejected {
        return CliError::of(error);
    }
    let reason = std::error::Error::source(&error).map(ToString::to_string);
    for line in reason.iter().flat_map(|reason| reason.lines()) {
        context.report_error(line);
    }
    CliError::fatal("fsck error in packed object").and(ending)
}

/// Prints the objects that the server has not sent. Git checks connectivity in another process,
/// whose messages are printed first.
pub(crate) fn report_absent(error: &pronto::Error, context: &mut Context) {
    let absent = std::error::Error::source(error).map(ToString::to_string);
    for line in absent.iter().flat_map(|absent| absent.lines()) {
        context.remark(line);
    }
}

/// Prints the reason why a bundle cannot be used. Git reads the pack of a bundle in another
/// process, whose error is printed first.
pub(crate) fn report_bundle(error: &pronto::Error, context: &mut Context) {
    for line in pronto::bundle::failure_lines(error) {
        let message = line.as_message();
        context.remark(&format!("{}{message}", message.prefix()));
    }
}

/// Does the same as [`report`] for a pack that is unpacked into loose objects.
pub(crate) fn report_unpacking(error: &Error, context: &mut Context) -> CliError {
    let kind = error.kind();
    // The findings of the inspector have been printed.
    let is_reported = matches!(
        kind,
        ErrorKind::Rejected | ErrorKind::RejectedBlob { .. } | ErrorKind::Unparsable
    );
    if let Some(remark) = remark(error).filter(|_| !is_reported && kind != ErrorKind::Interrupted) {
        context.report_error(&remark);
    }
    CliError::fatal(match kind {
        ErrorKind::Interrupted => return pronto_io::interrupt::Interrupted.into(),
        ErrorKind::Inflate => return CliError::error(error.message()),
        ErrorKind::UnknownType { number } => {
            return CliError::error(format!("bad object type {number}"));
        }
        ErrorKind::PackVersion { version } => {
            return CliError::fatal(format!("unknown pack file version {version}"));
        }
        ErrorKind::Io => return CliError::fatal(error.to_string()),
        ErrorKind::NotAPack => "bad pack file",
        ErrorKind::RejectedBlob { in_pack: true } => "fsck error in pack objects",
        ErrorKind::Checksum => "final sha1 did not match",
        ErrorKind::BaseOffset => "offset value out of bound for delta base object",
        ErrorKind::BrokenLink => "object of unexpected type",
        ErrorKind::Unresolved => "unresolved deltas left after unpacking",
        ErrorKind::PackTooLarge => "pack exceeds maximum allowed size",
        _ => error.message(),
    })
}

/// Returns whether an error is about the bytes of a pack entry.
fn is_malformed(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Corrupt
            | ErrorKind::UnknownType { .. }
            | ErrorKind::Inflate
            | ErrorKind::BaseOffset
            | ErrorKind::BaseSize
            | ErrorKind::DeltaOpcode
    )
}

/// Returns the message of zlib or of the delta decoder, which Git prints first.
fn remark(error: &Error) -> Option<String> {
    let reason = std::error::Error::source(error)?;
    let Some(delta) = reason.downcast_ref::<Error>() else {
        return Some(reason.to_string());
    };
    match delta.kind() {
        ErrorKind::BaseSize => None,
        ErrorKind::DeltaOpcode => Some(delta.message().to_owned()),
        _ => Some("delta replay has gone wild".to_owned()),
    }
}
