//! `sparse-checkout`: check out a subset of the tracked files.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use bstr::{BStr, BString, ByteSlice};
use pronto::sparse_checkout::sparse::SparseDefinition;
use pronto::sparse_checkout::{Applied, Modes};
use pronto::{Repository, Watch};

use super::pathspecs::unquote;
use super::switching::{print_failures, quoted};
use crate::{CliError, Context, ExitCode};

/// Arguments of `sparse-checkout`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Use directories instead of patterns
    #[arg(long)]
    cone: Option<bool>,
    /// Use a sparse index, with single entries for directories
    #[arg(long)]
    sparse_index: Option<bool>,
    /// Read directories or patterns from standard input, too
    #[arg(long)]
    stdin: bool,
    /// Do not check the arguments
    #[arg(long)]
    skip_checks: bool,
    /// Check with the rules of this file
    #[arg(long, value_name = "FILE")]
    rules_file: Option<PathBuf>,
    /// Separate paths with NUL in input and output
    #[arg(short = 'z')]
    nul: bool,
    /// `init`, `set`, `add`, `reapply`, `disable`, `list` or `check-rules`, then directories or
    /// patterns
    #[arg(value_name = "COMMAND")]
    words: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let unsupported =
        || CliError::unsupported("this combination of arguments of 'sparse-checkout'");
    let Some((command, words)) = args.words.split_first() else {
        return Err(unsupported());
    };
    let words: Vec<BString> = words.iter().map(|word| word.as_bytes().into()).collect();
    let records = args.cone.is_some() || args.sparse_index.is_some();
    let chooses = args.stdin || args.skip_checks;
    let checks = args.rules_file.is_some() || args.nul;
    match command.to_str() {
        Some("init") if !chooses && !checks => init(args, context),
        Some("set") if !checks => set(args, words, context),
        Some("add") if !checks && !records => add(args, words, context),
        Some("reapply") if !chooses && !checks => reapply(args, context),
        Some("disable") if !chooses && !checks && !records => disable(context),
        Some("list") if !chooses && !checks && !records => list(context),
        Some("check-rules") if !chooses && args.sparse_index.is_none() => {
            check_rules(args, context)
        }
        _ => Err(unsupported()),
    }
}

fn modes(args: &Args) -> Modes {
    Modes {
        cone: args.cone,
        sparse_index: args.sparse_index,
    }
}

/// Records the modes (`--cone`, `--sparse-index`) in the configuration, and returns the repository.
fn recorded(args: &Args, context: &mut Context) -> Result<std::sync::Arc<Repository>, CliError> {
    let mut repository = context.own_repository()?;
    repository.require_work_tree()?;
    pronto::sparse_checkout::record_modes(&mut repository, modes(args))?;
    Ok(context.take(repository))
}

fn init(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let repository = recorded(args, context)?;
    if repository.sparse_definition()?.is_some() {
        return apply(&repository, None, context);
    }
    let definition = top_level(repository.uses_cone()?);
    apply(&repository, Some(&definition), context)
}

/// Returns the definition that includes only the files in the top directory.
fn top_level(cone: bool) -> SparseDefinition {
    match cone {
        true => SparseDefinition::Directories(BTreeSet::new()),
        false => SparseDefinition::Patterns(vec!["/*".into(), "!/*/".into()]),
    }
}

fn set(args: &Args, words: Vec<BString>, context: &mut Context) -> Result<ExitCode, CliError> {
    let repository = recorded(args, context)?;
    let cone = repository.uses_cone()?;
    if !cone && !args.stdin && words.is_empty() {
        return apply(&repository, Some(&top_level(false)), context);
    }
    let words = checked(args, words, &repository, context)?;
    let mut definition = match cone {
        true => SparseDefinition::Directories(BTreeSet::new()),
        false => SparseDefinition::Patterns(Vec::new()),
    };
    extend(&mut definition, words, args)?;
    apply(&repository, Some(&definition), context)
}

