//! `reflog`: expire, delete and write reflog entries. git shows reflogs.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;

use bstr::{BStr, BString, ByteSlice};
use pronto::reflog::{
    ExpireOptions, ExpiredLog, LogSelection, NewLine, RewriteOptions, parse_expiry,
};
use pronto::refs::name;
use pronto::{Repository, Watch};
use pronto_hash::ObjectId;

use crate::{CliError, Context, ExitCode};

/// Git's exit code if a reflog could not be changed.
const FAILED: ExitCode = ExitCode::new(255);

/// Arguments of `reflog`.
#[derive(clap::Args, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub(crate) struct Args {
    /// Remove entries older than this (expire)
    #[arg(long, value_name = "DATE")]
    expire: Option<OsString>,
    /// Remove unreachable entries older than this (expire)
    #[arg(long, value_name = "DATE")]
    expire_unreachable: Option<OsString>,
    /// Make the old value of each entry match the entry before it (expire, delete)
    #[arg(long)]
    rewrite: bool,
    /// Set the ref to the value of the last entry (expire, delete)
    #[arg(long)]
    updateref: bool,
    /// Remove entries of incomplete commits (expire)
    #[arg(long)]
    stale_fix: bool,
    /// Show what would be done without doing it (expire, delete)
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Print what happens to each entry (expire, delete)
    #[arg(long)]
    verbose: bool,
    /// Process the reflogs of all refs (expire, drop)
    #[arg(long)]
    all: bool,
    /// Process only reflogs of this worktree (expire, drop)
    #[arg(long)]
    single_worktree: bool,
    /// `expire`, `delete`, `drop`, `exists`, `list` or `write`, and its operands
    #[arg(value_name = "COMMAND")]
    words: Vec<OsString>,
}

/// The permitted options of each subcommand.
const OPTIONS: &[(&str, &[&str])] = &[
    ("delete", &["rewrite", "updateref", "dry-run", "verbose"]),
    ("drop", &["all", "single-worktree"]),
    ("exists", &[]),
    (
        "expire",
        &[
            "expire",
            "expire-unreachable",
            "rewrite",
            "updateref",
            "dry-run",
            "verbose",
            "all",
            "single-worktree",
        ],
    ),
    ("list", &[]),
    ("write", &[]),
];

impl Args {
    /// Returns the names of the given options.
    fn given(&self) -> impl Iterator<Item = &'static str> {
        let given = [
            (self.expire.is_some(), "expire"),
            (self.expire_unreachable.is_some(), "expire-unreachable"),
            (self.rewrite, "rewrite"),
            (self.updateref, "updateref"),
            (self.stale_fix, "stale-fix"),
            (self.dry_run, "dry-run"),
            (self.verbose, "verbose"),
            (self.all, "all"),
            (self.single_worktree, "single-worktree"),
        ];
        given
            .into_iter()
            .filter_map(|(is_given, option)| is_given.then_some(option))
    }

    fn how(&self) -> RewriteOptions {
        let mut options = RewriteOptions::default();
        options.rewrite = self.rewrite;
        options.update_ref = self.updateref;
        options.dry_run = self.dry_run;
        options.verbose = self.verbose;
        options
    }
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let unsupported = || CliError::unsupported("this combination of arguments of 'reflog'");
    let Some((command, words)) = args.words.split_first() else {
        return Err(unsupported());
    };
    let words: Vec<&BStr> = words.iter().map(|word| word.as_bytes().as_bstr()).collect();
    // As in Git, the subcommand precedes its options.
    let is_first = context.arguments.first() == Some(command);
    let known = OPTIONS.iter().find(|(name, _)| *command == **name);
    let Some((command, known)) = known.filter(|_| is_first) else {
        return Err(unsupported());
    };
    if !args.given().all(|given| known.contains(&given)) {
        return Err(unsupported());
    }
    match (*command, words.as_slice()) {
        ("delete", words) => delete(args, words, context),
        ("drop", words) if words.is_empty() || !args.all => drop_logs(args, words, context),
        ("exists", [name, ..]) => exists(name, context),
        ("expire", words) => expire(args, words, context),
        ("list", []) => list(context),
        ("list", [first, ..]) => {
            let message = format!("list does not accept arguments: '{first}'");
            Err(CliError::error(message).with_code(FAILED))
        }
        ("write", [name, old, new, message]) => {
            let line = WriteOperands {
                name,
                old,
                new,
                message,
            };
            write(&line, context)
        }
        _ => Err(unsupported()),
    }
}

