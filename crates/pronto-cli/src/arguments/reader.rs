//! Reads each option and converts it into the form that clap parses.

use std::any::TypeId;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use clap::{Arg, ArgAction, Command};
use pronto_config::similar::most_similar;

use super::one_way::{
    is_not_of_git, is_one_way, of_same_value, stays_on_when_negated, stays_when_negated,
};
use crate::error::CliError;

/// The number of values that an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    Nothing,
    Optional,
    Required,
}

pub(super) fn takes(argument: &Arg) -> Takes {
    match (argument.get_action(), argument.get_num_args()) {
        (ArgAction::Set | ArgAction::Append, Some(range)) if range.min_values() == 0 => {
            if range.max_values() == 0 {
                Takes::Nothing
            } else {
                Takes::Optional
            }
        }
        (ArgAction::Set | ArgAction::Append, _) => Takes::Required,
        _ => Takes::Nothing,
    }
}

/// Returns whether a field is an `Option<bool>`, so that the option can be given, negated or
/// omitted.
pub(super) fn is_toggle(argument: &Arg) -> bool {
    !argument.is_positional()
        && matches!(argument.get_action(), ArgAction::Set)
        && argument.get_value_parser().type_id() == TypeId::of::<bool>()
}

/// An option in clap's form, with the identity of the field it sets.
pub(super) struct OptionToken<'a> {
    id: &'a str,
    pub(super) token: OsString,
}

pub(super) struct Reader<'a> {
    pub(super) definition: &'a Command,
    /// Whether only pronto can run the call.
    pub(super) is_own: bool,
    pub(super) options: Vec<OptionToken<'a>>,
    pub(super) plain: Vec<OsString>,
}

