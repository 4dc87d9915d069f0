//! `bundle`: exchange refs and objects through a file.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use bstr::{BStr, BString, ByteSlice};
use pronto::bundle::{self, Bundle, BundleRef, BundleVersion, CreateOptions, PreparedBundle};
use pronto::fetch::pretty;
use pronto::lock::{Lock, Marking, follow};
use pronto::path;
use pronto::revision::RevisionSet;
use pronto::{Environment, ErrorKind, Repository, Watch};

use super::rev_list::limits::ArgumentWords;
use crate::commands::shared::bad_pack;
use crate::output::StdoutWriter;
use crate::{CliError, Context, ExitCode};

/// Arguments of `bundle`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "REVISIONS of `create`: as those of `rev-list`, with `--stdin` and `--filter=SPEC`. `FILE` may be `-` for a standard stream."
)]
pub(crate) struct Args {
    /// `create`, `verify`, `list-heads` or `unbundle`, with `-q`, `--progress` and (`create`)
    /// `--version=N`, the file, and revisions (`create`) or names of refs
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

/// The parsed arguments of `bundle`.
#[derive(Default)]
struct BundleCall {
    quiet: bool,
    progress: bool,
    version: Option<BString>,
    file: BString,
    /// The directory to which the name of the file is relative; `None` for the current directory.
    directory: Option<PathBuf>,
    /// The arguments after the file.
    rest: Vec<BString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let Some((command, words)) = args.words.split_first() else {
        return Err(unsupported());
    };
    let command = command.as_bytes();
    let mut call = BundleCall::parse(command, words)?;
    call.name_from_top(context)?;
    match command {
        b"create" => create(&call, context),
        b"verify" if call.rest.is_empty() => verify(&call, context),
        b"list-heads" => list_heads(&call, context),
        b"unbundle" => unbundle(&call, context),
        _ => Err(unsupported()),
    }
}

/// The error for a call that Git explains in its own words.
fn unsupported() -> CliError {
    CliError::unsupported("this combination of arguments of 'bundle'")
}

impl BundleCall {
    /// Parses the arguments of `command`. Options end at the name of the file.
    fn parse(command: &[u8], words: &[OsString]) -> Result<Self, CliError> {
        let mut call = BundleCall::default();
        let mut words = words.iter().map(|word| BString::from(word.as_bytes()));
        let allows = |commands: &[&str]| commands.iter().any(|it| it.as_bytes() == command);
        while let Some(word) = words.next() {
            match word.as_bytes() {
                b"-q" | b"--quiet" if allows(&["create", "verify"]) => call.quiet = true,
                b"--no-quiet" if allows(&["create", "verify"]) => call.quiet = false,
                b"--progress" if allows(&["create", "unbundle"]) => call.progress = true,
                b"--no-progress" if allows(&["create", "unbundle"]) => call.quiet = true,
                b"--version" if allows(&["create"]) => call.version = words.next(),
                rest if rest.starts_with(b"--version=") && allows(&["create"]) => {
                    call.version = Some(rest["--version=".len()..].into());
                }
                b"-" => {
                    call.file = word;
                    break;
                }
                [b'-', ..] | [] => return Err(unsupported()),
                _ => {
                    call.file = word;
                    break;
                }
            }
        }
        if call.file.is_empty() {
            return Err(unsupported());
        }
        call.rest = words.collect();
        Ok(call)
    }

    /// Makes the name of the file relative to the top of the worktree, in which Git works, because
    /// messages show that name.
    fn name_from_top(&mut self, context: &mut Context) -> Result<(), CliError> {
        let environment = context.environment()?;
        let repository = context.discover_optional(&environment)?;
        if let Some(repository) = repository.filter(|_| self.file != "-") {
            if !self.file.starts_with(b"/") {
                self.file = [repository.prefix_or_empty(), self.file.clone()]
                    .concat()
                    .into();
            }
            self.directory = Some(repository.working_dir().to_owned());
        }
        Ok(())
    }

    /// Returns the environment against which the name of the file is resolved.
    fn environment(&self, context: &Context) -> Result<Environment, CliError> {
        let mut environment = context.environment()?;
        if let Some(directory) = &self.directory {
            environment.set_current_dir(directory);
        }
        Ok(environment)
    }

