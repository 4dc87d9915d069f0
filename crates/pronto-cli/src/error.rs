//! The error type of the command line: message, advice and exit code.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt;
use std::io;

/// The exit code of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitCode(u8);

impl ExitCode {
    /// The command succeeded.
    pub const SUCCESS: ExitCode = ExitCode(0);
    /// The command ran and has a negative result, or failed with an `error:`.
    pub const FAILURE: ExitCode = ExitCode(1);
    /// The command failed with a `fatal:` error.
    pub const FATAL: ExitCode = ExitCode(128);
    /// The arguments are invalid.
    pub const USAGE: ExitCode = ExitCode(129);

    /// Creates the exit code `code`.
    pub const fn new(code: u8) -> Self {
        ExitCode(code)
    }

    /// Returns the number that the process returns to the shell.
    pub const fn code(self) -> u8 {
        self.0
    }
}

/// The kind of a failure, which determines the prefix of the message and the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A fatal error: `fatal: …`, exit code 128.
    Fatal,
    /// An error: `error: …`, exit code 1 unless [`CliError::with_code`] sets another one.
    Error,
    /// A usage error: `error: …` or the bare message, exit code 129.
    Usage,
    /// The call needs something that pronto lacks. git runs the call if nothing has changed yet.
    Unsupported,
    /// A failure without a message, because all messages have been printed.
    Silent,
    /// The reader of standard output has closed the pipe.
    BrokenPipe,
    /// The operation was interrupted.
    Interrupted,
}

/// The error of a command: messages, hints, kind and exit code. Commands create it, and `startup`
/// prints it once.
#[derive(Debug)]
pub struct CliError(Box<CliErrorData>);

#[derive(Debug)]
struct CliErrorData {
    kind: Kind,
    code: ExitCode,
    /// Lines of a server, which are printed first.
    remote: Vec<String>,
    /// Errors that are printed before the messages.
    earlier: Vec<String>,
    messages: Vec<String>,
    hints: Vec<String>,
    /// Whether the hints are printed before the messages.
    hints_lead: bool,
    /// The kind of the library's error, in the words of JSON documents (`missing_object`).
    cause: Option<String>,
}

impl CliError {
    fn new(kind: Kind, code: ExitCode, messages: Vec<String>) -> Self {
        CliError(Box::new(CliErrorData {
            kind,
            code,
            remote: Vec::new(),
            earlier: Vec::new(),
            messages,
            hints: Vec::new(),
            hints_lead: false,
            cause: None,
        }))
    }

    /// Creates a fatal error: `fatal: MESSAGE`, exit code 128.
    pub fn fatal(message: impl Into<String>) -> Self {
        Self::new(Kind::Fatal, ExitCode::FATAL, vec![message.into()])
    }

    /// Creates a fatal error with the reason of the system: `fatal: MESSAGE: REASON`.
    pub(crate) fn of_system(message: &str, error: &io::Error) -> Self {
        let reason = pronto_io::error::reason(error);
        Self::fatal(format!("{message}: {reason}"))
    }

    /// Creates an error: `error: MESSAGE`, exit code 1.
    pub fn error(message: impl Into<String>) -> Self {
        Self::new(Kind::Error, ExitCode::FAILURE, vec![message.into()])
    }

