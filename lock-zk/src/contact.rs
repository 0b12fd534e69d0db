//! Since when a session has been without a connection.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use zookeeper_client::{SessionState, StateWatcher};

/// Whether the client is connected, and since when it is not. Kept by a task that ends with the session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contact(Arc<Mutex<Option<Instant>>>);

impl Contact {
    /// Follows a session that is connected now.
    pub(crate) fn follow(mut states: StateWatcher) -> Self {
        let contact = Contact::default();
        let lost_at = contact.clone();
        tokio::spawn(async move {
            let mut state = states.peek_state();
            while !state.is_terminated() {
                lost_at.note(state);
                state = states.changed().await;
            }
        });
        contact
    }

    /// For how long there has been no connection; nothing while there is one.
    pub(crate) fn silent_for(&self) -> Duration {
        let lost_at = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lost_at.map(|at| at.elapsed()).unwrap_or_default()
    }

    fn note(&self, state: SessionState) {
        let mut lost_at = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match state {
            SessionState::Disconnected => *lost_at = lost_at.or_else(|| Some(Instant::now())),
            _ => *lost_at = None,
        }
    }
}
