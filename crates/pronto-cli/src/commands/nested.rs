//! Subcommands: `store import`, `netsync trust`, `serve user add`.

use std::ffi::{OsStr, OsString};

use clap::Command as Definition;

use crate::CliError;
use crate::arguments::{normalise, normalise_leading};

/// Converts `arguments` into the form that clap parses. An option may precede the name of the
/// subcommand if all subcommands have that option.
///
/// # Errors
/// Fails with a usage error if an option is unknown in the named command or malformed, and if a
/// required subcommand is missing or unknown.
pub(super) fn tokens(
    definition: &Definition,
    arguments: &[OsString],
) -> Result<Vec<OsString>, CliError> {
    if !definition.has_subcommands() {
        return Ok(normalise(definition, arguments)?.tokens);
    }
    let mut tokens = normalise_leading(definition, arguments)?.tokens;
    let end = tokens.iter().position(|token| token == "--");
    let mut plain = tokens.split_off(end.unwrap_or(tokens.len()));
    plain.remove(0);
    let below = plain
        .first()
        .and_then(|name| definition.find_subcommand(name));
    let Some(below) = below else {
        if definition.is_subcommand_required_set() {
            // clap reports the unknown name and suggests similar names.
            tokens.extend(plain.into_iter().take(1));
            return Ok(tokens);
        }
        return Ok(normalise(definition, arguments)?.tokens);
    };
    if let Some(option) = leading(arguments, &plain)
        .iter()
        .find(|word| is_own(below, definition, word))
    {
        let option = option.to_string_lossy();
        let option = option.split('=').next().unwrap_or_default();
        return Err(CliError::usage(format!(
            "'{option}' is an option of '{}': place it after that name",
            path(below)
        )));
    }
    if let Some(option) = tokens.iter().find(|token| !is_global(definition, token)) {
        let (option, path) = (option.to_string_lossy(), path(below));
        let option = option.split('=').next().unwrap_or_default();
        return Err(CliError::usage(format!(
            "'{option}' is not an option of '{path}'"
        )));
    }
    tokens.push(below.get_name().into());
    tokens.extend(self::tokens(below, &plain[1..])?);
    Ok(tokens)
}

/// Returns the arguments before those in `plain`, which are the last arguments of `all`.
fn leading<'a>(all: &'a [OsString], plain: &[OsString]) -> &'a [OsString] {
    all.get(..all.len().saturating_sub(plain.len()))
        .unwrap_or_default()
}

/// Returns whether `word`, which precedes the name of the subcommand `below`, is the full name of
/// an option that only `below` has, even if `word` also abbreviates an option of `definition`.
fn is_own(below: &Definition, definition: &Definition, word: &OsStr) -> bool {
    let word = word.to_string_lossy();
    let name = word.split('=').next().unwrap_or_default();
    let Some(name) = name.strip_prefix("--").filter(|name| !name.is_empty()) else {
        return false;
    };
    let has = |command: &Definition| {
        let mut arguments = command.get_arguments();
        arguments.any(|argument| argument.get_long() == Some(name))
    };
    has(below) && !has(definition)
}

/// Returns whether a token in clap's form is an option that the subcommands have, too.
fn is_global(definition: &Definition, token: &OsStr) -> bool {
    let token = token.to_string_lossy();
    let name = token.split('=').next().unwrap_or_default();
    let mut arguments = definition.get_arguments();
    let found = arguments.find(|argument| {
        let long = argument.get_long().map(|long| format!("--{long}"));
        let short = argument.get_short().map(|short| format!("-{short}"));
        long.as_deref() == Some(name) || short.as_deref() == Some(name)
    });
    found.is_some_and(clap::Arg::is_global_set)
}

/// Returns the definition of the subcommand that `arguments` name, and the arguments after its
/// name.
pub(crate) fn named(definition: Definition, arguments: &[OsString]) -> (Definition, &[OsString]) {
    let found = arguments.split_first().and_then(|(name, rest)| {
        let below = definition.find_subcommand(name)?;
        Some((below.clone(), rest))
    });
    match found {
        Some((below, rest)) => named(below, rest),
        None => (definition, arguments),
    }
}

/// Returns the name of the command whose JSON document `arguments` request (`--json`), if that command
/// has the option. The arguments may be wrong.
pub(super) fn requested_document(
    definition: &Definition,
    arguments: &[OsString],
) -> Option<String> {
    if !has_json(arguments) {
        return None;
    }
    let mut innermost = definition;
    for word in arguments.iter().take_while(|word| *word != "--") {
        innermost = innermost.find_subcommand(word).unwrap_or(innermost);
    }
    let mut known = innermost.get_arguments();
    let has_option = known.any(|argument| argument.get_long() == Some("json"));
    has_option.then(|| match innermost.get_name() {
        "worktree" => "worktree list".to_owned(),
        _ => path(innermost).trim_start_matches("pronto ").to_owned(),
    })
}

