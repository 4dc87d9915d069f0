//! The options of `config`. They end at the first argument that is not an option.

use std::ffi::OsString;

use bstr::{BStr, BString, ByteSlice};
use pronto_io::short::Short as _;

use super::types::Type;
use crate::CliError;

/// The action of a call of `config`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConfigAction {
    Get,
    GetAll,
    GetRegexp,
    GetUrlMatch,
    GetColor,
    List,
    /// Sets a single value, or the value that a pattern matches.
    Set,
    SetMatching,
    ReplaceAll,
    Add,
    Unset,
    UnsetAll,
    RenameSection,
    RemoveSection,
}

impl ConfigAction {
    pub(super) fn writes(self) -> bool {
        matches!(
            self,
            ConfigAction::Set
                | ConfigAction::SetMatching
                | ConfigAction::ReplaceAll
                | ConfigAction::Add
                | ConfigAction::Unset
                | ConfigAction::UnsetAll
                | ConfigAction::RenameSection
                | ConfigAction::RemoveSection
        )
    }

    /// Returns the permitted numbers of arguments.
    fn arity(self) -> std::ops::RangeInclusive<usize> {
        match self {
            ConfigAction::List => 0..=0,
            ConfigAction::Add
            | ConfigAction::Set
            | ConfigAction::GetUrlMatch
            | ConfigAction::RenameSection => 2..=2,
            ConfigAction::SetMatching | ConfigAction::ReplaceAll => 2..=3,
            ConfigAction::RemoveSection => 1..=1,
            ConfigAction::Get
            | ConfigAction::GetAll
            | ConfigAction::GetRegexp
            | ConfigAction::GetColor => 1..=2,
            ConfigAction::Unset | ConfigAction::UnsetAll => 1..=2,
        }
    }
}

/// The configuration that a call reads or writes (`--system`, `--global`, `--local`, `--worktree`,
/// `--file`, `--blob`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ConfigSelection {
    Everything,
    System,
    Global,
    Local,
    Worktree,
    File(BString),
    Blob(BString),
}

/// A parsed call of `config`.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) action: ConfigAction,
    pub(super) location: ConfigSelection,
    pub(super) value_type: Option<Type>,
    pub(super) null: bool,
    pub(super) name_only: bool,
    pub(super) show_origin: bool,
    pub(super) show_scope: bool,
    pub(super) includes: Option<bool>,
    pub(super) default: Option<BString>,
    pub(super) fixed_value: bool,
    pub(super) values: Vec<BString>,
}

/// Words that newer releases of git interpret as subcommands.
const SUBCOMMANDS: &[&str] = &[
    "list",
    "get",
    "set",
    "unset",
    "rename-section",
    "remove-section",
    "edit",
];

pub(super) fn parse(arguments: &[OsString]) -> Result<Request, CliError> {
    let all: Vec<&BStr> = arguments
        .iter()
        .map(|text| text.as_encoded_bytes().as_bstr())
        .collect();
    let mut reader = Reader {
        rest: &all,
        request: empty(),
        action: None,
        has_location: false,
    };
    while let Some((first, rest)) = reader.rest.split_first() {
        if !first.starts_with(b"-") || *first == "-" {
            break;
        }
        reader.rest = rest;
        if *first == "--" || *first == "--end-of-options" {
            break;
        }
        reader.option(first)?;
    }
    let is_subcommand = |word: &&BStr| SUBCOMMANDS.iter().any(|known| *word == *known);
    if reader.action.is_none() && reader.rest.first().is_some_and(is_subcommand) {
        return Err(CliError::unsupported(format!("config {}", reader.rest[0])));
    }
    let mut request = reader.request;
    request.values = reader
        .rest
        .iter()
        .map(|value| (*value).to_owned())
        .collect();
    request.action = match (reader.action, request.values.len()) {
        (Some(action), _) => action,
        (None, 1) => ConfigAction::Get,
        (None, 2) => ConfigAction::Set,
        (None, 3) => ConfigAction::SetMatching,
        _ => return Err(wrong_usage()),
    };
    check(&request)?;
    Ok(request)
}

/// Returns the error for an invalid call, for which git prints its usage.
fn wrong_usage() -> CliError {
    CliError::unsupported("this combination of arguments of 'config'")
}

fn empty() -> Request {
    Request {
        action: ConfigAction::List,
        location: ConfigSelection::Everything,
        value_type: None,
        null: false,
        name_only: false,
        show_origin: false,
        show_scope: false,
        includes: None,
        default: None,
        fixed_value: false,
        values: Vec::new(),
    }
}

