//! Errors of operations that may have changed something before the failure.

use std::fmt;

use crate::{Error, ErrorKind};

/// An error that ended an operation, with the report of the work done before the error.
///
/// A `PartialFailure` converts into its [`error`](Self::error), for callers that do not need the
/// report.
#[derive(Debug)]
#[non_exhaustive]
pub struct PartialFailure<R, E = Error> {
    /// The error that ended the operation.
    pub error: E,
    /// The report of the work done before the error. `None` if the operation failed before there
    /// was anything to report.
    pub report: Option<Box<R>>,
}

impl<R, E> PartialFailure<R, E> {
    /// Creates the failure of an operation that has done the work described by `report`.
    pub fn new(error: impl Into<E>, report: R) -> Self {
        PartialFailure {
            error: error.into(),
            report: Some(Box::new(report)),
        }
    }
}

impl<R> PartialFailure<R> {
    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.error.kind()
    }
}

impl<R, E: From<Error>> From<Error> for PartialFailure<R, E> {
    fn from(error: Error) -> Self {
        PartialFailure {
            error: error.into(),
            report: None,
        }
    }
}

impl<R> From<PartialFailure<R>> for Error {
    fn from(failure: PartialFailure<R>) -> Self {
        failure.error
    }
}

impl<R, E: fmt::Display> fmt::Display for PartialFailure<R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<R: fmt::Debug, E: std::error::Error + 'static> std::error::Error for PartialFailure<R, E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}
