//! `rev-parse`: resolve names to object ids, and print properties of the repository.

mod arguments;
mod paths;
mod references;

use std::ffi::OsString;
use std::io::Write;
use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};
use pronto::revision::{ExpectedType, approximate_date};
use pronto::{ErrorKind, Repository, environment, quote};
use pronto_hash::ObjectId;
use pronto_io::short::Short as _;

use crate::{CliError, Context, ExitCode};

/// Arguments of `rev-parse`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Revisions, files and options, processed in order
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let arguments: Vec<BString> = args
        .arguments
        .iter()
        .map(|argument| argument.as_encoded_bytes().into())
        .collect();
    arguments::refuse_unknown(&arguments)?;
    if arguments.first().is_some_and(|first| first == "--sq-quote") {
        return quote_all(&arguments[1..], context);
    }
    let mut session = ArgumentParser::new(context, &arguments);
    if arguments.is_empty() {
        session.repository()?;
        return Ok(ExitCode::SUCCESS);
    }
    while let Some(argument) = session.take() {
        session.answer(argument.as_bstr())?;
    }
    session.finish()
}

fn quote_all(arguments: &[BString], context: &mut Context) -> Result<ExitCode, CliError> {
    let mut line = Vec::new();
    for argument in arguments {
        line.push(b' ');
        quote::shell_quote_into(argument, &mut line);
    }
    line.push(b'\n');
    context.out.write_all(&line)?;
    Ok(ExitCode::SUCCESS)
}

/// The kinds of arguments that are printed (`--revs-only`, `--flags` and similar options).
#[derive(Clone, Copy, Debug)]
struct ArgumentFilter {
    revisions: bool,
    others: bool,
    flags: bool,
    plain: bool,
}

/// The form in which refs are printed (`--symbolic`, `--symbolic-full-name`, `--abbrev-ref`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Symbolic {
    No,
    AsGiven,
    FullName,
    /// The shortest unambiguous name, by all rules (`strict`) or only by the preceding ones
    /// (`loose`).
    Short {
        strict: bool,
    },
}

/// The interpretation of the remaining arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArgumentStage {
    /// The arguments are options and revisions.
    Options,
    /// The arguments are only revisions, after `--end-of-options`.
    Revisions,
    /// The arguments are files, which must exist.
    Files,
    /// The arguments are files, after `--`, which need not exist.
    CertainFiles,
}

/// The state of the evaluation of arguments. Options change how later arguments are processed.
struct ArgumentParser<'a> {
    context: &'a mut Context,
    repository: Option<Arc<Repository>>,
    arguments: std::slice::Iter<'a, BString>,
    has_separator: bool,
    stage: ArgumentStage,
    filter: ArgumentFilter,
    symbolic: Symbolic,
    verify: bool,
    quiet: bool,
    sq: bool,
    negated: bool,
    abbreviation: Option<Option<usize>>,
    path_format: paths::PathFormat,
    default: Option<BString>,
    /// The value of `--prefix`, to which files and relative paths are relative.
    prefix: Option<BString>,
    excluded: Vec<BString>,
    /// The resolved objects with `--verify`, each with its text and its negation.
    verified: Vec<(ObjectId, BString, bool)>,
}

impl<'a> ArgumentParser<'a> {
    fn new(context: &'a mut Context, arguments: &'a [BString]) -> Self {
        ArgumentParser {
            context,
            repository: None,
            arguments: arguments.iter(),
            has_separator: arguments.iter().any(|argument| argument == "--"),
            stage: ArgumentStage::Options,
            filter: ArgumentFilter {
                revisions: true,
                others: true,
                flags: true,
                plain: true,
            },
            symbolic: Symbolic::No,
            verify: false,
            quiet: false,
            sq: false,
            negated: false,
            abbreviation: None,
            path_format: paths::PathFormat::Default,
            default: None,
            prefix: None,
            excluded: Vec::new(),
            verified: Vec::new(),
        }
    }

    fn take(&mut self) -> Option<BString> {
        self.arguments.next().cloned()
    }

    fn repository(&mut self) -> Result<Arc<Repository>, CliError> {
        if let Some(repository) = &self.repository {
            return Ok(Arc::clone(repository));
        }
        let repository = self.context.repository()?;
        self.repository = Some(Arc::clone(&repository));
        Ok(repository)
    }

    fn answer(&mut self, argument: &BStr) -> Result<(), CliError> {
        if matches!(
            self.stage,
            ArgumentStage::Files | ArgumentStage::CertainFiles
        ) {
            let repository = self.repository()?;
            if self.show_file(argument)? && self.stage == ArgumentStage::Files {
                repository.verify_file_name(argument, false)?;
            }
            return Ok(());
        }
        if self.stage == ArgumentStage::Options && self.answer_without_repository(argument)? {
            return Ok(());
        }
        self.repository()?;
        if argument == "--" {
            self.stage = ArgumentStage::CertainFiles;
            if self.filter.flags || self.filter.revisions {
                self.show_file(argument)?;
            }
            return Ok(());
        }
        if self.stage == ArgumentStage::Options && argument.starts_with(b"-") {
            return self.answer_option(argument);
        }
        self.answer_revision(argument)
    }

