//! Formats lines for all objects in several threads, and prints them in the order of the objects.

use std::collections::VecDeque;
use std::io::Write as _;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::Scope;

use pronto_hash::ObjectId;
use pronto_io::pool;
use pronto_odb::PackLocation;

use crate::{CliError, Context};

/// The number of objects that one thread processes in one batch, which takes some milliseconds.
const OBJECTS_AT_ONCE: usize = 2048;

/// The number of finished batches for each thread that may wait to be printed. A batch has a few
/// hundred KiB.
const AHEAD_PER_THREAD: usize = 4;

type DescribedObjects = Result<Vec<u8>, CliError>;

/// An object, and its location in the store if that is known.
#[derive(Clone, Copy)]
pub(super) struct LocatedObject {
    pub(super) id: ObjectId,
    pub(super) location: Option<PackLocation>,
}

/// A batch of objects, and the channel for its output.
struct DescribeJob {
    objects: Vec<LocatedObject>,
    answer: Sender<DescribedObjects>,
}

/// Appends the output for an object.
pub(super) trait Describe:
    Fn(LocatedObject, &mut Vec<u8>) -> Result<(), CliError> + Sync
{
}

impl<F: Fn(LocatedObject, &mut Vec<u8>) -> Result<(), CliError> + Sync> Describe for F {}

/// Prints the output of `describe` for each object that `each` yields, in that order. A small
/// number of objects is processed on this thread.
///
/// # Errors
/// Fails with the errors of `each`, of `describe` (after earlier output has been printed), and of
/// printing.
pub(super) fn print(
    describe: &impl Describe,
    each: impl FnOnce(&mut dyn FnMut(LocatedObject) -> Result<(), CliError>) -> Result<(), CliError>,
    context: &mut Context,
) -> Result<(), CliError> {
    let (jobs, queue) = channel();
    let queue = Mutex::new(queue);
    std::thread::scope(|scope| {
        let mut row = AnswerQueue {
            describe,
            queue: &queue,
            jobs,
            threads: 0,
            objects: Vec::new(),
            answers: VecDeque::new(),
            context,
        };
        each(&mut |object| row.add(object, scope))?;
        row.finish()
    })
}

struct AnswerQueue<'a, F> {
    describe: &'a F,
    queue: &'a Mutex<Receiver<DescribeJob>>,
    jobs: Sender<DescribeJob>,
    threads: usize,
    /// Objects that are not yet sent to a thread.
    objects: Vec<LocatedObject>,
    /// The pending outputs, in the order of the objects.
    answers: VecDeque<Receiver<DescribedObjects>>,
    context: &'a mut Context,
}

impl<'a, F: Describe> AnswerQueue<'a, F> {
    fn add<'scope>(
        &mut self,
        object: LocatedObject,
        scope: &'scope Scope<'scope, '_>,
    ) -> Result<(), CliError>
    where
        'a: 'scope,
    {
        self.objects.push(object);
        if self.objects.len() < OBJECTS_AT_ONCE {
            return Ok(());
        }
        self.spawn(scope);
        if self.threads == 0 {
            return self.describe_here();
        }
        let (answer, answered) = channel();
        let objects = std::mem::take(&mut self.objects);
        // The receiver exists as long as `jobs` does.
        let _ = self.jobs.send(DescribeJob { objects, answer });
        self.answers.push_back(answered);
        if self.answers.len() > self.threads * AHEAD_PER_THREAD {
            self.print_next()?;
        }
        Ok(())
    }

    /// Starts one more thread, unless there is one for each processor already.
    fn spawn<'scope>(&mut self, scope: &'scope Scope<'scope, '_>)
    where
        'a: 'scope,
    {
        if self.threads >= pool::cores() {
            return;
        }
        let (describe, queue) = (self.describe, self.queue);
        let spawned = std::thread::Builder::new()
            .name("objects".into())
            .spawn_scoped(scope, move || work(describe, queue));
        self.threads += usize::from(spawned.is_ok());
    }

    fn print_next(&mut self) -> Result<(), CliError> {
        let answer = self.answers.pop_front().map(|answered| answered.recv());
        match answer {
            Some(Ok(lines)) => Ok(self.context.out.write_all(&lines?)?),
            // A thread that ended without an answer has panicked. The scope reports this at its
            // end.
            Some(Err(_)) | None => Ok(()),
        }
    }

    fn describe_here(&mut self) -> Result<(), CliError> {
        let mut lines = Vec::new();
        for object in self.objects.drain(..) {
            lines.clear();
            (self.describe)(object, &mut lines)?;
            self.context.out.write_all(&lines)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(), CliError> {
        while !self.answers.is_empty() {
            self.print_next()?;
        }
        self.describe_here()
    }
}

fn work(describe: &impl Describe, queue: &Mutex<Receiver<DescribeJob>>) {
    loop {
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(DescribeJob { objects, answer }) = job else {
            return;
        };
        let mut lines = Vec::with_capacity(objects.len() * 64);
        let described = (objects.into_iter()).try_for_each(|object| describe(object, &mut lines));
        // Sending fails only if the receiver was dropped because printing failed.
        let _ = answer.send(described.map(|()| lines));
    }
}
