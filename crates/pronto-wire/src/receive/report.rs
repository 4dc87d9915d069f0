//! The status report of a push (`report-status`).

use bstr::BStr;
use pronto_hash::ObjectId;

use crate::error::Error;
use crate::pktline;

/// An update that the hook `proc-receive` reports instead of the requested one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefRewrite<'a> {
    /// The updated ref, if it differs from the requested one.
    pub name: Option<&'a BStr>,
    /// The old value of the ref.
    pub old: Option<ObjectId>,
    /// The new value of the ref.
    pub new: Option<ObjectId>,
    /// Whether the change was not a fast-forward.
    pub forced: bool,
}

/// The status of one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandStatus<'a> {
    /// The name of the ref in the command.
    pub name: &'a BStr,
    /// The reason for which the command failed.
    pub error: Option<&'a BStr>,
    /// The updates that replace the command, for clients with `report-status-v2`.
    pub rewrites: Vec<RefRewrite<'a>>,
}

/// Appends the status report of a push. `unpack_error` is the reason for which the pack was rejected.
///
/// # Errors
/// Fails with [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) if a name or a reason is longer
/// than a packet.
pub fn write_report(
    out: &mut Vec<u8>,
    unpack_error: Option<&str>,
    replies: &[CommandStatus<'_>],
    is_v2: bool,
) -> Result<(), Error> {
    let status = unpack_error.unwrap_or("ok");
    pktline::write_parts(out, &[b"unpack ", status.as_bytes(), b"\n"])?;
    for reply in replies {
        if let Some(error) = reply.error {
            pktline::write_parts(out, &[b"ng ", reply.name, b" ", error, b"\n"])?;
            continue;
        }
        pktline::write_parts(out, &[b"ok ", reply.name, b"\n"])?;
        if !is_v2 {
            continue;
        }
        for (number, rewrite) in reply.rewrites.iter().enumerate() {
            if number > 0 {
                pktline::write_parts(out, &[b"ok ", reply.name, b"\n"])?;
            }
            write_rewrite(out, rewrite)?;
        }
    }
    pktline::write_flush(out);
    Ok(())
}

fn write_rewrite(out: &mut Vec<u8>, rewrite: &RefRewrite<'_>) -> Result<(), Error> {
    if let Some(name) = rewrite.name {
        pktline::write_parts(out, &[b"option refname ", name, b"\n"])?;
    }
    for (key, id) in [("old-oid", rewrite.old), ("new-oid", rewrite.new)] {
        if let Some(id) = id {
            let line = format!("option {key} {id}\n");
            pktline::write(out, line.as_bytes())?;
        }
    }
    if rewrite.forced {
        pktline::write(out, b"option forced-update\n")?;
    }
    Ok(())
}
