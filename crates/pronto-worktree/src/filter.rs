//! Conversion of blobs to file contents and back: line endings, `ident`, `working-tree-encoding`,
//! and the programs of `filter.<name>` (gitattributes(5), "Effects").
//!
//! [`Settings`] are the configuration, which all threads share. A [`PathConversion`] combines the
//! attributes of one path with the settings. Towards the worktree (smudge), [`Internal`] performs the
//! conversions without a program and [`FilterPrograms`] runs programs. Towards Git (clean), [`ToGit`]
//! performs all conversions.

use std::path::PathBuf;

use bstr::{BStr, BString, ByteSlice};
use gix_filter::eol::AttributesDigest;
use pronto_hash::{Kind, ObjectId};

use crate::attributes::AttributeState;
use crate::{Error, ErrorKind};

mod encoding;
mod ident;
mod internal;
mod programs;
mod to_git;
mod warning;

pub use encoding::{Encoding, reencode};
pub use gix_filter::eol::{AutoCrlf, Mode as Eol};
pub use internal::Internal;
pub use programs::{Delayed, FileToSmudge, FilterAnswer, FilterPrograms};
pub use to_git::{InIndex, ToGit};
pub use warning::{EncodingFlaw, FilterWarning, LineEnding, Warnings};

/// The attributes that determine conversions. Select them for [`Settings::conversion`].
pub const ATTRIBUTES: [&str; 6] = [
    "text",
    "crlf",
    "eol",
    "ident",
    "filter",
    "working-tree-encoding",
];

/// A program of `filter.<name>`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Driver {
    /// The name of the driver.
    pub name: BString,
    /// The clean command (`filter.<name>.clean`).
    pub clean: Option<BString>,
    /// The smudge command (`filter.<name>.smudge`).
    pub smudge: Option<BString>,
    /// The command of a long-running process (`filter.<name>.process`).
    pub process: Option<BString>,
    /// Treat a failure of the program as an error (`filter.<name>.required`).
    pub required: bool,
}

impl Driver {
    fn acts_towards(&self, direction: Direction) -> bool {
        let single = match direction {
            Direction::ToWorktree => &self.smudge,
            Direction::ToGit => &self.clean,
        };
        let given =
            |command: &Option<BString>| command.as_ref().is_some_and(|text| !text.is_empty());
        given(&self.process) || given(single) || self.required
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    ToWorktree,
    ToGit,
}

/// The treatment of line endings that a checkout would not restore (`core.safecrlf`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SafeCrlf {
    /// No check (`false`).
    #[default]
    Ignore,
    /// A warning (`warn`).
    Warn,
    /// An error (`true`).
    Fail,
}

/// The configuration of conversions.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// The configured filter programs.
    pub drivers: Vec<Driver>,
    /// The setting `core.autocrlf`.
    pub auto_crlf: AutoCrlf,
    /// The setting `core.eol`; `None` for `native`.
    pub eol: Option<Eol>,
    /// The setting `core.safecrlf`.
    pub safe_crlf: SafeCrlf,
    /// The setting `core.checkRoundtripEncoding`.
    pub check_roundtrip: Vec<BString>,
    /// The hash function of the repository, for `ident`.
    pub hash: Kind,
    /// The absolute path of the repository directory for the `GIT_DIR` of programs, if they need it.
    pub git_dir: Option<PathBuf>,
    /// The absolute path of the top of the worktree, in which programs run.
    pub worktree: Option<PathBuf>,
    /// The `GIT_CONFIG_PARAMETERS` of programs: the settings of options of the command line (`-c`).
    pub config_parameters: Option<BString>,
    /// The full name of the ref that is checked out, for long-running processes.
    pub ref_name: Option<BString>,
    /// The commit or tree that is checked out, for long-running processes.
    pub treeish: Option<ObjectId>,
    /// Whether the content of a file that is not valid in its `working-tree-encoding` is used
    /// unchanged. This is for comparisons whose result is not stored.
    pub tolerates_encodings: bool,
    /// The first malformed setting of a driver (`filter.NAME`). Git reads drivers when it converts
    /// the first file.
    pub malformed_driver: Option<MalformedSetting>,
    /// The malformed value of `core.bigFileThreshold`. Git reads this setting when it makes a blob
    /// of the first file.
    pub malformed_threshold: Option<MalformedSetting>,
}