fn check(request: &Request) -> Result<(), CliError> {
    let action = request.action;
    let shows_keys = matches!(action, ConfigAction::List | ConfigAction::GetRegexp);
    let reads = matches!(
        action,
        ConfigAction::List | ConfigAction::Get | ConfigAction::GetAll | ConfigAction::GetRegexp
    );
    let wrong = !action.arity().contains(&request.values.len())
        || (request.name_only && !shows_keys)
        || (request.show_origin && !reads)
        || (request.default.is_some() && action != ConfigAction::Get)
        || (request.value_type.is_some() && action == ConfigAction::GetColor)
        || (request.fixed_value && request.values.len() != *action.arity().end());
    if wrong { Err(wrong_usage()) } else { Ok(()) }
}

struct Reader<'a> {
    rest: &'a [&'a BStr],
    request: Request,
    action: Option<ConfigAction>,
    has_location: bool,
}

impl Reader<'_> {
    fn option(&mut self, option: &BStr) -> Result<(), CliError> {
        let (name, value) = match option.split_once_at(b'=') {
            Some((name, value)) if option.starts_with(b"--") => {
                (name.as_bstr(), Some(value.as_bstr()))
            }
            _ => (option, None),
        };
        if self.valued(name, value)? {
            return Ok(());
        }
        if value.is_some() {
            return Err(wrong_usage());
        }
        if let Some(action) = action_named(name) {
            if self
                .action
                .replace(action)
                .is_some_and(|before| before != action)
            {
                return Err(wrong_usage());
            }
            return Ok(());
        }
        let request = &mut self.request;
        match name.as_bytes() {
            b"--global" => self.locate(ConfigSelection::Global)?,
            b"--system" => self.locate(ConfigSelection::System)?,
            b"--local" => self.locate(ConfigSelection::Local)?,
            b"--worktree" => self.locate(ConfigSelection::Worktree)?,
            b"-z" | b"--null" => request.null = true,
            b"--name-only" => request.name_only = true,
            b"--show-origin" => request.show_origin = true,
            b"--show-scope" => request.show_scope = true,
            b"--includes" => request.includes = Some(true),
            b"--no-includes" => request.includes = Some(false),
            b"--fixed-value" => request.fixed_value = true,
            b"--no-type" => request.value_type = None,
            _ => match name
                .strip_prefix(b"--")
                .and_then(|name| Type::named(name.as_bstr()))
            {
                Some(found) if Type::has_option(found) => self.set_type(found)?,
                _ => return Err(CliError::unsupported(format!("option '{option}'"))),
            },
        }
        Ok(())
    }

    /// Parses an option with a value, attached or as the next argument.
    fn valued(&mut self, name: &BStr, value: Option<&BStr>) -> Result<bool, CliError> {
        if let Some(attached) = name.strip_prefix(b"-f")
            && !attached.is_empty()
        {
            self.locate(ConfigSelection::File(attached.into()))?;
            return Ok(true);
        }
        let is_known = matches!(
            name.as_bytes(),
            b"-f" | b"--file" | b"--blob" | b"--type" | b"-t" | b"--default"
        );
        if !is_known {
            return Ok(false);
        }
        let value: BString = match (value, self.rest.split_first()) {
            (Some(value), _) => value.to_owned(),
            (None, Some((next, rest))) => {
                self.rest = rest;
                (*next).to_owned()
            }
            (None, None) => return Err(wrong_usage()),
        };
        match name.as_bytes() {
            b"--blob" => self.locate(ConfigSelection::Blob(value))?,
            b"--default" => self.request.default = Some(value),
            b"--type" | b"-t" => match Type::named(value.as_bstr()) {
                Some(found) => self.set_type(found)?,
                None => {
                    let message = format!("unrecognized --type argument, {value}");
                    return Err(CliError::fatal(message));
                }
            },
            _ => self.locate(ConfigSelection::File(value))?,
        }
        Ok(true)
    }

    fn set_type(&mut self, found: Type) -> Result<(), CliError> {
        match self.request.value_type.replace(found) {
            Some(before) if before != found => Err(wrong_usage()),
            _ => Ok(()),
        }
    }

    fn locate(&mut self, location: ConfigSelection) -> Result<(), CliError> {
        if std::mem::replace(&mut self.has_location, true) && self.request.location != location {
            return Err(wrong_usage());
        }
        self.request.location = location;
        Ok(())
    }
}

fn action_named(name: &BStr) -> Option<ConfigAction> {
    Some(match name.as_bytes() {
        b"--get" => ConfigAction::Get,
        b"--get-all" => ConfigAction::GetAll,
        b"--get-regexp" => ConfigAction::GetRegexp,
        b"--get-urlmatch" => ConfigAction::GetUrlMatch,
        b"--get-color" => ConfigAction::GetColor,
        b"-l" | b"--list" => ConfigAction::List,
        b"--replace-all" => ConfigAction::ReplaceAll,
        b"--add" => ConfigAction::Add,
        b"--unset" => ConfigAction::Unset,
        b"--unset-all" => ConfigAction::UnsetAll,
        b"--rename-section" => ConfigAction::RenameSection,
        b"--remove-section" => ConfigAction::RemoveSection,
        _ => return None,
    })
}
