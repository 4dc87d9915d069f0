//! `check-attr`: print the attributes of paths.

use pronto::attributes::IgnoredLine;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;

use bstr::{BStr, ByteSlice};
use pronto::attributes::{AttributeCheck, AttributeSelection, AttributeState, is_attribute_name};
use pronto::quote::c_quote_into;
use pronto::{Notice, Repository};

use crate::paths::{InputNames, pathspec_error};
use crate::{CliError, Context, ExitCode};

/// Arguments of `check-attr`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Show all attributes that are specified
    #[arg(long, short)]
    all: bool,
    /// Use only attributes files in the index
    #[arg(long)]
    cached: bool,
    /// Read paths from standard input
    #[arg(long)]
    stdin: bool,
    /// Separate paths with NUL in input and output
    #[arg(short = 'z')]
    null: bool,
    /// Names of attributes, then paths
    #[arg(value_name = "NAME")]
    operands: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let (names, paths) = args.operands.split_at(name_count(args, context.separator)?);
    match (args.stdin, paths.is_empty()) {
        (true, false) => return Err(CliError::misuse("check-attr takes no paths with --stdin")),
        (false, true) => return Err(CliError::misuse("check-attr takes at least one path")),
        _ => {}
    }
    let repository = context.repository()?;
    if !repository.is_bare() {
        repository.require_work_tree()?;
    }
    let selection = match args.all {
        true => AttributeSelection::All,
        false => AttributeSelection::Named(names.iter().map(name_of).collect::<Result<_, _>>()?),
    };
    let mut list = AttributeLister {
        null: args.null,
        quote_all: repository.config().bool_or("core.quotepath", true)?,
        check: pronto::attributes::check(&repository, selection, args.cached)?,
        repository: &repository,
        context,
    };
    for path in paths {
        list.path(path.as_bytes().as_bstr())?;
    }
    if args.stdin {
        let mut names = InputNames::new(args.null);
        while let Some(name) = names.next()? {
            list.path(name.as_bstr())?;
            list.context.out.flush()?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the number of operands that are names of attributes.
fn name_count(args: &Args, separator: Option<usize>) -> Result<usize, CliError> {
    let missing = || CliError::misuse("check-attr takes at least one attribute");
    match (args.all, separator) {
        (true, Some(1..)) => Err(CliError::misuse(
            "check-attr takes no attributes with --all",
        )),
        (true, _) => Ok(0),
        (false, Some(0)) => Err(missing()),
        (false, Some(count)) => Ok(count),
        (false, None) if args.operands.is_empty() => Err(missing()),
        (false, None) if args.stdin => Ok(args.operands.len()),
        (false, None) => Ok(1),
    }
}

fn name_of(given: &OsString) -> Result<String, CliError> {
    let name = given.as_bytes();
    match name.to_str() {
        Ok(text) if is_attribute_name(name) => Ok(text.to_owned()),
        _ => {
            let message = format!("{}: not a valid attribute name", name.as_bstr());
            Err(CliError::error(message).with_code(ExitCode::new(255)))
        }
    }
}

struct AttributeLister<'a> {
    null: bool,
    quote_all: bool,
    check: AttributeCheck<'a>,
    repository: &'a Repository,
    context: &'a mut Context,
}

impl AttributeLister<'_> {
    fn path(&mut self, given: &BStr) -> Result<(), CliError> {
        let path = self.repository.path_from_top(given);
        let path = path.map_err(pathspec_error)?;
        let mut shown = Vec::new();
        match self.null {
            true => shown.extend_from_slice(given),
            false => c_quote_into(given, self.quote_all, &mut shown),
        }
        let states: Vec<(String, AttributeState)> = self
            .check
            .states(path.as_bstr())?
            .into_iter()
            .map(|attribute| (attribute.name.to_owned(), attribute.state))
            .collect();
        self.print_problems();
        for (name, state) in states {
            let value: &[u8] = match &state {
                AttributeState::Unspecified => b"unspecified",
                AttributeState::Set => b"set",
                AttributeState::Unset => b"unset",
                AttributeState::Value(value) => value,
            };
            let (between, end): (&[u8], &[u8]) = match self.null {
                true => (b"\0", b"\0"),
                false => (b": ", b"\n"),
            };
            let parts = [&shown, between, name.as_bytes(), between, value, end];
            self.context.out.write_all(&parts.concat())?;
        }
        Ok(())
    }

    /// Prints a warning for each invalid line of an attributes file.
    fn print_problems(&mut self) {
        for IgnoredLine { file, flaw, .. } in self.check.take_flaws() {
            let notice = Notice::AttributesFlaw { file, flaw };
            self.repository.notify(notice);
        }
        self.context.report();
    }
}