/// Returns whether `--json` is among the options.
pub(super) fn has_json(arguments: &[OsString]) -> bool {
    let mut options = arguments.iter().take_while(|argument| *argument != "--");
    options.any(|option| option == "--json")
}

/// Returns the full name of the command: `pronto store import`.
pub(super) fn path(definition: &Definition) -> String {
    let name = definition.get_bin_name().unwrap_or(definition.get_name());
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::find;

    fn read(command: &str, words: &[&str]) -> Result<Vec<OsString>, String> {
        let command = find(command).expect("it is native");
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let definition = command.definition();
        let tokens = tokens(&definition, &words).map_err(|error| error.to_string())?;
        let parsed = definition.try_get_matches_from(tokens.clone());
        parsed.map_err(|error| error.to_string())?;
        Ok(tokens)
    }

    #[test]
    fn options_stand_before_and_after_the_names() {
        let tokens = read(
            "netsync",
            &["trust", "--rol", "read", "a", "key", "--at=b:1"],
        );
        let expected = ["trust", "--roles=read", "--at=b:1", "--", "a", "key"];
        assert_eq!(tokens.expect("it is well formed"), expected);
        let error = read("netsync", &["trust", "a", "--only"]).expect_err("no value");
        assert!(error.contains("only"), "{error}");
    }

    #[test]
    fn an_option_of_a_command_is_none_of_those_above() {
        for words in [
            ["--generation=7", "export", "s", "n", "d"],
            ["--generation", "7", "export", "s", "n"],
        ] {
            let error = read("store", &words).expect_err("it is misplaced");
            let expected = "'--generation' is an option of 'pronto store export'";
            assert!(error.contains(expected), "{error}");
        }
        // `--generation` abbreviates the option of the subcommand.
        let tokens = read("store", &["--generation=7", "verify", "s"]).expect("a value");
        assert_eq!(tokens, ["--generations=7", "verify", "--", "s"]);
        let tokens = read("store", &["export", "--generation=7", "s", "n", "d"]).expect("exact");
        assert_eq!(tokens, ["export", "--generation=7", "--", "s", "n", "d"]);
    }

    /// Collects the commands that have no subcommands, with their full names.
    fn leaves(
        definition: &Definition,
        names: &[String],
        found: &mut Vec<(Vec<String>, Definition)>,
    ) {
        for below in definition.get_subcommands() {
            let names = [names, &[below.get_name().to_owned()]].concat();
            leaves(below, &names, found);
        }
        found.push((names.to_vec(), definition.clone()));
    }

    #[test]
    fn values_of_flags_and_unknown_options_are_refused_by_their_names() {
        let mut flags = 0;
        for command in ["netsync", "serve", "store"] {
            let mut found = Vec::new();
            leaves(
                &find(command).expect("it is native").definition(),
                &[],
                &mut found,
            );
            for (names, definition) in found {
                let with = |option: &str| {
                    let words = [&names[..], &[option.to_owned()]].concat();
                    let words: Vec<&str> = words.iter().map(String::as_str).collect();
                    let error = read(command, &words).expect_err(option);
                    format!("{words:?}: {error}")
                };
                for option in ["--no-such-option", "--no-such-option=1", "-\u{7}"] {
                    let error = with(option);
                    let name = option.split('=').next().unwrap_or_default();
                    assert!(error.contains(&format!("option '{name}'")), "{error}");
                }
                for argument in definition.get_arguments() {
                    let Some(long) = argument.get_long() else {
                        continue;
                    };
                    let least = argument
                        .get_num_args()
                        .map_or(0, |range| range.min_values());
                    match argument.get_action().takes_values() {
                        // It has a value or not.
                        true if least == 0 => {}
                        true => {
                            let error = with(&format!("--{long}"));
                            assert!(error.contains("requires a value"), "{error}");
                        }
                        false => {
                            flags += 1;
                            let error = with(&format!("--{long}=7"));
                            let expected = format!("option `{long}' takes no value");
                            assert!(error.contains(&expected), "{error}");
                        }
                    }
                }
            }
        }
        assert!(flags > 20, "{flags}");
    }

    #[test]
    fn names_lead_to_the_definition() {
        let command = find("netsync").expect("it is native");
        let words: Vec<OsString> = ["trust", "-h"].iter().map(OsString::from).collect();
        let (definition, rest) = named(command.definition(), &words);
        assert_eq!(path(&definition), "pronto netsync trust");
        assert_eq!(rest, ["-h"]);
    }
}
