//! The clock that every deadline is read from: never the wall clock, and suspended time counts (L3).

use std::{
    fmt::Debug,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// Where deadlines come from.
///
/// A clock tells the time since some fixed moment, never goes back, and goes on while the machine is suspended. Tests
/// that pause time give the same clock to the client and to the memory backend.
pub trait Clock: Debug + Send + Sync + 'static {
    /// The time since the clock's own beginning.
    fn now(&self) -> Duration;
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Duration {
        (**self).now()
    }
}

/// The machine's clock: `CLOCK_BOOTTIME` on Linux and Android, which counts suspended time.
///
/// Elsewhere on Unix it is `CLOCK_MONOTONIC`, which counts suspended time on macOS; on other systems it is
/// [`std::time::Instant`].
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[cfg(unix)]
    fn now(&self) -> Duration {
        use rustix::time::{ClockId, clock_gettime};
        #[cfg(any(target_os = "linux", target_os = "android"))]
        const CLOCK: ClockId = ClockId::Boottime;
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        const CLOCK: ClockId = ClockId::Monotonic;
        let time = clock_gettime(CLOCK);
        // Both parts are never negative on these clocks (clock_gettime(2)).
        Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
    }

    #[cfg(not(unix))]
    fn now(&self) -> Duration {
        static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
        START.elapsed()
    }
}

/// Tokio's clock, for tests under `tokio::time::pause`.
#[derive(Clone, Copy, Debug)]
pub struct TokioClock {
    start: tokio::time::Instant,
}

impl TokioClock {
    /// A clock that begins now. Needs a tokio runtime.
    #[must_use]
    pub fn new() -> Self {
        TokioClock { start: tokio::time::Instant::now() }
    }
}

impl Default for TokioClock {
    fn default() -> Self {
        TokioClock::new()
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }
}

/// A clock that runs with another and can be put forward, as a suspend of the machine would. Clones are one clock.
///
/// ```
/// use std::time::Duration;
/// use lock_core::{Clock, ManualClock};
/// let clock = ManualClock::stopped();
/// clock.advance(Duration::from_secs(60));
/// assert_eq!(clock.now(), Duration::from_secs(60));
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock {
    base: Option<Arc<dyn Clock>>,
    ahead: Arc<Mutex<Duration>>,
}

impl ManualClock {
    /// A clock that stands still between calls of [`advance`](ManualClock::advance).
    #[must_use]
    pub fn stopped() -> Self {
        ManualClock { base: None, ahead: Arc::default() }
    }

    /// A clock that runs with `base` and can be put forward from there.
    pub fn over(base: impl Clock) -> Self {
        ManualClock { base: Some(Arc::new(base)), ahead: Arc::default() }
    }

    /// Puts the clock forward.
    pub fn advance(&self, by: Duration) {
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        *ahead = ahead.saturating_add(by);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        let ahead = *self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        self.base.as_ref().map_or(ahead, |base| base.now().saturating_add(ahead))
    }
}
