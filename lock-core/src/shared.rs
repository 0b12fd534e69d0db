//! What a client's handles, guards and background tasks share, and how its life ends.

use std::{
    sync::{Arc, atomic::AtomicBool, atomic::Ordering},
    time::Duration,
};

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::{
    Backend, Capabilities, Clock, Error, ErrorKind, FencingToken, HolderInfo, LossReason,
    carry::Carrier,
    engine::{self, Engine},
    hold::Hold,
    janitor::{self, Janitor},
    line::Lines,
    meter::{Ended, Meter},
    observe,
    options::{Options, SHORTEST_LEASE},
    owners::Owners,
};

/// The inside of a client.
#[derive(Debug)]
pub(crate) struct Shared {
    /// None only while this is being dropped.
    backend: Option<Arc<dyn Backend>>,
    pub(crate) capabilities: Capabilities,
    pub(crate) options: Options,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) runtime: Handle,
    pub(crate) carrier: Carrier,
    pub(crate) holder: Arc<HolderInfo>,
    pub(crate) engine: Engine,
    pub(crate) janitor: Janitor,
    pub(crate) lines: Lines,
    pub(crate) owners: Owners,
    pub(crate) meter: Meter,
    /// Cancelled when the client is closed or its runtime ends: waiting acquisitions end.
    pub(crate) closed: CancellationToken,
    background_ended: AtomicBool,
    /// The runtime ended under a live hold, which nobody can release any more.
    left_holds: AtomicBool,
}

impl Shared {
    /// Starts the client's two background tasks on the runtime that this is called in.
    pub(crate) fn start(
        backend: Arc<dyn Backend>,
        options: Options,
        clock: Arc<dyn Clock>,
        runtime: Handle,
    ) -> Arc<Alive> {
        let capabilities = backend.capabilities().clone();
        let shared = Arc::new(Shared {
            meter: Meter::new(&capabilities.store, &options),
            capabilities,
            backend: Some(backend),
            options,
            clock,
            holder: Arc::new(HolderInfo::of_this_process()),
            engine: Engine::default(),
            janitor: Janitor::default(),
            lines: Lines::default(),
            owners: Owners::default(),
            closed: CancellationToken::new(),
            background_ended: AtomicBool::new(false),
            left_holds: AtomicBool::new(false),
            carrier: Carrier::new(runtime.clone()),
            runtime: runtime.clone(),
        });
        runtime.spawn(engine::run(Arc::clone(&shared)));
        runtime.spawn(janitor::run(Arc::clone(&shared)));
        Arc::new(Alive { shared })
    }

    /// The backend itself: called through its `Arc`, each call would be boxed twice.
    pub(crate) fn backend(&self) -> &dyn Backend {
        &**self.shared_backend()
    }

    pub(crate) fn shared_backend(&self) -> &Arc<dyn Backend> {
        self.backend.as_ref().expect("the backend is there until the client's last part is dropped")
    }

    /// How long a call may take that is made for the client rather than for one lock.
    pub(crate) fn request_timeout(&self) -> Duration {
        self.options.request_timeout(self.options.lease)
    }

    /// The shortest lease that the store gives.
    pub(crate) fn shortest_lease(&self) -> Duration {
        self.capabilities.lease_min.max(SHORTEST_LEASE)
    }

    /// A store's token as users see it.
    pub(crate) fn user_token(&self, token: FencingToken) -> FencingToken {
        token.raised_by(self.options.fence_base)
    }

    /// An error if the client is closed.
    pub(crate) fn check_open(&self) -> Result<(), Error> {
        if self.closed.is_cancelled() { Err(self.closed_error()) } else { Ok(()) }
    }

    pub(crate) fn closed_error(&self) -> Error {
        let why = if self.has_background_ended() {
            "the tokio runtime that this client was made on has ended; make a client on one that lasts"
        } else {
            "this client has been closed"
        };
        Error::new(ErrorKind::Closed, why)
    }

    /// The client's runtime has ended, or its tasks are done.
    pub(crate) fn background_ended(&self) {
        self.background_ended.store(true, Ordering::Release);
        self.closed.cancel();
    }

    /// Nobody renews or releases this hold any more.
    pub(crate) fn leave_hold(&self, hold: &Hold) {
        self.left_holds.store(true, Ordering::Release);
        hold.changed.notify_waiters();
    }

    pub(crate) fn left_holds(&self) -> bool {
        self.left_holds.load(Ordering::Acquire)
    }

    pub(crate) fn has_background_ended(&self) -> bool {
        self.background_ended.load(Ordering::Acquire)
    }

    /// The client is closed under this hold. One whose lease had run out before keeps that reason.
    pub(crate) fn lose_by_close(&self, hold: &Hold) {
        let earlier = hold.remaining(self.clock.now()).err();
        hold.lose(LossReason::Closed);
        if !hold.is_over() {
            observe::hold_ends(self, hold, Ended::lost(earlier.unwrap_or(LossReason::Closed)));
        }
    }

    /// Refuses new work, tells every live guard that it is lost, and only then gives up the claims (L11).
    pub(crate) fn close(&self) {
        self.closed.cancel();
        let holds = self.engine.shut();
        for hold in &holds {
            self.lose_by_close(hold);
        }
        for hold in holds {
            self.end(&hold.fate);
        }
        self.janitor.end_all_seeking(self);
        self.janitor.finish();
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // A pooled connection that is dropped outside a runtime panics.
        let _entered = self.runtime.enter();
        // Nobody cleans up any more; what is left ends with its lease.
        self.meter.clean_ups_over(self.janitor.clean_ups());
        self.backend.take();
    }
}

/// Held by every client handle, guard and acquisition: when the last is gone, the client winds up.
#[derive(Debug)]
pub(crate) struct Alive {
    pub(crate) shared: Arc<Shared>,
}

impl Drop for Alive {
    fn drop(&mut self) {
        // No guard is left, so there is nothing to tell; the janitor drains what is pending and closes the backend.
        self.shared.closed.cancel();
        self.shared.engine.shut();
        self.shared.janitor.finish();
    }
}
