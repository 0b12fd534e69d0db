//! Building a client: settings checked once, before anything is sent (L15).

use std::{sync::Arc, time::Duration};

use tokio::runtime::Handle;

use crate::{
    Backend, Clock, Error, ErrorKind, LockClient, Namespace, SystemClock,
    options::{Options, fit_lease},
    shared::Shared,
};

/// Settings of a [`LockClient`] to be.
#[derive(Clone, Debug)]
#[must_use = "a builder makes nothing until `build` is called"]
pub struct ClientBuilder {
    backend: Arc<dyn Backend>,
    clock: Arc<dyn Clock>,
    namespace: String,
    lease: Duration,
    wait: Option<Duration>,
    request_timeout: Option<Duration>,
    backoff: (Duration, Duration),
    safety_poll: Duration,
    fence_base: u64,
    cleanup_limit: usize,
    #[cfg(feature = "metrics")]
    metric_group: crate::MetricGroup,
}

impl ClientBuilder {
    pub(crate) fn new(backend: Arc<dyn Backend>) -> Self {
        ClientBuilder {
            backend,
            clock: Arc::new(SystemClock),
            namespace: String::new(),
            lease: Duration::from_secs(30),
            wait: None,
            request_timeout: None,
            backoff: (Duration::from_millis(50), Duration::from_millis(500)),
            safety_poll: Duration::from_secs(5),
            fence_base: 0,
            cleanup_limit: 65_536,
            #[cfg(feature = "metrics")]
            metric_group: crate::MetricGroup::None,
        }
    }

    /// Where this client's names live: 0 to 64 bytes of UTF-8. Empty unless set; namespaces do not meet (L17).
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// How long a grant lasts unless it is renewed, for locks that do not say otherwise. 30 s unless set.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// How long `acquire` waits, for locks that do not say otherwise. Without limit unless set, or where None.
    pub fn wait(mut self, wait: impl Into<Option<Duration>>) -> Self {
        self.wait = wait.into();
        self
    }

    /// How long one call to the store may take. Unless set: a third of the lock's lease, at most 5 s.
    pub fn request_timeout(mut self, request_timeout: Duration) -> Self {
        self.request_timeout = Some(request_timeout);
        self
    }

    /// The shortest and longest pause between two questions to a store that does not wake its waiters.
    /// 50 ms and 500 ms unless set.
    pub fn backoff(mut self, min: Duration, max: Duration) -> Self {
        self.backoff = (min, max);
        self
    }

    /// The pause between two questions to a store that does wake its waiters, should a wake-up be lost. 5 s unless set.
    pub fn safety_poll(mut self, every: Duration) -> Self {
        self.safety_poll = every;
        self
    }

    /// The clock that deadlines are read from. The machine's, counting suspended time, unless set (L3).
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Added to every fencing token, for those who move to another store or rebuild one (L13). Zero unless set.
    pub fn fence_base(mut self, base: u64) -> Self {
        self.fence_base = base;
        self
    }

    /// How many claims may be sought or await clean-up at once before new acquisitions are refused as `Unavailable`.
    /// 65,536 unless set.
    pub fn cleanup_limit(mut self, limit: usize) -> Self {
        self.cleanup_limit = limit;
        self
    }

    /// Whether metrics tell locks apart by their names. Not at all unless set, since each name may be a time series.
    #[cfg(feature = "metrics")]
    pub fn metric_group(mut self, group: crate::MetricGroup) -> Self {
        self.metric_group = group;
        self
    }

    /// The client. Its background work runs on the tokio runtime that this is called in.
    ///
    /// # Errors
    ///
    /// `Config` outside a tokio runtime; `InvalidInput` for a namespace, lease, timeout or back-off out of range.
    pub fn build(self) -> Result<LockClient, Error> {
        let runtime = Handle::try_current().map_err(|error| {
            Error::new(ErrorKind::Config, "a client is built inside a tokio runtime, and there is none here")
                .with_source(error)
        })?;
        let namespace = Namespace::new(&self.namespace)?;
        let lease = fit_lease(self.lease, self.backend.capabilities())?;
        if self.request_timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "request_timeout 0ns is out of range: it must be longer than zero",
            ));
        }
        let (min, max) = self.backoff;
        if min.is_zero() || min > max || self.safety_poll.is_zero() {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "back-off from {min:?} to {max:?} with a safety poll every {:?} is out of range: all must be longer \
                     than zero, and the first at most the second",
                    self.safety_poll
                ),
            ));
        }
        let options = Options {
            namespace,
            lease,
            wait: self.wait,
            request_timeout: self.request_timeout,
            poll_min: min,
            poll_max: max,
            safety_poll: self.safety_poll,
            fence_base: self.fence_base,
            cleanup_limit: self.cleanup_limit,
            #[cfg(feature = "metrics")]
            metric_group: self.metric_group,
        };
        Ok(LockClient::new(Shared::start(self.backend, options, self.clock, runtime)))
    }
}
