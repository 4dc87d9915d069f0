//! Turns to compute, which bound the number of processors that the requests of one account use.
//!
//! Slots bound the number of requests in flight. Most of these requests wait for their clients.
//! Requests that compute would share the processors equally with all other requests, so an account
//! with many of them would slow down all other accounts. An account computes with at most as many
//! requests as there are processors; its other requests wait for a turn. A request releases its
//! turn while it waits for its client, and after [`SLICE`] if other requests wait.
//!
//! A request that blocks elsewhere (on a store, a hook, or a lock that another request holds) does
//! not compute, so its turn is given to the next request. The kernel reports which threads run. On
//! a kernel without this report there are no turns.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// The time slice after which a request releases its turn, at its next opportunity, if other
/// requests wait.
const SLICE: Duration = Duration::from_millis(10);

/// The interval at which the server checks whether requests with a turn compute.
const LOOK: Duration = Duration::from_millis(10);

/// The time without a released turn after which one more turn is given, so that long computations
/// share the processors.
const LONGEST: Duration = Duration::from_millis(100);

/// The divisor for the part of the time that a thread must run, or be ready to run, to count as
/// computing.
const PART: u32 = 4;

/// The turns of an account. `Send + Sync`.
#[derive(Debug)]
pub(super) struct Turns {
    state: Mutex<ThreadTurns>,
    /// The number of turns, or `None` if the kernel does not report which threads run.
    most: Option<usize>,
}

#[derive(Debug)]
struct ThreadTurns {
    next: u64,
    holders: HashMap<u64, TurnHolder>,
    waiting: VecDeque<(u64, Thread)>,
    /// The time at which the last turn was given.
    given: Instant,
    /// The time of the last check of which requests compute.
    looked: Instant,
}

/// A request that has a turn.
#[derive(Debug)]
struct TurnHolder {
    /// The id of the thread of the request.
    thread: u32,
    since: Instant,
    /// The time for which the thread has run, or was ready to run, as of the last check, if there
    /// was a check.
    active: Option<Duration>,
    /// Whether the request blocks, so that its turn was given to another request.
    is_blocked: bool,
}

impl ThreadTurns {
    fn computing(&self) -> usize {
        let computing = self.holders.values().filter(|holder| !holder.is_blocked);
        computing.count()
    }

    /// Checks which of the holders compute, if the interval has passed.
    fn look(&mut self) {
        let time = self.looked.elapsed();
        if time < LOOK {
            return;
        }
        self.looked = Instant::now();
        for holder in self.holders.values_mut() {
            let active = active(holder.thread);
            let used = active.zip(holder.active);
            let used = used.map(|(now, before)| now.saturating_sub(before));
            holder.is_blocked = used.is_some_and(|used| used < time / PART);
            holder.active = active;
        }
    }

    /// Wakes the request with the longest wait.
    fn wake(&self) {
        if let Some((_, thread)) = self.waiting.front() {
            thread.unpark();
        }
    }
}

impl Turns {
    /// Returns the turns of an account that computes with at most `most` requests at the same time.
    pub(super) fn new(most: usize) -> Self {
        let now = Instant::now();
        Turns {
            state: Mutex::new(ThreadTurns {
                next: 0,
                holders: HashMap::new(),
                waiting: VecDeque::new(),
                given: now,
                looked: now,
            }),
            most: this_thread().and_then(active).map(|_| most.max(1)),
        }
    }

    /// Waits for a turn of the calling thread, and returns the number of the turn, which the caller
    /// must release with [`give_back`](Self::give_back).
    pub(super) fn take(&self) -> Option<u64> {
        let (most, thread) = (self.most?, this_thread()?);
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        state.waiting.push_back((number, thread::current()));
        loop {
            let is_first = state
                .waiting
                .front()
                .is_some_and(|(first, _)| *first == number);
            let has_room = || state.computing() < most || state.given.elapsed() >= LONGEST;
            if is_first && has_room() {
                break;
            }
            drop(state);
            // Only the first waiting request checks.
            match is_first {
                true => thread::park_timeout(LOOK),
                false => thread::park(),
            }
            state = self.state();
            if is_first {
                state.look();
            }
        }
        state.waiting.pop_front();
        let now = Instant::now();
        state.given = now;
        let holder = TurnHolder {
            thread,
            since: now,
            active: None,
            is_blocked: false,
        };
        state.holders.insert(number, holder);
        state.wake();
        Some(number)
    }

