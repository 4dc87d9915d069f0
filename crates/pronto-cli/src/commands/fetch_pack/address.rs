//! The address of `fetch-pack`: supported schemes, and `--diag-url`.

use std::io::Write;

use bstr::{BStr, ByteSlice};
use pronto::remote::connection;
use pronto::wire::{RemoteAddress, is_url};

use crate::{CliError, Context, ExitCode};

/// The URL schemes that need no remote helper.
const SCHEMES: &[&str] = &["file", "git", "ssh", "git+ssh", "ssh+git"];

/// Fails if `fetch-pack` does not support the scheme of `url`. As in Git, HTTP needs a remote
/// helper.
pub(super) fn check(url: &BStr) -> Result<(), CliError> {
    if let Some((scheme, _)) = url.split_once_str("://").filter(|_| is_url(url)) {
        let scheme = scheme.as_bstr();
        if !SCHEMES.iter().any(|known| scheme == *known) {
            let message = format!("protocol '{scheme}' is not supported");
            return Err(CliError::fatal(message));
        }
    }
    Ok(())
}

/// Prints the parts of `url` (`--diag-url`).
pub(super) fn print(url: &BStr, context: &mut Context) -> Result<ExitCode, CliError> {
    let address = RemoteAddress::parse(url).map_err(connection::from_wire);
    let address = address.map_err(CliError::of)?;
    let out = &mut context.out;
    writeln!(
        out,
        "Diag: url={url}\nDiag: protocol={}",
        address.protocol()
    )?;
    let path = match address {
        RemoteAddress::File { path } => {
            writeln!(out, "Diag: hostandport={}", authority(url))?;
            path
        }
        RemoteAddress::Git { path, .. } if authority(url).contains(&b'@') => {
            // `git://` has no users, so Git does not split off a user name.
            writeln!(out, "Diag: hostandport={}", authority(url))?;
            path
        }
        RemoteAddress::Git { host, port, path } => {
            let host = match host.contains(':') {
                true => format!("[{host}]"),
                false => host,
            };
            let port = port.map_or_else(String::new, |port| format!(":{port}"));
            writeln!(out, "Diag: hostandport={host}{port}")?;
            path
        }
        RemoteAddress::Ssh { host, port, path } => {
            let port = port.map_or_else(|| "NONE".to_owned(), |port| port.to_string());
            writeln!(out, "Diag: userandhost={host}\nDiag: port={port}")?;
            path
        }
        _ => return Err(CliError::unsupported("option --diag-url for this URL")),
    };
    writeln!(out, "Diag: path={path}")?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the part of `url` between the scheme and the path, unchanged.
fn authority(url: &BStr) -> &BStr {
    let rest = url.split_once_str("://").map_or(&b""[..], |(_, rest)| rest);
    let host = rest.split(|byte| *byte == b'/').next();
    host.unwrap_or_default().as_bstr()
}
