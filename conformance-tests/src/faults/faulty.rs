//! A backend whose calls are recorded and go wrong on demand, over any backend that works.
//!
//! It stands between core and the store where a proxy cannot, as with a store in memory or in a file.

use std::{
    fmt,
    future::pending,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use lock_core::{
    Attempt, Backend, BackendError, Busy, Capabilities, Claim, ClaimId, Extension, Grant, LockRecord, Release,
    Selector,
    reexport::futures_util::{StreamExt as _, future, stream},
};
use tokio::sync::watch;

use crate::Deliberate;

/// One of the calls that core makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// `Backend::attempt`
    Attempt,
    /// `Backend::extend`
    Extend,
    /// `Backend::release`
    Release,
    /// `Backend::inspect`
    Inspect,
}

impl Op {
    /// All of them.
    pub const ALL: [Op; 4] = [Op::Attempt, Op::Extend, Op::Release, Op::Inspect];
}

/// What goes wrong with one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The store cannot be reached, and that is known at once.
    Refuse,
    /// The store does what was asked, and the answer is lost on a connection that breaks.
    EatAnswer,
    /// The request is long under way before the store sees it.
    DelayRequest(Duration),
    /// The store acts at once, and its answer is long under way.
    DelayAnswer(Duration),
    /// The request disappears, and nothing ever comes back.
    Swallow,
    /// The store acts, and nothing ever comes back.
    SwallowAnswer,
    /// The request waits in a stopped server's buffer: it is applied when the faults are healed, whatever has become
    /// of who sent it. Nothing ever comes back.
    Buffer,
    /// The store acts, and the backend panics over its answer.
    Panic,
    /// The answer comes, but the notifications that it promises never do.
    Mute,
    /// The answer comes, and its notifications come again and again without a cause.
    Nervous,
}

/// One call that core made.
#[derive(Clone, Debug)]
pub struct Call {
    /// Which call.
    pub op: Op,
    /// The lock's name; empty for `inspect`.
    pub name: String,
    /// The claim; None for `inspect`.
    pub claim: Option<ClaimId>,
    /// The lease that was asked for, where one was.
    pub lease: Option<Duration>,
    /// When it was made.
    pub at: Instant,
    /// What went wrong with it.
    pub fault: Option<Fault>,
}

type Plan = Box<dyn FnMut(&Call) -> Option<Fault> + Send>;

struct State {
    plan: Option<Plan>,
    calls: Vec<Call>,
    in_flight: usize,
}

/// A backend that goes wrong on demand. Clones share the plan and the record of calls.
#[derive(Clone)]
pub struct Faulty {
    inner: Arc<dyn Backend>,
    state: Arc<Mutex<State>>,
    healed: Arc<watch::Sender<u64>>,
}

impl Faulty {
    /// A faultless one over this backend.
    #[must_use]
    pub fn over(inner: Arc<dyn Backend>) -> Self {
        let state = State { plan: None, calls: Vec::new(), in_flight: 0 };
        Faulty { inner, state: Arc::new(Mutex::new(state)), healed: Arc::new(watch::Sender::new(0)) }
    }

    /// From now on, this decides each call's fault.
    pub fn plan(&self, plan: impl FnMut(&Call) -> Option<Fault> + Send + 'static) {
        self.lock().plan = Some(Box::new(plan));
    }

    /// From now on, every call of this sort has this fault.
    pub fn all(&self, op: Op, fault: Fault) {
        self.plan(move |call| (call.op == op).then_some(fault));
    }

    /// From now on, every call of any sort has this fault.
    pub fn every(&self, fault: Fault) {
        self.plan(move |_| Some(fault));
    }

    /// The next call of this sort has this fault, and none after it.
    pub fn next(&self, op: Op, fault: Fault) {
        let mut armed = true;
        self.plan(move |call| (call.op == op && std::mem::take(&mut armed)).then_some(fault));
    }

    /// From now on nothing goes wrong, and what waits in a stopped server's buffer is applied.
    pub fn heal(&self) {
        self.lock().plan = None;
        self.healed.send_modify(|times| *times += 1);
    }

