//! `refs`: migrate refs to another storage format, pack refs, and check whether a ref exists.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;

use bstr::ByteSlice;
use pronto::ErrorKind;
use pronto::path;
use pronto::refs::MigrateOptions;
use pronto::repository::RefStorage;

use super::pack_refs;
use crate::{CliError, Context, ExitCode};

/// Git's exit code if the storage format could not be changed.
const FAILED: ExitCode = ExitCode::new(255);
/// Git's exit code if a ref does not exist.
const MISSING: ExitCode = ExitCode::new(2);

/// Arguments of `refs`.
#[derive(clap::Args, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub(crate) struct Args {
    /// The new storage: files or reftable (migrate)
    #[arg(long, value_name = "FORMAT")]
    ref_format: Option<OsString>,
    /// Write the new storage beside the old one, and leave it there (migrate)
    #[arg(long)]
    dry_run: bool,
    /// Drop all reflogs (migrate)
    #[arg(long)]
    no_reflog: bool,
    /// Pack all refs, not only tags (optimize)
    #[arg(long)]
    all: bool,
    /// Keep the files of packed refs (optimize)
    #[arg(long)]
    no_prune: bool,
    /// Pack only if many refs are unpacked (optimize)
    #[arg(long)]
    auto: bool,
    /// Pack refs that match this pattern (optimize)
    #[arg(long, value_name = "PATTERN")]
    include: Vec<OsString>,
    /// Do not pack refs that match this pattern (optimize)
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<OsString>,
    /// `migrate`, `exists` or `optimize`, and its operands
    #[arg(value_name = "COMMAND")]
    words: Vec<OsString>,
}

impl Args {
    fn has_options_of_migrate(&self) -> bool {
        self.ref_format.is_some() || self.dry_run || self.no_reflog
    }

    fn has_options_of_optimize(&self) -> bool {
        self.all
            || self.no_prune
            || self.auto
            || !self.include.is_empty()
            || !self.exclude.is_empty()
    }
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let unsupported = || CliError::unsupported("this combination of arguments of 'refs'");
    let Some((command, words)) = args.words.split_first() else {
        return Err(unsupported());
    };
    // As in Git, the subcommand precedes its options.
    if context.arguments.first() != Some(command) {
        return Err(unsupported());
    }
    let options = (
        args.has_options_of_migrate(),
        args.has_options_of_optimize(),
    );
    match (command.as_bytes(), options) {
        (b"migrate", (_, false)) => migrate(args, words, context),
        (b"exists", (false, false)) => exists(words, context),
        (b"optimize", (false, _)) if words.is_empty() => optimize(args, context),
        _ => Err(unsupported()),
    }
}

fn migrate(args: &Args, words: &[OsString], context: &mut Context) -> Result<ExitCode, CliError> {
    // A missing repository is reported before the options are checked.
    let repository = context.repository()?;
    let misuse = |message: &str, context: &mut Context| {
        context.remark(&format!("usage: {message}"));
        Err(CliError::silent(ExitCode::USAGE))
    };
    if !words.is_empty() {
        return misuse("too many arguments", context);
    }
    let Some(name) = &args.ref_format else {
        return misuse("missing --ref-format=<format>", context);
    };
    let name = name.as_bytes().as_bstr();
    let Some(storage) = RefStorage::named(name) else {
        let message = format!("unknown ref storage format '{name}'");
        return Err(CliError::error(message).with_code(FAILED));
    };
    let mut options = MigrateOptions::new(storage);
    options.reflogs = !args.no_reflog;
    options.dry_run = args.dry_run;
    let report = repository.migrate_refs(&options);
    let report = report.map_err(|error| match error.kind() {
        ErrorKind::Unsupported => CliError::of(error),
        _ => CliError::error(error.to_string()).with_code(FAILED),
    })?;
    if let Some(directory) = &report.directory {
        let name = directory.file_name().unwrap_or_default();
        let shown = repository.display_git_dir().join(name);
        let text = "Finished dry-run migration of refs, the result can be found at '";
        context.out.write_all(text.as_bytes())?;
        context.out.write_all(path::as_bytes(&shown))?;
        context.out.write_all(b"'\n")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn exists(words: &[OsString], context: &mut Context) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    let [name] = words else {
        return Err(CliError::fatal("'git refs exists' requires a reference"));
    };
    match repository.refs().find(name.as_bytes()) {
        Ok(Some(_)) => Ok(ExitCode::SUCCESS),
        Ok(None) => Err(CliError::error("reference does not exist").with_code(MISSING)),
        Err(error) => Err(CliError::lacking(error)),
    }
}

fn optimize(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let given = pack_refs::Args {
        all: args.all,
        no_prune: args.no_prune,
        auto: args.auto,
        include: args.include.clone(),
        exclude: args.exclude.clone(),
        rest: Vec::new(),
    };
    pack_refs::run(&given, context)
}
