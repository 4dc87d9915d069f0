//! The first part of a plan: files go, then the directories that are empty.

use std::collections::BTreeSet;
use std::io;
use std::ops::{ControlFlow, Range};

use bstr::{BStr, BString, ByteSlice};
use pronto_io::dir::Directory;
use pronto_io::error::IoContext;
use pronto_io::pool::{self, Gather, Workers};

use super::directories::is_obstructed;
use super::{Context, Options, Outcome, Removal, split};
use crate::ErrorKind;

/// What one worker did.
#[derive(Default)]
struct Done {
    directory: Option<(BString, Option<Directory>)>,
    emptied: Vec<BString>,
    warnings: Vec<(usize, String)>,
}

/// Removes what the plan says. Failing to remove is a warning in Git, and so here.
pub(super) fn remove(
    removals: &[Removal],
    context: &Context<'_>,
    (options, workers): (&Options, Workers),
    outcome: &mut Outcome,
) {
    if removals.is_empty() {
        return;
    }
    let (emptied, warnings) = (Gather::default(), Gather::default());
    let summary = pool::run_groups(
        workers,
        &ends_of_directories(removals),
        Done::default,
        |done: &mut Done, range: Range<usize>| {
            if context.interrupt.is_triggered() {
                return ControlFlow::Break(());
            }
            for at in range {
                done.remove(at, &removals[at], context.top);
            }
            ControlFlow::Continue(())
        },
        |done: Done| {
            emptied.add(done.emptied);
            warnings.add(done.warnings);
        },
    );
    outcome.most_workers = outcome.most_workers.max(summary.most_workers);
    outcome.interrupted |= !summary.complete;
    let mut warnings = warnings.into_inner();
    warnings.sort();
    outcome
        .warnings
        .extend(warnings.into_iter().map(|(_, text)| text));
    remove_empty(
        emptied.into_inner(),
        context.top,
        options.keep_directory.as_ref(),
    );
}

/// Where among `removals` those of each directory end: the kernel takes one file at a time out of
/// a directory.
fn ends_of_directories(removals: &[Removal]) -> Vec<usize> {
    pool::ends_of_groups(removals, |one, other| {
        split(one.path.as_bstr()).0 == split(other.path.as_bstr()).0
    })
}

impl Done {
    fn remove(&mut self, at: usize, removal: &Removal, top: &Directory) {
        let (path, name) = split(removal.path.as_bstr());
        if self.directory.as_ref().is_none_or(|(open, _)| open != path) {
            // Where there is no such directory there is nothing to remove.
            let directory = match top.open_beneath(path) {
                Ok(directory) => Some(directory),
                Err(error) if error.kind() == io::ErrorKind::NotFound || is_obstructed(&error) => {
                    None
                }
                Err(error) => {
                    // The next file there tries again, and is told of, too.
                    self.directory = None;
                    return self.warn(at, removal, Err(error));
                }
            };
            self.directory = Some((path.to_owned(), directory));
        }
        let Some((_, Some(directory))) = &self.directory else {
            return;
        };
        let removed = if removal.gitlink {
            directory.remove_directory(name)
        } else {
            directory.remove_file(name)
        };
        match removed {
            // What is gone already may have left its directory behind.
            _ if is_gone(&removed) => {
                if self.emptied.last().is_none_or(|last| last != path) {
                    self.emptied.push(path.to_owned());
                }
            }
            failed => self.warn(at, removal, failed),
        }
    }

    fn warn(&mut self, at: usize, removal: &Removal, result: io::Result<()>) {
        let verb = if removal.gitlink {
            "unable to rmdir"
        } else {
            "unable to unlink"
        };
        if let Err(error) = result.context(ErrorKind::Io, verb, removal.path.to_string()) {
            self.warnings.push((at, format!("warning: {error}")));
        }
    }
}

fn is_gone(removed: &io::Result<()>) -> bool {
    match removed {
        Ok(()) => true,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Removes the directories, the deepest first, and those above that become empty by it.
fn remove_empty(emptied: Vec<BString>, top: &Directory, keep: Option<&BString>) {
    let mut left: BTreeSet<BString> = emptied.into_iter().collect();
    // Names below a directory sort after it, so from the end the deepest come first.
    while let Some(path) = left.pop_last() {
        let kept = keep.is_some_and(|keep| is_at_or_below(keep.as_bstr(), path.as_bstr()));
        if path.is_empty() || kept {
            continue;
        }
        let (parent, name) = split(path.as_bstr());
        let removed = top
            .open_beneath(parent)
            .and_then(|parent| parent.remove_directory(name));
        if removed.is_ok() {
            left.insert(parent.to_owned());
        }
    }
}

fn is_at_or_below(path: &BStr, directory: &BStr) -> bool {
    path.strip_prefix(directory.as_bytes())
        .is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}