    /// Every call until now, in order.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.lock().calls.clone()
    }

    /// How many calls of this sort there were until now.
    #[must_use]
    pub fn count(&self, op: Op) -> usize {
        self.lock().calls.iter().filter(|call| call.op == op).count()
    }

    /// How many calls core still awaits.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.lock().in_flight
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, op: Op, claim: Option<&Claim>, lease: Option<Duration>) -> (Option<Fault>, InFlight) {
        let name = claim.map(|claim| claim.name.as_str().to_owned()).unwrap_or_default();
        let mut call = Call { op, name, claim: claim.map(|claim| claim.id), lease, at: Instant::now(), fault: None };
        let mut state = self.lock();
        call.fault = state.plan.as_mut().and_then(|plan| plan(&call));
        let fault = call.fault;
        state.calls.push(call);
        state.in_flight += 1;
        (fault, InFlight(Arc::clone(&self.state)))
    }

    /// Makes the call as its fault has it. `call` makes its own copy of the arguments, since a buffered request
    /// outlives who sent it.
    async fn make<T, F>(
        &self,
        fault: Option<Fault>,
        call: impl FnOnce(Arc<dyn Backend>) -> F,
    ) -> Result<T, BackendError>
    where
        F: Future<Output = Result<T, BackendError>> + Send + 'static,
        T: Send + 'static,
    {
        let answer = call(Arc::clone(&self.inner));
        match fault {
            None | Some(Fault::Mute | Fault::Nervous) => answer.await,
            Some(Fault::Refuse) => Err(BackendError::unavailable("connection refused, as the test wants it")),
            Some(Fault::EatAnswer) => {
                answer.await?;
                Err(BackendError::unavailable("connection broken before the answer, as the test wants it"))
            }
            Some(Fault::Panic) => {
                answer.await?;
                std::panic::panic_any(Deliberate)
            }
            Some(Fault::DelayRequest(delay)) => {
                tokio::time::sleep(delay).await;
                answer.await
            }
            Some(Fault::DelayAnswer(delay)) => {
                let answer = answer.await;
                tokio::time::sleep(delay).await;
                answer
            }
            Some(Fault::Swallow) => pending().await,
            Some(Fault::SwallowAnswer) => {
                answer.await?;
                pending().await
            }
            Some(Fault::Buffer) => {
                let mut healed = self.healed.subscribe();
                tokio::spawn(async move {
                    if healed.changed().await.is_ok() {
                        // Nobody is there to take the answer.
                        let _ = answer.await;
                    }
                });
                pending().await
            }
        }
    }
}

/// Counts a call out when it has ended or been given up.
struct InFlight(Arc<Mutex<State>>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).in_flight -= 1;
    }
}

impl fmt::Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faulty").field("inner", &self.inner).finish_non_exhaustive()
    }
}

#[async_trait]
impl Backend for Faulty {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    async fn attempt(&self, claim: &Claim) -> Result<Attempt, BackendError> {
        let (fault, _counted) = self.note(Op::Attempt, Some(claim), Some(claim.lease));
        let claim = claim.clone();
        let answer = self.make(fault, |inner| async move { inner.attempt(&claim).await }).await?;
        Ok(match fault {
            Some(Fault::Mute) => mute(answer),
            Some(Fault::Nervous) => nervous(answer),
            _ => answer,
        })
    }

    async fn extend(&self, claim: &Claim, lease: Duration) -> Result<Extension, BackendError> {
        let (fault, _counted) = self.note(Op::Extend, Some(claim), Some(lease));
        let claim = claim.clone();
        self.make(fault, |inner| async move { inner.extend(&claim, lease).await }).await
    }

    async fn release(&self, claim: &Claim) -> Result<Release, BackendError> {
        let (fault, _counted) = self.note(Op::Release, Some(claim), None);
        let claim = claim.clone();
        self.make(fault, |inner| async move { inner.release(&claim).await }).await
    }

    async fn inspect(&self, selector: &Selector) -> Result<Vec<LockRecord>, BackendError> {
        let (fault, _counted) = self.note(Op::Inspect, None, None);
        let selector = selector.clone();
        self.make(fault, |inner| async move { inner.inspect(&selector).await }).await
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}

/// The same answer from a store whose notifications do not arrive.
fn mute(answer: Attempt) -> Attempt {
    match answer {
        Attempt::Granted(grant) => Attempt::Granted(Grant { disturbed: stream::pending().boxed(), ..grant }),
        Attempt::Busy(busy) => Attempt::Busy(Busy { changed: Box::pin(future::pending()), ..busy }),
    }
}

/// The same answer from a store whose notifications come every 20 ms.
fn nervous(answer: Attempt) -> Attempt {
    const PAUSE: Duration = Duration::from_millis(20);
    let tick = || tokio::time::sleep(PAUSE);
    match answer {
        Attempt::Granted(grant) => {
            let disturbed = stream::unfold((), move |()| async move { Some((tick().await, ())) }).boxed();
            Attempt::Granted(Grant { disturbed, ..grant })
        }
        Attempt::Busy(busy) => Attempt::Busy(Busy { changed: Box::pin(tick()), ..busy }),
    }
}
