//! Incremental status for prompts and editors. Items are delivered while they are found. The search
//! ends when the receiver is dropped or the time limit is reached.

use super::{Options, Report};
use crate::{ErrorKind, Repository, Result};
use bstr::{BStr, BString, ByteSlice};
use pronto_io::interrupt::Interrupt;
use pronto_io::watch::Watch;
use pronto_worktree::status::{EarlyResult, FileChange};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// An item of an incremental status.
#[derive(Debug)]
pub enum StatusItem {
    /// A file differs from the index; `None` for an unmerged path. These items are in no order. For
    /// an intent-to-add file that was renamed, the report contains more.
    Worktree(BString, Option<FileChange>),
    /// A file is untracked, or a directory if the path ends with a slash. These items are in no
    /// order, and a path may be delivered twice.
    Untracked(BString),
    /// The complete report. This is the last item.
    Complete(Box<Report>),
    /// The time limit was reached before everything was examined. This is the last item.
    OutOfTime,
}

/// The items of a running status. Dropping the value ends the search and waits for its end, so that
/// no lock of the index is left. The wait is limited to the directory that is being examined, or to
/// the comparison with `HEAD`.
#[derive(Debug)]
pub struct Items {
    items: Receiver<Result<StatusItem>>,
    interrupt: Interrupt,
    worker: Option<JoinHandle<()>>,
    end: Option<Instant>,
    is_over: bool,
}

/// Starts a [`status`](crate::status::status) on its own thread. With `budget`, the search ends
/// after that time with the items that were found until then, and nothing is written. The
/// repository may be kept open for the next call, which uses the objects and refs of the pinned
/// generation, and the current configuration.
///
/// # Errors
/// Fails if the thread cannot be started. Errors of [`status`](crate::status::status) are returned
/// as the last item.
pub fn items(
    repository: &Arc<Repository>,
    options: Options,
    budget: Option<Duration>,
) -> Result<Items> {
    let interrupt = Interrupt::new();
    let end = budget.and_then(|budget| Instant::now().checked_add(budget));
    let (sender, items) = channel();
    let (repository, flag) = (Arc::clone(repository), interrupt.clone());
    let worker = std::thread::Builder::new()
        .name("status".to_owned())
        .spawn(move || {
            let watch = Watch::none().with_interrupt(&flag);
            work(&repository, &options, &watch, &sender);
        })
        .map_err(|error| {
            crate::Error::new(ErrorKind::Io, "cannot start a thread").because(error)
        })?;
    Ok(Items {
        items,
        interrupt,
        worker: Some(worker),
        end,
        is_over: false,
    })
}

fn work(
    repository: &Repository,
    options: &Options,
    watch: &Watch<'_>,
    sender: &Sender<Result<StatusItem>>,
) {
    let send = |item| {
        if sender.send(item).is_err() {
            // The receiver is gone.
            watch.interrupt().trigger();
        }
    };
    let on_path = |path: &BStr, found: EarlyResult| {
        send(Ok(match found {
            EarlyResult::Changed(change) => StatusItem::Worktree(path.to_owned(), change),
            EarlyResult::Untracked => StatusItem::Untracked(path.to_owned()),
        }));
    };
    let report = super::collect::collect(repository, options, watch, Some(&on_path));
    send(report.map(|report| StatusItem::Complete(Box::new(report))));
}

impl Items {
    /// Returns the interrupt that ends the search. Other threads may use the interrupt.
    pub fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    fn receive(&mut self) -> Option<Result<StatusItem>> {
        let Some(end) = self.end else {
            return self.items.recv().ok();
        };
        let left = end.saturating_duration_since(Instant::now());
        match self.items.recv_timeout(left) {
            Ok(item) => Some(item),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                self.interrupt.trigger();
                Some(Ok(StatusItem::OutOfTime))
            }
        }
    }
}

impl Iterator for Items {
    type Item = Result<StatusItem>;

    /// Waits for the next item, at most until the time limit.
    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let item = self.receive();
        self.is_over = !matches!(
            item,
            Some(Ok(StatusItem::Worktree(..) | StatusItem::Untracked(_)))
        );
        item
    }
}

impl Drop for Items {
    fn drop(&mut self) {
        self.interrupt.trigger();
        if let Some(worker) = self.worker.take() {
            // A panic of the thread has printed its own message.
            let _ = worker.join();
        }
    }
}

impl StatusItem {
    /// Returns the path; `None` for the last item.
    pub fn path(&self) -> Option<&BStr> {
        match self {
            StatusItem::Worktree(path, _) | StatusItem::Untracked(path) => Some(path.as_bstr()),
            StatusItem::Complete(_) | StatusItem::OutOfTime => None,
        }
    }
}
