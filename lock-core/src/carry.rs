//! Carrying a call to its end: by its caller as long as that polls it, else by a task of its own (L10).
//!
//! A task for each call would be simpler, but on a call of a tenth of a millisecond the two wake-ups across threads that
//! it costs are most of what leasehold adds. So a call *rides* with its caller at first. A caller that is dropped hands
//! it to a task at once; one that is forgotten, starved, or waiting for a slow store loses it within [`RIDE`].

use std::{
    future::{Future, poll_fn},
    mem,
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, CatchUnwind},
};
use tokio::runtime::Handle;

use crate::sync::Guarded;

#[cfg(test)]
mod tests;

/// How long a call rides with its caller at most.
pub(crate) const RIDE: Duration = Duration::from_millis(20);

/// After so many looks at no rides, nobody looks any more until there is one again.
const IDLE_LOOKS: u32 = 5;

type Call<T> = CatchUnwind<AssertUnwindSafe<BoxFuture<'static, T>>>;

/// A client's rides, of which those that take too long get a task.
#[derive(Debug)]
pub(crate) struct Carrier {
    runtime: Handle,
    rides: Arc<Guarded<Rides>>,
}

/// Whoever is still in the older half at a look has ridden for half of [`RIDE`] at least.
#[derive(Debug, Default)]
struct Rides {
    young: Vec<Arc<dyn Ride>>,
    old: Vec<Arc<dyn Ride>>,
    /// A task looks at them.
    minded: bool,
}

trait Ride: std::fmt::Debug + Send + Sync {
    /// Gives the call a task if it still rides. False if it is being polled just now.
    fn end(self: Arc<Self>) -> bool;
}

/// A call under way, for its caller: resolves to the answer, or to None if the call ended without one, since it panicked
/// or its runtime has ended. Dropping it does not stop the call.
#[derive(Debug)]
pub(crate) struct Carried<T: Send + 'static>(Arc<Cargo<T>>);

struct Cargo<T> {
    runtime: Handle,
    state: Guarded<State<T>>,
}

enum State<T> {
    /// The caller polls it.
    Riding { call: Call<T>, caller: Option<Waker> },
    /// A task polls it.
    Away { caller: Option<Waker> },
    /// It has ended, with or without an answer.
    Home(Option<T>),
    /// The answer is taken, or nobody wants it.
    Settled,
}

impl Carrier {
    pub(crate) fn new(runtime: Handle) -> Self {
        Carrier { runtime, rides: Arc::default() }
    }

    /// Takes a call on; nothing of it runs before the first poll or the drop of what this returns, or the end of the
    /// ride.
    pub(crate) fn carry<T: Send + 'static>(&self, call: impl Future<Output = T> + Send + 'static) -> Carried<T> {
        let call = AssertUnwindSafe(call.boxed()).catch_unwind();
        let state = Guarded::new(State::Riding { call, caller: None });
        let cargo = Arc::new(Cargo { runtime: self.runtime.clone(), state });
        let mut rides = self.rides.lock();
        rides.young.push(Arc::clone(&cargo) as Arc<dyn Ride>);
        if !mem::replace(&mut rides.minded, true) {
            drop(rides);
            self.runtime.spawn(Minder { rides: Arc::clone(&self.rides), done: false }.mind());
        }
        Carried(cargo)
    }
}

/// Whoever looks after the rides, for as long as there are any.
struct Minder {
    rides: Arc<Guarded<Rides>>,
    /// It has nothing to look after any more.
    done: bool,
}

impl Minder {
    /// Looks twice in the time of a ride, until there has been none for a while.
    async fn mind(mut self) {
        let mut idle = 0;
        loop {
            tokio::time::sleep(RIDE / 2).await;
            let late = {
                let mut rides = self.rides.lock();
                let young = mem::take(&mut rides.young);
                mem::replace(&mut rides.old, young)
            };
            for ride in late {
                if !Arc::clone(&ride).end() {
                    self.rides.lock().old.push(ride);
                }
            }
            let rides = Arc::clone(&self.rides);
            let mut rides = rides.lock();
            idle = if rides.young.is_empty() && rides.old.is_empty() { idle + 1 } else { 0 };
            if idle == IDLE_LOOKS {
                rides.minded = false;
                self.done = true;
                return;
            }
        }
    }
}