    /// Opens the bundle. A failure is an `error:`, not a `fatal:`.
    fn open(&self, context: &Context) -> Result<Bundle, CliError> {
        let opened = match self.file == "-" {
            true => Bundle::read(Box::new(BufReader::new(io::stdin())), "<stdin>".into()),
            false => Bundle::open(self.file.as_bstr(), &self.environment(context)?),
        };
        opened.map_err(|error| CliError::error(error.message()))
    }
}

fn list_heads(call: &BundleCall, context: &mut Context) -> Result<ExitCode, CliError> {
    let bundle = call.open(context)?;
    print_refs(call, &bundle, context)?;
    Ok(ExitCode::SUCCESS)
}

fn print_refs(call: &BundleCall, bundle: &Bundle, context: &mut Context) -> Result<(), CliError> {
    for reference in bundle::selected(bundle.header(), &call.rest) {
        print_ref(reference, &mut context.out)?;
    }
    Ok(())
}

/// Prints a ref of a bundle. The name is untrusted.
fn print_ref(reference: &BundleRef, out: &mut StdoutWriter) -> io::Result<()> {
    write!(out, "{} ", reference.id)?;
    out.write_foreign(&reference.name)?;
    out.write_all(b"\n")
}

/// Checks that `repository` has the prerequisites of `bundle`, and reports the missing ones.
fn fits(repository: &Repository, bundle: &Bundle, context: &mut Context) -> Result<bool, CliError> {
    match bundle::require(repository, bundle.header()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::Bundle => {
            bad_pack::report_bundle(&error, context);
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}

fn verify(call: &BundleCall, context: &mut Context) -> Result<ExitCode, CliError> {
    let repository = context.repository_if_any()?;
    let Some(repository) = repository else {
        return Err(CliError::error("need a repository to verify a bundle"));
    };
    let bundle = call.open(context)?;
    if !fits(&repository, &bundle, context)? {
        return Ok(ExitCode::FAILURE);
    }
    if !call.quiet {
        describe(&bundle, context)?;
    }
    context.remark(&format!("{} is okay", call.file));
    Ok(ExitCode::SUCCESS)
}

/// Prints the refs and the prerequisites of a bundle (`bundle verify`).
fn describe(bundle: &Bundle, context: &mut Context) -> Result<(), CliError> {
    let header = bundle.header();
    let out = &mut context.out;
    match header.references.len() {
        1 => writeln!(out, "The bundle contains this ref:")?,
        count => writeln!(out, "The bundle contains these {count} refs:")?,
    }
    for reference in &header.references {
        print_ref(reference, out)?;
    }
    match header.prerequisites.len() {
        0 => writeln!(out, "The bundle records a complete history.")?,
        1 => writeln!(out, "The bundle requires this ref:")?,
        count => writeln!(out, "The bundle requires these {count} refs:")?,
    }
    for needed in &header.prerequisites {
        writeln!(out, "{} ", needed.id)?;
    }
    writeln!(out, "The bundle uses this hash algorithm: {}", header.hash)?;
    if let Some(filter) = &header.filter {
        out.write_all(b"The bundle uses this filter: ")?;
        out.write_foreign(filter)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

fn unbundle(call: &BundleCall, context: &mut Context) -> Result<ExitCode, CliError> {
    let repository = context.repository_if_any()?;
    let mut bundle = call.open(context)?;
    let Some(repository) = repository else {
        return Err(CliError::fatal("Need a repository to unbundle."));
    };
    if !fits(&repository, &bundle, context)? {
        return Ok(ExitCode::FAILURE);
    }
    context.check_child("index-pack")?;
    let progress = context.prompt_progress(call.progress);
    let watch = Watch::from(&context.interrupt).with_progress(&*progress);
    bundle::unbundle(&repository, &mut bundle, &watch)?;
    context.settle();
    context.report();
    print_refs(call, &bundle, context)?;
    Ok(ExitCode::SUCCESS)
}

fn create(call: &BundleCall, context: &mut Context) -> Result<ExitCode, CliError> {
    let Some(repository) = context.repository_if_any()? else {
        return Err(CliError::fatal("Need a repository to create a bundle."));
    };
    let mut options = CreateOptions::default();
    options.version = version(call)?;
    let mut revisions = Vec::new();
    let mut reads_stdin = false;
    let mut words = ArgumentWords::new(&call.rest);
    while let Some(word) = words.next() {
        match word.as_bytes() {
            b"--stdin" => reads_stdin = true,
            filter if filter.starts_with(b"--filter=") => {
                options.filter = Some(filter["--filter=".len()..].into());
            }
            option if option.starts_with(b"-") => {
                if !words.limit(option.as_bstr(), &mut options.walk)? {
                    revisions.push(word.clone());
                }
            }
            _ => revisions.push(word.clone()),
        }
    }
    let parsed = bundle::parse_revisions(&repository, &revisions);
    options.revisions = parsed.map_err(CliError::of)?;
    if reads_stdin {
        let read = revisions_of_stdin(&repository)?;
        options.revisions.members.extend(read.members);
    }
    let shown = call.progress || (!call.quiet && io::stderr().is_terminal());
    let progress = context.prompt_progress(shown);
    let interrupt = context.interrupt.clone();
    let watch = Watch::from(&interrupt).with_progress(&*progress);
    let created = bundle::create(&repository, &options, &watch)?;
    for name in created.excluded() {
        let name = match reads_stdin {
            true => name.as_bstr(),
            false => as_selected(name.as_bstr(), &revisions),
        };
        context.warn(&format!("ref '{name}' is excluded by the rev-list options"));
    }
    context.check_child("pack-objects")?;
    let counts = match call.file.as_bytes() {
        b"-" => {
            let output: std::fs::File = io::stdout().as_fd().try_clone_to_owned()?.into();
            created.write(&mut BufWriter::new(output), &watch)?
        }
        _ => write_file(call, &created, context, &watch)?,
    };
    if shown {
        pronto::pack_objects::report_totals(&counts, &watch);
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the name under which a bundle records the ref. As in Git, options for one kind of refs
/// (`--branches`, `--tags`) select short names.
fn as_selected<'a>(name: &'a BStr, given: &[BString]) -> &'a BStr {
    let is_full = |word: &BString| word == name || word == "--all" || word.starts_with(b"--glob");
    match given.iter().any(is_full) {
        true => name,
        false => pretty(name),
    }
}

/// Parses the revisions on standard input (`--stdin`). Afterwards the call cannot be handed to git,
/// because the input has been read.
fn revisions_of_stdin(repository: &Repository) -> Result<RevisionSet, CliError> {
    let mut lines = Vec::new();
    for line in io::stdin().lock().split(b'\n') {
        lines.push(BString::from(line?));
    }
    lines.retain(|line| !line.is_empty());
    bundle::parse_revisions(repository, &lines).map_err(CliError::from)
}

fn version(call: &BundleCall) -> Result<Option<BundleVersion>, CliError> {
    match call.version.as_ref().map(|text| text.as_bytes()) {
        None | Some(b"-1") => Ok(None),
        Some(b"2") => Ok(Some(BundleVersion::V2)),
        Some(b"3") => Ok(Some(BundleVersion::V3)),
        Some(other) => match other
            .to_str()
            .ok()
            .and_then(|text| text.parse::<i32>().ok())
        {
            Some(number) => {
                let message = format!("unsupported bundle version {number}");
                Err(CliError::fatal(message))
            }
            None => Err(unsupported()),
        },
    }
}

/// Writes the bundle to a temporary file and renames it to its final name.
fn write_file(
    call: &BundleCall,
    created: &PreparedBundle<'_>,
    context: &Context,
    watch: &Watch<'_>,
) -> Result<pronto::object_store::PackCounts, CliError> {
    let name: &BStr = call.file.as_bstr();
    let target = call.environment(context)?.absolute(path::borrow(name));
    let lock = Lock::acquire_as(follow(&target), Marking::Plain, Duration::ZERO);
    let mut lock = lock.map_err(|error| match error.kind() {
        ErrorKind::Locked => CliError::fatal(format!(
            "Unable to create '{}.lock': File exists.",
            call.file
        )),
        _ => error.into(),
    })?;
    let file = lock.file().map(|file| file.try_clone()).transpose()?;
    let Some(file) = file else {
        return Err(CliError::fatal("cannot write the bundle"));
    };
    let counts = created.write(&mut BufWriter::with_capacity(1 << 16, file), watch)?;
    lock.close();
    lock.commit()?;
    Ok(counts)
}
