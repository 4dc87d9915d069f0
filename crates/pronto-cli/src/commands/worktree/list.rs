//! `worktree list`: list the worktrees.

use std::io::Write;

use bstr::{BString, ByteSlice, ByteVec};
use pronto::Repository;
use pronto::worktrees::{HeadState, PruneReason, Worktree};

use super::Args;
use crate::json::Json;
use crate::{CliError, Context, ExitCode};

/// A row of the list of worktrees.
struct WorktreeRow {
    work_tree: Worktree,
    lock: Option<BString>,
    prune: Option<PruneReason>,
}

pub(super) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    if args.verbose && args.porcelain {
        let message = "options '--verbose' and '--porcelain' cannot be used together";
        return Err(CliError::fatal(message));
    }
    if args.json && (args.porcelain || args.verbose) {
        let other = if args.porcelain {
            "--porcelain"
        } else {
            "--verbose"
        };
        let message = format!("options '--json' and '{other}' cannot be used together");
        return Err(CliError::fatal(message));
    }
    if args.null && !args.porcelain {
        return Err(CliError::fatal("the option '-z' requires '--porcelain'"));
    }
    let expiry = args.expiry()?;
    let repository = context.repository()?;
    let mut all = repository.work_trees()?;
    let folds = repository.ignores_case()?;
    all[1..].sort_by_cached_key(|work_tree| match folds {
        true => work_tree.path.to_ascii_lowercase().into(),
        false => work_tree.path.clone(),
    });
    let mut rows = Vec::with_capacity(all.len());
    for work_tree in all {
        rows.push(WorktreeRow {
            lock: pronto::worktrees::lock_state(&repository, &work_tree)?
                .reason()
                .map(ToOwned::to_owned),
            prune: pronto::worktrees::prune_reason(&repository, &work_tree, expiry),
            work_tree,
        });
    }
    if args.json {
        let worktrees = rows.iter().map(document).collect();
        context.print_document(vec![("worktrees", worktrees)])?;
        return Ok(ExitCode::SUCCESS);
    }
    let text = match args.porcelain {
        true => porcelain(&repository, &rows, args.null),
        false => table(&repository, &rows, args.verbose)?,
    };
    context.out.write_all(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the entry of a worktree in the JSON document.
fn document(row: &WorktreeRow) -> Json {
    let WorktreeRow {
        work_tree,
        lock,
        prune,
    } = row;
    let (branch, is_detached) = match &work_tree.head {
        _ if work_tree.is_bare => (None, false),
        HeadState::Broken => (None, false),
        HeadState::Detached(_) => (None, true),
        HeadState::Branch(name, _) => (Some(name), false),
    };
    let head = work_tree.head.id().filter(|_| !work_tree.is_bare);
    Json::Object(vec![
        ("path", Json::from(&work_tree.path)),
        ("name", work_tree.id.as_ref().into()),
        ("is_main", work_tree.is_main().into()),
        ("is_bare", work_tree.is_bare.into()),
        ("head", head.into()),
        ("branch", branch.into()),
        ("is_detached", is_detached.into()),
        ("is_locked", lock.is_some().into()),
        (
            "lock_reason",
            lock.as_ref().filter(|reason| !reason.is_empty()).into(),
        ),
        (
            "prune_reason",
            prune.as_ref().map(ToString::to_string).into(),
        ),
    ])
}

fn porcelain(repository: &Repository, rows: &[WorktreeRow], null: bool) -> BString {
    let end = if null { 0 } else { b'\n' };
    let mut out = BString::default();
    let mut line = |parts: &[&[u8]]| {
        parts.iter().for_each(|part| out.push_str(part));
        out.push(end);
    };
    for WorktreeRow {
        work_tree,
        lock,
        prune,
    } in rows
    {
        line(&[b"worktree ", &work_tree.path]);
        if work_tree.is_bare {
            line(&[b"bare"]);
        } else {
            let id = work_tree
                .head
                .id()
                .unwrap_or(repository.object_hash().null());
            line(&[b"HEAD ", id.to_string().as_bytes()]);
            match &work_tree.head {
                HeadState::Broken => {}
                HeadState::Detached(_) => line(&[b"detached"]),
                HeadState::Branch(name, _) => line(&[b"branch ", name]),
            }
        }
        match lock {
            None => {}
            Some(reason) if reason.is_empty() => line(&[b"locked"]),
            Some(reason) if null => line(&[b"locked ", reason]),
            Some(reason) => {
                let all = repository.config().bool_or("core.quotepath", true);
                let quoted = pronto::quote::c_quote(reason.as_bstr(), all.unwrap_or(true));
                line(&[b"locked ", &quoted]);
            }
        }
        if let Some(reason) = prune {
            line(&[b"prunable ", reason.to_string().as_bytes()]);
        }
        line(&[]);
    }
    out
}

fn table(
    repository: &Repository,
    rows: &[WorktreeRow],
    verbose: bool,
) -> Result<BString, CliError> {
    let all = repository.config().bool_or("core.quotepath", true)?;
    let quote = |row: &WorktreeRow| pronto::quote::c_quote(row.work_tree.path.as_bstr(), all);
    let places: Vec<BString> = rows.iter().map(quote).collect();
    let is_wide = |place: &BString| place.chars().any(|c| c >= '\u{300}');
    if places.iter().any(is_wide) {
        return Err(CliError::unsupported(
            "'worktree list' with wide or combining characters in a path",
        ));
    }
    let id_of = |row: &WorktreeRow| {
        row.work_tree
            .head
            .id()
            .unwrap_or(repository.object_hash().null())
    };
    let widths = places.iter().map(|place| place.chars().count());
    let widest = widths.max().unwrap_or(0);
    let ids = rows
        .iter()
        .map(|row| repository.abbreviate(&id_of(row)))
        .collect::<Result<Vec<_>, _>>()?;
    let id_width = ids.iter().map(String::len).max().unwrap_or(0);
    let mut out = BString::default();
    for ((row, place), id) in rows.iter().zip(&places).zip(&ids) {
        let characters = place.chars().count();
        out.push_str(place);
        out.extend(std::iter::repeat_n(b' ', widest - characters));
        out.push(b' ');
        if row.work_tree.is_bare {
            out.push_str("(bare)");
        } else {
            out.push_str(format!("{id:id_width$} "));
            match &row.work_tree.head {
                HeadState::Broken => out.push_str("(error)"),
                HeadState::Detached(_) => out.push_str("(detached HEAD)"),
                HeadState::Branch(name, _) => {
                    let short = repository.shorten_reference(name.as_bstr(), false)?;
                    out.push_str("[");
                    out.push_str(&short);
                    out.push_str("]");
                }
            }
        }
        match &row.lock {
            None => {}
            Some(reason) if verbose && !reason.is_empty() => {
                out.push_str("\n\tlocked: ");
                out.push_str(reason);
            }
            Some(_) => out.push_str(" locked"),
        }
        match &row.prune {
            None => {}
            Some(reason) if verbose => {
                out.push_str("\n\tprunable: ");
                out.push_str(reason.to_string());
            }
            Some(_) => out.push_str(" prunable"),
        }
        out.push(b'\n');
    }
    Ok(out)
}
