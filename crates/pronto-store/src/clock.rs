//! Time and random numbers, which the simulation replaces.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ring::rand::{SecureRandom as _, SystemRandom};

/// A source of the time of a process, and of random numbers.
pub trait Clock: Send + Sync + 'static {
    /// Returns the time since some earlier time, from a monotonic clock.
    fn now(&self) -> Duration;

    /// Returns the time since 1970. It is recorded for information, and no decision depends on it.
    fn time(&self) -> Duration;

    /// Waits for `duration`.
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send;

    /// Returns an unpredictable number.
    fn random(&self) -> u64;
}

/// The clock of the system, with tokio's timers.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
    random: SystemRandom,
}

impl Default for SystemClock {
    fn default() -> Self {
        SystemClock {
            start: Instant::now(),
            random: SystemRandom::new(),
        }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn time(&self) -> Duration {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    fn random(&self) -> u64 {
        let mut bytes = [0; 8];
        self.random
            .fill(&mut bytes)
            .expect("the system has random numbers");
        u64::from_be_bytes(bytes)
    }
}
