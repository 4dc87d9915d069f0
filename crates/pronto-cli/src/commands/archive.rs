//! `archive`: write the files of a tree as tar or zip, or fetch such an archive from another machine.

mod outer;
mod remote;
mod standard_output;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use bstr::{BStr, BString, ByteSlice};
use pronto::archive::{
    self, AddedFile, ArchiveArguments, ArchiveFormat, Event, ExtraContent, ExtraFile, Formats,
};
use pronto::{Repository, Watch, path};

use crate::terminal::text::{write_foreign_to_stderr, write_output_of_child};
use crate::{CliError, Context, ExitCode};
use outer::ArchiveCall;
use standard_output::StandardOutput;

/// The size of the blocks in which the archive is written.
const PIECE_BYTES: usize = 1 << 16;

/// Arguments of `archive`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "`--add-file` takes the last `--prefix` before it. Files that are added follow those of the tree."
)]
pub(crate) struct Args {
    /// `--list`; or `--format=FORMAT`, `--prefix=PREFIX`, `-o FILE`, `--add-file=FILE`,
    /// `--add-virtual-file=PATH:CONTENT`, `--worktree-attributes`, `--mtime=TIME`, `-v`, `-0` to
    /// `-9`, the tree, and paths in it; `--remote=REPOSITORY` and `--exec=PROGRAM`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let outer = ArchiveCall::parse(&args.words)?;
    if outer.remote.is_some() {
        return remote::run(&outer, context);
    }
    let words = outer.rest.iter().map(|word| word.as_bstr());
    let arguments = ArchiveArguments::parse(words).map_err(|error| match error.shows_usage() {
        true => unsupported(),
        false => CliError::usage(error.message()),
    })?;
    arguments.check_places().map_err(CliError::of)?;
    let output = outer.output.as_ref().map(|name| name.as_bstr());
    if arguments.lists {
        return list(&arguments, output, context);
    }
    let tree = arguments.operands.first().ok_or_else(unsupported)?;
    let repository = context.repository()?;
    let format = format(&arguments, output, &repository)?;
    let mut options = arguments.options(&format).map_err(CliError::of)?;
    for added in &arguments.added {
        let file = extra(added, &repository, context)?;
        options.extra.push(file);
    }
    let interrupt = context.interrupt.clone();
    let watch = Watch::from(&interrupt);
    let prepared = archive::prepare(&repository, tree.as_bstr(), options, &watch);
    let prepared = prepared.map_err(CliError::of)?;
    context.report();
    let mut output = BufWriter::with_capacity(PIECE_BYTES, open(output, context)?);
    let events = |event: Event<'_>| {
        // As in Git, the list is for information: the archive does not depend on it.
        let _ = match event {
            Event::Entry(path) if arguments.is_verbose => {
                write_foreign_to_stderr(&[path.as_bytes(), b"\n"].concat())
            }
            Event::ErrorOutput(text) => write_output_of_child(text),
            _ => Ok(()),
        };
    };
    let written = prepared.write(&mut output, &events, &watch);
    written.map_err(CliError::of)?;
    output.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// The error for a call that git runs, or reports in its own words.
fn unsupported() -> CliError {
    CliError::unsupported("this combination of arguments of 'archive'")
}

/// Prints the supported formats (`--list`).
fn list(
    arguments: &ArchiveArguments,
    output: Option<&BStr>,
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let config = match context.repository_if_any()? {
        Some(repository) => repository.config().clone(),
        None => context.configuration()?,
    };
    let formats = Formats::configured(&config).map_err(CliError::of)?;
    let text = arguments.listing(&formats, false).map_err(CliError::of)?;
    match output {
        Some(_) => open(output, context)?.write_all(&text)?,
        None => context.out.write_all(&text)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the format of the archive: that of `--format`, that of the suffix of the output file, or
/// tar.
fn format(
    arguments: &ArchiveArguments,
    output: Option<&BStr>,
    repository: &Repository,
) -> Result<ArchiveFormat, CliError> {
    let formats = Formats::configured(repository.config()).map_err(CliError::of)?;
    let Some(given) = &arguments.format else {
        let found = output.and_then(|output| formats.of_file(output));
        return Ok(found.cloned().unwrap_or_default());
    };
    let found = formats.find(given.as_bstr()).cloned();
    found.ok_or_else(|| CliError::fatal(format!("Unknown archive format '{given}'")))
}

/// Opens the file of `--output`, or standard output.
fn open(output: Option<&BStr>, context: &Context) -> Result<StandardOutput, CliError> {
    let Some(name) = output else {
        return Ok(StandardOutput::new()?);
    };
    let target = context.environment()?.absolute(path::borrow(name));
    let created = File::create(target).map_err(|error| not_opened(name, &error));
    created.map(StandardOutput::over)
}

fn not_opened(name: &BStr, error: &io::Error) -> CliError {
    let reason = pronto_io::error::reason(error);
    CliError::fatal(format!("could not open '{name}' for writing: {reason}"))
}

/// Returns a file that `--add-file` or `--add-virtual-file` adds to the archive.
fn extra(
    added: &AddedFile,
    repository: &Repository,
    context: &Context,
) -> Result<ExtraFile, CliError> {
    match added {
        AddedFile::File { prefix, path } => file(prefix, path, repository, context),
        AddedFile::Virtual(value) => virtual_file(value, repository),
        _ => Err(unsupported()),
    }
}

/// Returns the file at `given`, under the value of the preceding `--prefix`.
fn file(
    prefix: &BString,
    given: &BString,
    repository: &Repository,
    context: &Context,
) -> Result<ExtraFile, CliError> {
    let file: PathBuf = context.environment()?.absolute(path::borrow(given));
    let shown = below_here(given, repository);
    let metadata = std::fs::metadata(&file)
        .map_err(|_| CliError::fatal(format!("File not found: {shown}")))?;
    if !metadata.is_file() {
        return Err(CliError::fatal(format!("Not a regular file: {shown}")));
    }
    let name = file.file_name().ok_or_else(unsupported)?;
    let path = [prefix.as_slice(), name.as_bytes()].concat();
    let mut extra = ExtraFile::new(path, ExtraContent::File(file.clone()));
    extra.is_executable = metadata.permissions().mode() & 0o100 != 0;
    Ok(extra)
}

/// Converts a path of the command line into a path relative to the top of the worktree.
fn below_here(path: &[u8], repository: &Repository) -> BString {
    match path.starts_with(b"/") {
        true => path.into(),
        false => [&repository.prefix_or_empty()[..], path].concat().into(),
    }
}

/// Parses the value of `--add-virtual-file`: a path, a colon and the content.
fn virtual_file(value: &BString, repository: &Repository) -> Result<ExtraFile, CliError> {
    if value.starts_with(b"\"") {
        return Err(unsupported());
    }
    let Some((path, content)) = value.split_once_str(":") else {
        return Err(CliError::fatal(format!("missing colon: '{value}'")));
    };
    if path.is_empty() {
        return Err(CliError::fatal(format!("empty file name: '{value}'")));
    }
    let path = below_here(path, repository);
    Ok(ExtraFile::new(path, ExtraContent::Bytes(content.into())))
}
