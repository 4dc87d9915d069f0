//! The command of a request over SSH, such as `git-upload-pack 'PATH'`, quoted as for a shell.

use bstr::ByteSlice as _;

use crate::names::RepositoryName;
use crate::route::{RequestTarget, RequestedService};
use crate::{Error, ErrorKind, Result};

/// The largest length of a command in bytes.
pub(crate) const LONGEST_BYTES: usize = 8192;

/// Characters that are special in a shell, and not supported here.
const SPECIAL: &[u8] = b"$`&|;<>()*?[]{}#!\n\r\0";

/// Parses a command: `git-upload-pack PATH`, `git-receive-pack PATH`, `git-upload-archive PATH`, or
/// the same with a space after `git`. Quotes and backslashes have the same meaning as in a shell.
/// No expansion takes place.
///
/// # Errors
/// - [`ErrorKind::Malformed`] if the command is too long or malformed.
/// - [`ErrorKind::Unsupported`] for any other command.
/// - [`ErrorKind::InvalidName`] if the name of the repository is not allowed.
pub fn parse(command: &[u8]) -> Result<RequestTarget> {
    let malformed = |message: &str| Err(Error::new(ErrorKind::Malformed, message));
    if command.len() > LONGEST_BYTES {
        return malformed("the command is too long");
    }
    let Some(words) = words(command) else {
        return malformed("the command has an unbalanced quote");
    };
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let (service, arguments) = match words.as_slice() {
        [b"git", service, arguments @ ..] => (format!("git-{}", service.to_str_lossy()), arguments),
        [service, arguments @ ..] => (service.to_str_lossy().into_owned(), arguments),
        [] => return malformed("no command given: this server has no shell"),
    };
    let Some(service) = RequestedService::named(&service) else {
        let message = "unknown command: this server runs only git-upload-pack, git-receive-pack \
                       and git-upload-archive";
        return Err(Error::new(ErrorKind::Unsupported, message));
    };
    let [path] = arguments else {
        return malformed("the command must name exactly one repository");
    };
    let Ok(path) = path.to_str() else {
        return malformed("the path of the repository is not UTF-8");
    };
    let path = path.strip_prefix('/').unwrap_or(path);
    let name = RepositoryName::parse(path.strip_suffix('/').unwrap_or(path))?;
    Ok(RequestTarget { service, name })
}

/// Splits a command into words, and removes their quotes. Returns `None` if a quote is not closed,
/// or the command contains a character that only a shell can interpret.
fn words(command: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut bytes = command.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b' ' | b'\t' => words.extend(word.take()),
            b'\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match bytes.next()? {
                        b'\'' => break,
                        byte => word.push(byte),
                    }
                }
            }
            b'"' => {
                let word = word.get_or_insert_default();
                loop {
                    match bytes.next()? {
                        b'"' => break,
                        b'\\' => word.push(bytes.next()?),
                        b'$' | b'`' => return None,
                        byte => word.push(byte),
                    }
                }
            }
            b'\\' => word.get_or_insert_default().push(bytes.next()?),
            byte if SPECIAL.contains(&byte) => return None,
            byte => word.get_or_insert_default().push(byte),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_clients_are_understood() {
        for (command, service, name) in [
            (
                "git-upload-pack '/team/a.git'",
                RequestedService::UploadPack,
                "team/a",
            ),
            (
                "git-receive-pack 'team/a'",
                RequestedService::ReceivePack,
                "team/a",
            ),
            ("git upload-pack '/a/'", RequestedService::UploadPack, "a"),
            ("git-upload-pack a", RequestedService::UploadPack, "a"),
            (
                "git-upload-pack \"a b\"",
                RequestedService::UploadPack,
                "a b",
            ),
            (
                "git-upload-pack 'it'\\''s'\\!''",
                RequestedService::UploadPack,
                "it's!",
            ),
            ("  git-upload-pack\t'a' ", RequestedService::UploadPack, "a"),
        ] {
            let found = parse(command.as_bytes()).expect(command);
            assert_eq!(found.service, service, "{command}");
            assert_eq!(found.name.as_str(), name, "{command}");
        }
    }

    #[test]
    fn what_is_understood_can_be_quoted_again() {
        let mut random = test_support::Random::new(5);
        let starts = ["git-upload-pack ", "git receive-pack ", ""];
        let alphabet = b"ab/.' \\\"\t~$;-\xc3\xa9";
        let mut understood = 0;
        for number in 0..20_000 {
            let bytes = random.bytes(1 + number % 9);
            let letter = |byte: &u8| alphabet[usize::from(*byte) % alphabet.len()];
            let path: Vec<u8> = bytes.iter().map(letter).collect();
            let command = [starts[number % starts.len()].as_bytes(), &path].concat();
            let Ok(target) = parse(&command) else {
                continue;
            };
            understood += 1;
            let name = target.name.as_str().replace('\'', "'\\''");
            let again = format!("{} '{name}'", target.service.name());
            assert_eq!(parse(again.as_bytes()).ok(), Some(target), "{again}");
        }
        assert!(understood > 100, "{understood}");
    }

    #[test]
    fn other_commands_are_refused() {
        let kind = |command: &str| parse(command.as_bytes()).expect_err(command).kind();
        for command in [
            "",
            " ",
            "git-upload-pack",
            "git-upload-pack 'a' 'b'",
            "git-upload-pack --strict 'a'",
            "git-upload-pack 'a",
            "git-upload-pack \"a",
            "git-upload-pack a\\",
            "git-upload-pack 'a'; ls",
            "git-upload-pack $(ls)",
            "git-upload-pack \"$a\"",
            "git-upload-pack 'a'\nls",
        ] {
            assert_eq!(kind(command), ErrorKind::Malformed, "{command:?}");
        }
        for command in [
            "ls",
            "git",
            "git-upload-nothing 'a'",
            "git annex-shell",
            "'git a' b",
        ] {
            assert_eq!(kind(command), ErrorKind::Unsupported, "{command:?}");
        }
        for command in [
            "git-upload-pack '../a'",
            "git-upload-pack ''",
            "git-upload-pack '//a'",
        ] {
            assert_eq!(kind(command), ErrorKind::InvalidName, "{command:?}");
        }
        let long = format!("git-upload-pack '{}'", "a".repeat(9000));
        assert_eq!(kind(&long), ErrorKind::Malformed);
        assert!(parse(b"git-upload-pack '\xff'").is_err());
    }
}
