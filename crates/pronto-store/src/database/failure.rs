//! Errors of the database.

use std::error::Error as _;

use tokio_postgres::error::SqlState;

use crate::{Error, ErrorKind};

/// Returns the error for an answer of the database called `name`.
pub(super) fn failed(error: &tokio_postgres::Error, name: &str) -> Error {
    let (kind, message, hint) = match error.code() {
        Some(code) => of_code(code),
        None => (ErrorKind::Unavailable, "does not answer", None),
    };
    let mut reason = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        reason = format!("{reason}: {error}");
        cause = error.source();
    }
    let hint = match reason.contains("server does not support TLS") {
        true => Some("sslmode=disable in the address connects without TLS"),
        false if reason.contains("invalid peer certificate") => {
            Some("sslrootcert=FILE in the address names the certificate of its authority")
        }
        false => hint,
    };
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

fn of_code(code: &SqlState) -> (ErrorKind, &'static str, Option<&'static str>) {
    match code.code() {
        "3D000" => (
            ErrorKind::NotFound,
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
            ErrorKind::NotFound,
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
