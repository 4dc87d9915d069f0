//! Incremental status for prompts and editors. Results are delivered as they are found, and the
//! search ends when the receiver is gone or the time is over.

use super::{Options, Report};
use crate::{ErrorKind, Repository, Result};
use bstr::{BStr, BString, ByteSlice};
use pronto_io::interrupt::Interrupt;
use pronto_worktree::status::{Change, Found};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What a status finds.
#[derive(Debug)]
pub enum Item {
    /// A file differs from the index; `None` for a conflict. In no order. For a file that was added
    /// with `add --intent-to-add` and moved, the report contains more.
    Worktree(BString, Option<Change>),
    /// A file, or with a slash at its end a directory, is untracked. In no order, and one may come
    /// twice.
    Untracked(BString),
    /// All there is to say: the last one.
    Complete(Box<Report>),
    /// The time was over before everything was examined. This is the last item.
    OutOfTime,
}

/// The items of a running status. Dropping it ends the search and waits for its end, so that no
/// index is left locked: at most for the directory that is being examined, or for the comparison
/// with `HEAD`.
#[derive(Debug)]
pub struct Items {
    items: Receiver<Result<Item>>,
    interrupt: Interrupt,
    worker: Option<JoinHandle<()>>,
    end: Option<Instant>,
    is_over: bool,
}

/// Starts to find out what has changed, as [`status`](crate::status::status) does, on a thread of
/// its own. With `budget` it ends after that time with what it has found until then; nothing
/// is written then. The repository may be kept open for the next call, which sees objects and
/// references of then, and the configuration of now.
///
/// # Errors
/// The thread cannot be started. Those of [`status`](crate::status::status) come as the last
/// item.
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
        .spawn(move || work(&repository, &options, &flag, &sender))
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
    interrupt: &Interrupt,
    sender: &Sender<Result<Item>>,
) {
    let send = |item| {
        if sender.send(item).is_err() {
            // The receiver is gone.
            interrupt.trigger();
        }
    };
    let tell = |path: &BStr, found: Found| {
        send(Ok(match found {
            Found::Changed(change) => Item::Worktree(path.to_owned(), change),
            Found::Untracked => Item::Untracked(path.to_owned()),
        }));
    };
    let report = super::collect::collect(repository, options, (interrupt, Some(&tell)));
    send(report.map(|report| Item::Complete(Box::new(report))));
}

impl Items {
    /// What asks the search to end; it may be given to other threads.
    pub fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    fn receive(&mut self) -> Option<Result<Item>> {
        let Some(end) = self.end else {
            return self.items.recv().ok();
        };
        let left = end.saturating_duration_since(Instant::now());
        match self.items.recv_timeout(left) {
            Ok(item) => Some(item),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                self.interrupt.trigger();
                Some(Ok(Item::OutOfTime))
            }
        }
    }
}

impl Iterator for Items {
    type Item = Result<Item>;

    /// The next item: waits for it no longer than the budget lasts.
    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let item = self.receive();
        self.is_over = !matches!(item, Some(Ok(Item::Worktree(..) | Item::Untracked(_))));
        item
    }
}

impl Drop for Items {
    fn drop(&mut self) {
        self.interrupt.trigger();
        if let Some(worker) = self.worker.take() {
            // A panic there has printed its own message.
            let _ = worker.join();
        }
    }
}

impl Item {
    /// The path; `None` for the last item.
    pub fn path(&self) -> Option<&BStr> {
        match self {
            Item::Worktree(path, _) | Item::Untracked(path) => Some(path.as_bstr()),
            Item::Complete(_) | Item::OutOfTime => None,
        }
    }
}