    /// Releases a turn.
    pub(super) fn give_back(&self, number: u64) {
        let mut state = self.state();
        state.holders.remove(&number);
        state.wake();
    }

    /// Returns whether the request has computed for its time slice, and other requests wait.
    pub(super) fn is_due(&self, number: u64) -> bool {
        let state = self.state();
        let holder = state.holders.get(&number);
        !state.waiting.is_empty() && holder.is_some_and(|holder| holder.since.elapsed() >= SLICE)
    }

    /// Locks the state. A panic of another thread does not make it inconsistent, because each
    /// change is a single step.
    fn state(&self) -> MutexGuard<'_, ThreadTurns> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

thread_local! {
    /// The id of the thread: the last component of `PROCESS/task/THREAD`.
    static THREAD: Option<u32> = std::fs::read_link("/proc/thread-self")
        .ok()
        .and_then(|path| path.file_name()?.to_str()?.parse().ok());
}

/// Returns the id of the calling thread, if the kernel reports it.
fn this_thread() -> Option<u32> {
    THREAD.with(|thread| *thread)
}

/// Returns the time for which a thread of this process has run, or has waited for a processor, or
/// `None` if the kernel does not report it.
fn active(thread: u32) -> Option<Duration> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
    let mut numbers = text.split_ascii_whitespace().map(str::parse::<u64>);
    let (ran, waited) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some(Duration::from_nanos(ran.saturating_add(waited)))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::sync::{Arc, Barrier};

    use super::*;

    /// Computes until a message is received.
    fn compute(turns: &Arc<Turns>) -> (std::sync::mpsc::Sender<()>, thread::JoinHandle<()>) {
        let (stop, stopped) = channel::<()>();
        let (turns, begun) = (Arc::clone(turns), Arc::new(Barrier::new(2)));
        let inner = Arc::clone(&begun);
        let worker = thread::spawn(move || {
            let number = turns.take();
            inner.wait();
            while stopped.try_recv().is_err() {
                std::hint::spin_loop();
            }
            number
                .into_iter()
                .for_each(|number| turns.give_back(number));
        });
        begun.wait();
        (stop, worker)
    }

    #[test]
    fn a_long_computation_does_not_stop_the_others() {
        let turns = Arc::new(Turns::new(1));
        if turns.most.is_none() {
            return;
        }
        let (stop, worker) = compute(&turns);
        let number = turns.take().expect("there is a turn more after a while");
        assert_eq!(turns.state().holders.len(), 2);
        turns.give_back(number);
        stop.send(()).expect("it waits for this");
        worker.join().expect("no panic");
        assert_eq!(turns.state().holders.len(), 0);
    }

    #[test]
    fn a_turn_that_is_given_back_is_for_the_next() {
        let turns = Arc::new(Turns::new(1));
        let Some(first) = turns.take() else {
            return;
        };
        let other = Arc::clone(&turns);
        let waiting = thread::spawn(move || other.take().map(|number| other.give_back(number)));
        turns.give_back(first);
        assert!(waiting.join().expect("no panic").is_some());
        assert!(!turns.is_due(first), "it has none");
    }

    #[test]
    fn a_request_that_blocks_lends_its_turn() {
        let turns = Arc::new(Turns::new(1));
        let Some(first) = turns.take() else {
            return;
        };
        // This thread holds the turn, and only waits for the other one.
        let other = Arc::clone(&turns);
        let waiting = thread::spawn(move || other.take().expect("there are turns"));
        let second = waiting.join().expect("no panic");
        assert!(turns.state().holders.contains_key(&first));
        turns.give_back(second);
        turns.give_back(first);
    }
}
