//! What a backend is told before it opens its database.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

/// Where an SQLite store is and how it is used.
///
/// ```
/// use std::time::Duration;
/// let config = lock_sql::SqliteConfig::new("/var/lib/shop/locks.db").connect_timeout(Duration::from_secs(1));
/// assert_eq!(config.path(), std::path::Path::new("/var/lib/shop/locks.db"));
/// ```
#[derive(Clone, Debug)]
pub struct SqliteConfig {
    path: PathBuf,
    connect_timeout: Duration,
    busy_timeout: Duration,
    max_page_count: Option<u32>,
}

impl SqliteConfig {
    /// The file at `path`, on a local disk. It is created where it is missing; its directory must exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        SqliteConfig {
            path: path.into(),
            connect_timeout: Duration::from_secs(5),
            busy_timeout: Duration::from_secs(1),
            max_page_count: None,
        }
    }

    /// How long opening may take, the wait for others who create the same file included. 5 s unless set.
    #[must_use]
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// How long a statement waits for its turn while other programs write to the file. 1 s unless set; at most a minute.
    ///
    /// Core repeats what did not get its turn, so that this only bounds how long other calls queue behind.
    #[must_use]
    pub fn busy_timeout(mut self, limit: Duration) -> Self {
        self.busy_timeout = limit.min(Duration::from_secs(60));
        self
    }

    /// The most pages that the file may have, of 4 KiB each unless the file was made with others. No limit unless set.
    ///
    /// At the limit new names are refused, and locks that are held can still be extended and released.
    #[must_use]
    pub fn max_page_count(mut self, pages: u32) -> Self {
        self.max_page_count = Some(pages);
        self
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn limits(&self) -> Limits {
        Limits {
            connect_timeout: self.connect_timeout,
            busy_timeout: self.busy_timeout,
            max_page_count: self.max_page_count,
        }
    }
}

/// The bounds of a configuration, without the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) connect_timeout: Duration,
    pub(crate) busy_timeout: Duration,
    pub(crate) max_page_count: Option<u32>,
}
