//! `rev-list`: list commits, and the objects that they lead to.

mod arguments;
mod print;

use std::collections::HashSet;
use std::ffi::OsString;

use bstr::BString;
use gix_object::Kind as ObjectKind;
use pronto::pack_objects::{Listing, Named};
use pronto::revision::RevisionSet;
use pronto::walk::{CommitWalk, Start, Walked};
use pronto::{Repository, Watch};
use pronto_hash::ObjectId;

use crate::{CliError, Context, ExitCode};
use arguments::Request;
use print::Printer;

/// Arguments of `rev-list`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Options and revisions, processed in order
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let arguments: Vec<BString> = args
        .arguments
        .iter()
        .map(|argument| argument.as_encoded_bytes().into())
        .collect();
    let repository = context.repository()?;
    let request = arguments::parse(&arguments, &repository, context)?;
    let starts = Starts::of(&request.set, &repository)?;
    list(&request, &starts, &repository, context)?;
    Ok(ExitCode::SUCCESS)
}

/// The objects that a walk starts from.
#[derive(Debug, Default)]
struct Starts {
    commits: Vec<Start>,
    /// Tags, trees and blobs that were named.
    named: Vec<Named>,
    /// Tags, trees and blobs that are left out.
    excluded: Vec<ObjectId>,
}

impl Starts {
    fn of(set: &RevisionSet, repository: &Repository) -> Result<Starts, CliError> {
        let mut starts = Starts::default();
        let store = repository.objects()?;
        let mut buffer = Vec::new();
        for member in &set.members {
            let (mut id, is_excluded) = (member.found.id, member.is_excluded);
            loop {
                let header = store.header(&id)?;
                let bad = || match member.name.is_empty() || id != member.found.id {
                    true => CliError::fatal(format!("bad object {id}")),
                    false => CliError::fatal(format!("bad object {}", member.name)),
                };
                let kind = header.ok_or_else(bad)?.kind;
                if kind == ObjectKind::Commit {
                    starts.commits.push(Start {
                        id,
                        is_excluded,
                        is_left: member.is_left,
                    });
                    break;
                }
                let mut name = member.found.path.clone().unwrap_or_default();
                let mut target = None;
                if kind == ObjectKind::Tag {
                    store.find(&id, &mut buffer)?;
                    let tag = pronto::links::parse_tag(&buffer);
                    let malformed = || CliError::fatal(format!("bad tag object {id}"));
                    let tag = tag.ok_or_else(malformed)?;
                    name = tag.name.to_owned();
                    target = Some(tag.target);
                }
                match is_excluded {
                    true => starts.excluded.push(id),
                    false => starts.named.push(Named { id, name }),
                }
                match target {
                    Some(target) => id = target,
                    None => break,
                }
            }
        }
        Ok(starts)
    }
}

fn list(
    request: &Request,
    starts: &Starts,
    repository: &Repository,
    context: &mut Context,
) -> Result<(), CliError> {
    let interrupt = context.interrupt.clone();
    let watch = Watch::from(&interrupt);
    let mut walk = CommitWalk::new(repository, &starts.commits, request.walk.clone())?;
    let mut printer = Printer::new(request, &mut context.out);
    let mut shown = Vec::new();
    let keeps = request.objects || request.reverse;
    let mut commits: Vec<Walked> = Vec::new();
    while let Some(walked) = walk.next(&watch)? {
        if !request.reverse {
            printer.commit(walk.commits(), walked)?;
        }
        if keeps {
            commits.push(walked);
        }
    }
    if request.reverse {
        commits.reverse();
        for walked in &commits {
            printer.commit(walk.commits(), *walked)?;
        }
    }
    if request.objects {
        shown.extend(commits.iter().map(|walked| walked.number));
        let mut trees = Vec::with_capacity(shown.len());
        for number in &shown {
            trees.extend(walk.commits().tree(*number)?);
        }
        let mut excluded = starts.excluded.clone();
        let mut seen = HashSet::new();
        for edge in walk.edges(&shown)? {
            let tree = walk.commits().tree(edge)?;
            excluded.extend(tree.filter(|tree| seen.insert(*tree)));
        }
        let listing = Listing {
            named: &starts.named,
            trees: &trees,
            excluded: &excluded,
        };
        repository.list_objects(&listing, &mut |id, path| printer.object(id, path), &watch)?;
    }
    printer.finish()
}