/// Parses the expiry time in the value of `option`.
fn moment(text: Option<&OsString>, option: &str) -> Result<Option<i64>, CliError> {
    let parse = |text: &OsString| {
        let text = text.as_bytes().as_bstr();
        let message = || format!("invalid timestamp '{text}' given to '--{option}'");
        parse_expiry(text).ok_or_else(|| CliError::fatal(message()))
    };
    text.map(parse).transpose()
}

fn expire(args: &Args, words: &[&BStr], context: &mut Context) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    let mut options = ExpireOptions::default();
    options.expire = moment(args.expire.as_ref(), "expire")?;
    options.expire_unreachable = moment(args.expire_unreachable.as_ref(), "expire-unreachable")?;
    options.rewrite = args.how();
    options.logs = match args.single_worktree {
        true => LogSelection::OfWorkTree,
        false => LogSelection::All,
    };
    let interrupt = context.interrupt.clone();
    let mut code = ExitCode::SUCCESS;
    if args.all {
        let done = repository.expire_reflogs(&options, &Watch::from(&interrupt));
        print(done.map_err(CliError::of)?, args, context, &mut code)?;
    }
    for word in words {
        let Some(name) = repository.find_logged_reference(word)? else {
            context.report_error(&format!("reflog could not be found: '{word}'"));
            code = FAILED;
            continue;
        };
        options.logs = LogSelection::Named(vec![name]);
        let done = repository.expire_reflogs(&options, &Watch::from(&interrupt));
        print(done.map_err(CliError::of)?, args, context, &mut code)?;
    }
    Ok(code)
}

/// Prints the kept and removed entries (`--verbose`), and the failures.
///
/// # Errors
/// Fails if a setting is malformed.
fn print(
    logs: Vec<ExpiredLog>,
    args: &Args,
    context: &mut Context,
    code: &mut ExitCode,
) -> Result<(), CliError> {
    for log in logs {
        for verdict in &log.verdicts {
            let said = match (verdict.is_kept, args.dry_run) {
                (true, _) => "keep",
                (false, true) => "would prune",
                (false, false) => "prune",
            };
            writeln!(context.out, "{said} {}", verdict.message)?;
        }
        match log.failure {
            Some(failure) if failure.kind().ends_command() => {
                return Err(failure.into());
            }
            Some(failure) => {
                context.report_error(&failure.to_string());
                *code = FAILED;
            }
            None => {}
        }
    }
    Ok(())
}

/// A reflog entry in the syntax of `reflog delete REF@{…}`.
enum ReflogPosition {
    /// The entry with this number; the newest entry has number 0.
    Number(usize),
    /// The newest entry before a time.
    Moment(i64),
}

fn delete(args: &Args, words: &[&BStr], context: &mut Context) -> Result<ExitCode, CliError> {
    if words.is_empty() {
        return Err(CliError::error("no reflog specified to delete").with_code(FAILED));
    }
    let repository = context.repository()?;
    let mut positions = Vec::with_capacity(words.len());
    for word in words {
        let at = word.find(b"@{");
        positions.push(at.map(|at| (word[..at].as_bstr(), position(word[at + 2..].as_bstr()))));
    }
    let mut code = ExitCode::SUCCESS;
    for (word, position) in words.iter().zip(positions) {
        let Some((short, position)) = position else {
            context.report_error(&format!("not a reflog: {word}"));
            code = FAILED;
            continue;
        };
        let Some(name) = repository.find_logged_reference(short)? else {
            context.report_error(&format!("no reflog for '{word}'"));
            code = FAILED;
            continue;
        };
        let name = name.as_bstr();
        let done = match position {
            ReflogPosition::Number(number) => repository.delete_log_line(name, number, args.how()),
            ReflogPosition::Moment(moment) => {
                repository.delete_log_line_before(name, moment, args.how())
            }
        };
        print(vec![done], args, context, &mut code)?;
    }
    Ok(code)
}