    fn answer_without_repository(&mut self, argument: &BStr) -> Result<bool, CliError> {
        match argument.as_bytes() {
            b"--local-env-vars" => {
                for name in environment::LOCAL_VARIABLES {
                    writeln!(self.context.out, "{name}")?;
                }
            }
            b"--resolve-git-dir" => {
                let Some(given) = self.take() else {
                    return Err(CliError::fatal("--resolve-git-dir requires an argument"));
                };
                let environment = self.context.environment()?;
                let Some(found) = Repository::resolve_git_dir(given.as_bstr(), &environment)?
                else {
                    return Err(CliError::fatal(format!("not a gitdir '{given}'")));
                };
                self.print(pronto::path::as_bytes(&found))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Resolves `name`. Reports errors unless `--quiet` is given.
    fn look_up(&mut self, name: &BStr, want: ExpectedType) -> Result<Option<ObjectId>, CliError> {
        let result = self.repository()?.try_resolve(name, want);
        self.context.report();
        match result {
            Ok(found) => Ok(found),
            Err(error) => match error.kind() {
                ErrorKind::Ambiguous if self.quiet => Ok(None),
                ErrorKind::Ambiguous | ErrorKind::InvalidInput => {
                    self.context.report_error(error.message());
                    if let Some(hint) = error.hint() {
                        self.context.hint(hint);
                    }
                    Ok(None)
                }
                ErrorKind::ShortReflog if self.quiet => Err(CliError::silent(ExitCode::FATAL)),
                _ => Err(CliError::of(error)),
            },
        }
    }

    fn answer_revision(&mut self, argument: &BStr) -> Result<(), CliError> {
        if self.answer_range(argument)? || self.answer_parents(argument)? {
            return Ok(());
        }
        let (name, negated) = match argument.strip_prefix(b"^") {
            Some(name) => (name.as_bstr(), true),
            None => (argument, false),
        };
        if let Some(id) = self.look_up(name, ExpectedType::Anything)? {
            if self.verify {
                self.verified.push((id, name.to_owned(), negated));
                return Ok(());
            }
            return self.show_revision(negated, id, Some(name));
        }
        if self.verify {
            return Err(self.no_single_revision());
        }
        if self.has_separator {
            return Err(CliError::fatal(format!("bad revision '{argument}'")));
        }
        self.stage = ArgumentStage::Files;
        if self.show_file(argument)? {
            self.repository()?.verify_file_name(argument, true)?;
        }
        Ok(())
    }

    fn answer_range(&mut self, argument: &BStr) -> Result<bool, CliError> {
        let repository = self.repository()?;
        let Some(range) = repository.split_range(argument) else {
            return Ok(false);
        };
        let (left, right, is_symmetric) = (range.from, range.to, range.is_symmetric);
        let Some(start) = self.look_up(left, ExpectedType::Committish)? else {
            return Ok(false);
        };
        let Some(end) = self.look_up(right, ExpectedType::Committish)? else {
            return Ok(false);
        };
        self.show_revision(false, end, Some(right))?;
        self.show_revision(!is_symmetric, start, Some(left))?;
        if is_symmetric {
            let commit = |id| repository.peel_to(id, gix_object::Kind::Commit);
            let (Some(start), Some(end)) = (commit(start)?, commit(end)?) else {
                return Ok(false);
            };
            for base in repository.merge_bases(start, end)? {
                self.show_revision(true, base, None)?;
            }
        }
        Ok(true)
    }

    /// Prints the parents of `commit^@`, `commit^!` or `commit^-N`.
    fn answer_parents(&mut self, argument: &BStr) -> Result<bool, CliError> {
        let Some(at) = ["^!", "^@", "^-"]
            .iter()
            .find_map(|mark| argument.position_of_text(mark.as_bytes()))
        else {
            return Ok(false);
        };
        let (mark, rest) = (argument[at + 1], argument[at + 2..].as_bytes());
        let excluded = match (mark, rest) {
            (b'-', b"") => Some(1),
            (b'-', digits) => match digits.to_str().ok().and_then(|text| text.parse().ok()) {
                Some(number) if number > 0usize => Some(number),
                _ => return Ok(false),
            },
            (_, b"") => None,
            _ => return Ok(false),
        };
        let name = argument[..at].as_bstr();
        let repository = self.repository()?;
        let Some(id) = self.look_up(name, ExpectedType::Committish)? else {
            return Ok(false);
        };
        let Some(commit) = repository.peel_to(id, gix_object::Kind::Commit)? else {
            return Ok(false);
        };
        let parents = repository.commit_links(&commit, &mut Vec::new())?.parents;
        if excluded.is_some_and(|number| number > parents.len()) {
            return Ok(false);
        }
        if mark != b'@' {
            self.show_revision(false, id, Some(name))?;
        }
        for (number, parent) in (1..).zip(parents) {
            if excluded.is_none_or(|excluded| excluded == number) {
                let spelt = BString::from(format!("{name}^{number}"));
                // As in Git, no abbreviated name of a parent is printed.
                let is_named = matches!(self.symbolic, Symbolic::AsGiven | Symbolic::FullName);
                let shown = is_named.then(|| spelt.as_bstr());
                self.show_revision(mark != b'@', parent, shown)?;
            }
        }
        Ok(true)
    }

    fn no_single_revision(&self) -> CliError {
        if self.quiet {
            CliError::silent(ExitCode::FAILURE)
        } else {
            CliError::fatal("Needed a single revision")
        }
    }

    fn print(&mut self, line: &BStr) -> Result<(), CliError> {
        self.context.out.write_all(line)?;
        self.context.out.write_all(b"\n")?;
        Ok(())
    }

    /// Prints an argument or a revision, quoted on request.
    fn show(&mut self, negated: bool, text: &BStr) -> Result<(), CliError> {
        if negated {
            self.context.out.write_all(b"^")?;
        }
        if !self.sq {
            return self.print(text);
        }
        let quoted = text.replace("'", r"'\''");
        self.context
            .out
            .write_all(&[b"'", quoted.as_slice(), b"' "].concat())?;
        Ok(())
    }

    fn show_revision(
        &mut self,
        negated: bool,
        id: ObjectId,
        name: Option<&BStr>,
    ) -> Result<(), CliError> {
        if !self.filter.revisions {
            return Ok(());
        }
        self.default = None;
        let negated = negated != self.negated;
        let repository = self.repository()?;
        match (self.symbolic, name) {
            (Symbolic::AsGiven, Some(name)) => return self.show(negated, name),
            (Symbolic::FullName | Symbolic::Short { .. }, Some(name)) => {
                let Ok(Some(found)) = repository.find_reference(name) else {
                    return Ok(());
                };
                if found.is_ambiguous {
                    self.context
                        .report_error(&format!("refname '{name}' is ambiguous"));
                    return Ok(());
                }
                return match self.symbolic {
                    Symbolic::Short { strict } => {
                        let short = repository.shorten_reference(found.name.as_bstr(), strict)?;
                        self.show(negated, short.as_bstr())
                    }
                    _ => self.show(negated, found.name.as_bstr()),
                };
            }
            _ => {}
        }
        let text = match self.abbreviation {
            None => pronto_hash::hex(&id).to_string(),
            Some(None) => repository.abbreviate(&id)?,
            Some(Some(length)) => repository.abbreviate_to(&id, length)?,
        };
        self.show(negated, text.as_str().into())
    }

    /// Shows the object of `--default`, if nothing was shown yet.
    fn show_default(&mut self) -> Result<bool, CliError> {
        let Some(name) = self.default.take() else {
            return Ok(false);
        };
        match self.look_up(name.as_bstr(), ExpectedType::Anything)? {
            Some(id) => {
                self.show_revision(false, id, Some(name.as_bstr()))?;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// Prints a plain argument if the filter includes files.
    fn show_file(&mut self, argument: &BStr) -> Result<bool, CliError> {
        self.show_default()?;
        if !(self.filter.plain && self.filter.others) {
            return Ok(false);
        }
        match &self.prefix {
            Some(prefix) if argument != "--" => {
                let full = BString::from([prefix.as_slice(), argument].concat());
                self.show(false, full.as_bstr())?;
            }
            _ => self.show(false, argument)?,
        }
        Ok(true)
    }

    /// Prints a date as `--max-age` or `--min-age`.
    fn show_date(&mut self, option: &str, date: &BStr) -> Result<(), CliError> {
        if !(self.filter.flags && self.filter.revisions) {
            return Ok(());
        }
        let moment = approximate_date(date);
        self.show(false, format!("{option}{moment}").as_str().into())
    }

    fn finish(mut self) -> Result<ExitCode, CliError> {
        if !self.verify {
            self.show_default()?;
            return Ok(ExitCode::SUCCESS);
        }
        let verified = std::mem::take(&mut self.verified);
        match verified.as_slice() {
            [(id, name, negated)] => {
                self.show_revision(*negated, *id, Some(name.as_bstr()))?;
                Ok(ExitCode::SUCCESS)
            }
            [] if self.show_default()? => Ok(ExitCode::SUCCESS),
            _ => Err(self.no_single_revision()),
        }
    }
}