    /// Creates a usage error: `error: MESSAGE`, exit code 129.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, ExitCode::USAGE, vec![message.into()])
    }

    /// Creates the error for a call that needs `what` ("option '--foo'"), which pronto lacks. It
    /// must be returned before any side effect, because the whole call is then handed to the
    /// installed git.
    pub fn unsupported(what: impl Into<String>) -> Self {
        let message = format!("{} is not implemented natively", what.into());
        Self::new(Kind::Unsupported, ExitCode::FATAL, vec![message])
    }

    /// Creates the error for an outcome of the library that the command does not handle.
    pub(crate) fn unknown_outcome(outcome: &impl fmt::Debug) -> Self {
        Self::fatal(format!("bug in pronto: unexpected outcome {outcome:?}"))
    }

    /// Creates the error for arguments that are invalid for pronto. The call is handed to git,
    /// which may support them.
    pub(crate) fn misuse(message: impl Into<String>) -> Self {
        Self::new(Kind::Unsupported, ExitCode::USAGE, vec![message.into()])
    }

    /// Prevents that the call of command `name` is handed to git, which has no such command.
    pub(crate) fn without_git(mut self, name: &str) -> Self {
        if self.0.kind != Kind::Unsupported {
            return self;
        }
        if self.0.code != ExitCode::USAGE {
            self.0.kind = Kind::Fatal;
            return self;
        }
        self.0.kind = Kind::Usage;
        self.with_hint(format!("run 'pronto {name} -h' for its usage"))
    }

    /// Does the same as [`unsupported`](Self::unsupported), with `error` as the name of the missing
    /// feature.
    pub(crate) fn lacking(error: impl fmt::Display) -> Self {
        Self::new(Kind::Unsupported, ExitCode::FATAL, vec![error.to_string()])
    }

    /// Converts an error of the library. If pronto lacks something that the call needs, git runs
    /// the call, so the caller must not have changed anything. An interrupt becomes
    /// [`Kind::Interrupted`].
    pub(crate) fn of(error: pronto::Error) -> Self {
        match error.kind() {
            pronto::ErrorKind::Unsupported => Self::lacking(error),
            pronto::ErrorKind::Interrupted => pronto_io::interrupt::Interrupted.into(),
            // In Git, this error is fatal in every command but checkouts.
            pronto::ErrorKind::Hostile => Self::error(error.to_string())
                .with_code(ExitCode::FATAL)
                .caused_by(error.kind()),
            _ => error.into(),
        }
    }

    /// Creates an error without a message that ends the process with `code`.
    pub fn silent(code: ExitCode) -> Self {
        Self::new(Kind::Silent, code, Vec::new())
    }

    /// Sets the kind of the library's error that caused this error, for JSON documents.
    #[must_use]
    pub(crate) fn caused_by(mut self, kind: impl fmt::Debug) -> Self {
        self.0.cause = Some(snake_case(&format!("{kind:?}")));
        self
    }

    /// Adds an error on a line before the messages.
    #[must_use]
    pub(crate) fn after(mut self, message: impl Into<String>) -> Self {
        self.0.earlier.push(message.into());
        self
    }

    /// Adds a message after the first one, with the same prefix.
    #[must_use]
    pub fn and(mut self, message: impl Into<String>) -> Self {
        self.0.messages.push(message.into());
        self
    }

    /// Adds advice, which is printed on lines that start with `hint:`.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hints.push(hint.into());
        self
    }

    /// Makes the advice precede the messages. Git does so for files that are invalid in their
    /// encoding.
    #[must_use]
    pub(crate) fn with_leading_hints(mut self) -> Self {
        self.0.hints_lead = true;
        self
    }

    /// Converts a fatal error into an error: `error: …` with exit code 1.
    #[must_use]
    pub(crate) fn into_error(mut self) -> Self {
        if self.0.kind == Kind::Fatal {
            (self.0.kind, self.0.code) = (Kind::Error, ExitCode::FAILURE);
        }
        self
    }

    /// Returns whether the error is printed as `error: …` and not as `fatal: …`.
    pub(crate) fn is_minor(&self) -> bool {
        self.0.kind == Kind::Error
    }

    /// Sets the exit code, which overrides that of the kind.
    #[must_use]
    pub fn with_code(mut self, code: ExitCode) -> Self {
        self.0.code = code;
        self
    }

    /// Returns the kind of failure.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// Returns the exit code.
    pub fn code(&self) -> ExitCode {
        self.0.code
    }

    /// Returns the messages, without prefixes.
    pub fn messages(&self) -> &[String] {
        &self.0.messages
    }

    /// Returns the errors that are printed before the messages, without prefixes.
    pub(crate) fn earlier(&self) -> &[String] {
        &self.0.earlier
    }

    /// Returns the advice.
    pub(crate) fn hints(&self) -> &[String] {
        &self.0.hints
    }

    /// Returns the lines of a server that explain the error.
    pub(crate) fn remote(&self) -> &[String] {
        &self.0.remote
    }

    /// Returns the name of the kind in JSON documents: the kind of the library's error
    /// (`missing_object`), or the kind of failure (`usage`).
    pub(crate) fn kind_name(&self) -> &str {
        match (self.0.kind, &self.0.cause) {
            (Kind::Fatal | Kind::Error | Kind::Silent, Some(cause)) => cause,
            (Kind::Fatal, None) => "fatal",
            (Kind::Error, None) => "error",
            (Kind::Usage, _) => "usage",
            (Kind::Unsupported, _) => "unsupported",
            (Kind::Silent, None) => "reported",
            (Kind::BrokenPipe, _) => "broken_pipe",
            (Kind::Interrupted, _) => "interrupted",
        }
    }

    /// Converts the error into an error of the library, for a caller that reports it.
    pub(crate) fn to_report(&self, kind: pronto::ErrorKind) -> pronto::Error {
        let error = pronto::Error::new(kind, self.to_string());
        match self.0.earlier.first() {
            Some(earlier) => error.reported_after(earlier.as_str()),
            None => error,
        }
    }

    /// Returns the lines for standard error, with prefixes.
    pub fn render(&self) -> String {
        let prefix = match self.0.kind {
            Kind::Fatal => "fatal: ",
            Kind::Unsupported if self.0.code == ExitCode::FATAL => "fatal: ",
            _ => "error: ",
        };
        let mut text = String::new();
        for line in &self.0.remote {
            text.push_str("remote: ");
            text.push_str(line);
            text.push('\n');
        }
        for message in &self.0.earlier {
            text.push_str("error: ");
            text.push_str(message);
            text.push('\n');
        }
        if self.0.hints_lead {
            self.push_hints(&mut text);
        }
        for message in &self.0.messages {
            text.push_str(prefix);
            text.push_str(message);
            text.push('\n');
        }
        if !self.0.hints_lead {
            self.push_hints(&mut text);
        }
        text
    }

    fn push_hints(&self, text: &mut String) {
        for hint in self.0.hints.iter().flat_map(|hint| hint.split('\n')) {
            text.push_str(if hint.is_empty() { "hint:" } else { "hint: " });
            text.push_str(hint);
            text.push('\n');
        }
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.messages.join("; "))
    }
}

