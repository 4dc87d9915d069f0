//! The first part of a plan: the removal of files and empty directories.

use std::io;
use std::ops::{ControlFlow, Range};

use bstr::{BString, ByteSlice};
use pronto_io::dir::Directory;
use pronto_io::error::IoContext;
use pronto_io::pool::{self, Gather, Workers};

use super::directories::is_obstructed;
use super::emptied::Emptied;
use super::{CheckoutContext, CheckoutWarning, Options, Outcome, PathRemoval, split};
use crate::{Error, ErrorKind};

/// The results of one worker.
#[derive(Default)]
struct RemovalResult {
    directory: Option<(BString, Option<Directory>)>,
    warnings: Vec<(usize, Error)>,
}

/// Removes the paths of the plan. As in Git, a failed removal is a warning.
pub(super) fn remove(
    removals: &[PathRemoval],
    context: &CheckoutContext<'_>,
    options: &Options,
    workers: Workers,
    outcome: &mut Outcome,
) {
    if removals.is_empty() {
        return;
    }
    let keep = options.keep_directory.as_ref();
    let ends = ends_of_directories(removals);
    let emptied = Emptied::new(removals, &ends, context.top, keep);
    let warnings = Gather::default();
    let summary = pool::run_groups(
        workers,
        &ends,
        RemovalResult::default,
        |done: &mut RemovalResult, range: Range<usize>| {
            if context.interrupt.is_triggered() {
                return ControlFlow::Break(());
            }
            for at in range {
                let is_gone = done.remove(at, &removals[at], context.top);
                emptied.finish(at, is_gone);
            }
            ControlFlow::Continue(())
        },
        |done: RemovalResult| warnings.add(done.warnings),
    );
    outcome.most_workers = outcome.most_workers.max(summary.most_workers);
    outcome.interrupted |= !summary.complete;
    let mut warnings = warnings.into_inner();
    warnings.sort_by_key(|(at, _)| *at);
    outcome.warnings.extend(
        warnings
            .into_iter()
            .map(|(_, error)| CheckoutWarning::Removal(error)),
    );
}

/// Returns the end of the group of each directory in `removals`. The kernel removes one file at a time
/// from a directory, so a directory is not shared by workers.
fn ends_of_directories(removals: &[PathRemoval]) -> Vec<usize> {
    pool::ends_of_groups(removals, |one, other| {
        split(one.path.as_bstr()).0 == split(other.path.as_bstr()).0
    })
}

impl RemovalResult {
    /// Removes a path. Returns whether the path does not exist any more.
    fn remove(&mut self, at: usize, removal: &PathRemoval, top: &Directory) -> bool {
        let (path, name) = split(removal.path.as_bstr());
        if self.directory.as_ref().is_none_or(|(open, _)| open != path) {
            // In a missing directory there is nothing to remove.
            let directory = match top.open_beneath(path) {
                Ok(directory) => Some(directory),
                Err(error) if error.kind() == io::ErrorKind::NotFound || is_obstructed(&error) => {
                    None
                }
                Err(error) => {
                    // The next file in the directory is attempted and reported separately.
                    self.directory = None;
                    self.warn(at, removal, Err(error));
                    return false;
                }
            };
            self.directory = Some((path.to_owned(), directory));
        }
        let Some((_, Some(directory))) = &self.directory else {
            return false;
        };
        let removed = if removal.gitlink {
            directory.remove_directory(name)
        } else {
            directory.remove_file(name)
        };
        // The directory of a path that was already missing may still exist and become empty.
        let is_gone = is_gone(&removed);
        if !is_gone {
            self.warn(at, removal, removed);
        }
        is_gone
    }

    fn warn(&mut self, at: usize, removal: &PathRemoval, result: io::Result<()>) {
        let verb = if removal.gitlink {
            "unable to rmdir"
        } else {
            "unable to unlink"
        };
        if let Err(error) = result.context(ErrorKind::Io, verb, removal.path.to_string()) {
            self.warnings.push((at, error));
        }
    }
}

fn is_gone(removed: &io::Result<()>) -> bool {
    match removed {
        Ok(()) => true,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}
