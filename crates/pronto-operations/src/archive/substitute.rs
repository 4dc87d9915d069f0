//! Substitution in files with the attribute `export-subst`: `$Format:...$` is replaced by its
//! format, whose placeholders are expanded with values of the commit (`gitattributes(5)`). The
//! placeholders are those of `git log --format`.
//!
//! An unsupported placeholder results in an error of kind `Unsupported`, so that the caller can
//! hand the call over to git.

mod commit;
mod decorations;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bstr::{BStr, BString, ByteSlice, ByteVec};
use pronto_hash::ObjectId;
use pronto_io::watch::Watch;
use pronto_transfer::upload_pack::hidden::Hidden;

use super::{check, too_large, unsupported};
use crate::{Repository, Result};
use commit::{ParsedCommit, Person};

/// The start of a format to expand.
const START: &[u8] = b"$Format:";

/// Expands placeholders with the values of one commit. Each value is computed once.
pub(super) struct Substitution<'r> {
    repository: &'r Repository,
    id: ObjectId,
    commit: ParsedCommit,
    /// The hidden refs, which decorations leave out.
    hidden: Hidden,
    /// The size limit for the result.
    most_bytes: u64,
    /// The values of placeholders, by their letters. The second letter is zero if there is none.
    values: Mutex<BTreeMap<[u8; 2], Arc<[u8]>>>,
    has_mailmap: OnceLock<bool>,
}

/// A placeholder in a text.
struct Placeholder {
    value: Arc<[u8]>,
    /// The length of the placeholder.
    length: usize,
}

/// A text whose placeholders are being expanded.
struct TextSubstitution<'a> {
    /// The path of the file.
    path: &'a BStr,
    out: Vec<u8>,
    watch: &'a Watch<'a>,
}

/// A change of the text before the value of a placeholder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    /// Remove line feeds before an empty value (`%-`).
    RemoveLines,
    /// Insert this byte before a value that is not empty (`%+`, `% `).
    Insert(u8),
}

impl<'r> Substitution<'r> {
    /// Reads the commit. If the archive `is_served`, decorations leave out hidden refs.
    ///
    /// # Errors
    /// Fails if the commit cannot be read.
    pub(super) fn new(
        repository: &'r Repository,
        id: ObjectId,
        is_served: bool,
        most_bytes: u64,
    ) -> Result<Self> {
        Ok(Substitution {
            commit: ParsedCommit::read(repository, id)?,
            repository,
            id,
            hidden: match is_served {
                true => Hidden::configured(repository.config()),
                false => Hidden::default(),
            },
            most_bytes,
            values: Mutex::default(),
            has_mailmap: OnceLock::new(),
        })
    }

    /// Returns the content of the file `path` with its formats expanded.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Refused` if the result is too large, with `ErrorKind::Interrupted` if
    /// the operation is interrupted, with `ErrorKind::Unsupported` if a placeholder is unknown, and
    /// with other kinds if an object cannot be read.
    pub(super) fn apply(&self, path: &BStr, content: &[u8], watch: &Watch<'_>) -> Result<Vec<u8>> {
        let out = Vec::with_capacity(content.len());
        let mut replacing = TextSubstitution { path, out, watch };
        let mut rest = content;
        while let Some(at) = rest.find(START) {
            let format = &rest[at + START.len()..];
            let Some(end) = format.find_byte(b'$') else {
                break;
            };
            replacing.out.push_str(&rest[..at]);
            self.expand(format[..end].as_bstr(), &mut replacing)?;
            rest = &format[end + 1..];
        }
        replacing.out.push_str(rest);
        self.check(&replacing)?;
        Ok(replacing.out)
    }

