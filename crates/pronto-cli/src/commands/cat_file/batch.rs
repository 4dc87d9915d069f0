//! Batch mode: prints many objects, named on standard input, or all objects (`--batch`,
//! `--batch-check`, `--batch-command`).

use std::io::Write as _;

use bstr::{BStr, ByteSlice as _};
use pronto::revision::ExpectedType;
use pronto::{ErrorKind, Repository};
use pronto_hash::ObjectId;
use pronto_odb::{ObjectData, PackLocation, Store};

use super::format::{BatchFormat, ObjectDetails};
use super::input::InputLines;
use super::parallel::{self, LocatedObject};
use super::single::{big_file_threshold, copy};
use crate::{CliError, Context, ExitCode};

/// The output for each object in batch mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// A line and the content (`--batch`).
    Contents,
    /// A line (`--batch-check`).
    Info,
    /// The output that each line of the input requests (`--batch-command`).
    Commands,
}

/// The options of batch mode.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) mode: Mode,
    pub(super) all_objects: bool,
    pub(super) unordered: bool,
    pub(super) buffered: bool,
    pub(super) input_end: u8,
    pub(super) output_end: u8,
    pub(super) format: BatchFormat,
}

/// Prints objects one by one, in the order of the input.
struct ObjectPrinter<'a> {
    repository: &'a Repository,
    store: Store,
    options: &'a Options,
    threshold: u64,
    content: Vec<u8>,
    line: Vec<u8>,
}

/// An object to print.
#[derive(Clone, Copy)]
struct PrintedObject<'a> {
    id: ObjectId,
    mode: Option<u32>,
    /// The name to print if the object is missing; `None` for the id of the object.
    name: Option<&'a BStr>,
    rest: &'a [u8],
    with_content: bool,
}

