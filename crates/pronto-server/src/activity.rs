//! The activity of a connection, and the time that it may be idle.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::state::State;

/// The number of connections with buffers up to which they may be idle for the configured time. Each
/// costs about 30 KiB.
const CROWD: usize = 1024;

/// The time between requests if there are more connections than [`CROWD`].
const IDLE_IN_CROWD: Duration = Duration::from_millis(500);

/// The reasons for the log if a connection is [`Look::NeverAsked`] or [`Look::Stalled`].
pub(crate) const NOT_ASKED: &str = "no request in time";
pub(crate) const NOT_READ: &str = "an answer is not read";

/// The times that a connection may wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// For the first head.
    pub(crate) head: Duration,
    /// The same if there are more connections than [`CROWD`].
    pub(crate) head_in_crowd: Duration,
    /// Between requests.
    pub(crate) idle: Duration,
    /// For a client to take a piece of an answer.
    pub(crate) stall: Duration,
}

impl Times {
    /// Returns the times where `count` connections have buffers.
    pub(crate) fn among(self, count: usize) -> Self {
        match count <= CROWD {
            true => self,
            false => Times {
                head: self.head.min(self.head_in_crowd),
                idle: self.idle.min(IDLE_IN_CROWD),
                ..self
            },
        }
    }
}

/// A connection that has sent something, and has buffers.
pub(crate) struct Awake(Arc<State>);

impl Awake {
    pub(crate) fn new(state: &Arc<State>) -> Self {
        state.awake.fetch_add(1, Relaxed);
        Awake(Arc::clone(state))
    }

    /// Returns the number of such connections.
    pub(crate) fn count(&self) -> usize {
        self.0.awake.load(Relaxed)
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.0.awake.fetch_sub(1, Relaxed);
    }
}

/// The activity of a connection.
#[derive(Debug)]
pub(crate) struct Activity {
    begun: Instant,
    /// Requests whose response is not finished.
    under_way: AtomicUsize,
    /// When the last request began or ended, in milliseconds since the connection began; 0 before the
    /// first one.
    last: AtomicU64,
    ended: Notify,
    /// Answers with a piece that the client has not taken yet, since when.
    untaken: Mutex<HashMap<u64, Instant>>,
    bodies: AtomicU64,
}

/// The result of a look at a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Fine,
    Idle,
    /// There was no complete head of a first request in the time for one.
    NeverAsked,
    /// A client does not take an answer.
    Stalled,
}

impl Activity {
    pub(crate) fn new() -> Self {
        Activity {
            begun: Instant::now(),
            under_way: AtomicUsize::new(0),
            last: AtomicU64::new(0),
            ended: Notify::new(),
            untaken: Mutex::default(),
            bodies: AtomicU64::new(0),
        }
    }

    /// Returns whether a request is under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.under_way.load(Relaxed) > 0
    }

    /// Waits for the end of a request.
    pub(crate) async fn ended(&self) {
        self.ended.notified().await;
    }

    /// Looks whether the connection has waited for too long.
    pub(crate) fn look(&self, times: Times) -> Look {
        let is_stalled = |since: &Instant| since.elapsed() >= times.stall;
        if self.untaken().values().any(is_stalled) {
            return Look::Stalled;
        }
        if self.is_busy() || !self.wait(times).is_zero() {
            return Look::Fine;
        }
        match self.last.load(Relaxed) {
            0 => Look::NeverAsked,
            _ => Look::Idle,
        }
    }

    /// Returns how long the connection may still wait. While a request is under way, that is the whole
    /// time again.
    pub(crate) fn wait(&self, times: Times) -> Duration {
        if self.is_busy() {
            let first = self.untaken().values().min().copied();
            let stall = first.map(|since| times.stall.saturating_sub(since.elapsed()));
            // The clock of the runtime counts milliseconds.
            let stall = stall.map(|left| left + Duration::from_millis(1));
            return stall.unwrap_or(times.stall).min(times.idle);
        }
        let end = match self.last.load(Relaxed) {
            0 => times.head,
            last => Duration::from_millis(last) + times.idle,
        };
        end.saturating_sub(self.begun.elapsed())
    }

    /// The map stays consistent whatever panics: each change is a single step.
    fn untaken(&self) -> MutexGuard<'_, HashMap<u64, Instant>> {
        self.untaken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self) {
        let now = self.begun.elapsed().as_millis() as u64;
        self.last.store(now.max(1), Relaxed);
    }
}