fn add(args: &Args, words: Vec<BString>, context: &mut Context) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    repository.require_work_tree()?;
    if !repository.is_sparse_checkout()? {
        return Err(CliError::fatal("no sparse-checkout to add to"));
    }
    let words = checked(args, words, &repository, context)?;
    let Some(mut definition) = repository.sparse_definition()? else {
        let message = "unable to load existing sparse-checkout patterns";
        return Err(CliError::fatal(message));
    };
    if repository.uses_cone()? && matches!(definition, SparseDefinition::Patterns(_)) {
        context.report();
        let message = "existing sparse-checkout patterns do not use cone mode";
        return Err(CliError::fatal(message));
    }
    extend(&mut definition, words, args)?;
    apply(&repository, Some(&definition), context)
}

/// Adds the arguments, or the lines of standard input (`--stdin`), to the definition.
fn extend(
    definition: &mut SparseDefinition,
    words: Vec<BString>,
    args: &Args,
) -> Result<(), CliError> {
    let words = match args.stdin {
        true => lines(
            matches!(definition, SparseDefinition::Directories(_)),
            b'\n',
        )?,
        false => words,
    };
    let added = definition.add(words.iter().map(|word| word.as_bstr()));
    added.map_err(|error| CliError::fatal(error.message()))
}

/// Reads the lines of standard input. With `quotes`, a line may be C-style quoted.
fn lines(quotes: bool, end: u8) -> Result<Vec<BString>, CliError> {
    let mut input = Vec::new();
    std::io::stdin().read_to_end(&mut input)?;
    split(&input, quotes, end)
}

fn split(input: &[u8], quotes: bool, end: u8) -> Result<Vec<BString>, CliError> {
    let lines = input.split_inclusive(|byte| *byte == end).map(|line| {
        let line = line.strip_suffix(&[end]).unwrap_or(line);
        match end {
            b'\n' => line.strip_suffix(b"\r").unwrap_or(line),
            _ => line,
        }
    });
    let unquoted = |line: &[u8]| match quotes {
        true => unquote(line).ok_or_else(|| {
            let line = line.as_bstr();
            CliError::fatal(format!("unable to unquote C-style string '{line}'"))
        }),
        false => Ok(line.into()),
    };
    lines.map(unquoted).collect()
}

/// Returns the arguments relative to the top of the worktree, and fails if one is invalid.
fn checked(
    args: &Args,
    mut words: Vec<BString>,
    repository: &Repository,
    context: &mut Context,
) -> Result<Vec<BString>, CliError> {
    let cone = repository.uses_cone()?;
    let is_below = !repository.prefix_or_empty().is_empty();
    if words.is_empty() {
        return Ok(words);
    }
    if is_below && cone {
        for word in &mut words {
            *word = repository.path_from_top(word.as_bstr())?;
        }
    }
    if args.skip_checks {
        return Ok(words);
    }
    let wrong = |message: &str| Err(CliError::fatal(message));
    if is_below && !cone {
        return wrong("please run from the toplevel directory in non-cone mode");
    }
    for word in words.iter().filter(|_| cone) {
        match word.first() {
            Some(b'/') => {
                return wrong("specify directories rather than patterns (no leading slash)");
            }
            Some(b'!') => {
                return wrong(
                    "specify directories rather than patterns.  If your directory starts with a \
                     '!', pass --skip-checks",
                );
            }
            _ if word.find_byteset(b"*?[]").is_some() => {
                return wrong(
                    "specify directories rather than patterns.  If your directory really has any \
                     of '*?[]\\' in it, pass --skip-checks",
                );
            }
            _ => {}
        }
    }
    for word in &words {
        if !repository.is_file_in_index(word.as_bstr())? {
            continue;
        }
        if cone {
            return Err(CliError::fatal(format!(
                "'{word}' is not a directory; to treat it as a directory anyway, rerun with \
                 --skip-checks"
            )));
        }
        context.warn(&format!(
            "pass a leading slash before paths such as '{word}' if you want a single file (see \
             NON-CONE PROBLEMS in the git-sparse-checkout manual)."
        ));
    }
    Ok(words)
}

fn reapply(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let mut repository = context.own_repository()?;
    repository.require_work_tree()?;
    if !repository.is_sparse_checkout()? {
        let message = "must be in a sparse-checkout to reapply sparsity patterns";
        return Err(CliError::fatal(message));
    }
    pronto::sparse_checkout::record_modes(&mut repository, modes(args))?;
    let repository = context.take(repository);
    apply(&repository, None, context)
}

