//! The report: which commands succeeded.

use bstr::BStr;
use pronto_hash::ObjectId;

use crate::error::Error;
use crate::pktline;

/// A change in place of the requested one, reported by the hook `proc-receive`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewrite<'a> {
    /// The ref that was changed, if it is another one.
    pub name: Option<&'a BStr>,
    /// Its value before.
    pub old: Option<ObjectId>,
    /// Its value now.
    pub new: Option<ObjectId>,
    /// Whether the change was not a fast-forward.
    pub forced: bool,
}

/// The answer to one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// The name of the ref in the command.
    pub name: &'a BStr,
    /// Why the command failed.
    pub error: Option<&'a BStr>,
    /// The changes in its place; only clients that know `report-status-v2` read them.
    pub rewrites: Vec<Rewrite<'a>>,
}

/// Appends the report of a push: `unpack_error` says why its pack was not taken.
///
/// # Errors
/// A name or a reason is longer than a packet.
pub fn write_report(
    out: &mut Vec<u8>,
    unpack_error: Option<&str>,
    replies: &[Reply<'_>],
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

fn write_rewrite(out: &mut Vec<u8>, rewrite: &Rewrite<'_>) -> Result<(), Error> {
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
