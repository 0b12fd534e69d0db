//! The memory backend's data: entries by key, with a queue where one is kept.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::sync::Notify;

use crate::{Claim, ClaimId, FencingToken, Holder, HolderInfo, LockKind, LockName, Namespace};

/// Entries that nobody used for this long are removed; the floor keeps their tokens' order.
pub(super) const RETENTION: Duration = Duration::from_secs(24 * 3_600);

pub(super) type Key = (Namespace, LockName, LockKind);

/// All that the store knows.
#[derive(Debug, Default)]
pub(super) struct Store {
    pub(super) entries: HashMap<Key, Entry>,
    /// No token of a new entry is at or below this.
    floor: u64,
    /// When to look for unused entries next.
    tidy_at: Duration,
}

/// One lock.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) held: Option<Held>,
    pub(super) queue: VecDeque<Queued>,
    last_token: u64,
    used_at: Duration,
    /// Fires when a claim leaves, for waiters of a store without a queue and for the holder itself.
    pub(super) changed: Arc<Notify>,
}

#[derive(Debug)]
pub(super) struct Held {
    pub(super) claim: ClaimId,
    pub(super) token: u64,
    pub(super) until: Duration,
    pub(super) since: SystemTime,
    pub(super) info: Arc<HolderInfo>,
}

#[derive(Debug)]
pub(super) struct Queued {
    pub(super) claim: ClaimId,
    pub(super) until: Duration,
    /// Fires when this claim is first and nobody holds.
    pub(super) turn: Arc<Notify>,
}

impl Store {
    pub(super) fn entry(&mut self, key: &Key, now: Duration) -> &mut Entry {
        self.tidy(now);
        let floor = self.floor;
        let entry = self.entries.entry(key.clone()).or_insert_with(|| Entry {
            held: None,
            queue: VecDeque::new(),
            last_token: floor,
            used_at: now,
            changed: Arc::new(Notify::new()),
        });
        entry.used_at = now;
        entry.expire(now);
        entry
    }

    /// Removes what nobody used for a day, at most once an hour.
    fn tidy(&mut self, now: Duration) {
        if now < self.tidy_at {
            return;
        }
        self.tidy_at = now.saturating_add(Duration::from_secs(3_600));
        let mut floor = self.floor;
        self.entries.retain(|_, entry| {
            entry.expire(now);
            let used = entry.held.is_some() || !entry.queue.is_empty();
            let keep = used || entry.used_at.saturating_add(RETENTION) > now;
            if !keep {
                floor = floor.max(entry.last_token);
            }
            keep
        });
        self.floor = floor;
    }
}

impl Entry {
    /// Drops what has run out; the next in the queue is told.
    pub(super) fn expire(&mut self, now: Duration) {
        let expired = self.held.as_ref().is_some_and(|held| held.until <= now);
        if expired {
            self.held = None;
        }
        let before = self.queue.len();
        self.queue.retain(|queued| queued.until > now);
        if expired || self.queue.len() < before {
            self.tell();
        }
    }

    /// Tells who may want to know that a claim left: one in the queue, or all where there is none.
    pub(super) fn tell(&self) {
        self.changed.notify_waiters();
        if self.held.is_none()
            && let Some(first) = self.queue.front()
        {
            first.turn.notify_waiters();
        }
    }

    pub(super) fn holds(&self, claim: ClaimId) -> bool {
        self.held.as_ref().is_some_and(|held| held.claim == claim)
    }

    pub(super) fn grant(&mut self, claim: &Claim, now: Duration) -> u64 {
        self.queue.retain(|queued| queued.claim != claim.id);
        let token = (self.last_token + 1).max(claim.min_token.get());
        self.last_token = token;
        self.held = Some(Held {
            claim: claim.id,
            token,
            until: now.saturating_add(claim.lease),
            since: SystemTime::now(),
            info: Arc::clone(&claim.holder),
        });
        token
    }

    /// The claim's place in the queue, made or kept.
    pub(super) fn enqueue(&mut self, claim: &Claim, now: Duration) -> Arc<Notify> {
        let until = now.saturating_add(claim.lease);
        if let Some(queued) = self.queue.iter_mut().find(|queued| queued.claim == claim.id) {
            queued.until = queued.until.max(until);
            return Arc::clone(&queued.turn);
        }
        let turn = Arc::new(Notify::new());
        self.queue.push_back(Queued { claim: claim.id, until, turn: Arc::clone(&turn) });
        turn
    }

    pub(super) fn holder(&self, now: Duration) -> Option<Holder> {
        self.held.as_ref().map(|held| {
            let mut holder = Holder::new(held.claim, FencingToken::new(held.token), &held.info);
            holder.since = Some(held.since);
            holder.remaining = Some(held.until.saturating_sub(now));
            holder
        })
    }
}
