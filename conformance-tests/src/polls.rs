//! A future that is given up after a number of polls, the way a lost `select!` arm or an aborted task is.

use std::{
    future::{Future, poll_fn},
    mem,
    pin::Pin,
    task::Poll,
    time::Duration,
};

/// What happens to a future that is not polled any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is dropped as soon as its last poll has returned.
    Dropped,
    /// It is dropped when it is woken for the poll that never comes, so its answer may be there already.
    DroppedWhenWoken,
    /// It is never polled, woken in vain and never dropped.
    Forgotten,
}

impl Fate {
    /// Every fate whose traces must go promptly.
    pub const DROPS: [Fate; 2] = [Fate::Dropped, Fate::DroppedWhenWoken];
}

/// How a future ended that was to be given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left<T> {
    /// It was ready before it could be given up.
    Ended(T),
    /// It was given up after the wanted number of polls.
    Abandoned,
    /// It was not woken in time, and was given up for that.
    Stalled,
}

impl<T> Left<T> {
    /// What it gave, if it was ready.
    pub fn ended(self) -> Option<T> {
        match self {
            Left::Ended(value) => Some(value),
            Left::Abandoned | Left::Stalled => None,
        }
    }
}

/// Polls a future `polls` times, each time when it was really woken, and gives it up then.
///
/// A future that is not woken within `patience` is given up as well: it waits for something that will not come while
/// it is being watched.
pub async fn poll_n_then<T>(polls: usize, fate: Fate, patience: Duration, future: impl Future<Output = T>) -> Left<T> {
    let mut future = Box::pin(future);
    let mut done = 0;
    let driven = poll_fn(|cx| {
        if done == polls {
            return Poll::Ready(Left::Abandoned);
        }
        done += 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(value) => Poll::Ready(Left::Ended(value)),
            Poll::Pending if done == polls && fate != Fate::DroppedWhenWoken => Poll::Ready(Left::Abandoned),
            Poll::Pending => Poll::Pending,
        }
    });
    let left = tokio::select! {
        // First, so that the end of patience is no poll of the future.
        biased;
        () = tokio::time::sleep(patience) => Left::Stalled,
        left = driven => left,
    };
    if fate == Fate::Forgotten && !matches!(left, Left::Ended(_)) {
        mem::forget(future);
    }
    left
}

/// Polls a future once, now: it takes its place in a line without being awaited.
pub(crate) async fn poll_once<F: Future>(future: &mut Pin<Box<F>>) -> Poll<F::Output> {
    poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use super::*;

    struct NoteDrop(Arc<AtomicUsize>);

    impl Drop for NoteDrop {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    async fn yields(times: usize, polled: &AtomicUsize, _note: NoteDrop) -> &'static str {
        for _ in 0..times {
            polled.fetch_add(1, Ordering::SeqCst);
            tokio::task::yield_now().await;
        }
        "done"
    }

    #[tokio::test]
    async fn a_future_that_nobody_wakes_is_given_up() {
        let left = poll_n_then(2, Fate::Dropped, Duration::from_millis(10), std::future::pending::<()>()).await;
        assert_eq!(left, Left::Stalled);
    }

    #[tokio::test]
    async fn a_future_is_polled_exactly_so_often_and_then_meets_its_fate() {
        for fate in [Fate::Dropped, Fate::DroppedWhenWoken, Fate::Forgotten] {
            for polls in 0..=4 {
                let (polled, drops) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
                let future = yields(3, &polled, NoteDrop(Arc::clone(&drops)));
                let left = poll_n_then(polls, fate, Duration::from_secs(5), future).await;
                let expected = if polls == 4 { Left::Ended("done") } else { Left::Abandoned };
                assert_eq!(left, expected, "{fate:?} after {polls}");
                assert_eq!(polled.load(Ordering::SeqCst), polls.min(3), "{fate:?} after {polls}");
                let forgotten = fate == Fate::Forgotten && left == Left::Abandoned;
                assert_eq!(drops.load(Ordering::SeqCst), usize::from(!forgotten), "{fate:?} after {polls}");
            }
        }
    }
}
