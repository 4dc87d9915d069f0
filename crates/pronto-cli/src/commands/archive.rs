//! `archive`: write the files of a tree as tar or zip.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

use bstr::{BStr, BString, ByteSlice};
use pronto::archive::{self, ExtraContent, ExtraFile, Format, Options};
use pronto::config::Config;
use pronto::revision::parse_date;
use pronto::{Watch, path};

use crate::{CliError, Context, ExitCode};

/// The size of the pieces in which the archive is written.
const PIECE_BYTES: usize = 1 << 16;

/// The formats, in the order of `--list`.
const FORMATS: [(&str, Format); 4] = [
    ("tar", Format::Tar),
    ("tgz", Format::TarGz),
    ("tar.gz", Format::TarGz),
    ("zip", Format::Zip),
];

/// Arguments of `archive`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "`--add-file` takes the last `--prefix` before it. Files that are added follow those of the tree."
)]
pub(crate) struct Args {
    /// `--list`; or `--format=FORMAT`, `--prefix=PREFIX`, `-o FILE`, `--add-file=FILE`,
    /// `--add-virtual-file=PATH:CONTENT`, `--worktree-attributes`, `--mtime=TIME`, `-v`, `-0` to
    /// `-9`, the tree, and paths in it
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

/// A call, taken apart.
#[derive(Default)]
struct Call {
    lists: bool,
    verbose: bool,
    format: Option<BString>,
    output: Option<BString>,
    options: Options,
    /// The tree, and pathspecs.
    operands: Vec<BString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let call = Call::parse(&args.words, context)?;
    if call.lists {
        let config = match context.repository_if_any()? {
            Some(repository) => repository.config().clone(),
            None => context.configuration()?,
        };
        refuse_configured(&config)?;
        for (name, _) in FORMATS {
            writeln!(context.out, "{name}")?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let Some((tree, paths)) = call.operands.split_first() else {
        return Err(unsupported());
    };
    let repository = context.repository()?;
    let mut options = call.options;
    options.format = format(&call.format, &call.output, repository.config())?;
    options.pathspecs = paths.to_vec();
    if options.level.is_some() && options.format == Format::Tar {
        return Err(unsupported());
    }
    let interrupt = context.interrupt.clone();
    let watch = Watch::from(&interrupt);
    let prepared = archive::prepare(&repository, tree.as_bstr(), options, &watch);
    let prepared = prepared.map_err(CliError::of)?;
    context.report();
    let file = match &call.output {
        Some(name) => create(name.as_bstr(), context)?,
        None => io::stdout().as_fd().try_clone_to_owned()?.into(),
    };
    let mut output = BufWriter::with_capacity(PIECE_BYTES, file);
    let mut entered = |path: &BStr| {
        if call.verbose {
            let line = [path.as_bytes(), b"\n"].concat();
            // As in Git, the list is for information: the archive does not depend on it.
            let _ = io::stderr().write_all(&line);
        }
    };
    let written = prepared.write(&mut output, &mut entered, &watch);
    written.map_err(CliError::of)?;
    output.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// The error for a call that Git carries out, or explains in its own words.
fn unsupported() -> CliError {
    CliError::unsupported("this way of calling archive")
}

/// Refuses programs that are configured for formats: they are for git.
fn refuse_configured(config: &Config) -> Result<(), CliError> {
    match config.subsections("tar").is_empty() {
        true => Ok(()),
        false => Err(CliError::unsupported("configured formats of archives")),
    }
}

fn format(
    given: &Option<BString>,
    output: &Option<BString>,
    config: &Config,
) -> Result<Format, CliError> {
    let find = |name: &BStr| FORMATS.iter().find(|(known, _)| name == *known);
    let format = match (given, output) {
        (Some(given), _) => find(given.as_bstr()).ok_or_else(unsupported)?.1,
        (None, Some(output)) => {
            refuse_configured(config)?;
            let fits = |name: &str| {
                let rest = output.strip_suffix(name.as_bytes());
                rest.is_some_and(|rest| rest.len() > 1 && rest.ends_with(b"."))
            };
            let found = FORMATS.iter().find(|(name, _)| fits(name));
            found.map_or(Format::Tar, |(_, format)| *format)
        }
        (None, None) => Format::Tar,
    };
    if format == Format::TarGz {
        refuse_configured(config)?;
    }
    Ok(format)
}

fn create(name: &BStr, context: &Context) -> Result<File, CliError> {
    let target = context.environment()?.absolute(path::borrow(name));
    File::create(target).map_err(|error| {
        let reason = pronto_io::error::reason(&error);
        CliError::fatal(format!("could not create archive file '{name}': {reason}"))
    })
}

impl Call {
    /// Parses the arguments. Options may follow operands.
    fn parse(words: &[OsString], context: &Context) -> Result<Self, CliError> {
        let mut call = Call::default();
        let mut words = words.iter().map(|word| word.as_bytes());
        while let Some(word) = words.next() {
            match word {
                b"--" => {
                    call.operands.extend(words.map(BString::from));
                    break;
                }
                b"-l" | b"--list" => call.lists = true,
                b"-v" | b"--verbose" => call.verbose = true,
                b"--no-verbose" => call.verbose = false,
                b"--worktree-attributes" => call.options.worktree_attributes = true,
                b"--no-worktree-attributes" => call.options.worktree_attributes = false,
                [b'-', digit @ b'0'..=b'9'] => call.options.level = Some(u32::from(digit - b'0')),
                b"-o" => call.output = Some(words.next().ok_or_else(unsupported)?.into()),
                [b'-', b'o', name @ ..] => call.output = Some(name.into()),
                [b'-', b'-', option @ ..] => {
                    let (name, value) = match option.split_once_str("=") {
                        Some((name, value)) => (name, value),
                        None => (option, words.next().ok_or_else(unsupported)?),
                    };
                    call.option(name, value.as_bstr(), context)?;
                }
                [b'-', ..] => return Err(unsupported()),
                _ => call.operands.push(word.into()),
            }
        }
        Ok(call)
    }

    /// Takes an option with a value.
    fn option(&mut self, name: &[u8], value: &BStr, context: &Context) -> Result<(), CliError> {
        match name {
            b"format" => self.format = Some(value.to_owned()),
            b"prefix" => self.options.prefix = value.to_owned(),
            b"output" => self.output = Some(value.to_owned()),
            b"mtime" => {
                let time = parse_date(value).ok_or_else(unsupported)?;
                self.options.modified = Some(time);
            }
            b"add-file" => {
                let file = self.file(value, context)?;
                self.options.extra.push(file);
            }
            b"add-virtual-file" => self.options.extra.push(virtual_file(value)?),
            _ => return Err(unsupported()),
        }
        Ok(())
    }

    /// Returns the file that `--add-file` names, under the prefix that was given before.
    fn file(&self, value: &BStr, context: &Context) -> Result<ExtraFile, CliError> {
        let file = context.environment()?.absolute(path::borrow(value));
        let metadata = std::fs::metadata(&file).map_err(|_| unsupported())?;
        let name = file.file_name().ok_or_else(unsupported)?;
        if !metadata.is_file() {
            return Err(unsupported());
        }
        Ok(ExtraFile {
            path: [self.options.prefix.as_slice(), name.as_bytes()]
                .concat()
                .into(),
            is_executable: metadata.permissions().mode() & 0o100 != 0,
            content: ExtraContent::File(file),
        })
    }
}

/// Parses a file of the command line: its path, a colon and the content.
fn virtual_file(value: &BStr) -> Result<ExtraFile, CliError> {
    let parts = value.split_once_str(":");
    let (path, content) = parts
        .filter(|(path, _)| !path.is_empty())
        .ok_or_else(unsupported)?;
    if path.starts_with(b"\"") {
        return Err(unsupported());
    }
    Ok(ExtraFile {
        path: path.into(),
        content: ExtraContent::Bytes(content.into()),
        is_executable: false,
    })
}