/// A malformed setting. The first conversion that needs the setting fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MalformedSetting {
    /// The message that Git prints before the error message, if there is one.
    pub reported_before: Option<String>,
    /// The error message.
    pub message: String,
}

impl MalformedSetting {
    /// Creates the record of the setting that caused `error`.
    pub fn new<K>(error: &pronto_io::error::Error<K>) -> Self {
        MalformedSetting {
            reported_before: error.reported_before().map(ToOwned::to_owned),
            message: error.message().to_owned(),
        }
    }

    fn to_error(&self) -> Error {
        let error = Error::new(ErrorKind::Filter, self.message.as_str());
        match &self.reported_before {
            Some(earlier) => error.reported_after(earlier.as_str()),
            None => error,
        }
    }
}

impl Settings {
    /// Creates the settings of a repository without configuration.
    pub fn new(hash: Kind) -> Self {
        Settings {
            drivers: Vec::new(),
            auto_crlf: AutoCrlf::Disabled,
            eol: None,
            safe_crlf: SafeCrlf::default(),
            check_roundtrip: vec!["SHIFT-JIS".into()],
            hash,
            git_dir: None,
            worktree: None,
            ref_name: None,
            treeish: None,
            tolerates_encodings: false,
            config_parameters: None,
            malformed_driver: None,
            malformed_threshold: None,
        }
    }

    /// Checks the settings of drivers (`filter.NAME`).
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Filter`] if a setting of a driver is malformed.
    pub fn check_drivers(&self) -> Result<(), Error> {
        let malformed = self.malformed_driver.as_ref();
        malformed.map_or(Ok(()), |malformed| Err(malformed.to_error()))
    }

    /// Checks the settings that are needed to make blobs of files.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Filter`] if a setting is malformed.
    fn check_towards_git(&self) -> Result<(), Error> {
        self.check_drivers()?;
        let malformed = self.malformed_threshold.as_ref();
        malformed.map_or(Ok(()), |malformed| Err(malformed.to_error()))
    }

    fn eol_configuration(&self) -> gix_filter::eol::Configuration {
        gix_filter::eol::Configuration {
            auto_crlf: self.auto_crlf,
            eol: self.eol,
        }
    }

    /// Returns the conversion for the states of [`ATTRIBUTES`], in that order, with these settings.
    pub fn conversion(&self, states: &[AttributeState]) -> PathConversion {
        let unspecified = AttributeState::Unspecified;
        let state = |at: usize| states.get(at).unwrap_or(&unspecified);
        let driver = state(4)
            .value()
            .and_then(|name| self.drivers.iter().position(|driver| driver.name == name));
        PathConversion {
            eol: self.line_endings(state(0), state(1), state(2)),
            ident: *state(3) == AttributeState::Set,
            encoding: Encoding::from_state(state(5)),
            driver,
        }
    }

    fn line_endings(
        &self,
        text: &AttributeState,
        crlf: &AttributeState,
        eol: &AttributeState,
    ) -> AttributesDigest {
        match attributed(text, crlf, eol) {
            None => self.auto_crlf.into(),
            Some(AttributesDigest::Text) => self.eol_configuration().to_eol().into(),
            Some(digest) => digest,
        }
    }
}

/// Returns the line endings that the attributes alone require.
fn attributed(
    text: &AttributeState,
    crlf: &AttributeState,
    eol: &AttributeState,
) -> Option<AttributesDigest> {
    let digest = text_state(text).or_else(|| text_state(crlf));
    if digest == Some(AttributesDigest::Binary) {
        return digest;
    }
    match (digest, eol.value().map(|value| value.as_bytes())) {
        (Some(AttributesDigest::TextAuto), Some(b"lf")) => Some(AttributesDigest::TextAutoInput),
        (Some(AttributesDigest::TextAuto), Some(b"crlf")) => Some(AttributesDigest::TextAutoCrlf),
        (_, Some(b"lf")) => Some(AttributesDigest::TextInput),
        (_, Some(b"crlf")) => Some(AttributesDigest::TextCrlf),
        (digest, _) => digest,
    }
}

/// Describes the states of `text`, `crlf` and `eol`, as in `git ls-files --eol`.
pub fn attributes_in_words([text, crlf, eol]: [&AttributeState; 3]) -> &'static str {
    match attributed(text, crlf, eol) {
        None => "",
        Some(AttributesDigest::Binary) => "-text",
        Some(AttributesDigest::Text) => "text",
        Some(AttributesDigest::TextInput) => "text eol=lf",
        Some(AttributesDigest::TextCrlf) => "text eol=crlf",
        Some(AttributesDigest::TextAuto) => "text=auto",
        Some(AttributesDigest::TextAutoInput) => "text=auto eol=lf",
        Some(AttributesDigest::TextAutoCrlf) => "text=auto eol=crlf",
    }
}

