//! `show-ref`: list refs and their values.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::ops::ControlFlow;

use bstr::{BStr, BString, ByteSlice};
use pronto::Repository;
use pronto::refs::{BrokenRef, HeadValue, name};
use pronto_hash::{IdCache, ObjectId};

use crate::{CliError, Context, ExitCode};

/// Arguments of `show-ref`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Show only tags
    #[arg(long)]
    tags: bool,
    /// Show only branches
    #[arg(long)]
    branches: bool,
    /// Show only branches
    #[arg(long, hide = true)]
    heads: bool,
    /// Also show HEAD
    #[arg(long, short = 'h')]
    head: bool,
    /// Require full names that exist
    #[arg(long)]
    verify: bool,
    /// Also show the objects that tags peel to
    #[arg(long, short = 'd')]
    dereference: bool,
    /// Show only ids, with this many digits
    #[arg(long, short = 's', num_args = 0..=1, default_missing_value = "", value_name = "N")]
    hash: Option<String>,
    /// Show ids with this many digits
    #[arg(long, num_args = 0..=1, default_missing_value = "", value_name = "N")]
    abbrev: Option<String>,
    /// Print nothing
    #[arg(long, short)]
    quiet: bool,
    /// Print the refs on standard input that do not exist
    #[arg(long, num_args = 0..=1, default_missing_value = "", value_name = "PATTERN")]
    exclude_existing: Option<OsString>,
    /// Names, or their last components
    #[arg(value_name = "PATTERN")]
    patterns: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    if let Some(start) = &args.exclude_existing {
        return exclude_existing(&repository, start.as_encoded_bytes(), context);
    }
    let digits = digits(args, &repository)?;
    let mut list = RefLister {
        args,
        repository: &repository,
        digits,
        context,
        count: 0,
        existing: IdCache::default(),
    };
    if args.verify {
        return list.verify();
    }
    if args.head {
        let head = match repository.head() {
            Ok(HeadValue::Branch { id, .. } | HeadValue::Detached { id }) => Some(id),
            _ => None,
        };
        if let Some(id) = head {
            list.show("HEAD".into(), id, None)?;
        }
    }
    let prefixes: &[&str] = match (args.branches || args.heads, args.tags) {
        (false, false) => &["refs/"],
        (true, false) => &["refs/heads/"],
        (false, true) => &["refs/tags/"],
        (true, true) => &["refs/heads/", "refs/tags/"],
    };
    for prefix in prefixes {
        list.show_below(prefix)?;
    }
    Ok(if list.count > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn digits(args: &Args, repository: &Repository) -> Result<Option<usize>, CliError> {
    let given = args
        .abbrev
        .as_deref()
        .or(args.hash.as_deref().filter(|text| !text.is_empty()));
    match given {
        None => Ok(None),
        Some("") => Ok(Some(repository.abbreviation_length()?)),
        Some(text) => match text.parse() {
            Ok(0) => Ok(None),
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(CliError::unsupported(format!("the number '{text}'"))),
        },
    }
}

struct RefLister<'a> {
    args: &'a Args,
    repository: &'a Repository,
    digits: Option<usize>,
    context: &'a mut Context,
    count: usize,
    /// A cache of whether objects exist.
    existing: IdCache<bool>,
}

impl RefLister<'_> {
    fn show_below(&mut self, prefix: &str) -> Result<(), CliError> {
        let mut found = Vec::new();
        let patterns = &self.args.patterns;
        let null = self.repository.object_hash().null();
        let refs = self.repository.refs();
        refs.for_each_or_broken(prefix, |reference| {
            let (name, id, peeled) = match reference {
                Ok(reference) => (reference.name, reference.id, reference.peeled),
                Err(BrokenRef::Contents(name)) => (name, null, None),
                Err(BrokenRef::Dangling(_)) => return Ok(ControlFlow::Continue(())),
            };
            let is_end = |pattern: &OsString| is_end_of(pattern.as_encoded_bytes(), name);
            if patterns.is_empty() || patterns.iter().any(is_end) {
                found.push((name.to_owned(), id, peeled));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        for (name, id, peeled) in found {
            self.show(name.as_bstr(), id, peeled)?;
        }
        Ok(())
    }

    fn verify(&mut self) -> Result<ExitCode, CliError> {
        if self.args.patterns.is_empty() {
            return Err(CliError::fatal("--verify requires a reference"));
        }
        for pattern in &self.args.patterns {
            let name = pattern.as_encoded_bytes().as_bstr();
            let is_full = name.starts_with(b"refs/") || name::is_pseudo_syntax(name);
            let found = if is_full {
                self.repository.refs().id_of(name).ok().flatten()
            } else {
                None
            };
            match found {
                Some(id) => self.show(name, id, None)?,
                None if self.args.quiet => return Ok(ExitCode::FAILURE),
                None => return Err(CliError::fatal(format!("'{name}' - not a valid ref"))),
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn show(
        &mut self,
        name: &BStr,
        id: ObjectId,
        peeled: Option<ObjectId>,
    ) -> Result<(), CliError> {
        self.count += 1;
        let objects = self.repository.objects()?;
        if !(self.existing).get_or_insert_with(&id, || objects.contains(&id))? {
            return Err(CliError::fatal(format!(
                "git show-ref: bad ref {name} ({id})"
            )));
        }
        if self.args.quiet {
            return Ok(());
        }
        self.print(id, name, "")?;
        if self.args.dereference {
            let peeled = match peeled {
                Some(peeled) => Some(peeled),
                None => self
                    .repository
                    .peel_tags(id)?
                    .filter(|target| *target != id),
            };
            if let Some(peeled) = peeled {
                self.print(peeled, name, "^{}")?;
            }
        }
        Ok(())
    }

    fn print(&mut self, id: ObjectId, name: &BStr, suffix: &str) -> Result<(), CliError> {
        let id = match self.digits {
            Some(digits) => self.repository.abbreviate_to(&id, digits)?,
            None => pronto_hash::hex(&id).to_string(),
        };
        if self.args.hash.is_some() && suffix.is_empty() {
            writeln!(self.context.out, "{id}")?;
        } else {
            writeln!(self.context.out, "{id} {name}{suffix}")?;
        }
        Ok(())
    }
}

/// Returns whether `pattern` is the whole `name` or its last components.
fn is_end_of(pattern: &[u8], name: &BStr) -> bool {
    match name.strip_suffix(pattern) {
        Some(rest) => rest.is_empty() || rest.ends_with(b"/"),
        None => false,
    }
}

fn exclude_existing(
    repository: &Repository,
    start: &[u8],
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let mut existing: HashSet<BString> = HashSet::new();
    repository.refs().for_each("refs/", |reference| {
        existing.insert(reference.name.to_owned());
        Ok(ControlFlow::Continue(()))
    })?;
    let mut input = Vec::new();
    std::io::stdin()
        .lock()
        .read_to_end(&mut input)
        .map_err(|error| CliError::fatal(format!("cannot read standard input: {error}")))?;
    for line in input.lines() {
        let line = line.strip_suffix(b"^{}").unwrap_or(line);
        let begin = line.rfind_byteset(b" \t").map_or(0, |at| at + 1);
        let reference = line[begin..].as_bstr();
        if !reference.starts_with(start) {
            continue;
        }
        if !name::is_valid(reference, name::Form::Full) {
            context.warn(&format!("ref '{reference}' ignored"));
        } else if !existing.contains(reference) {
            context.out.write_all(line)?;
            context.out.write_all(b"\n")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