/// Parses the text after `@{`.
fn position(text: &BStr) -> ReflogPosition {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = text[..digits].to_str().ok();
    if let Some(number) = number.and_then(|number| number.parse::<u32>().ok())
        && text.get(digits) == Some(&b'}')
    {
        return ReflogPosition::Number(number as usize);
    }
    ReflogPosition::Moment(pronto::revision::approximate_date(text))
}

fn drop_logs(args: &Args, words: &[&BStr], context: &mut Context) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    let mut code = ExitCode::SUCCESS;
    let mut names = Vec::new();
    if args.all {
        names = repository.logged_references_everywhere(args.single_worktree)?;
    }
    for word in words {
        match repository.find_logged_reference(word)? {
            Some(name) => names.push(name),
            None => {
                context.report_error(&format!("reflog could not be found: '{word}'"));
                code = FAILED;
            }
        }
    }
    for name in names {
        if let Err(error) = repository.drop_log(name.as_bstr()) {
            context.report_error(&error.to_string());
            code = FAILED;
        }
    }
    Ok(code)
}

fn exists(name: &BStr, context: &mut Context) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    if !name::is_valid(name, name::Form::OneLevel) {
        return Err(CliError::fatal(format!("invalid ref format: {name}")));
    }
    match repository.refs().has_log(name) {
        true => Ok(ExitCode::SUCCESS),
        false => Ok(ExitCode::FAILURE),
    }
}

fn list(context: &mut Context) -> Result<ExitCode, CliError> {
    for name in context.repository()?.logged_references() {
        context.out.write_all(&name)?;
        context.out.write_all(b"\n")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The operands of `write`.
struct WriteOperands<'a> {
    name: &'a BStr,
    old: &'a BStr,
    new: &'a BStr,
    message: &'a BStr,
}

fn write(given: &WriteOperands<'_>, context: &mut Context) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    if pronto::hooks::has_programs(&repository, "reference-transaction") {
        return Err(CliError::unsupported(
            "'reflog write' with a reference-transaction hook",
        ));
    }
    let name = given.name;
    let is_root = name::is_pseudo_syntax(name) && name.ends_with(b"HEAD");
    if !is_root && !name::is_valid(name, name::Form::Full) {
        return Err(CliError::fatal(format!("invalid reference name: {name}")));
    }
    let line = NewLine {
        old: logged_object(&repository, given.old, "old")?,
        new: logged_object(&repository, given.new, "new")?,
        message: BString::from(given.message),
    };
    let written = repository.write_log_line(name, &line);
    written.map_err(|error| CliError::fatal(format!("cannot commit reflog update: {error}")))?;
    Ok(ExitCode::SUCCESS)
}

fn logged_object(repository: &Repository, text: &BStr, which: &str) -> Result<ObjectId, CliError> {
    let is_whole = text.len() == repository.object_hash().len_in_hex();
    let Some(id) = pronto_hash::parse_hex(text).ok().filter(|_| is_whole) else {
        let message = format!("invalid {which} object ID: '{text}'");
        return Err(CliError::fatal(message));
    };
    let is_there = || repository.objects()?.contains(&id).map_err(CliError::from);
    if !id.is_null() && !is_there()? {
        let message = format!("{which} object '{text}' does not exist");
        return Err(CliError::fatal(message));
    }
    Ok(id)
}
