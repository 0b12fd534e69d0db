//! The files that this process has open: one connection each, however many backends there are.
//!
//! SQLite allows more, but they would only queue for the file's one write lock, and less fairly than in here.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, LazyLock, Mutex, PoisonError, Weak},
};

use crate::{config::Limits, sqlite::store::Store};

static STORES: LazyLock<Mutex<HashMap<PathBuf, Weak<Store>>>> = LazyLock::new(Mutex::default);

/// A share of the store at this path, which `Store::leave` gives back. The path is the canonical one: links to a file lead here.
pub(crate) fn store(path: PathBuf, limits: Limits) -> Arc<Store> {
    let mut stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
    let known = stores.get(&path).and_then(Weak::upgrade);
    let store = known.unwrap_or_else(|| {
        stores.retain(|_, store| store.strong_count() > 0);
        let store = Arc::new(Store::new(path.clone(), limits));
        stores.insert(path, Arc::downgrade(&store));
        store
    });
    store.enter();
    store
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SqliteConfig;

    #[test]
    fn a_file_has_one_store_in_a_process_until_nobody_uses_it() {
        let limits = SqliteConfig::new("unused").limits();
        let first = store(PathBuf::from("/nowhere/a.db"), limits);
        let second = store(PathBuf::from("/nowhere/a.db"), limits);
        let other = store(PathBuf::from("/nowhere/b.db"), limits);
        assert!(Arc::ptr_eq(&first, &second));
        assert!(!Arc::ptr_eq(&first, &other));
        assert!(!first.leave() && second.leave());
    }
}
