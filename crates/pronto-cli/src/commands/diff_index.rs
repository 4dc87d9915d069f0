//! `diff-index`: compare a tree with the index or with files.

use std::ffi::OsString;

use gix_object::Kind as ObjectKind;
use pronto::diff::Against;
use pronto::refs::HeadValue;
use pronto::{Repository, Watch};
use pronto_hash::ObjectId;

use crate::commands::shared::diffing::{DiffArgs, Revision, revisions_and_paths};
use crate::{CliError, Context, ExitCode};

/// Arguments of `diff-index`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Compare only with the index
    #[arg(long)]
    cached: bool,
    /// Treat missing files as unchanged
    #[arg(short = 'm')]
    match_missing: bool,
    /// Compare with the common ancestor of the commit and HEAD
    #[arg(long)]
    merge_base: bool,
    #[command(flatten)]
    diff: DiffArgs,
    /// The tree, and paths to compare
    #[arg(value_name = "TREE-ISH")]
    operands: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    crate::commands::shared::diffing::refuse_patches(context)?;
    let repository = context.repository()?;
    let (revisions, paths) = revisions_and_paths(&args.operands, &repository, context)?;
    let [revision] = revisions.as_slice() else {
        return Err(CliError::misuse("diff-index takes one tree"));
    };
    let against = match (args.cached, args.match_missing) {
        (true, _) => Against::Index,
        (false, true) => Against::FilesThatAreThere,
        (false, false) => Against::Files,
    };
    if against != Against::Index {
        repository.require_work_tree()?;
    }
    let tree = tree(args, revision, &repository)?;
    let options = args.diff.options(&repository, paths)?;
    let mut printer = args.diff.printer(&repository, &options)?;
    let found = pronto::diff::index(
        &repository,
        tree,
        against,
        &options,
        &Watch::from(&context.interrupt),
    )?;
    printer.print(&found, context)?;
    Ok(printer.code())
}

fn tree(args: &Args, revision: &Revision, repository: &Repository) -> Result<ObjectId, CliError> {
    let mut id = revision.id;
    if args.merge_base {
        let head = match repository.head()? {
            HeadValue::Branch { id, .. } | HeadValue::Detached { id } => id,
            _ => return Err(CliError::misuse("HEAD has no commit yet")),
        };
        let commit = repository.peel_to(id, ObjectKind::Commit)?;
        let commit = commit.ok_or_else(|| CliError::misuse("--merge-base takes a commit"))?;
        id = match repository.merge_bases(head, commit)?.as_slice() {
            [base] => *base,
            [] => return Err(CliError::fatal("no merge base found")),
            _ => return Err(CliError::fatal("multiple merge bases found")),
        };
    }
    let tree = repository.peel_to(id, ObjectKind::Tree)?;
    tree.ok_or_else(
        || match repository.objects().map(|store| store.contains(&id)) {
            Ok(Ok(false)) => CliError::fatal(format!("bad object {}", revision.name)),
            _ => {
                let message = format!("bad tree object {}", revision.name);
                CliError::error(message).with_code(ExitCode::FATAL)
            }
        },
    )
}