/// Counts a request of a connection until its response is finished.
#[derive(Debug)]
pub(crate) struct Active(Arc<Activity>);

impl Active {
    pub(crate) fn new(activity: &Arc<Activity>) -> Self {
        activity.under_way.fetch_add(1, Relaxed);
        activity.note();
        Active(Arc::clone(activity))
    }

    /// Returns the activity of its connection.
    pub(crate) fn activity(&self) -> &Arc<Activity> {
        &self.0
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.0.note();
        self.0.under_way.fetch_sub(1, Relaxed);
        self.0.ended.notify_one();
    }
}

/// Notes when the client is expected to take a piece of an answer.
#[derive(Debug)]
pub(crate) struct Taking {
    activity: Arc<Activity>,
    number: u64,
}

impl Taking {
    /// Begins with the head of the answer.
    pub(crate) fn new(activity: &Arc<Activity>) -> Self {
        let taking = Taking {
            activity: Arc::clone(activity),
            number: activity.bodies.fetch_add(1, Relaxed),
        };
        taking.given();
        taking
    }

    /// Notes that the client has a piece to take.
    pub(crate) fn given(&self) {
        self.activity.untaken().insert(self.number, Instant::now());
    }

    /// Notes that the client has taken everything that there is.
    pub(crate) fn taken(&self) {
        self.activity.untaken().remove(&self.number);
    }
}

impl Drop for Taking {
    fn drop(&mut self) {
        self.taken();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: Times = Times {
        head: Duration::from_secs(3600),
        head_in_crowd: Duration::from_secs(1),
        idle: Duration::from_secs(3600),
        stall: Duration::from_secs(3600),
    };

    const NONE: Times = Times {
        head: Duration::ZERO,
        head_in_crowd: Duration::ZERO,
        idle: Duration::ZERO,
        stall: Duration::ZERO,
    };

    #[test]
    fn only_waiting_connections_are_ended() {
        // Times are counted in milliseconds since the connection began.
        let begun = Instant::now().checked_sub(Duration::from_secs(1));
        let activity = Arc::new(Activity {
            begun: begun.expect("the machine runs for longer"),
            ..Activity::new()
        });
        assert_eq!(activity.look(TIMES), Look::Fine);
        assert_eq!(activity.look(NONE), Look::NeverAsked);
        let active = Active::new(&activity);
        assert_eq!(activity.look(NONE), Look::Fine);
        drop(active);
        assert_eq!(activity.look(TIMES), Look::Fine);
        assert_eq!(activity.look(NONE), Look::Idle);
    }

    #[test]
    fn an_answer_that_is_not_taken_ends_its_connection() {
        let activity = Arc::new(Activity::new());
        let _active = Active::new(&activity);
        let taking = Taking::new(&activity);
        assert_eq!(activity.look(TIMES), Look::Fine);
        assert_eq!(activity.look(NONE), Look::Stalled);
        taking.taken();
        assert_eq!(activity.look(NONE), Look::Fine);
        taking.given();
        drop(taking);
        assert_eq!(activity.look(NONE), Look::Fine);
    }

    #[test]
    fn a_crowd_has_less_time() {
        assert_eq!(TIMES.among(CROWD).idle, TIMES.idle);
        assert_eq!(TIMES.among(CROWD + 1).idle, IDLE_IN_CROWD);
        assert_eq!(TIMES.among(CROWD + 1).head, TIMES.head_in_crowd);
        assert_eq!(NONE.among(CROWD + 1).head, Duration::ZERO);
    }
}
