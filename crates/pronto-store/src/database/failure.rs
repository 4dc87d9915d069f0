//! Conversion of errors of the database.

use std::error::Error as _;
use std::io;

use tokio_postgres::Error as SqlError;
use tokio_postgres::error::SqlState;

use crate::{Error, ErrorKind};

/// The kind and the message for an error.
#[derive(Clone, Copy)]
struct Explained {
    kind: ErrorKind,
    /// The message, which follows the name of the database.
    message: &'static str,
    /// The advice for the operator.
    hint: Option<&'static str>,
}

impl Explained {
    const SILENT: Self = Explained::new(ErrorKind::Unavailable, "does not respond");

    const fn new(kind: ErrorKind, message: &'static str) -> Self {
        Explained {
            kind,
            message,
            hint: None,
        }
    }

    const fn with_hint(self, hint: &'static str) -> Self {
        Explained {
            hint: Some(hint),
            ..self
        }
    }
}

/// Returns the error for a failed call of the database `name`.
pub(super) fn failed(error: &SqlError, name: &str) -> Error {
    explain(error, name, error.code().map_or(Explained::SILENT, of_code))
}

/// Returns the error for a failed connection attempt. A protocol mismatch between the program and
/// the database is permanent, while a network failure may be temporary.
pub(super) fn not_connected(error: &SqlError, name: &str) -> Error {
    let explained = match (error.code(), io_cause(error)) {
        (Some(code), _) => of_code(code),
        (None, Some(cause)) => of_io(cause),
        (None, None) if error.is_closed() => Explained::SILENT,
        (None, None) => Explained::new(ErrorKind::Denied, "rejects the connection").with_hint(
            "check the password in ~/.pgpass or PGPASSWORD; if the server has no TLS, add \
             sslmode=disable to the URL",
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
        Some(rustls::Error::InvalidCertificate(_)) => {
            Explained::new(ErrorKind::Denied, "has an untrusted certificate")
                .with_hint("add sslrootcert=FILE to the URL, with the certificate of its authority")
        }
        _ => Explained::SILENT,
    }
}

fn explain(error: &SqlError, name: &str, explained: Explained) -> Error {
    let Explained {
        kind,
        message,
        hint,
    } = explained;
    let mut reason = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = match error.downcast_ref() {
            Some(io) => pronto_io::error::reason(io),
            None => error.to_string(),
        };
        reason = format!("{reason}: {text}");
        cause = error.source();
    }
    let failed = Error::new(kind, format!("{name} {message}")).because(reason);
    match hint {
        Some(hint) => failed.with_hint(hint),
        None => failed,
    }
}

/// Returns whether a connection is unusable after the SQL state `code`, because the server ends or
/// accepts no commits.
pub(super) fn ends_connection(code: &SqlState) -> bool {
    matches!(code.code().get(..2), Some("08" | "57" | "58" | "25" | "XX"))
}

fn of_code(code: &SqlState) -> Explained {
    match code.code() {
        "3D000" => Explained::new(ErrorKind::NoStore, "does not exist")
            .with_hint("create it with 'createdb'; pronto creates its tables"),
        "42501" => Explained::new(ErrorKind::Denied, "denies access").with_hint(
            "grant the user CREATE for the first start, and SELECT, INSERT and DELETE on \
             pronto_generations and SELECT on pronto_schema",
        ),
        "42P01" => Explained::new(ErrorKind::NoStore, "lacks the tables of pronto").with_hint(
            "restore the tables from a backup, or restart the servers to create empty ones",
        ),
        code => match code.get(..2) {
            // Authorization errors.
            Some("28") => Explained::new(ErrorKind::Denied, "rejects the user").with_hint(
                "check the user, pg_hba.conf, and the password in ~/.pgpass or PGPASSWORD",
            ),
            // Connection errors, read-only standbys, conflicts, lack of resources, operator
            // intervention, and system errors.
            Some("08" | "25" | "40" | "53" | "55" | "57" | "58" | "XX") => {
                Explained::new(ErrorKind::Unavailable, "reports an error")
            }
            _ => Explained::new(ErrorKind::Unsupported, "rejects a statement"),
        },
    }
}