impl Drop for Minder {
    /// With its runtime ended, every ride ends without an answer, so that no caller on another runtime waits for ever.
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let left = mem::take(&mut *self.rides.lock());
        for ride in left.young.into_iter().chain(left.old) {
            ride.end();
        }
    }
}

impl<T: Send + 'static> Cargo<T> {
    /// Puts the call into a task. To be called while it rides.
    fn send_away(self: &Arc<Self>, call: Call<T>) {
        // A runtime that has ended drops what it is given at once, here.
        let _entered = self.runtime.enter();
        let delivery = Delivery(Arc::clone(self));
        self.runtime.spawn(async move {
            let answer = call.await.ok();
            delivery.0.come_home(answer);
        });
    }

    /// The call has ended. What nobody waits for any more, or what came home before, stays as it is.
    fn come_home(&self, answer: Option<T>) {
        let mut state = self.state.lock();
        let State::Away { caller } = &mut *state else { return };
        let caller = caller.take();
        *state = State::Home(answer);
        drop(state);
        if let Some(caller) = caller {
            caller.wake();
        }
    }
}

/// Tells the caller also of a call whose runtime ended under it.
struct Delivery<T: Send + 'static>(Arc<Cargo<T>>);

impl<T: Send + 'static> Drop for Delivery<T> {
    fn drop(&mut self) {
        self.0.come_home(None);
    }
}

impl<T: Send + 'static> Ride for Cargo<T> {
    fn end(self: Arc<Self>) -> bool {
        let Some(mut state) = self.state.try_lock() else { return false };
        match mem::replace(&mut *state, State::Settled) {
            State::Riding { call, caller } => {
                let waiting = caller.clone();
                *state = State::Away { caller };
                drop(state);
                self.send_away(call);
                if let Some(waiting) = waiting {
                    waiting.wake();
                }
            }
            other => *state = other,
        }
        true
    }
}

impl<T: Send + 'static> Carried<T> {
    /// Resolves to the answer if it comes during the ride, and to None when the ride is over.
    pub(crate) async fn ride(&mut self) -> Option<Option<T>> {
        poll_fn(|cx| match self.poll_unpin(cx) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending if self.is_away() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    fn is_away(&self) -> bool {
        matches!(&*self.0.state.lock(), State::Away { .. })
    }
}

impl<T: Send + 'static> Future for Carried<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let cargo = &self.0;
        let mut state = cargo.state.lock();
        let answer = match &mut *state {
            State::Riding { call, caller } => {
                let entered = cargo.runtime.enter();
                let Poll::Ready(answer) = call.poll_unpin(cx) else {
                    note(caller, cx);
                    return Poll::Pending;
                };
                let spent = mem::replace(&mut *state, State::Settled);
                drop(state);
                drop(spent);
                drop(entered);
                return Poll::Ready(answer.ok());
            }
            State::Away { caller } => {
                note(caller, cx);
                return Poll::Pending;
            }
            State::Home(answer) => answer.take(),
            State::Settled => None,
        };
        *state = State::Settled;
        Poll::Ready(answer)
    }
}

fn note(caller: &mut Option<Waker>, cx: &Context<'_>) {
    if !caller.as_ref().is_some_and(|caller| caller.will_wake(cx.waker())) {
        *caller = Some(cx.waker().clone());
    }
}

impl<T: Send + 'static> Drop for Carried<T> {
    fn drop(&mut self) {
        let before = mem::replace(&mut *self.0.state.lock(), State::Settled);
        if let State::Riding { call, .. } = before {
            self.0.send_away(call);
        }
    }
}

impl<T> std::fmt::Debug for Cargo<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cargo").finish_non_exhaustive()
    }
}