impl std::error::Error for CliError {}

/// Converts an error of a library into a fatal error with its hint.
impl<K: Copy + fmt::Debug> From<pronto_io::error::Error<K>> for CliError {
    fn from(error: pronto_io::error::Error<K>) -> Self {
        let mut fatal = CliError::fatal(error.to_string()).caused_by(error.kind());
        fatal.0.earlier = error
            .reported_before()
            .map(Into::into)
            .into_iter()
            .collect();
        let remote = error.remote_text().unwrap_or_default();
        fatal.0.remote = remote.lines().map(str::to_owned).collect();
        match error.hint() {
            Some(hint) => fatal.with_hint(hint),
            None => fatal,
        }
    }
}

/// Converts an error of writing standard output, so that `write!(context.out, …)?` fails as in Git.
impl CliError {
    /// Converts the error of a name that could not be resolved. A call with an ambiguous name is
    /// handed to git.
    pub(crate) fn unresolved(error: pronto::Error) -> Self {
        match error.kind() {
            pronto::ErrorKind::Ambiguous => Self::misuse(error.message()),
            _ => error.into(),
        }
    }
}

impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::new(Kind::BrokenPipe, ExitCode::new(141), Vec::new());
        }
        let reason = pronto_io::error::reason(&error);
        Self::fatal(format!("write failure on standard output: {reason}"))
    }
}

impl From<pronto_io::interrupt::Interrupted> for CliError {
    fn from(_: pronto_io::interrupt::Interrupted) -> Self {
        Self::new(Kind::Interrupted, ExitCode::new(130), Vec::new())
    }
}

/// Formats `text` as Git prints arguments of the command line in messages.
pub fn display(text: &OsStr) -> Cow<'_, str> {
    text.to_string_lossy()
}

/// Converts the name of a variant, without its fields: `MissingObject` becomes `missing_object`.
fn snake_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 8);
    for each in name.chars().take_while(char::is_ascii_alphanumeric) {
        if each.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(each.to_ascii_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_stable_names() {
        use pronto::ErrorKind as Of;
        for (kind, name) in [
            (Of::NotARepository, "not_a_repository"),
            (Of::NoRepository, "no_repository"),
            (Of::Transport, "transport"),
            (Of::MissingObject, "missing_object"),
            (Of::AlreadyExists, "already_exists"),
            (Of::Config, "config"),
            (Of::ConfigValue, "config_value"),
            (Of::Locked, "locked"),
            (Of::Hostile, "hostile"),
        ] {
            let error = CliError::of(pronto::Error::new(kind, "it failed"));
            assert_eq!(error.kind_name(), name);
        }
        assert_eq!(
            snake_case("RejectedBlob { in_pack: true }"),
            "rejected_blob"
        );
        assert_eq!(CliError::usage("wrong").kind_name(), "usage");
        assert_eq!(
            CliError::unsupported("option '--x'").kind_name(),
            "unsupported"
        );
    }
}
