//! `rev-list`: list commits, and the objects that are reachable from them.

mod arguments;
pub(super) mod limits;
mod print;

use std::collections::HashSet;
use std::ffi::OsString;

use bstr::BString;
use gix_object::Kind as ObjectKind;
use pronto::pack_objects::{self, NamedObject, ObjectListing};
use pronto::revision::{RevisionSet, SetMember};
use pronto::walk::{CommitWalk, WalkStart, WalkedCommit};
use pronto::{Repository, Watch};
use pronto_hash::ObjectId;
use pronto_object::TagRef;

use crate::{CliError, Context, ExitCode};
use arguments::Request;
use print::RevisionPrinter;

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
    let starts = WalkStarts::of(&request.set, &repository)?;
    list(&request, &starts, &repository, context)?;
    Ok(ExitCode::SUCCESS)
}

/// The objects from which a walk starts.
#[derive(Debug, Default)]
struct WalkStarts {
    commits: Vec<WalkStart>,
    /// Tags, trees and blobs of the command line.
    named: Vec<NamedObject>,
    /// Excluded tags, trees and blobs.
    excluded: Vec<ObjectId>,
}

impl WalkStarts {
    fn of(set: &RevisionSet, repository: &Repository) -> Result<WalkStarts, CliError> {
        let mut starts = WalkStarts::default();
        for member in &set.members {
            starts.add(member, repository)?;
        }
        Ok(starts)
    }

    /// Adds an object. If it is a tag, the tagged objects are added, too.
    fn add(&mut self, member: &SetMember, repository: &Repository) -> Result<(), CliError> {
        let store = repository.objects()?;
        let is_excluded = member.is_excluded;
        let (mut id, mut wanted) = (member.found.id, None);
        loop {
            let bad = || match member.name.is_empty() || id != member.found.id {
                true => CliError::fatal(format!("bad object {id}")),
                false => CliError::fatal(format!("bad object {}", member.name)),
            };
            let kind = store.header(&id)?.ok_or_else(bad)?.kind;
            if let Some(wanted) = wanted.filter(|wanted| *wanted != kind) {
                let message = format!("object {id} is a {kind}, not a {wanted}");
                return Err(CliError::fatal(message));
            }
            if kind == ObjectKind::Commit {
                let is_left = member.is_left;
                self.commits.push(WalkStart {
                    id,
                    is_excluded,
                    is_left,
                });
                return Ok(());
            }
            let mut content = Vec::new();
            let mut name = member.found.path.clone().unwrap_or_default();
            let mut target = None;
            if kind == ObjectKind::Tag {
                store.find(&id, &mut content)?;
                let malformed = || CliError::fatal(format!("bad tag object {id}"));
                let tag = TagRef::new(&content);
                name = tag.name().ok_or_else(malformed)?.to_owned();
                target = Some(tag.target().ok_or_else(malformed)?);
                wanted = Some(tag.target_kind().ok_or_else(malformed)?);
            }
            match is_excluded {
                true => self.excluded.push(id),
                false => self.named.push(NamedObject { id, name }),
            }
            match target {
                Some(target) => id = target,
                None => return Ok(()),
            }
        }
    }
}

fn list(
    request: &Request,
    starts: &WalkStarts,
    repository: &Repository,
    context: &mut Context,
) -> Result<(), CliError> {
    let interrupt = context.interrupt.clone();
    let watch = Watch::from(&interrupt);
    let mut walk = CommitWalk::new(repository, &starts.commits, request.walk.clone())?;
    let mut printer = RevisionPrinter::new(request, &mut context.out);
    let mut shown = Vec::new();
    let keeps = request.objects || request.reverse;
    let mut commits: Vec<WalkedCommit> = Vec::new();
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
        let listing = ObjectListing {
            named: &starts.named,
            trees: &trees,
            excluded: &excluded,
        };
        pack_objects::list(
            repository,
            &listing,
            &mut |id, path| printer.object(id, path),
            &watch,
        )?;
    }
    printer.finish()
}