/// Applies `definition`, or the recorded definition if it is `None`.
fn apply(
    repository: &Repository,
    definition: Option<&SparseDefinition>,
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let progress = context.progress(None, false);
    let interrupt = &context.interrupt;
    let applied = match definition {
        Some(definition) => pronto::sparse_checkout::set(
            repository,
            definition,
            &Watch::from(interrupt).with_progress(&*progress),
        ),
        None => pronto::sparse_checkout::reapply(
            repository,
            &Watch::from(interrupt).with_progress(&*progress),
        ),
    };
    context.report();
    print(&applied?, context)
}

fn print(applied: &Applied, context: &mut Context) -> Result<ExitCode, CliError> {
    context.report();
    context.out.flush()?;
    if !applied.leftover.is_empty() {
        context.remark(&applied.leftover.to_string());
    }
    Ok(
        match print_failures(context, &applied.warnings, &applied.failed) {
            // Git's exit code is -2.
            true => ExitCode::new(254),
            false => ExitCode::SUCCESS,
        },
    )
}

fn disable(context: &mut Context) -> Result<ExitCode, CliError> {
    let mut repository = context.own_repository()?;
    repository.require_work_tree()?;
    let progress = context.progress(None, false);
    let applied = pronto::sparse_checkout::disable(
        &mut repository,
        &Watch::from(&context.interrupt).with_progress(&*progress),
    );
    context.take(repository);
    context.report();
    let applied = applied?;
    let code = print(&applied, context)?;
    match applied.failed.is_empty() {
        true => Ok(code),
        false => Err(CliError::fatal("error while refreshing working directory")),
    }
}

fn list(context: &mut Context) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    repository.require_work_tree()?;
    if !repository.is_sparse_checkout()? {
        return Err(CliError::fatal("this worktree is not sparse"));
    }
    let definition = repository.sparse_definition()?;
    context.report();
    match definition {
        None => {
            context.warn("this worktree is not sparse (sparse-checkout file may not exist)");
        }
        Some(SparseDefinition::Directories(directories)) => {
            for directory in &directories {
                let directory = quoted(&repository, directory.as_bstr())?;
                writeln!(context.out, "{directory}")?;
            }
        }
        Some(patterns) => context.out.write_all(&patterns.to_text())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn check_rules(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    let recorded = || -> Result<bool, CliError> {
        Ok(!repository.is_sparse_checkout()? || repository.uses_cone()?)
    };
    let cone = match (args.cone, &args.rules_file) {
        (Some(cone), _) => cone,
        (None, Some(_)) => true,
        (None, None) => recorded()?,
    };
    let definition = match &args.rules_file {
        Some(file) => {
            let text = std::fs::read(file).map_err(|error| {
                let reason = pronto_io::error::reason(&error);
                let name = file.display();
                CliError::fatal(format!("could not open '{name}' for reading: {reason}"))
            })?;
            let words = split(&text, cone, b'\n')?;
            let mut definition = match cone {
                true => SparseDefinition::Directories(BTreeSet::new()),
                false => SparseDefinition::Patterns(Vec::new()),
            };
            let added = definition.add(words.iter().map(|word| word.as_bstr()));
            added.map_err(|error| CliError::fatal(error.message()))?;
            Some(definition)
        }
        None => repository.sparse_definition()?,
    };
    context.report();
    let Some(definition) = definition else {
        let message = "unable to load existing sparse-checkout patterns";
        return Err(CliError::fatal(message));
    };
    let sparse = definition.to_sparse(repository.ignores_case()?);
    let mut matcher = sparse.matcher();
    let end = if args.nul { 0 } else { b'\n' };
    for path in lines(!args.nul, end)? {
        if !path.is_empty() && !matcher.includes(path.as_bstr()) {
            continue;
        }
        let path: &BStr = path.as_bstr();
        match args.nul {
            true => context.out.write_all(path)?,
            false => context.out.write_all(&quoted(&repository, path)?)?,
        }
        context.out.write_all(&[end])?;
    }
    Ok(ExitCode::SUCCESS)
}