/// The option that a long name matches.
#[derive(Clone, Copy)]
struct Match<'a> {
    argument: &'a Arg,
    name: &'a str,
    negated: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn long<'r>(
        &mut self,
        text: &[u8],
        rest: &mut impl Iterator<Item = &'r OsString>,
    ) -> Result<(), CliError> {
        let equals = text.iter().position(|&byte| byte == b'=');
        let (name, value) = match equals {
            Some(at) => (&text[..at], Some(&text[at + 1..])),
            None => (text, None),
        };
        let found = self.find(name)?;
        let spelling = if found.negated {
            negation(found.name)
        } else {
            found.name.to_owned()
        };
        let takes_value = !found.negated && !is_toggle(found.argument);
        match (takes(found.argument), value) {
            (Takes::Required, None) if takes_value => {
                let value = rest.next().ok_or_else(|| {
                    CliError::misuse(format!("option `{spelling}' requires a value"))
                })?;
                self.push(found.argument, Some(value.as_bytes()));
            }
            (Takes::Required | Takes::Optional, Some(value)) if takes_value => {
                self.push(found.argument, Some(value));
            }
            (_, Some(_)) => {
                return Err(CliError::misuse(format!(
                    "option `{spelling}' takes no value"
                )));
            }
            (_, None) if found.negated => self.take_back(found.argument),
            (_, None) => self.push(found.argument, None),
        }
        Ok(())
    }

    pub(super) fn short<'r>(
        &mut self,
        letters: &[u8],
        rest: &mut impl Iterator<Item = &'r OsString>,
    ) -> Result<(), CliError> {
        for (at, &letter) in letters.iter().enumerate() {
            let known = self.definition.get_arguments().find(|argument| {
                argument
                    .get_short_and_visible_aliases()
                    .is_some_and(|shorts| shorts.contains(&char::from(letter)))
            });
            let Some(argument) = known else {
                return Err(self.unknown(&format!("-{}", char::from(letter))));
            };
            let attached = &letters[at + 1..];
            match takes(argument) {
                Takes::Nothing => {
                    self.push(argument, None);
                    continue;
                }
                _ if is_toggle(argument) => {
                    self.push(argument, None);
                    continue;
                }
                _ if !attached.is_empty() => self.push(argument, Some(attached)),
                Takes::Optional => self.push(argument, None),
                Takes::Required => {
                    let value = rest.next().ok_or_else(|| {
                        let letter = char::from(letter);
                        CliError::misuse(format!("switch `{letter}' requires a value"))
                    })?;
                    self.push(argument, Some(value.as_bytes()));
                }
            }
            break;
        }
        Ok(())
    }

    /// Returns the option that `name` matches: an exact name, a negation, or the only option that
    /// begins with `name`.
    fn find(&self, name: &[u8]) -> Result<Match<'a>, CliError> {
        let mut candidate: Option<Match<'a>> = None;
        let mut other: Option<Match<'a>> = None;
        for argument in self.definition.get_arguments() {
            for long in argument.get_long_and_visible_aliases().unwrap_or_default() {
                let command = self.definition.get_name();
                let negations = if is_one_way(command, long) {
                    &[false][..]
                } else {
                    &[false, true]
                };
                for &negated in negations {
                    let this = Match {
                        argument,
                        name: long,
                        negated,
                    };
                    match compare(name, long, negated) {
                        Likeness::Same => return Ok(this),
                        // Abbreviations mean what they mean in Git.
                        Likeness::Abbreviation if is_not_of_git(command, long) => {}
                        Likeness::Abbreviation => {
                            let same = |known: &Match<'_>| {
                                known.argument.get_id() == argument.get_id()
                                    && known.negated == negated
                            };
                            match &candidate {
                                Some(known) if !same(known) => {
                                    other.get_or_insert(this);
                                }
                                Some(_) => {}
                                None => candidate = Some(this),
                            }
                        }
                        Likeness::None => {}
                    }
                }
            }
        }
        let shown = String::from_utf8_lossy(name);
        match (candidate, other) {
            (Some(one), Some(two)) => Err(CliError::misuse(format!(
                "ambiguous option: {shown} (could be --{} or --{})",
                one.spelling(),
                two.spelling()
            ))),
            (Some(found), None) => Ok(found),
            _ => Err(self.unknown(&format!("--{shown}"))),
        }
    }

    /// Returns the error for an option that the definition lacks. git may have the option, unless
    /// the command is one that only pronto has.
    fn unknown(&self, option: &str) -> CliError {
        let command = self.definition.get_name();
        if !self.is_own {
            return CliError::misuse(format!(
                "option '{option}' of '{command}' is not implemented natively"
            ));
        }
        let unknown = CliError::misuse(format!("unknown option '{option}'"));
        let options = self.definition.get_arguments().filter_map(Arg::get_long);
        let given = option.strip_prefix("--");
        match given.and_then(|name| most_similar(name, options)) {
            Some(similar) => unknown.with_hint(format!("did you mean '--{similar}'?")),
            None => unknown,
        }
    }

    fn push(&mut self, argument: &'a Arg, value: Option<&[u8]>) {
        let mut token = match (argument.get_long(), argument.get_short()) {
            (Some(long), _) => format!("--{long}").into_bytes(),
            (None, Some(short)) => format!("-{short}").into_bytes(),
            (None, None) => return,
        };
        if let Some(value) = value {
            token.push(b'=');
            token.extend_from_slice(value);
        }
        let id = argument.get_id().as_str();
        self.options.push(OptionToken {
            id,
            token: OsString::from_vec(token),
        });
    }

    /// Handles `--no-x`, which cancels an earlier `--x`.
    fn take_back(&mut self, argument: &'a Arg) {
        let long = argument.get_long().unwrap_or_default();
        let command = self.definition.get_name();
        if stays_when_negated(long) {
            return;
        }
        if stays_on_when_negated(command, long) {
            return self.push(argument, None);
        }
        let others = of_same_value(command, long);
        let is_other = |known: &&Arg| known.get_long().is_some_and(|long| others.contains(&long));
        let others = self.definition.get_arguments().filter(is_other);
        for argument in others.chain([argument]) {
            let id = argument.get_id().as_str();
            self.options.retain(|option| option.id != id);
        }
        if is_toggle(argument) {
            self.push(argument, Some(b"false"));
        } else if has_negative_value(argument) {
            self.push(argument, Some(b"no"));
        }
    }
}

impl Match<'_> {
    fn spelling(&self) -> String {
        if self.negated {
            negation(self.name)
        } else {
            self.name.to_owned()
        }
    }
}

/// The value name of options for which `--no-x` means `--x=no` and overrides the configuration.
const WHETHER: &str = "WHETHER";

fn has_negative_value(argument: &Arg) -> bool {
    let names = argument.get_value_names();
    names.is_some_and(|names| names.iter().any(|name| name == WHETHER))
}

/// Returns the negation of an option: `checkout` for `no-checkout`, and `no-…` for everything else.
fn negation(name: &str) -> String {
    match name.strip_prefix("no-") {
        Some(positive) => positive.to_owned(),
        None => format!("no-{name}"),
    }
}

enum Likeness {
    Same,
    Abbreviation,
    None,
}

fn compare(given: &[u8], long: &str, negated: bool) -> Likeness {
    let whole = |name: &str| {
        if name.as_bytes() == given {
            Likeness::Same
        } else if name.as_bytes().starts_with(given) {
            Likeness::Abbreviation
        } else {
            Likeness::None
        }
    };
    if negated {
        whole(&negation(long))
    } else {
        whole(long)
    }
}
