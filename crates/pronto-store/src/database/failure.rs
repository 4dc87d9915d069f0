//! Errors of the database.

use std::error::Error as _;
use std::io;

use tokio_postgres::Error as SqlError;
use tokio_postgres::error::SqlState;

use crate::{Error, ErrorKind};

/// The kind of an error, what the database does, and the way out.
type Explained = (ErrorKind, &'static str, Option<&'static str>);

const SILENT: Explained = (ErrorKind::Unavailable, "does not answer", None);

/// Returns the error for an answer of the database called `name`.
pub(super) fn failed(error: &SqlError, name: &str) -> Error {
    explain(error, name, error.code().map_or(SILENT, of_code))
}

/// Returns the error for a connection that could not be made. What the program and the database cannot agree on does
/// not get better by itself; a network may.
pub(super) fn not_connected(error: &SqlError, name: &str) -> Error {
    let explained = match (error.code(), io_cause(error)) {
        (Some(code), _) => of_code(code),
        (None, Some(cause)) => of_io(cause),
        (None, None) if error.is_closed() => SILENT,
        (None, None) => (
            ErrorKind::Denied,
            "does not let this program in",
            Some(
                "check the password (in ~/.pgpass or PGPASSWORD); if the server has no TLS, sslmode=disable in the \
                 address connects without it",
            ),
        ),
    };
    explain(error, name, explained)
}

fn io_cause(error: &SqlError) -> Option<&io::Error> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

fn of_io(error: &io::Error) -> Explained {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    match inner {
        Some(rustls::Error::InvalidCertificate(_)) => (
            ErrorKind::Denied,
            "has a certificate that is not trusted",
            Some("sslrootcert=FILE in the address names the certificate of its authority"),
        ),
        _ => SILENT,
    }
}

fn explain(error: &SqlError, name: &str, (kind, message, hint): Explained) -> Error {
    let mut reason = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        reason = format!("{reason}: {error}");
        cause = error.source();
    }
    let failed = Error::new(kind, format!("{name} {message}")).because(reason);
    match hint {
        Some(hint) => failed.with_hint(hint),
        None => failed,
    }
}

/// Returns whether a connection is of no use after the answer `code`: the server ends, or takes no commits.
pub(super) fn ends_connection(code: &SqlState) -> bool {
    matches!(code.code().get(..2), Some("08" | "57" | "58" | "25" | "XX"))
}

fn of_code(code: &SqlState) -> Explained {
    match code.code() {
        "3D000" => (
            ErrorKind::NoStore,
            "does not exist",
            Some("make it with `createdb`; the tables in it are made by this program"),
        ),
        "42501" => (
            ErrorKind::Denied,
            "refuses access",
            Some(
                "let the user create tables once, and then SELECT, INSERT and DELETE rows of \
                 pronto_generations, and SELECT those of pronto_schema",
            ),
        ),
        "42P01" => (
            ErrorKind::NoStore,
            "has lost its tables",
            Some("restore them, or start the servers again to make them"),
        ),
        code => match code.get(..2) {
            // Authorization.
            Some("28") => (
                ErrorKind::Denied,
                "refuses the user",
                Some(
                    "check user, password and pg_hba.conf; the password may be in ~/.pgpass or PGPASSWORD",
                ),
            ),
            // Connections, read-only standbys, conflicts, lack of resources, operators, and faults of the system.
            Some("08" | "25" | "40" | "53" | "55" | "57" | "58" | "XX") => {
                (ErrorKind::Unavailable, "does not answer as it should", None)
            }
            _ => (ErrorKind::Unsupported, "refuses a statement", None),
        },
    }
}