pub(super) fn run(options: &Options, context: &mut Context) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    let mut printer = ObjectPrinter {
        store: repository.objects()?.clone(),
        threshold: big_file_threshold(&repository)?,
        repository: &repository,
        options,
        content: Vec::new(),
        line: Vec::new(),
    };
    let partial = repository.has_promisor()?;
    if options.all_objects {
        if partial {
            context.warn("This repository uses promisor remotes. Some objects may not be loaded.");
        }
        printer.store = printer.store.without_replacements();
        printer.print_all(context)?;
    } else if partial {
        return Err(CliError::unsupported("'cat-file' in a partial clone"));
    } else if options.mode == Mode::Commands {
        printer.obey(context)?;
    } else {
        printer.print_named(context)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints a line for every object.
fn describe_all(store: &Store, options: &Options, context: &mut Context) -> Result<(), CliError> {
    let describe = |object: LocatedObject, lines: &mut Vec<u8>| {
        let mut known = ObjectDetails::of(object.id);
        if look(store, options, object.location, &mut known)? {
            options.format.expand(&known, lines);
        } else {
            lines.extend_from_slice(format!("{} missing", object.id).as_bytes());
        }
        lines.push(options.output_end);
        Ok(())
    };
    let each = |visit: &mut dyn FnMut(LocatedObject) -> Result<(), CliError>| {
        if options.unordered {
            return store.for_each_stored(|id, location| {
                let id = id.to_owned();
                visit(LocatedObject { id, location })
            });
        }
        for id in store.iter()? {
            let (id, location) = (id?, None);
            visit(LocatedObject { id, location })?;
        }
        Ok(())
    };
    parallel::print(&describe, each, context)
}

/// Reads the properties that the format needs, without the content. Returns whether the object
/// exists.
fn look(
    store: &Store,
    options: &Options,
    location: Option<PackLocation>,
    known: &mut ObjectDetails<'_>,
) -> Result<bool, CliError> {
    let format = &options.format;
    if format.needs_header() {
        let header = match location {
            Some(location) => store.header_at(location, &known.id),
            None => store.header(&known.id),
        };
        let header = header.map_err(unreadable)?;
        match header {
            Some(header) => (known.kind, known.size) = (Some(header.kind), header.size),
            None => return Ok(false),
        }
    } else if !options.all_objects
        && !format.needs_details()
        && !store.contains(&store.replaced(&known.id)?)?
    {
        return Ok(false);
    }
    look_at_details(store, options, known)
}

/// Returns the error for an object that cannot be read.
fn unreadable(error: pronto_odb::Error) -> CliError {
    match error.kind() {
        pronto_odb::ErrorKind::UnknownType => CliError::fatal(error.message()),
        _ => error.into(),
    }
}

/// Reads the disk size and the delta base of the object, if the format needs them.
fn look_at_details(
    store: &Store,
    options: &Options,
    known: &mut ObjectDetails<'_>,
) -> Result<bool, CliError> {
    if !options.format.needs_details() {
        return Ok(true);
    }
    let Some(details) = store.details(&known.id)? else {
        return Ok(false);
    };
    known.size_on_disk = details.size_on_disk;
    known.delta_base = details.delta_base;
    Ok(true)
}

impl ObjectPrinter<'_> {
    fn print_all(&mut self, context: &mut Context) -> Result<(), CliError> {
        let wanted = |id| PrintedObject {
            id,
            mode: None,
            name: None,
            rest: b"",
            with_content: self.options.mode == Mode::Contents,
        };
        let store = self.store.clone();
        if self.options.mode == Mode::Info {
            return describe_all(&store, self.options, context);
        }
        if self.options.unordered {
            return store.for_each_stored(|id, _| self.print(wanted(id.to_owned()), context));
        }
        for id in store.iter()? {
            self.print(wanted(id?), context)?;
        }
        Ok(())
    }

    fn print_named(&mut self, context: &mut Context) -> Result<(), CliError> {
        let with_content = self.options.mode == Mode::Contents;
        let splits = self.options.format.splits_input();
        let mut lines = InputLines::new(std::io::stdin().lock(), self.options.input_end);
        while let Some(line) = lines.next(|| self.before_waiting(context))? {
            let (name, rest) = if splits {
                split(line)
            } else {
                (line, &b""[..])
            };
            self.print_name(name.as_bstr(), rest, with_content, context)?;
        }
        Ok(())
    }

    /// Flushes the output for a caller that waits for the output before it writes its next query.
    fn before_waiting(&self, context: &mut Context) -> Result<(), CliError> {
        if !self.options.buffered {
            context.out.flush()?;
        }
        Ok(())
    }

    fn print_name(
        &mut self,
        name: &BStr,
        rest: &[u8],
        with_content: bool,
        context: &mut Context,
    ) -> Result<(), CliError> {
        let (id, mode) = if name.len() == self.store.kind().len_in_hex()
            && let Ok(id) = pronto_hash::parse_hex(name)
        {
            (id, None)
        } else {
            match self.repository.look_up(name, ExpectedType::Anything) {
                Ok(Some(found)) => (found.id, found.mode),
                Ok(None) => return self.report(name, "missing", context),
                Err(error) => match error.kind() {
                    ErrorKind::UnknownRevision => return self.report(name, "missing", context),
                    ErrorKind::Ambiguous => {
                        context.report_error(error.message());
                        if let Some(hint) = error.hint() {
                            context.hint(hint);
                        }
                        return self.report(name, "ambiguous", context);
                    }
                    _ => return Err(error.into()),
                },
            }
        };
        let wanted = PrintedObject {
            id,
            mode,
            name: Some(name),
            rest,
            with_content,
        };
        self.print(wanted, context)
    }

    fn report(&self, name: &BStr, state: &str, context: &mut Context) -> Result<(), CliError> {
        context.out.write_all(name)?;
        write!(context.out, " {state}")?;
        context.out.write_all(&[self.options.output_end])?;
        Ok(())
    }

    fn print(&mut self, wanted: PrintedObject<'_>, context: &mut Context) -> Result<(), CliError> {
        let mut known = ObjectDetails {
            mode: wanted.mode,
            rest: wanted.rest,
            ..ObjectDetails::of(wanted.id)
        };
        let mut large = None;
        let mut found = true;
        if wanted.with_content {
            let content = &mut self.content;
            match self
                .store
                .find_or_stream(&wanted.id, self.threshold, content)
                .map_err(unreadable)?
            {
                Some(ObjectData::Whole(kind)) => {
                    (known.kind, known.size) = (Some(kind), content.len() as u64);
                }
                Some(ObjectData::Large(reader)) => {
                    (known.kind, known.size) = (Some(reader.kind()), reader.size_bytes());
                    large = Some(reader);
                }
                None => found = false,
            }
            found = found && look_at_details(&self.store, self.options, &mut known)?;
        } else {
            found = look(&self.store, self.options, None, &mut known)?;
        }
        if !found {
            let hex = wanted.id.to_string();
            // The commit of a submodule is in another repository.
            if wanted.mode == Some(0o160_000) {
                return self.report(hex.as_str().into(), "submodule", context);
            }
            let name = wanted.name.unwrap_or(hex.as_str().into());
            return self.report(name, "missing", context);
        }
        self.line.clear();
        self.options.format.expand(&known, &mut self.line);
        self.line.push(self.options.output_end);
        context.out.write_all(&self.line)?;
        if wanted.with_content {
            match large {
                Some(mut reader) => copy(&mut reader, &wanted.id, context)?,
                None => context.out.write_all(&self.content)?,
            }
            context.out.write_all(&[self.options.output_end])?;
        }
        Ok(())
    }

    /// Executes the commands of `--batch-command`: immediately, or on `flush` if the output is
    /// buffered (`--buffer`).
    fn obey(&mut self, context: &mut Context) -> Result<(), CliError> {
        let mut queue: Vec<(bool, Vec<u8>)> = Vec::new();
        let mut lines = InputLines::new(std::io::stdin().lock(), self.options.input_end);
        while let Some(line) = lines.next(|| self.before_waiting(context))? {
            match parse_command(line)? {
                BatchCommand::Flush if !self.options.buffered => {
                    return Err(CliError::fatal("flush is only for --buffer mode"));
                }
                BatchCommand::Flush => {
                    self.obey_queue(&mut queue, context)?;
                    context.out.flush()?;
                }
                BatchCommand::Print { with_content, name } if self.options.buffered => {
                    queue.push((with_content, name.to_vec()));
                }
                BatchCommand::Print { with_content, name } => {
                    self.print_name(name.as_bstr(), b"", with_content, context)?;
                }
            }
        }
        self.obey_queue(&mut queue, context)
    }

    fn obey_queue(
        &mut self,
        queue: &mut Vec<(bool, Vec<u8>)>,
        context: &mut Context,
    ) -> Result<(), CliError> {
        for (with_content, name) in queue.drain(..) {
            self.print_name(name.as_bstr(), b"", with_content, context)?;
        }
        Ok(())
    }
}

