//! Errors of an object store.

/// The error of this crate: a kind, the file, the offset in the file and the object id.
pub type Error = pronto_io::error::Error<ErrorKind>;

/// The kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A system call failed.
    Io,
    /// The content of a file violates its format, or does not match the object id or checksum in
    /// its name.
    Corrupt,
    /// A loose object has an unknown type.
    UnknownType,
    /// A version or feature of a format is not supported.
    Unsupported,
    /// An object or file is too large for a limit.
    Limit,
    /// A pack is larger than the caller permits (`--max-input-size`).
    PackTooLarge,
    /// An object that is required is missing.
    Missing,
    /// The content of an object is part of a known collision attack, or collides with an existing
    /// object.
    Collision,
    /// An inspector rejected an object.
    Rejected,
    /// The operation was cancelled.
    Interrupted,
}

impl From<pronto_pack::ErrorKind> for ErrorKind {
    fn from(kind: pronto_pack::ErrorKind) -> Self {
        use pronto_pack::ErrorKind as Pack;
        match kind {
            Pack::Io => ErrorKind::Io,
            Pack::Interrupted | Pack::Stopped => ErrorKind::Interrupted,
            Pack::Unsupported
            | Pack::PackVersion { .. }
            | Pack::IndexVersion { .. }
            | Pack::OtherHash => ErrorKind::Unsupported,
            Pack::Limit => ErrorKind::Limit,
            Pack::PackTooLarge => ErrorKind::PackTooLarge,
            Pack::Missing | Pack::Unresolved | Pack::BrokenLink => ErrorKind::Missing,
            Pack::Rejected | Pack::RejectedBlob { .. } => ErrorKind::Rejected,
            Pack::Collision => ErrorKind::Collision,
            _ => ErrorKind::Corrupt,
        }
    }
}

impl From<ErrorKind> for pronto_pack::ErrorKind {
    fn from(kind: ErrorKind) -> Self {
        use pronto_pack::ErrorKind as Pack;
        match kind {
            ErrorKind::Io => Pack::Io,
            ErrorKind::Corrupt | ErrorKind::UnknownType => Pack::Corrupt,
            ErrorKind::Unsupported => Pack::Unsupported,
            ErrorKind::Limit => Pack::Limit,
            ErrorKind::PackTooLarge => Pack::PackTooLarge,
            ErrorKind::Missing => Pack::Missing,
            ErrorKind::Collision => Pack::Collision,
            ErrorKind::Rejected => Pack::Rejected,
            ErrorKind::Interrupted => Pack::Interrupted,
        }
    }
}

/// Converts an error of `pronto-pack`.
#[cold]
pub(crate) fn from_pack(error: pronto_pack::Error) -> Error {
    error.map_kind(ErrorKind::from)
}

/// Converts an error to an error of `pronto-pack`, for a callback of the indexer.
#[cold]
pub(crate) fn to_pack(error: Error) -> pronto_pack::Error {
    error.map_kind(pronto_pack::ErrorKind::from)
}

/// Returns whether the root cause of the error is a missing file.
pub(crate) fn is_gone(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            return matches!(
                error.kind(),
                std::io::ErrorKind::NotFound | std::io::ErrorKind::StaleNetworkFileHandle
            );
        }
        next = error.source();
    }
    false
}
