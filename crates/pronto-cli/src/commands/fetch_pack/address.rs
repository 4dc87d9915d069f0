//! The address of a `fetch-pack`: which ones it takes, and `--diag-url`.

use std::io::Write;

use bstr::{BStr, ByteSlice};
use pronto::Environment;
use pronto::remote::connection;
use pronto::wire::address::{Address, is_url};

use crate::{CliError, Context, ExitCode};

/// The schemes of addresses that a program of the other side serves without a helper.
const SCHEMES: &[&str] = &["file", "git", "ssh", "git+ssh", "ssh+git"];

/// Fails if `fetch-pack` takes no such address: a web server needs a helper, as in Git.
pub(super) fn check(url: &BStr, environment: &Environment) -> Result<(), CliError> {
    if let Some((scheme, _)) = url.split_once_str("://").filter(|_| is_url(url)) {
        let scheme = scheme.as_bstr();
        if !SCHEMES.iter().any(|known| scheme == *known) {
            let message = format!("protocol '{scheme}' is not supported");
            return Err(CliError::fatal(message));
        }
    }
    match connection::is_bundle(url, environment) {
        true => Err(CliError::unsupported("'fetch-pack' from a bundle")),
        false => Ok(()),
    }
}

/// Prints the parts of `url`.
pub(super) fn print(url: &BStr, context: &mut Context) -> Result<ExitCode, CliError> {
    if is_url(url) && url.contains(&b'%') {
        return Err(CliError::unsupported(
            "the parts of an address with escapes",
        ));
    }
    let address = Address::parse(url).map_err(connection::from_wire);
    let address = address.map_err(CliError::of)?;
    let out = &mut context.out;
    writeln!(
        out,
        "Diag: url={url}\nDiag: protocol={}",
        address.protocol()
    )?;
    let path = match address {
        // As it is written: nothing is taken apart before a connection.
        Address::File { path } | Address::Git { path, .. } => {
            let rest = url.split_once_str("://").map_or(&b""[..], |(_, rest)| rest);
            let host = rest.split(|byte| *byte == b'/').next().unwrap_or_default();
            writeln!(out, "Diag: hostandport={}", host.as_bstr())?;
            path
        }
        Address::Ssh { host, port, path } => {
            let port = port.map_or_else(|| "NONE".to_owned(), |port| port.to_string());
            writeln!(out, "Diag: userandhost={host}\nDiag: port={port}")?;
            path
        }
        _ => return Err(CliError::unsupported("the parts of such an address")),
    };
    writeln!(out, "Diag: path={path}")?;
    Ok(ExitCode::SUCCESS)
}