/// Describes the line endings in `content`, as in `git ls-files --eol`.
pub fn endings_in_words(content: &[u8]) -> &'static str {
    let stats = gix_filter::eol::Stats::from_bytes(content);
    match (stats.lone_lf > 0, stats.crlf > 0) {
        _ if !content.is_empty() && stats.is_binary() => "-text",
        (true, true) => "mixed",
        (true, false) => "lf",
        (false, true) => "crlf",
        (false, false) => "none",
    }
}

/// Returns the meaning of the attribute `text`, or of its legacy name `crlf`.
fn text_state(state: &AttributeState) -> Option<AttributesDigest> {
    match state {
        AttributeState::Unspecified => None,
        AttributeState::Set => Some(AttributesDigest::Text),
        AttributeState::Unset => Some(AttributesDigest::Binary),
        AttributeState::Value(value) => match value.as_slice() {
            b"input" => Some(AttributesDigest::TextInput),
            b"auto" => Some(AttributesDigest::TextAuto),
            _ => None,
        },
    }
}

/// The conversion of one path.
#[derive(Clone, Debug, PartialEq)]
pub struct PathConversion {
    eol: AttributesDigest,
    ident: bool,
    encoding: Encoding,
    driver: Option<usize>,
}

impl PathConversion {
    /// The conversion that passes all contents unchanged.
    pub const NONE: PathConversion = PathConversion {
        eol: AttributesDigest::Binary,
        ident: false,
        encoding: Encoding::None,
        driver: None,
    };

    /// Returns whether blobs become files unchanged, so that their contents need not be read.
    pub fn keeps_towards_worktree(&self, settings: &Settings) -> bool {
        !self.runs_program(settings, Direction::ToWorktree)
            && !self.changes_towards_worktree(settings)
    }

    /// Returns whether files become blobs unchanged, so that their contents need not be read.
    pub fn keeps_towards_git(&self, settings: &Settings) -> bool {
        !self.ident
            && self.encoding == Encoding::None
            && self.eol == AttributesDigest::Binary
            && !self.runs_program(settings, Direction::ToGit)
    }

    /// Returns whether a program must convert blobs to files.
    pub fn needs_program(&self, settings: &Settings) -> bool {
        self.runs_program(settings, Direction::ToWorktree)
    }

    /// Returns whether the program that converts blobs to files is a long-running process.
    pub fn needs_process(&self, settings: &Settings) -> bool {
        let process = self.driver(settings).and_then(|it| it.process.as_ref());
        process.is_some_and(|command| !command.is_empty())
    }

    /// Returns whether a program must convert files to blobs.
    pub fn needs_program_towards_git(&self, settings: &Settings) -> bool {
        self.runs_program(settings, Direction::ToGit)
    }

    fn changes_towards_worktree(&self, settings: &Settings) -> bool {
        self.ident
            || self.encoding != Encoding::None
            || self.eol.to_eol(settings.eol_configuration()) == Some(Eol::CrLf)
    }

    fn runs_program(&self, settings: &Settings, direction: Direction) -> bool {
        self.driver(settings)
            .is_some_and(|driver| driver.acts_towards(direction))
    }

    fn driver<'a>(&self, settings: &'a Settings) -> Option<&'a Driver> {
        self.driver.and_then(|at| settings.drivers.get(at))
    }
}

/// Converts line endings towards the worktree. Returns `false` if they stay unchanged.
fn to_crlf(
    source: &[u8],
    conversion: &PathConversion,
    settings: &Settings,
    out: &mut Vec<u8>,
    path: &BStr,
) -> Result<bool, Error> {
    let config = settings.eol_configuration();
    gix_filter::eol::convert_to_worktree(source, conversion.eol, out, config)
        .map_err(|error| Error::new(ErrorKind::Filter, error.to_string()).at_path(path.to_string()))
}

fn boolean_encoding(path: &BStr) -> Error {
    let message = "true/false are no valid working-tree-encodings";
    Error::new(ErrorKind::Filter, message).at_path(path.to_string())
}
