//! The store's client, on threads of its own, and the way in which the main thread waits for its answers.

use std::{
    future::Future,
    panic,
    sync::mpsc::{self, Receiver, Sender, TryRecvError},
    time::Duration,
};

use rustix::process::Signal;
use tokio::{runtime::Runtime, task::JoinHandle};

use super::{Event, held};
use crate::exit::{Exit, Failure};

/// The runtime that the client lives on, and the main thread's inbox.
#[derive(Debug)]
pub(super) struct Background {
    runtime: Runtime,
    events: Sender<Event>,
    inbox: Receiver<Event>,
}

impl Background {
    /// Starts the runtime. One worker is enough: all that it does is to talk to one store.
    pub(super) fn start() -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("store")
            .enable_all()
            .build()
            .map_err(|error| Failure::new(Exit::Unavailable, format!("cannot start the store's threads: {error}")))?;
        let (events, inbox) = mpsc::channel();
        Ok(Background { runtime, events, inbox })
    }

    /// Where events for the main thread go.
    pub(super) fn events(&self) -> Sender<Event> {
        self.events.clone()
    }

    /// What arrives for the main thread.
    pub(super) fn inbox(&self) -> &Receiver<Event> {
        &self.inbox
    }

    /// Runs a future on the runtime; the main thread is woken when it has ended, however that was.
    pub(super) fn ask<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> Asked<T> {
        let (answer, receiver) = mpsc::channel();
        let wake = WakeOnDrop(self.events());
        let task = self.runtime.spawn(async move {
            // Both move in here; what is declared first is dropped last, so the answer is there before the wake-up is.
            let _wake = wake;
            let answer = answer;
            // The main thread may have given up this question.
            let _ = answer.send(future.await);
        });
        Asked { answer: receiver, task }
    }

    /// Waits for an answer, and gives it up for a signal that ends a wait.
    ///
    /// `watch` sees every other event, and is called with None whenever `pace` has passed without one.
    pub(super) fn wait<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
        pace: Option<Duration>,
        mut watch: impl FnMut(Option<Event>),
    ) -> Result<T, Failure> {
        let mut asked = self.ask(future);
        loop {
            match self.look(asked) {
                Ok(answer) => return Ok(answer),
                Err(pending) => asked = pending,
            }
            match self.next(pace) {
                Some(Event::Signal(arrived)) if arrived.ends_the_wait() => {
                    asked.task.abort();
                    // Whoever sent it knows why; the code tells the rest.
                    return Err(Failure::silent(Exit::Signal(arrived.signal.as_raw())));
                }
                Some(Event::Signal(arrived)) if arrived.signal == Signal::TSTP => held::stop_ourselves(),
                event => watch(event),
            }
        }
    }

    /// Waits for an answer whatever signals come: for what must be done after CMD has ended. The future has its limit.
    pub(super) fn finish<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> T {
        let mut asked = self.ask(future);
        loop {
            match self.look(asked) {
                Ok(answer) => return answer,
                Err(pending) => asked = pending,
            }
            self.next(None);
        }
    }

    /// Ends the threads, without waiting for any that is blocked.
    pub(super) fn stop(self) {
        self.runtime.shutdown_background();
    }

    fn look<T>(&self, asked: Asked<T>) -> Result<T, Asked<T>> {
        match asked.answer.try_recv() {
            Ok(answer) => Ok(answer),
            Err(TryRecvError::Empty) => Err(asked),
            // It ended without an answer, and nobody aborted it: a panic there is a panic here.
            Err(TryRecvError::Disconnected) => match self.runtime.block_on(asked.task) {
                Err(error) if error.is_panic() => panic::resume_unwind(error.into_panic()),
                _ => panic!("the store's task ended without an answer"),
            },
        }
    }

    fn next(&self, pace: Option<Duration>) -> Option<Event> {
        // We hold a sender ourselves, so the inbox is never disconnected.
        match pace {
            None => self.inbox.recv().ok(),
            Some(pace) => self.inbox.recv_timeout(pace).ok(),
        }
    }
}

/// A question to the store that is under way.
#[derive(Debug)]
pub(super) struct Asked<T> {
    answer: Receiver<T>,
    task: JoinHandle<()>,
}

impl<T> Asked<T> {
    /// Gives it up.
    pub(super) fn abort(&self) {
        self.task.abort();
    }
}

/// Wakes the main thread when a task has ended, also by a panic.
#[derive(Debug)]
struct WakeOnDrop(Sender<Event>);

impl Drop for WakeOnDrop {
    fn drop(&mut self) {
        let _ = self.0.send(Event::Wake);
    }
}
