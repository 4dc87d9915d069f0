//! Conversion of blobs to file contents and back: line endings, `ident`, `working-tree-encoding`,
//! and the programs of `filter.<name>` (gitattributes(5), "Effects").
//!
//! [`Settings`] are the configuration, shared by all threads. A [`Conversion`] combines attributes
//! and settings for one path. Towards the worktree, [`Internal`] does conversions without a program
//! and [`Programs`] runs programs; towards Git, [`ToGit`] does everything.

use std::path::PathBuf;

use bstr::{BStr, BString, ByteSlice};
use gix_filter::eol::AttributesDigest;
use pronto_hash::{Kind, ObjectId};

use crate::attributes::State;
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
pub use programs::{Asked, Delayed, FileToSmudge, Programs};
pub use to_git::{InIndex, ToGit};
pub use warning::{EncodingFlaw, LineEnding, Warning, Warnings};

/// The attributes that decide on conversions: select them for [`Settings::conversion`].
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
    /// `<name>`.
    pub name: BString,
    /// `filter.<name>.clean`.
    pub clean: Option<BString>,
    /// `filter.<name>.smudge`.
    pub smudge: Option<BString>,
    /// `filter.<name>.process`.
    pub process: Option<BString>,
    /// `filter.<name>.required`: its failure is an error.
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

/// `core.safecrlf`: what to do about line endings that would not survive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SafeCrlf {
    /// Nothing.
    #[default]
    Ignore,
    /// Say so.
    Warn,
    /// Refuse.
    Fail,
}

/// The configuration of conversions.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// The programs that are configured.
    pub drivers: Vec<Driver>,
    /// `core.autocrlf`.
    pub auto_crlf: AutoCrlf,
    /// `core.eol`, unless it is `native`.
    pub eol: Option<Eol>,
    /// `core.safecrlf`.
    pub safe_crlf: SafeCrlf,
    /// `core.checkRoundtripEncoding`.
    pub check_roundtrip: Vec<BString>,
    /// The hash of the repository, for `ident`.
    pub hash: Kind,
    /// The repository's directory, absolute: `GIT_DIR` of programs, if they need it.
    pub git_dir: Option<PathBuf>,
    /// The top of the worktree, absolute: where programs run.
    pub worktree: Option<PathBuf>,
    /// `GIT_CONFIG_PARAMETERS` of programs: the settings that options of the command line made.
    pub config_parameters: Option<BString>,
    /// The full name of the ref that is being checked out, for long-running programs.
    pub ref_name: Option<BString>,
    /// The commit or tree that is being checked out, for long-running programs.
    pub treeish: Option<ObjectId>,
    /// Whether a file that is not in its declared encoding is compared as it is. For conversions whose result is not
    /// stored.
    pub tolerates_encodings: bool,
    /// A malformed setting of a driver. Git reads drivers when it converts the first file.
    pub malformed_driver: Option<Malformed>,
    /// A malformed `core.bigFileThreshold`. Git reads it when it makes a blob of the first file.
    pub malformed_threshold: Option<Malformed>,
}

/// A setting that ends the first conversion that needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The message that comes before, if there is one.
    pub reported_before: Option<String>,
    /// The message of the error.
    pub message: String,
}

impl Malformed {
    /// Returns the setting that `error` is about.
    pub fn new<K>(error: &pronto_io::error::Error<K>) -> Self {
        Malformed {
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
    /// Settings of a repository that configures nothing.
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

    /// Checks the settings of drivers.
    ///
    /// # Errors
    /// One is malformed.
    pub fn check_drivers(&self) -> Result<(), Error> {
        let malformed = self.malformed_driver.as_ref();
        malformed.map_or(Ok(()), |malformed| Err(malformed.to_error()))
    }

    /// Checks the settings that make blobs of files.
    ///
    /// # Errors
    /// One is malformed.
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
    pub fn conversion(&self, states: &[State]) -> Conversion {
        let unspecified = State::Unspecified;
        let state = |at: usize| states.get(at).unwrap_or(&unspecified);
        let driver = state(4)
            .value()
            .and_then(|name| self.drivers.iter().position(|driver| driver.name == name));
        Conversion {
            eol: self.line_endings(state(0), state(1), state(2)),
            ident: *state(3) == State::Set,
            encoding: Encoding::from_state(state(5)),
            driver,
        }
    }

    fn line_endings(&self, text: &State, crlf: &State, eol: &State) -> AttributesDigest {
        match attributed(text, crlf, eol) {
            None => self.auto_crlf.into(),
            Some(AttributesDigest::Text) => self.eol_configuration().to_eol().into(),
            Some(digest) => digest,
        }
    }
}

/// Returns the line endings that the attributes alone require.
fn attributed(text: &State, crlf: &State, eol: &State) -> Option<AttributesDigest> {
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

/// Describes the states of `text`, `crlf` and `eol`, as `ls-files --eol` shows them.
pub fn attributes_in_words([text, crlf, eol]: [&State; 3]) -> &'static str {
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

/// The line endings in `content`, as `ls-files --eol` shows them.
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

/// The meaning of `text`, and of its old name `crlf`.
fn text_state(state: &State) -> Option<AttributesDigest> {
    match state {
        State::Unspecified => None,
        State::Set => Some(AttributesDigest::Text),
        State::Unset => Some(AttributesDigest::Binary),
        State::Value(value) => match value.as_slice() {
            b"input" => Some(AttributesDigest::TextInput),
            b"auto" => Some(AttributesDigest::TextAuto),
            _ => None,
        },
    }
}

/// The conversion of one path.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversion {
    eol: AttributesDigest,
    ident: bool,
    encoding: Encoding,
    driver: Option<usize>,
}

impl Conversion {
    /// Contents pass unchanged, whatever they are.
    pub const NONE: Conversion = Conversion {
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

    /// Whether files become blobs unchanged, so that their contents need not be looked at.
    pub fn keeps_towards_git(&self, settings: &Settings) -> bool {
        !self.ident
            && self.encoding == Encoding::None
            && self.eol == AttributesDigest::Binary
            && !self.runs_program(settings, Direction::ToGit)
    }

    /// Whether a program must be run to make a file of a blob.
    pub fn needs_program(&self, settings: &Settings) -> bool {
        self.runs_program(settings, Direction::ToWorktree)
    }

    /// Whether the program that makes a file of a blob is one that takes many, one after another.
    pub fn needs_process(&self, settings: &Settings) -> bool {
        let process = self.driver(settings).and_then(|it| it.process.as_ref());
        process.is_some_and(|command| !command.is_empty())
    }

    /// Whether a program must be run to make a blob of a file.
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

/// Line endings towards the worktree; `false` if they stay.
fn to_crlf(
    source: &[u8],
    conversion: &Conversion,
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