/// A line of `--batch-command`.
enum BatchCommand<'a> {
    Flush,
    Print { with_content: bool, name: &'a [u8] },
}

fn parse_command(line: &[u8]) -> Result<BatchCommand<'_>, CliError> {
    let shown = line.as_bstr();
    if line.is_empty() {
        return Err(CliError::fatal("empty command in input"));
    }
    if line[0].is_ascii_whitespace() {
        return Err(CliError::fatal(format!(
            "whitespace before command: '{shown}'"
        )));
    }
    for (word, with_content) in [("contents", true), ("info", false)] {
        if let Some(rest) = line.strip_prefix(word.as_bytes()) {
            return match rest.strip_prefix(b" ") {
                Some(name) => Ok(BatchCommand::Print { with_content, name }),
                None => Err(CliError::fatal(format!("{word} requires arguments"))),
            };
        }
    }
    match line.strip_prefix(b"flush") {
        Some(b"") => Ok(BatchCommand::Flush),
        Some(_) => Err(CliError::fatal("flush takes no arguments")),
        None => Err(CliError::fatal(format!("unknown command: '{shown}'"))),
    }
}

/// Splits a line into a name and the text after the blanks that follow the name.
fn split(line: &[u8]) -> (&[u8], &[u8]) {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let Some(end) = line.iter().position(is_blank) else {
        return (line, b"");
    };
    let rest = &line[end..];
    let start = rest.iter().position(|byte| !is_blank(byte));
    (&line[..end], &rest[start.unwrap_or(rest.len())..])
}
