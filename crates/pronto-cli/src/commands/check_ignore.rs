//! `check-ignore`: print whether paths are ignored, and which line of which file ignores them.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;

use bstr::{BStr, ByteSlice};
use pronto::quote::c_quote_into;
use pronto::status::IgnoreRule;

use crate::paths::{InputNames, pathspec_error};
use crate::{CliError, Context, ExitCode};

/// Arguments of `check-ignore`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Print nothing
    #[arg(long, short)]
    quiet: bool,
    /// Show the deciding pattern and its file
    #[arg(long, short)]
    verbose: bool,
    /// Read paths from standard input
    #[arg(long)]
    stdin: bool,
    /// Separate paths with NUL in input and output
    #[arg(short = 'z')]
    null: bool,
    /// Also show paths that match no pattern
    #[arg(long, short)]
    non_matching: bool,
    /// Do not consult the index: examine tracked paths, too
    #[arg(long)]
    no_index: bool,
    /// Paths to check
    #[arg(value_name = "PATH")]
    paths: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    repository.require_work_tree()?;
    check(args)?;
    let quote_all = repository.config().bool_or("core.quotepath", true)?;
    let mut list = IgnoreLister {
        args,
        quote_all,
        count: 0,
        context,
    };
    pronto::status::check_ignored(&repository, !args.no_index, |check| {
        if args.stdin {
            let mut names = InputNames::new(args.null);
            while let Some(name) = names.next()? {
                let rule = check.decide(name.as_bstr()).map_err(pathspec_error)?;
                list.path(name.as_bstr(), rule)?;
                list.context.out.flush()?;
            }
        }
        let paths = args.paths.iter().map(|path| path.as_bytes().as_bstr());
        let rules: Result<Vec<_>, _> = paths.clone().map(|path| check.decide(path)).collect();
        for (path, rule) in paths.zip(rules.map_err(pathspec_error)?) {
            list.path(path, rule)?;
        }
        Ok::<(), CliError>(())
    })??;
    Ok(match list.count {
        0 => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    })
}

/// Refuses invalid combinations, in Git's words.
fn check(args: &Args) -> Result<(), CliError> {
    let wrong = |message: &str| Err(CliError::fatal(message));
    match (args.stdin, args.paths.len()) {
        (true, 1..) => return wrong("cannot specify pathnames with --stdin"),
        (false, _) if args.null => return wrong("-z only makes sense with --stdin"),
        (false, 0) => return wrong("no path specified"),
        _ => {}
    }
    if args.quiet && args.paths.len() > 1 {
        return wrong("--quiet is only valid with a single pathname");
    }
    if args.quiet && args.verbose {
        return wrong("cannot have both --quiet and --verbose");
    }
    if args.non_matching && !args.verbose {
        return wrong("--non-matching is only valid with --verbose");
    }
    Ok(())
}

struct IgnoreLister<'a> {
    args: &'a Args,
    quote_all: bool,
    count: usize,
    context: &'a mut Context,
}

impl IgnoreLister<'_> {
    fn path(&mut self, path: &BStr, rule: Option<IgnoreRule>) -> Result<(), CliError> {
        let rule = rule.filter(|rule| self.args.verbose || !rule.is_negative);
        if !self.args.quiet && (rule.is_some() || self.args.non_matching) {
            self.show(rule.as_ref(), path)?;
        }
        self.count += usize::from(rule.is_some());
        Ok(())
    }

    fn show(&mut self, rule: Option<&IgnoreRule>, path: &BStr) -> Result<(), CliError> {
        let mut line = Vec::new();
        let (between, end) = if self.args.null {
            (0, 0)
        } else {
            (b':', b'\n')
        };
        if self.args.verbose {
            if let Some(rule) = rule {
                self.name(rule.source.as_bstr(), &mut line);
                line.push(between);
                write!(line, "{}", rule.line)?;
                line.push(between);
                line.extend_from_slice(&rule.text);
            } else {
                line.extend([between; 2]);
            }
            line.push(if self.args.null { 0 } else { b'\t' });
        }
        self.name(path, &mut line);
        line.push(end);
        self.context.out.write_all(&line)?;
        Ok(())
    }

    fn name(&self, name: &BStr, line: &mut Vec<u8>) {
        match self.args.null {
            true => line.extend_from_slice(name),
            false => c_quote_into(name, self.quote_all, line),
        }
    }
}
