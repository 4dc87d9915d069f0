//! Errors of an object store.

/// The error of this crate: a kind, the file, the offset in it and the object.
pub type Error = pronto_io::error::Error<ErrorKind>;

/// The kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system refused.
    Io,
    /// A file is not what its format says, or not what its name says.
    Corrupt,
    /// A loose object is of a type that does not exist.
    UnknownType,
    /// A version or feature of a format that is not known.
    Unsupported,
    /// An object or file is too large for a limit.
    Limit,
    /// A pack is larger than the caller permits.
    PackTooLarge,
    /// Something that another object needs is not there.
    Missing,
    /// An object looks made to collide with another.
    Collision,
    /// An inspector refused an object.
    Rejected,
    /// The operation was asked to stop.
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

/// Lifts an error of the floor below.
#[cold]
pub(crate) fn from_pack(error: pronto_pack::Error) -> Error {
    error.map_kind(ErrorKind::from)
}

/// Hands an error down to an indexer that hands it back.
#[cold]
pub(crate) fn to_pack(error: Error) -> pronto_pack::Error {
    error.map_kind(pronto_pack::ErrorKind::from)
}

/// Whether the reason at the bottom is that a file is not there (any more).
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
