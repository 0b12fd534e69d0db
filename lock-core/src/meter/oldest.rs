//! The oldest hold of a store and namespace in this process: a leak is seen in it while it lasts.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    sync::{Arc, LazyLock, Weak},
    time::{SystemTime, UNIX_EPOCH},
};

use metrics::Gauge;

use crate::sync::Guarded;

/// Holds by when they began, in microseconds since 1970; the id keeps two of one moment apart.
type Holds = Guarded<BTreeSet<(u64, u64)>>;

/// By store and namespace.
type Clients = Guarded<HashMap<(String, String), Weak<Holds>>>;

/// Clients of one store and namespace write one gauge, so they must share what it is of.
static SHARED: LazyLock<Clients> = LazyLock::new(Guarded::default);

/// The gauge, and the holds that it tells the oldest of.
pub(super) struct Oldest {
    holds: Arc<Holds>,
    gauge: Gauge,
}

/// One hold among those, until this is dropped.
pub(crate) struct Open {
    oldest: Arc<Oldest>,
    key: (u64, u64),
}

impl Oldest {
    pub(super) fn new(store: &str, namespace: &str, gauge: Gauge) -> Arc<Self> {
        let mut shared = SHARED.lock();
        shared.retain(|_, holds| holds.strong_count() > 0);
        let entry = shared.entry((store.to_owned(), namespace.to_owned())).or_default();
        let holds = entry.upgrade().unwrap_or_else(|| {
            let holds = Arc::default();
            *entry = Arc::downgrade(&holds);
            holds
        });
        Arc::new(Oldest { holds, gauge })
    }

    pub(super) fn opens(self: &Arc<Self>, id: u64) -> Open {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let key = (u64::try_from(since.as_micros()).unwrap_or(u64::MAX), id);
        self.change(|holds| holds.insert(key));
        Open { oldest: Arc::clone(self), key }
    }

    fn change(&self, change: impl FnOnce(&mut BTreeSet<(u64, u64)>) -> bool) {
        let (mut told, mut first) = {
            let mut holds = self.holds.lock();
            let before = holds.first().copied();
            change(&mut holds);
            (before, holds.first().copied())
        };
        // The recorder is not called under the lock, since it may do anything, such as dropping a guard. Two that change
        // at once may then tell in the wrong order: whoever told what is not so any more tells again.
        while told != first {
            #[expect(clippy::cast_precision_loss, reason = "exact to the microsecond until the year 2255")]
            self.gauge.set(first.map_or(0.0, |(since, _)| since as f64 / 1e6));
            told = first;
            first = self.holds.lock().first().copied();
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.oldest.change(|holds| holds.remove(&self.key));
    }
}

impl fmt::Debug for Open {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Open").field(&self.key).finish()
    }
}
