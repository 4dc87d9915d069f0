//! Expands aliases: `alias.NAME` in the configuration, for names that are not commands of git.
//!
//! This module expands simple aliases, so that an alias for a native command runs natively. Shell
//! aliases and invalid aliases are left to git, which reports the error.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use pronto::quote;

use crate::commands;
use crate::context::Context;
use crate::error::CliError;
use crate::fallback;
use crate::git_names::{is_command, is_external, lookup};

/// The largest number of aliases in a chain. A longer chain is left to git.
const DEPTH_LIMIT: usize = 16;

/// Expands `name` and `arguments` if `name` is an alias for a native command.
///
/// # Errors
/// Fails with a fatal error if an alias leads back to itself.
pub(crate) fn expand(
    name: &OsStr,
    arguments: &[OsString],
    context: &mut Context,
) -> Result<Option<Vec<OsString>>, CliError> {
    if !may_be_alias(name) {
        return Ok(None);
    }
    if context.called_as_git && context.is_traced() && fallback::is_possible() {
        // git runs an expanded alias as a process of its own, and a trace shows that. git runs
        // traced aliases.
        return Ok(None);
    }
    // git reports a configuration that cannot be read.
    let Ok(config) = context.configuration() else {
        return Ok(None);
    };
    let mut words = vec![name.to_owned()];
    let mut seen: Vec<OsString> = Vec::new();
    for _ in 0..DEPTH_LIMIT {
        let alias = words[0].clone();
        if alias.to_str().and_then(commands::find).is_some() {
            words.extend_from_slice(arguments);
            return Ok((!seen.is_empty()).then_some(words));
        }
        let value = may_be_alias(&alias)
            .then(|| lookup(&config, alias.as_bytes()))
            .flatten();
        let Some(mut expansion) = value.and_then(|value| split(&value)) else {
            return Ok(None);
        };
        if expansion[0].as_bytes().starts_with(b"!") || !begins_with_command(&expansion) {
            return Ok(None);
        }
        seen.push(alias);
        if seen.contains(&expansion[0]) {
            return Err(circle(&seen, &expansion[0]));
        }
        expansion.extend(words.drain(1..));
        words = expansion;
    }
    Ok(None)
}

/// Returns whether `name` may be an alias: commands of git, and programs that git finds by name,
/// may not.
fn may_be_alias(name: &OsStr) -> bool {
    !is_command(name) && !name.is_empty() && !is_external(name)
}

/// Returns whether `words` begin with a command. Options before the command may change the
/// environment, which git does not allow in aliases.
fn begins_with_command(words: &[OsString]) -> bool {
    !words[0].is_empty() && words[0].as_bytes()[0] != b'-'
}

/// Splits an alias into words, with quotes and backslashes. Returns `None` for an invalid line,
/// which git reports.
fn split(line: &[u8]) -> Option<Vec<OsString>> {
    let words = quote::split_words(line)?.into_iter();
    Some(words.map(|word| OsString::from_vec(word.into())).collect())
}

fn circle(seen: &[OsString], again: &OsStr) -> CliError {
    if let [only] = seen {
        return CliError::fatal(format!("recursive alias: {}", only.to_string_lossy()));
    }
    let first = seen[0].to_string_lossy();
    let mut message = format!("alias loop detected: expansion of '{first}' does not terminate:");
    for (at, alias) in seen.iter().enumerate() {
        message.push_str("\n  ");
        message.push_str(&alias.to_string_lossy());
        if alias == again {
            message.push_str(" <==");
        } else if at == seen.len() - 1 {
            message.push_str(" ==>");
        }
    }
    CliError::fatal(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_split_as_git_splits_it() {
        let words = |line: &str| split(line.as_bytes());
        assert_eq!(
            words("a  b\tc "),
            Some(vec!["a".into(), "b".into(), "c".into()])
        );
        assert_eq!(
            words(r#"a 'b "c' "d \" e" f\ g"#),
            Some(vec![
                "a".into(),
                "b \"c".into(),
                "d \" e".into(),
                "f g".into()
            ])
        );
        assert_eq!(words("a 'b"), None);
        assert_eq!(words("a \\"), None);
    }
}
