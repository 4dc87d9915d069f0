//! Options as candidates, and the meaning of the words before the cursor, by the definition of the
//! arguments.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use bstr::{BStr, ByteSlice};
use clap::{Arg, Command as Definition};

use super::CompletionReply;
use crate::arguments::may_negate;

/// The words between a command and the cursor.
#[derive(Debug, Default)]
pub(super) struct WordsBefore {
    /// The plain arguments.
    pub(super) operands: Vec<OsString>,
    /// The long names or letters of the given options.
    options: Vec<String>,
    /// The option whose value is at the cursor.
    pub(super) value_of: Option<Arg>,
    /// Whether `--` precedes the cursor.
    pub(super) options_ended: bool,
}

impl WordsBefore {
    /// Returns whether one of the options `names` is given, each a long name or a letter.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.options
            .iter()
            .any(|given| names.contains(&given.as_str()))
    }
}

/// Returns the definition of the innermost subcommand that `words` name, and the words behind its
/// name.
pub(super) fn innermost(definition: Definition, words: &[OsString]) -> (Definition, WordsBefore) {
    let mut definition = definition;
    let mut words = words;
    while definition.has_subcommands() {
        let first = first_operand(&definition, words);
        let found =
            first.and_then(|at| Some((at, definition.find_subcommand(&words[at])?.clone())));
        let Some((at, below)) = found else {
            break;
        };
        (definition, words) = (below, &words[at + 1..]);
    }
    let read = read(&definition, words);
    (definition, read)
}

/// Returns the index of the first plain argument.
fn first_operand(definition: &Definition, words: &[OsString]) -> Option<usize> {
    (0..words.len()).find(|&at| !read(definition, &words[..=at]).operands.is_empty())
}

fn read(definition: &Definition, words: &[OsString]) -> WordsBefore {
    let mut found = WordsBefore::default();
    for word in words {
        let bytes = word.as_bytes();
        if found.value_of.take().is_some() {
            continue;
        }
        match bytes {
            _ if found.options_ended => found.operands.push(word.clone()),
            b"--" | b"--end-of-options" => found.options_ended = true,
            [b'-', b'-', ..] => {
                let is_attached = bytes.contains(&b'=');
                let name = bytes.split(|&byte| byte == b'=').next().unwrap_or_default();
                let option = find_long(definition, name);
                found.options.extend(name_of(option, name));
                found.value_of = option
                    .filter(|option| !is_attached && needs_value(option))
                    .cloned();
            }
            [b'-', _, ..] => read_letters(definition, word, &mut found),
            _ => found.operands.push(word.clone()),
        }
    }
    found
}

fn name_of(option: Option<&Arg>, given: &[u8]) -> Option<String> {
    match option.and_then(Arg::get_long) {
        Some(long) => Some(long.to_owned()),
        None => Some(given.strip_prefix(b"--")?.to_str_lossy().into_owned()),
    }
}

/// Reads a word of short options.
fn read_letters(definition: &Definition, word: &OsStr, found: &mut WordsBefore) {
    let letters = word.to_string_lossy();
    let mut letters = letters.chars().skip(1).peekable();
    while let Some(letter) = letters.next() {
        found.options.push(letter.to_string());
        let mut arguments = definition.get_arguments();
        let option = arguments.find(|option| option.get_short() == Some(letter));
        let Some(option) = option.filter(|option| option.get_action().takes_values()) else {
            continue;
        };
        found.options.extend(option.get_long().map(str::to_owned));
        if needs_value(option) && letters.peek().is_none() {
            found.value_of = Some(option.clone());
        }
        if needs_value(option) {
            return;
        }
    }
}

/// Returns the option that `name` (with its dashes) is, or abbreviates.
pub(super) fn find_long<'a>(definition: &'a Definition, name: &[u8]) -> Option<&'a Arg> {
    let name = name.strip_prefix(b"--")?.to_str().ok()?;
    let long = |option: &&Arg, test: &dyn Fn(&str) -> bool| option.get_long().is_some_and(test);
    let mut arguments = definition.get_arguments();
    let exact = arguments.find(|option| long(option, &|long| long == name));
    exact.or_else(|| {
        let mut similar = definition
            .get_arguments()
            .filter(|option| long(option, &|long| long.starts_with(name)));
        let only = similar.next()?;
        similar.next().is_none().then_some(only)
    })
}

/// Returns whether the option needs a value, which may be the next word.
fn needs_value(option: &Arg) -> bool {
    let least = option.get_num_args().map_or(1, |range| range.min_values());
    option.get_action().takes_values() && least > 0
}

/// Returns the options of `definition` as candidates. Negated options are among them only if `current`
/// asks for one, as with git.
pub(super) fn options(definition: &Definition, current: &BStr) -> CompletionReply {
    let mut reply = CompletionReply::default();
    let shown = definition
        .get_arguments()
        .filter(|option| !option.is_positional() && !option.is_hide_set());
    for option in shown {
        let about = about(option);
        let end = match needs_value(option) {
            true => "=",
            false => "",
        };
        if let Some(long) = option.get_long() {
            reply.add(format!("--{long}{end}"), about.as_str());
            let is_asked = current.starts_with(b"--no-") && !long.starts_with("no-");
            if is_asked && may_negate(definition.get_name(), long) {
                reply.add(format!("--no-{long}"), format!("not: {about}"));
            }
        }
        if let Some(short) = option.get_short().filter(|_| !current.starts_with(b"--")) {
            reply.add(format!("-{short}"), about);
        }
    }
    reply
}

/// Returns the help of an option in one line.
pub(super) fn about(option: &Arg) -> String {
    let text = option.get_help().map(ToString::to_string);
    let text = text.unwrap_or_default().replace('`', "");
    text.lines().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::find;

    fn before(command: &str, words: &[&str]) -> (String, WordsBefore) {
        let mut definition = find(command).expect("it is native").definition();
        definition.build();
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let (definition, words) = innermost(definition, &words);
        (definition.get_name().to_owned(), words)
    }

    #[test]
    fn words_before_the_cursor_have_their_meaning() {
        let (_, words) = before("switch", &["-q", "-c", "new", "main"]);
        assert_eq!(words.operands, ["main"]);
        assert!(words.has(&["create"]) && words.has(&["q", "quiet"]));
        let (_, words) = before("switch", &["--create"]);
        assert!(words.value_of.is_some());
        let (_, words) = before("switch", &["--create=x", "--"]);
        assert!(words.value_of.is_none() && words.options_ended);
        let (_, words) = before("status", &["-uno", "--column"]);
        assert!(words.value_of.is_none() && words.operands.is_empty());
    }

    #[test]
    fn names_of_subcommands_lead_to_their_definitions() {
        let (name, words) = before("serve", &["--config", "x", "user", "add", "bob"]);
        assert_eq!(name, "add");
        assert_eq!(words.operands, ["bob"]);
        assert_eq!(before("store", &["-q", "import"]).0, "import");
        assert_eq!(before("serve", &["user"]).0, "user");
        assert_eq!(before("serve", &["directory"]).0, "serve");
    }

    #[test]
    fn options_have_descriptions_and_negations_on_request() {
        let definition = find("switch").expect("it is native").definition();
        let has = |current: &str, value: &str| {
            let reply = options(&definition, current.into());
            let found = reply.candidates.into_iter().find(|one| one.value == value);
            found.map(|one| one.about)
        };
        assert!(has("-", "--create=").is_some_and(|about| !about.is_empty()));
        assert!(has("-", "-c").is_some() && has("--", "-c").is_none());
        assert!(has("--", "--no-guess").is_none() && has("--no-", "--no-guess").is_some());
    }
}