    fn expand(&self, format: &BStr, replacing: &mut TextSubstitution<'_>) -> Result<()> {
        if format.contains(&0) {
            return Err(unsupported("NUL in an 'export-subst' format"));
        }
        let mut rest = format.as_bytes();
        while let Some(at) = rest.find_byte(b'%') {
            self.check(replacing)?;
            replacing.out.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            let before = match rest.first() {
                None | Some(b'%') => {
                    replacing.out.push(b'%');
                    rest = rest.get(1..).unwrap_or_default();
                    continue;
                }
                Some(b'-') => Before::RemoveLines,
                Some(b'+') => Before::Insert(b'\n'),
                Some(b' ') => Before::Insert(b' '),
                Some(_) => Before::Nothing,
            };
            if before != Before::Nothing {
                rest = &rest[1..];
            }
            let Placeholder { value, length } = self.find(rest, replacing.watch)?;
            let out = &mut replacing.out;
            match before {
                Before::RemoveLines if value.is_empty() => {
                    out.truncate(out.trim_end_with(|c| c == '\n').len());
                }
                Before::Insert(byte) if !value.is_empty() => out.push(byte),
                _ => {}
            }
            out.push_str(&value);
            rest = &rest[length..];
        }
        replacing.out.push_str(rest);
        Ok(())
    }

    /// Checks the size of the result, and whether the operation is interrupted.
    fn check(&self, replacing: &TextSubstitution<'_>) -> Result<()> {
        check(replacing.watch)?;
        match replacing.out.len() as u64 > self.most_bytes {
            true => Err(too_large(replacing.path, self.most_bytes)),
            false => Ok(()),
        }
    }

    /// Returns the placeholder at the start of `rest`.
    fn find(&self, rest: &[u8], watch: &Watch<'_>) -> Result<Placeholder> {
        let (letters, length) = match *rest {
            [b'x', ref digits @ ..] => {
                let value = Arc::from([hexadecimal(digits)?]);
                return Ok(Placeholder { value, length: 3 });
            }
            [person @ (b'a' | b'c'), part, ..] => ([person, part], 2),
            [letter, ..] => ([letter, 0], 1),
            [] => return Err(unknown()),
        };
        let values = || self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let known = values().get(&letters).cloned();
        let value = match known {
            Some(value) => value,
            None => {
                let value: Arc<[u8]> = Vec::from(self.value(letters, watch)?).into();
                values().insert(letters, Arc::clone(&value));
                value
            }
        };
        Ok(Placeholder { value, length })
    }

    /// Returns the value of a placeholder.
    fn value(&self, letters: [u8; 2], watch: &Watch<'_>) -> Result<BString> {
        let (repository, commit) = (self.repository, &self.commit);
        let short = |id: &ObjectId| repository.abbreviate(id);
        let joined = |ids: Vec<String>| BString::from(ids.join(" "));
        let decorations = || decorations::of(repository, &self.id, &self.hidden, watch);
        Ok(match letters {
            [b'a', part] => self.person(&commit.author, part)?,
            [b'c', part] => self.person(&commit.committer, part)?,
            [b'n', _] => "\n".into(),
            [b'H', _] => self.id.to_string().into(),
            [b'h', _] => short(&self.id)?.into(),
            [b'T', _] => commit.tree.to_string().into(),
            [b't', _] => short(&commit.tree)?.into(),
            [b'P', _] => joined(commit.parents.iter().map(ToString::to_string).collect()),
            [b'p', _] => joined(commit.parents.iter().map(short).collect::<Result<_>>()?),
            [b's', _] => commit.subject(),
            [b'f', _] => commit.file_name(),
            [b'b', _] => commit.body().into(),
            [b'B', _] => commit.message.clone(),
            [b'e', _] => commit.encoding.clone().unwrap_or_default(),
            [b'D', _] => decorations()?,
            [b'd', _] => match decorations()? {
                empty if empty.is_empty() => empty,
                decorations => [b" (", decorations.as_slice(), b")"].concat().into(),
            },
            _ => return Err(unknown()),
        })
    }

    fn person(&self, person: &Person, part: u8) -> Result<BString> {
        Ok(match part {
            b'N' | b'E' | b'L' if self.has_mailmap()? => return Err(unknown()),
            b'n' | b'N' => person.name.clone(),
            b'e' | b'E' => person.email.clone(),
            b'l' | b'L' => {
                let end = person.email.find_byte(b'@');
                person.email[..end.unwrap_or(person.email.len())].into()
            }
            b't' => person.seconds.to_string().into(),
            _ => person.date(part)?.ok_or_else(unknown)?.into(),
        })
    }

