//! The error type of all crates: a kind that callers match, a message in Git's grammar (lower case,
//! no full stop), and the context: path, offset and object.

use std::fmt;
use std::path::{Path, PathBuf};

/// An opaque error of kind `K` with its context.
///
/// One pointer wide, so that `Result<T, Error<K>>` stays small on hot paths. `Send + Sync`.
pub struct Error<K>(Box<ErrorData<K>>);

struct ErrorData<K> {
    kind: K,
    message: String,
    path: Option<PathBuf>,
    offset: Option<u64>,
    object: Option<String>,
    hint: Option<String>,
    reported_before: Option<String>,
    remote_text: Option<String>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl<K> Error<K> {
    /// Creates an error with a kind and a message. Allocates; meant for failures only.
    pub fn new(kind: K, message: impl Into<String>) -> Self {
        Error(Box::new(ErrorData {
            kind,
            message: message.into(),
            path: None,
            offset: None,
            object: None,
            hint: None,
            reported_before: None,
            remote_text: None,
            source: None,
        }))
    }

    /// Adds the path of the file in which the error occurred. A path that is already set stays,
    /// because it is closer to the cause.
    #[must_use]
    pub fn at_path(mut self, path: impl AsRef<Path>) -> Self {
        self.0.path.get_or_insert_with(|| path.as_ref().to_owned());
        self
    }

    /// Adds the offset in bytes at which the error occurred. An offset that is already set stays.
    #[must_use]
    pub fn at_offset(mut self, offset: u64) -> Self {
        self.0.offset.get_or_insert(offset);
        self
    }

    /// Adds the object with which the error occurred, as a full object id. An object that is
    /// already set stays.
    #[must_use]
    pub fn on_object(mut self, object: impl fmt::Display) -> Self {
        self.0.object.get_or_insert_with(|| object.to_string());
        self
    }

    /// Adds advice for the user, which is printed on separate lines (`hint:`) and is not part of
    /// the message.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint.get_or_insert_with(|| hint.into());
        self
    }

    /// Adds a message that is printed as a separate error line before this error. The message is
    /// not part of this error's text.
    #[must_use]
    pub fn reported_after(mut self, message: impl Into<String>) -> Self {
        self.0.reported_before.get_or_insert_with(|| message.into());
        self
    }

    /// Adds the explanation of a remote, as lines that are safe to print. The explanation is not
    /// part of this error's text.
    #[must_use]
    pub fn with_remote_text(mut self, text: impl Into<String>) -> Self {
        self.0.remote_text.get_or_insert_with(|| text.into());
        self
    }

    /// Adds the error that caused this one.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> K
    where
        K: Copy,
    {
        self.0.kind
    }

    /// Returns an error of `kind` with the same message and hint, and without path, offset, object
    /// and cause.
    #[must_use]
    pub fn without_context<L>(self, kind: L) -> Error<L> {
        let mut bare = Error::new(kind, self.0.message);
        bare.0.hint = self.0.hint;
        bare
    }

    /// Returns the message without context.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the path of the file in which the error occurred, if the path is set.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// Returns the offset in bytes within [`path`](Self::path), if the offset is set.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// Returns the object with which the error occurred, if the object is set.
    pub fn object(&self) -> Option<&str> {
        self.0.object.as_deref()
    }

    /// Returns the advice for the user, if there is any.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Returns the message that is printed as a separate error line before this error, if there is
    /// any.
    pub fn reported_before(&self) -> Option<&str> {
        self.0.reported_before.as_deref()
    }

    /// Returns the explanation of the remote, if the remote sent one.
    pub fn remote_text(&self) -> Option<&str> {
        self.0.remote_text.as_deref()
    }

    /// Converts the kind of the error and keeps everything else. Crates use this to convert errors
    /// of lower crates.
    pub fn map_kind<L>(self, map: impl FnOnce(K) -> L) -> Error<L> {
        let ErrorData {
            kind,
            message,
            path,
            offset,
            object,
            hint,
            reported_before,
            remote_text,
            source,
        } = *self.0;
        Error(Box::new(ErrorData {
            kind: map(kind),
            message,
            path,
            offset,
            object,
            hint,
            reported_before,
            remote_text,
            source,
        }))
    }
}

impl<K> fmt::Display for Error<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if let Some(object) = &self.0.object {
            write!(f, " (object {object})")?;
        }
        if let Some(path) = &self.0.path {
            write!(f, " in '{}'", path.display())?;
        }
        if let Some(offset) = self.0.offset {
            write!(f, " at offset {offset}")?;
        }
        match &self.0.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl<K: fmt::Debug> fmt::Debug for Error<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

impl<K: fmt::Debug> std::error::Error for Error<K> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

/// Adds the failed system call and its path to an I/O error, and keeps the operating system's
/// reason.
pub trait IoContext<T> {
    /// Converts an I/O error into an [`Error`] with `kind`, `message` and `path`.
    ///
    /// # Errors
    /// Returns the converted error if `self` is an error.
    fn context<K>(self, kind: K, message: &str, path: impl AsRef<Path>) -> Result<T, Error<K>>;
}

impl<T, E: Into<std::io::Error>> IoContext<T> for Result<T, E> {
    fn context<K>(self, kind: K, message: &str, path: impl AsRef<Path>) -> Result<T, Error<K>> {
        self.map_err(|error| {
            let error = error.into();
            Error::new(kind, format!("{message} '{}'", path.as_ref().display()))
                .because(OsReason(error))
        })
    }
}

/// Returns the operating system's reason in the words of `strerror(3)`, as Git prints it.
pub fn reason(error: &std::io::Error) -> String {
    let mut text = error.to_string();
    text.truncate(text.find(" (os error").unwrap_or(text.len()));
    text
}

/// An error whose text is its [`reason`].
pub struct OsReason(pub std::io::Error);

impl fmt::Display for OsReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&reason(&self.0))
    }
}

impl fmt::Debug for OsReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// The original I/O error is available as the source.
impl std::error::Error for OsReason {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_context_wins() {
        let error = Error::new(1, "cannot read")
            .at_path("inner")
            .at_path("outer")
            .at_offset(7);
        assert_eq!(error.to_string(), "cannot read in 'inner' at offset 7");
        assert_eq!(error.map_kind(|kind| kind + 1).kind(), 2);
    }

    #[test]
    fn the_reason_is_worded_as_git_words_it() {
        let missing: std::io::Result<()> = Err(std::io::Error::from_raw_os_error(2));
        let error = missing
            .context((), "cannot open", "f")
            .expect_err("it is an error");
        assert_eq!(
            error.to_string(),
            "cannot open 'f': No such file or directory"
        );
        let reason = std::error::Error::source(&error).and_then(std::error::Error::source);
        let reason = reason.and_then(|reason| reason.downcast_ref::<std::io::Error>());
        let kind = reason.map(std::io::Error::kind);
        assert_eq!(kind, Some(std::io::ErrorKind::NotFound));
    }
}
