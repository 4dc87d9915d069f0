//! `bugreport`: collect what a bug report needs, without secrets.
//!
//! The report has versions, counts and names that git or pronto define. Texts that users define
//! (values, subsections, names of refs, remotes and files) are not written, with the exception of
//! values from a list of harmless words ([`harmless`]).

mod call;
mod date;
mod harmless;
mod machine;
mod settings;
mod shape;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use pronto::config::Config;
use pronto::{Environment, ErrorKind, Repository};

use crate::terminal::editor;
use crate::{CliError, Context, ExitCode};

/// Arguments of `bugreport`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Write the report into this directory
    #[arg(long, short, value_name = "DIRECTORY")]
    output_directory: Option<PathBuf>,
    /// Name the file without a suffix
    #[arg(long, overrides_with = "suffix")]
    no_suffix: bool,
    /// The suffix of the name of the file, as a format for strftime(3)
    #[arg(
        long,
        short,
        value_name = "FORMAT",
        default_value = "%Y-%m-%d-%H%M",
        overrides_with = "no_suffix"
    )]
    suffix: String,
    /// Let git write its report with an archive of statistics, or of all files of the repository directory
    #[arg(long, value_name = "MODE", num_args = 0..=1, default_missing_value = "stats")]
    diagnose: Option<String>,
    /// After `--`, a call about which the report says whether pronto or git runs it
    #[arg(value_name = "CALL")]
    call: Vec<OsString>,
}

/// The questions at the start of a report.
const QUESTIONS: &str = "\
This is a report about a bug of pronto. Answer the questions, and review the data below them: everything
that you do not want to publish can be deleted. SECURITY.md describes where to send a report about a
vulnerability.

Which commands lead to the bug, in which state of the repository?


What should happen?


What happens instead? Include the messages.


Does git behave differently with the same commands?


";

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    if args.diagnose.is_some() {
        return Err(CliError::unsupported("option '--diagnose' of 'bugreport'"));
    }
    if !args.call.is_empty() && context.separator != Some(0) {
        return Err(CliError::misuse("'bugreport' takes a call only after '--'"));
    }
    let suffix = match args.no_suffix {
        true => String::new(),
        false => format!("-{}", date::format(&args.suffix)?),
    };
    let name = format!("{}-bugreport{suffix}.txt", context.program());
    let path = args.output_directory.clone().unwrap_or_default().join(name);
    let environment = context.environment()?;
    let surroundings = Surroundings::find(environment)?;
    let text = report(args, &surroundings, context);
    write(&surroundings.environment.absolute(&path), &path, &text)?;
    context.remark(&format!("Created new report at '{}'.", path.display()));
    edit(&path, &surroundings, context)
}

/// The environment, the repository and the configuration that a report describes.
struct Surroundings {
    environment: Environment,
    repository: Option<Repository>,
    /// The kind of the error because of which the repository cannot be opened.
    failure: Option<ErrorKind>,
    /// The configuration; `None` if it cannot be read.
    config: Option<Config>,
}

impl Surroundings {
    fn find(environment: Environment) -> Result<Self, CliError> {
        let found = Repository::discover_optional(environment.current_dir(), &environment);
        let (repository, failure) = match found {
            Ok(found) => (found, None),
            Err(error) => (None, Some(error.kind())),
        };
        let config = match &repository {
            Some(repository) => Some(repository.config().clone()),
            None => pronto::config::without_repository(&environment).ok(),
        };
        Ok(Surroundings {
            environment,
            repository,
            failure,
            config,
        })
    }
}

/// Returns the text of the report.
fn report(args: &Args, surroundings: &Surroundings, context: &Context) -> String {
    let mut text = QUESTIONS.to_owned();
    machine::describe(surroundings, context, &mut text);
    settings::describe(surroundings, &mut text);
    shape::describe(surroundings, &mut text);
    if !args.call.is_empty() {
        text.push_str("\n[Call]\n");
        call::describe(&args.call, surroundings, &mut text);
    }
    settings::enabled_hooks(surroundings, &mut text);
    text
}

/// Appends the line `NAME: VALUE`.
fn line(text: &mut String, name: &str, value: impl std::fmt::Display) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "{name}: {value}");
}

/// Writes `text` to the new file `path`, which messages call `shown`. Only the user may read it.
fn write(path: &Path, shown: &Path, text: &str) -> Result<(), CliError> {
    let failed = |error: std::io::Error| {
        let reason = pronto_io::error::reason(&error);
        CliError::fatal(format!("cannot create '{}': {reason}", shown.display()))
    };
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let created: Result<File, _> = options.open(path);
    let mut file = created.map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)
}

/// Opens the report in the editor of the user. Without a terminal, only a configured editor runs.
fn edit(
    path: &Path,
    surroundings: &Surroundings,
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let variable = |name: &str| context.globals.variable(name);
    let config = surroundings.config.as_ref();
    let configured = || config?.raw("core.editor").map(editor::from_config);
    let Some(line) = editor::command_line(variable, configured) else {
        return Ok(ExitCode::SUCCESS);
    };
    context.settle();
    editor::run(&line, path).map_err(CliError::error)?;
    Ok(ExitCode::SUCCESS)
}