    fn has_mailmap(&self) -> Result<bool> {
        if let Some(known) = self.has_mailmap.get() {
            return Ok(*known);
        }
        let has_mailmap = commit::has_mailmap(self.repository)?;
        Ok(*self.has_mailmap.get_or_init(|| has_mailmap))
    }
}

fn unknown() -> crate::Error {
    unsupported("a placeholder of an 'export-subst' format in the archive")
}

/// Returns the byte of the hexadecimal digits after `%x`.
fn hexadecimal(digits: &[u8]) -> Result<u8> {
    let digits = digits.get(..2).and_then(|digits| digits.to_str().ok());
    let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
    byte.ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Environment, ErrorKind};
    use pronto_io::interrupt::Interrupt;
    use test_support::Scratch;
    use test_support::git::isolated;

    const MOST_BYTES: u64 = 1000;

    fn git(scratch: &Scratch, arguments: &[&str]) {
        let output = isolated(scratch.path(), arguments, b"");
        assert!(output.status.success(), "{output:?}");
    }

    /// Calls `test` with the substitution of a commit, and its repository.
    fn with_commit(message: &str, test: impl Fn(&Substitution<'_>, &Scratch)) {
        let scratch = Scratch::new();
        git(&scratch, &["init", "-q", "-b", "main"]);
        git(&scratch, &["commit", "-q", "--allow-empty", "-m", message]);
        let environment = Environment::empty(scratch.path());
        let repository = Repository::open(scratch.join(".git"), &environment);
        let repository = repository.expect("a repository");
        let id = repository.resolve("HEAD").expect("a commit");
        let substitution = Substitution::new(&repository, id, true, MOST_BYTES);
        test(&substitution.expect("a commit"), &scratch);
    }

    fn apply(substitution: &Substitution<'_>, content: &str) -> Result<String> {
        let replaced = substitution.apply("file".into(), content.as_bytes(), &Watch::none());
        replaced.map(|bytes| String::from_utf8(bytes).expect("text"))
    }

    #[test]
    fn values_are_computed_once() {
        with_commit("subject", |substitution, scratch| {
            let content = "$Format:%D|%aN|%h$ $Format:%d$";
            let first = apply(substitution, content).expect("placeholders");
            assert!(first.starts_with("HEAD -> main|"), "{first}");
            git(scratch, &["branch", "other"]);
            std::fs::write(scratch.join(".mailmap"), "A <a@b> <c@d>\n").expect("a file");
            assert_eq!(apply(substitution, content).expect("placeholders"), first);
            assert!(apply(substitution, "$Format:%cN$").is_ok());
        });
    }

    #[test]
    fn results_are_bounded() {
        with_commit("subject", |substitution, _| {
            let fits = "$Format:%s$".repeat(MOST_BYTES as usize / 7);
            assert_eq!(apply(substitution, &fits).expect("it fits").len(), 994);
            for content in ["$Format:%s$".repeat(143), "x".repeat(1001)] {
                let error = apply(substitution, &content).expect_err("it is too long");
                assert_eq!(error.kind(), ErrorKind::Refused);
                assert!(
                    error
                        .to_string()
                        .contains("'file' has more than 1000 bytes")
                );
            }
        });
    }

    #[test]
    fn replacing_is_interrupted() {
        with_commit("subject", |substitution, _| {
            let interrupt = Interrupt::new();
            interrupt.trigger();
            for content in ["$Format:%n$", "$Format:%D$", ""] {
                let watch = Watch::from(&interrupt);
                let replaced = substitution.apply("file".into(), content.as_bytes(), &watch);
                let error = replaced.expect_err("it is interrupted");
                assert_eq!(error.kind(), ErrorKind::Interrupted);
            }
        });
    }
}
