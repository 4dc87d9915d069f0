//! Reports what is wrong with a pack, in Git's words.

use pronto::fsck::Inspector;
use pronto_pack::{Error, ErrorKind};

use crate::context::Context;
use crate::error::CliError;
use crate::progress::size;

/// The offset of the first entry of a pack.
const FIRST_ENTRY: u64 = 12;

/// Returns the error for a pack that could not be received; `limit_bytes` was its largest permitted
/// size. Prints the messages that precede it in Git.
pub(crate) fn report(error: Error, limit_bytes: Option<u64>, context: &mut Context) -> CliError {
    match (*error.kind(), error.offset()) {
        (ErrorKind::Interrupted, _) => pronto_io::interrupt::Interrupted.into(),
        (ErrorKind::Corrupt, Some(offset)) if offset >= FIRST_ENTRY => {
            if let Some(remark) = remark(&error) {
                context.complain(&remark);
            }
            let reason = error.message();
            CliError::fatal(format!("pack has bad object at offset {offset}: {reason}"))
        }
        (ErrorKind::Limit, _) if error.message().starts_with("pack exceeds") => {
            let most = size(limit_bytes.unwrap_or(u64::MAX));
            CliError::fatal(format!("pack exceeds maximum allowed size ({most})"))
        }
        (ErrorKind::Rejected, _) if error.message() == "pack has duplicate objects" => {
            let id = error.object().unwrap_or_default();
            CliError::fatal(format!("The same object {id} appears twice in the pack"))
        }
        (ErrorKind::Io, _) => error.into(),
        // Git finds this while it reads, if trees precede their contents.
        _ if error.message() == "fsck error in packed blob" => {
            CliError::fatal("fsck error in packed object")
        }
        _ => CliError::fatal(error.message()),
    }
}

/// Prints what was found in the objects of a pack.
pub(crate) fn tell(inspector: &Inspector<'_>, context: &mut Context) {
    for report in inspector.take_reports() {
        match report.is_error {
            true => context.complain(&report.text),
            false => context.warn(&report.text),
        }
    }
}

/// Returns the error of a fetch or clone. Refused objects are reported as by git, which runs
/// another process for the check and then prints `ending`.
pub(crate) fn refused(error: pronto::Error, ending: &str, context: &mut Context) -> CliError {
    let message = error.message();
    if !message.starts_with("fsck error") {
        return CliError::of(error);
    }
    let reason = std::error::Error::source(&error).map(ToString::to_string);
    for line in reason.iter().flat_map(|reason| reason.lines()) {
        context.complain(line);
    }
    CliError::fatal("fsck error in packed object").and(ending)
}

/// Does the same as [`report`] for a pack that becomes loose objects.
pub(crate) fn report_unpacking(error: &pronto_odb::Error, context: &mut Context) -> CliError {
    use pronto_odb::ErrorKind;
    if *error.kind() == ErrorKind::Interrupted {
        return pronto_io::interrupt::Interrupted.into();
    }
    let message = error.message();
    let is_told = message.starts_with("fsck error") || message.starts_with("invalid ");
    if let Some(remark) = remark(error).filter(|_| !is_told) {
        context.complain(&remark);
    }
    if message.starts_with("inflate returned") {
        return CliError::error(message);
    }
    if let Some(kind) = message.strip_prefix("unknown object type") {
        return CliError::error(format!("bad object type{kind}"));
    }
    if let Some(rest) = message.strip_prefix("pack version ") {
        let version = rest.trim_end_matches(" unsupported");
        return CliError::fatal(format!("unknown pack file version {version}"));
    }
    CliError::fatal(match message {
        "pack signature mismatch" => "bad pack file",
        "fsck error in packed blob" => "fsck error in pack objects",
        "pack is corrupted (SHA1 mismatch)" => "final sha1 did not match",
        "delta base offset is out of bound" => "offset value out of bound for delta base object",
        _ if *error.kind() == ErrorKind::Missing && message.contains("expected ") => {
            "object of unexpected type"
        }
        _ if message.contains("unresolved delta") => "unresolved deltas left after unpacking",
        _ if message.starts_with("pack exceeds") => "pack exceeds maximum allowed size",
        _ if *error.kind() == ErrorKind::Io => return CliError::fatal(error.to_string()),
        _ => message,
    })
}

/// Returns the message that zlib, or the delta code, prints first.
fn remark(error: &dyn std::error::Error) -> Option<String> {
    let reason = error.source()?;
    let Some(delta) = reason.downcast_ref::<Error>() else {
        return Some(reason.to_string());
    };
    match delta.message() {
        "delta base is not of the size the delta expects" => None,
        message if message.starts_with("unexpected delta opcode") => Some(message.to_owned()),
        _ => Some("delta replay has gone wild".to_owned()),
    }
}
