//! A deterministic executor with virtual time. The next task is chosen at random among those that
//! are ready. If no task is ready, the time advances to the next event.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use super::random::SimulationRandom;

/// An action at a point in time.
pub(super) type Event = Box<dyn FnOnce() + Send>;

type SimulatedTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The queue of events, which is filled by tasks and calls of the store.
#[derive(Clone, Default)]
pub(super) struct Timeline(Arc<Mutex<TimelineState>>);

#[derive(Default)]
struct TimelineState {
    now: Duration,
    serial: u64,
    order: BinaryHeap<Reverse<(Duration, u64)>>,
    events: BTreeMap<u64, Event>,
}

impl Timeline {
    pub(super) fn now(&self) -> Duration {
        self.0.lock().expect("no panic").now
    }

    /// Schedules `event` after `delay`.
    pub(super) fn after(&self, delay: Duration, event: Event) {
        let mut inner = self.0.lock().expect("no panic");
        let at = inner.now + delay;
        inner.serial += 1;
        let serial = inner.serial;
        inner.order.push(Reverse((at, serial)));
        inner.events.insert(serial, event);
    }

    /// Returns the next event, and advances time to it.
    fn next(&self) -> Option<Event> {
        let mut inner = self.0.lock().expect("no panic");
        let Reverse((at, serial)) = inner.order.pop()?;
        inner.now = inner.now.max(at);
        inner.events.remove(&serial)
    }

    /// Waits for `delay`.
    pub(super) async fn sleep(&self, delay: Duration) {
        let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
        self.after(
            delay,
            Box::new(move || {
                let _ = sender.send(());
            }),
        );
        let _ = receiver.await;
    }
}

/// The tasks of a run. Each task belongs to a group, which is killed as a whole.
#[derive(Clone, Default)]
pub(super) struct Tasks(Arc<Mutex<ExecutorState>>);

#[derive(Default)]
struct ExecutorState {
    serial: u64,
    tasks: BTreeMap<u64, (usize, Option<SimulatedTask>)>,
    ready: Arc<Mutex<Vec<u64>>>,
}

struct TaskWaker {
    id: u64,
    ready: Arc<Mutex<Vec<u64>>>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        let mut ready = self.ready.lock().expect("no panic");
        if !ready.contains(&self.id) {
            ready.push(self.id);
        }
    }
}

impl Tasks {
    /// Starts a task of `group`.
    pub(super) fn spawn(&self, group: usize, task: impl Future<Output = ()> + Send + 'static) {
        let mut shared = self.0.lock().expect("no panic");
        shared.serial += 1;
        let id = shared.serial;
        shared.tasks.insert(id, (group, Some(Box::pin(task))));
        shared.ready.lock().expect("no panic").push(id);
    }

    /// Kills all tasks of `group`, at any step.
    pub(super) fn kill(&self, group: usize) {
        let dropped: Vec<_> = {
            let mut shared = self.0.lock().expect("no panic");
            let ids: Vec<u64> = shared
                .tasks
                .iter()
                .filter(|(_, (of, task))| *of == group && task.is_some())
                .map(|(id, _)| *id)
                .collect();
            ids.iter()
                .filter_map(|id| shared.tasks.remove(id))
                .collect()
        };
        // Dropping a task can wake another one.
        drop(dropped);
    }

    /// Runs until no task or event is left, or `most_steps` are done. Returns whether no task or
    /// event is left.
    pub(super) fn run(
        &self,
        timeline: &Timeline,
        random: &mut SimulationRandom,
        most_steps: u64,
    ) -> bool {
        for _ in 0..most_steps {
            let chosen = {
                let shared = self.0.lock().expect("no panic");
                let mut ready = shared.ready.lock().expect("no panic");
                match ready.is_empty() {
                    true => None,
                    false => {
                        let at = random.below(ready.len() as u64) as usize;
                        Some(ready.swap_remove(at))
                    }
                }
            };
            match chosen {
                Some(id) => self.step(id),
                None => match timeline.next() {
                    Some(event) => event(),
                    None => return true,
                },
            }
        }
        false
    }

    fn step(&self, id: u64) {
        let (task, ready) = {
            let mut shared = self.0.lock().expect("no panic");
            let ready = Arc::clone(&shared.ready);
            let task = shared.tasks.get_mut(&id).and_then(|(_, task)| task.take());
            (task, ready)
        };
        let Some(mut task) = task else { return };
        let waker = Waker::from(Arc::new(TaskWaker { id, ready }));
        let state = task.as_mut().poll(&mut Context::from_waker(&waker));
        let mut shared = self.0.lock().expect("no panic");
        match state {
            Poll::Ready(()) => {
                shared.tasks.remove(&id);
            }
            Poll::Pending => {
                if let Some(slot) = shared.tasks.get_mut(&id) {
                    slot.1 = Some(task);
                }
            }
        }
    }
}
