//! The options and revisions of `rev-list`.

use std::io::Read;

use bstr::{BStr, BString, ByteSlice};
use pronto::Repository;
use pronto::revision::{RevisionParser, RevisionSet};
use pronto::walk::{WalkOptions, WalkOrder, WalkSide};

use super::limits::ArgumentWords;
use crate::{CliError, Context};

/// The parsed arguments of `rev-list`.
#[derive(Debug, Default)]
pub(super) struct Request {
    pub(super) set: RevisionSet,
    pub(super) walk: WalkOptions,
    pub(super) reverse: bool,
    pub(super) objects: bool,
    /// Whether the paths of objects are printed (`--object-names`).
    pub(super) names: bool,
    pub(super) count: bool,
    pub(super) quiet: bool,
    pub(super) parents: bool,
    pub(super) timestamp: bool,
    pub(super) left_right: bool,
}

/// The state of the parser.
struct RevListParser<'a> {
    request: Request,
    repository: &'a Repository,
    arguments: ArgumentWords<'a>,
    revisions: RevisionParser<'a>,
    default: Option<BString>,
    has_separator: bool,
    reads_input: bool,
}

/// Parses the arguments.
///
/// # Errors
/// Fails if a revision is unknown, or if only git supports the call.
pub(super) fn parse(
    arguments: &[BString],
    repository: &Repository,
    context: &mut Context,
) -> Result<Request, CliError> {
    let mut parser = RevListParser {
        request: Request {
            names: true,
            ..Request::default()
        },
        repository,
        arguments: ArgumentWords::new(arguments),
        revisions: RevisionParser::new(repository),
        default: None,
        has_separator: arguments.iter().any(|argument| argument == "--"),
        reads_input: false,
    };
    let parsed = parser.all();
    context.report();
    parsed?;
    if parser.reads_input {
        parser.read_input()?;
    }
    parser.finish()
}

impl RevListParser<'_> {
    fn all(&mut self) -> Result<(), CliError> {
        let mut are_options_over = false;
        while let Some(argument) = self.arguments.next() {
            let argument = argument.as_bstr();
            if argument == "--" {
                if !self.arguments.is_empty() {
                    return Err(CliError::unsupported("'rev-list' with paths"));
                }
            } else if argument == "--end-of-options" && !are_options_over {
                are_options_over = true;
            } else if argument.starts_with(b"-") && !are_options_over {
                self.option(argument)?;
            } else {
                self.revision(argument)?;
            }
        }
        Ok(())
    }

    fn revision(&mut self, argument: &BStr) -> Result<(), CliError> {
        let repository = self.repository;
        let added = self.revisions.revision(argument);
        if added.map_err(CliError::unresolved)? {
            if !self.has_separator && repository.could_be_file(argument) {
                return Err(CliError::misuse(format!(
                    "ambiguous argument '{argument}': both revision and filename"
                )));
            }
            return Ok(());
        }
        if self.has_separator {
            return Err(CliError::fatal(format!("bad revision '{argument}'")));
        }
        repository.verify_file_name(argument, true)?;
        Err(CliError::unsupported("'rev-list' with paths"))
    }

    fn option(&mut self, option: &BStr) -> Result<(), CliError> {
        if self.selection(option)?
            || self.flag(option)
            || self.arguments.limit(option, &mut self.request.walk)?
        {
            return Ok(());
        }
        Err(CliError::unsupported(format!(
            "option '{option}' of 'rev-list'"
        )))
    }

    /// Parses options that select revisions.
    fn selection(&mut self, option: &BStr) -> Result<bool, CliError> {
        match option.as_bytes() {
            b"--stdin" => self.reads_input = true,
            b"--single-worktree" => self.revisions.single_worktree = true,
            b"--glob" | b"--exclude" => {
                let pattern = self.arguments.value(option, &option.to_string())?;
                let whole = [option.as_bytes(), b"=", &pattern.unwrap_or_default()].concat();
                return Ok(self.revisions.option(whole.as_bstr())?);
            }
            _ => match self.arguments.value(option, "--default")? {
                Some(name) => self.default = Some(name),
                None => return Ok(self.revisions.option(option)?),
            },
        }
        Ok(true)
    }

    fn flag(&mut self, option: &BStr) -> bool {
        let request = &mut self.request;
        let walk = &mut request.walk;
        match option.as_bytes() {
            b"--topo-order" => walk.order = WalkOrder::Topological,
            b"--date-order" => walk.order = WalkOrder::TopologicalByDate,
            b"--first-parent" => walk.first_parent = true,
            b"--merges" => walk.min_parents = 2,
            b"--no-merges" => walk.max_parents = Some(1),
            b"--no-min-parents" => walk.min_parents = 0,
            b"--no-max-parents" => walk.max_parents = None,
            b"--left-only" if walk.side != Some(WalkSide::Right) => {
                walk.side = Some(WalkSide::Left);
            }
            b"--right-only" if walk.side != Some(WalkSide::Left) => {
                walk.side = Some(WalkSide::Right);
            }
            b"--reverse" => request.reverse = !request.reverse,
            b"--objects" => request.objects = true,
            b"--object-names" => request.names = true,
            b"--no-object-names" => request.names = false,
            b"--count" => request.count = true,
            b"--quiet" => request.quiet = true,
            b"--parents" => request.parents = true,
            b"--timestamp" => request.timestamp = true,
            b"--left-right" => request.left_right = true,
            _ => return false,
        }
        true
    }

    /// Reads revisions from standard input (`--stdin`).
    fn read_input(&mut self) -> Result<(), CliError> {
        let mut input = Vec::new();
        let read = std::io::stdin().lock().read_to_end(&mut input);
        read.map_err(|error| CliError::fatal(format!("cannot read standard input: {error}")))?;
        // `--not` on the command line does not apply to revisions on standard input.
        self.revisions.end_negation();
        for line in input.lines() {
            let line = line.as_bstr();
            if line.is_empty() {
                break;
            }
            if line == "--" {
                return Err(CliError::fatal(
                    "'rev-list --stdin' with paths is not implemented natively",
                ));
            }
            if line.starts_with(b"-") {
                if !self.selection(line)? {
                    let message = format!("invalid option '{line}' in --stdin mode");
                    return Err(CliError::fatal(message));
                }
                continue;
            }
            let added = self.revisions.revision(line);
            if !added.map_err(CliError::unresolved)? {
                return Err(CliError::fatal(format!("bad revision '{line}'")));
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Request, CliError> {
        let is_given = self.revisions.is_given();
        if let Some(default) = self.default.take().filter(|_| !is_given) {
            self.revisions.end_negation();
            let added = self.revisions.revision(default.as_bstr());
            if !added.map_err(CliError::unresolved)? {
                let message = format!("bad default revision '{default}'");
                return Err(CliError::fatal(message));
            }
        }
        if !self.revisions.is_given() && !self.reads_input {
            return Err(CliError::misuse("rev-list needs a revision"));
        }
        self.request.set = self.revisions.into_set();
        Ok(self.request)
    }
}
