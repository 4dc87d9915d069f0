//! The activity of a connection, and its idle timeout.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::state::ServerState;

/// The largest number of connections with buffers for which the configured idle timeout applies.
/// Each of these connections costs about 30 KiB.
const CROWD: usize = 1024;

/// The idle timeout between requests if there are more connections than [`CROWD`].
const IDLE_IN_CROWD: Duration = Duration::from_millis(500);

/// The reasons that the log shows for a connection that is [`ConnectionHealth::NeverAsked`] or
/// [`ConnectionHealth::Stalled`].
pub(crate) const NOT_ASKED: &str = "timeout: no request received";
pub(crate) const NOT_READ: &str = "timeout: the client does not read the response";

/// The timeouts of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitLimits {
    /// The time until the first request head is complete.
    pub(crate) head: Duration,
    /// The time until the first request head is complete if there are more connections than
    /// [`CROWD`].
    pub(crate) head_in_crowd: Duration,
    /// The idle time between requests.
    pub(crate) idle: Duration,
    /// The time in which a client must take a piece of a response.
    pub(crate) stall: Duration,
}

impl WaitLimits {
    /// Returns the timeouts for a server where `count` connections have buffers.
    pub(crate) fn among(self, count: usize) -> Self {
        match count <= CROWD {
            true => self,
            false => WaitLimits {
                head: self.head.min(self.head_in_crowd),
                idle: self.idle.min(IDLE_IN_CROWD),
                ..self
            },
        }
    }
}

/// A guard that counts a connection which has received data, and therefore has buffers.
pub(crate) struct Awake(Arc<ServerState>);

impl Awake {
    pub(crate) fn new(state: &Arc<ServerState>) -> Self {
        state.awake.fetch_add(1, Relaxed);
        Awake(Arc::clone(state))
    }

    /// Returns the number of connections that have received data.
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
    /// The number of requests whose response is not finished.
    under_way: AtomicUsize,
    /// The time at which the last request began or ended, in milliseconds since the connection
    /// began. The value is 0 before the first request.
    last: AtomicU64,
    ended: Notify,
    /// The responses with a piece that the client has not taken yet, with the time since which the
    /// piece is ready.
    untaken: Mutex<HashMap<u64, Instant>>,
    bodies: AtomicU64,
}

/// The result of a check of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionHealth {
    Fine,
    Idle,
    /// The first request head was not complete within its timeout.
    NeverAsked,
    /// A client does not take a response.
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

    /// Returns whether a request is in flight.
    pub(crate) fn is_busy(&self) -> bool {
        self.under_way.load(Relaxed) > 0
    }

    /// Waits for the end of a request.
    pub(crate) async fn ended(&self) {
        self.ended.notified().await;
    }

    /// Checks whether the connection has exceeded one of its timeouts.
    pub(crate) fn look(&self, times: WaitLimits) -> ConnectionHealth {
        let is_stalled = |since: &Instant| since.elapsed() >= times.stall;
        if self.untaken().values().any(is_stalled) {
            return ConnectionHealth::Stalled;
        }
        if self.is_busy() || !self.wait(times).is_zero() {
            return ConnectionHealth::Fine;
        }
        match self.last.load(Relaxed) {
            0 => ConnectionHealth::NeverAsked,
            _ => ConnectionHealth::Idle,
        }
    }

    /// Returns the time that is left before the connection exceeds a timeout. While a request is in
    /// flight, that is the whole timeout.
    pub(crate) fn wait(&self, times: WaitLimits) -> Duration {
        if self.is_busy() {
            let first = self.untaken().values().min().copied();
            let stall = first.map(|since| times.stall.saturating_sub(since.elapsed()));
            // The clock of the runtime has a resolution of milliseconds.
            let stall = stall.map(|left| left + Duration::from_millis(1));
            return stall.unwrap_or(times.stall).min(times.idle);
        }
        let end = match self.last.load(Relaxed) {
            0 => times.head,
            last => Duration::from_millis(last) + times.idle,
        };
        end.saturating_sub(self.begun.elapsed())
    }

    /// Locks the map. A panic of another thread does not make the map inconsistent, because each
    /// change is a single step.
    fn untaken(&self) -> MutexGuard<'_, HashMap<u64, Instant>> {
        self.untaken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self) {
        let now = self.begun.elapsed().as_millis() as u64;
        self.last.store(now.max(1), Relaxed);
    }
}

/// A guard that counts a request of a connection until the response is finished.
#[derive(Debug)]
pub(crate) struct Active(Arc<Activity>);

impl Active {
    pub(crate) fn new(activity: &Arc<Activity>) -> Self {
        activity.under_way.fetch_add(1, Relaxed);
        activity.note();
        Active(Arc::clone(activity))
    }

    /// Returns the activity of the connection of this request.
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

/// Records since when the client has a piece of a response to take.
#[derive(Debug)]
pub(crate) struct ExpectedRead {
    activity: Arc<Activity>,
    number: u64,
}

impl ExpectedRead {
    /// Starts with the head of the response.
    pub(crate) fn new(activity: &Arc<Activity>) -> Self {
        let taking = ExpectedRead {
            activity: Arc::clone(activity),
            number: activity.bodies.fetch_add(1, Relaxed),
        };
        taking.given();
        taking
    }

    /// Records that the client has a piece to take.
    pub(crate) fn given(&self) {
        self.activity.untaken().insert(self.number, Instant::now());
    }

    /// Records that the client has taken all pieces that are ready.
    pub(crate) fn taken(&self) {
        self.activity.untaken().remove(&self.number);
    }
}

impl Drop for ExpectedRead {
    fn drop(&mut self) {
        self.taken();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: WaitLimits = WaitLimits {
        head: Duration::from_secs(3600),
        head_in_crowd: Duration::from_secs(1),
        idle: Duration::from_secs(3600),
        stall: Duration::from_secs(3600),
    };

    const NONE: WaitLimits = WaitLimits {
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
        assert_eq!(activity.look(TIMES), ConnectionHealth::Fine);
        assert_eq!(activity.look(NONE), ConnectionHealth::NeverAsked);
        let active = Active::new(&activity);
        assert_eq!(activity.look(NONE), ConnectionHealth::Fine);
        drop(active);
        assert_eq!(activity.look(TIMES), ConnectionHealth::Fine);
        assert_eq!(activity.look(NONE), ConnectionHealth::Idle);
    }

    #[test]
    fn an_answer_that_is_not_taken_ends_its_connection() {
        let activity = Arc::new(Activity::new());
        let _active = Active::new(&activity);
        let taking = ExpectedRead::new(&activity);
        assert_eq!(activity.look(TIMES), ConnectionHealth::Fine);
        assert_eq!(activity.look(NONE), ConnectionHealth::Stalled);
        taking.taken();
        assert_eq!(activity.look(NONE), ConnectionHealth::Fine);
        taking.given();
        drop(taking);
        assert_eq!(activity.look(NONE), ConnectionHealth::Fine);
    }

    #[test]
    fn a_crowd_has_less_time() {
        assert_eq!(TIMES.among(CROWD).idle, TIMES.idle);
        assert_eq!(TIMES.among(CROWD + 1).idle, IDLE_IN_CROWD);
        assert_eq!(TIMES.among(CROWD + 1).head, TIMES.head_in_crowd);
        assert_eq!(NONE.among(CROWD + 1).head, Duration::ZERO);
    }
}
