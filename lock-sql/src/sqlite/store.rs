//! One file and the one connection that this process has to it.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use lock_core::{BackendError, reexport::futures_util::TryStreamExt as _};
use sqlx::{Connection as _, Either, Executor as _, Row as _, SqliteConnection, sqlite::SqliteRow};
use tokio::sync::{Mutex, MutexGuard};

use crate::{
    config::Limits,
    error::{Fault, backend_error},
    schedule::Schedule,
    sqlite::{
        Statement,
        open::{self, FileId, OpenError},
        sweep,
    },
};

/// How long to wait before a file that others had locked is opened again.
const OPEN_AGAIN_AFTER: Duration = Duration::from_millis(5);

/// How often to look whether the path still leads to the file. Looking costs a twentieth of an acquire and release.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A file, opened by the first call that needs it and again whenever its connection has ended.
///
/// **A dropped call** leaves the connection as it is. The connection has a thread that takes statements from a queue
/// and ends each that it began, in the order of the calls. So what was dropped is still applied or not, but before any
/// later statement, and a release that follows a dropped attempt cannot overtake it. How long a statement can hold the
/// others up is bounded by `busy_timeout`. A new connection would be no faster and would lose that order.
pub(crate) struct Store {
    path: PathBuf,
    limits: Limits,
    shares: AtomicUsize,
    connection: Mutex<Option<Connected>>,
    schedule: Schedule,
    created: AtomicBool,
}

struct Connected {
    connection: SqliteConnection,
    file: Option<FileId>,
    looked_at: Instant,
}

impl Connected {
    /// Whether the path leads to another file by now, or to none. Looks from time to time.
    fn is_elsewhere(&mut self, path: &Path) -> bool {
        let now = Instant::now();
        if now.duration_since(self.looked_at) < LOOK_EVERY {
            return false;
        }
        self.looked_at = now;
        self.file != FileId::of(path)
    }
}

impl Store {
    pub(crate) fn new(path: PathBuf, limits: Limits) -> Self {
        Store {
            path,
            limits,
            shares: AtomicUsize::new(0),
            connection: Mutex::new(None),
            schedule: Schedule::default(),
            created: AtomicBool::new(false),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What core is told of this error.
    pub(crate) fn error(&self, error: sqlx::Error) -> BackendError {
        backend_error(&self.path, error)
    }

    /// Whether the tables were created here and nobody has asked yet.
    pub(crate) fn take_created(&self) -> bool {
        self.created.swap(false, Ordering::AcqRel)
    }

    /// Counts one more backend.
    pub(crate) fn enter(&self) {
        self.shares.fetch_add(1, Ordering::AcqRel);
    }

    /// Counts one backend less, and says whether it was the last.
    pub(crate) fn leave(&self) -> bool {
        self.shares.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Opens the file for a new backend, within the time to connect.
    pub(crate) async fn open(self: &Arc<Self>) -> Result<(), BackendError> {
        let limit = self.limits.connect_timeout;
        let mut busy = None;
        let opening = async {
            let mut slot = self.connection.lock().await;
            loop {
                match self.connected(&mut slot).await {
                    Ok(_) => return Ok(()),
                    // Others may be creating it, and SQLite does not wait for a change of the journal's mode.
                    Err(error) if error.is_busy() => busy = Some(error),
                    Err(error) => return Err(self.open_error(error)),
                }
                tokio::time::sleep(OPEN_AGAIN_AFTER).await;
            }
        };
        match tokio::time::timeout(limit, opening).await {
            Ok(answer) => answer,
            Err(_) => Err(busy.map_or_else(
                || {
                    let path = self.path.display();
                    BackendError::unavailable(format!(
                        "sqlite file {path} was not opened within {limit:?}; check its disk"
                    ))
                },
                |busy| self.open_error(busy),
            )),
        }
    }

    /// Runs a statement and commits it.
    pub(crate) async fn run<'q>(&self, statement: impl Fn() -> Statement<'q>) -> Result<Answer, BackendError> {
        let mut slot = self.slot().await?;
        run(&mut slot, statement()).await.map_err(|error| self.error(error))
    }

    /// The same, for a statement that changes rows in place and so can do without more room.
    ///
    /// On a full disk the log cannot grow. Once it is copied into the file it begins anew, in the room that it has. (That
    /// fails, too, where it has pages of new names for which the file would have to grow.)
    pub(crate) async fn run_in_place<'q>(&self, statement: impl Fn() -> Statement<'q>) -> Result<Answer, BackendError> {
        let mut slot = self.slot().await?;
        let full = match run(&mut slot, statement()).await {
            Err(error) if Fault::of(&error) == Fault::Full => error,
            other => return other.map_err(|error| self.error(error)),
        };
        if run(&mut slot, sqlx::query(open::CHECKPOINT)).await.is_err() {
            return Err(self.error(full));
        }
        run(&mut slot, statement()).await.map_err(|error| self.error(error))
    }

    /// What a PRAGMA answers that answers with one number.
    pub(crate) async fn number(&self, pragma: &'static str) -> Result<i64, BackendError> {
        let answer = self.run(|| sqlx::query(pragma)).await?;
        answer.rows.first().map_or(Ok(0), |row| row.try_get(0)).map_err(|error| self.error(error))
    }

    /// Runs a statement if the file is open and in use. A sweep need not open it for its own sake.
    pub(crate) async fn run_if_open<'q>(&self, statement: Statement<'q>) -> Result<Answer, sqlx::Error> {
        let mut slot = self.connection.lock().await;
        if self.shares.load(Ordering::Acquire) == 0 {
            return Err(sqlx::Error::PoolClosed);
        }
        run(&mut slot, statement).await
    }

    /// Closes the connection if no backend has come since the last one left.
    pub(crate) async fn close_if_unused(&self) {
        let mut slot = self.connection.lock().await;
        if self.shares.load(Ordering::Acquire) > 0 {
            return;
        }
        if let Some(connected) = slot.take()
            && let Err(error) = connected.connection.close().await
        {
            tracing::debug!(path = %self.path.display(), %error, "closing the lock store failed");
        }
    }

    /// Looks for idle rows behind the caller's back if nobody has for an hour.
    pub(crate) fn sweep_when_due(self: &Arc<Self>) {
        if self.schedule.is_due() {
            sweep::spawn(self);
        }
    }

    async fn slot(&self) -> Result<MutexGuard<'_, Option<Connected>>, BackendError> {
        let mut slot = self.connection.lock().await;
        if self.shares.load(Ordering::Acquire) == 0 {
            return Err(BackendError::unavailable(format!("sqlite file {} was closed", self.path.display())));
        }
        self.connected(&mut slot).await.map_err(|error| self.open_error(error))?;
        Ok(slot)
    }

    /// Opens the file if there is no connection, or if the path leads to another file by now.
    async fn connected<'s>(&self, slot: &'s mut Option<Connected>) -> Result<&'s mut Connected, OpenError> {
        // A deleted file could be written for ever without anyone to see it, and would exclude nobody.
        if slot.as_mut().is_some_and(|connected| connected.is_elsewhere(&self.path)) {
            tracing::warn!(path = %self.path.display(), "the lock store was replaced by another file; opening that");
            *slot = None;
        }
        match slot {
            Some(connected) => Ok(connected),
            None => {
                let opened = open::open(&self.path, &self.limits).await?;
                self.schedule.set(opened.sweep_is_due);
                self.created.fetch_or(opened.created, Ordering::AcqRel);
                Ok(slot.insert(Connected {
                    connection: opened.connection,
                    file: opened.file,
                    looked_at: Instant::now(),
                }))
            }
        }
    }

    fn open_error(&self, error: OpenError) -> BackendError {
        match error {
            OpenError::Sqlite(error) => self.error(error),
            OpenError::Refused(sentence) => BackendError::refused(sentence),
        }
    }
}

/// All that a statement answers with.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) rows: Vec<SqliteRow>,
    pub(crate) changed: u64,
}

/// Runs a statement on the connection, if there is one, and lets go of a connection that may be broken.
///
/// The answer is read to its end, also where one row is all there is: only the end tells that the commit went well.
async fn run(slot: &mut Option<Connected>, statement: Statement<'_>) -> Result<Answer, sqlx::Error> {
    let Some(connected) = slot else { return Err(sqlx::Error::PoolClosed) };
    let answer = read(&mut connected.connection, statement).await;
    if let Err(error) = &answer
        && Fault::of(error).ends_connection()
    {
        *slot = None;
    }
    answer
}

async fn read(connection: &mut SqliteConnection, statement: Statement<'_>) -> Result<Answer, sqlx::Error> {
    let mut answer = Answer::default();
    let mut parts = connection.fetch_many(statement);
    while let Some(part) = parts.try_next().await? {
        match part {
            Either::Left(end) => answer.changed += end.rows_affected(),
            Either::Right(row) => answer.rows.push(row),
        }
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use sqlx::{ConnectOptions as _, sqlite::SqliteConnectOptions};

    use super::*;

    #[tokio::test]
    async fn a_commit_that_fails_is_an_error_though_the_row_came_first() {
        let directory = tempfile::tempdir().expect("a directory");
        let options = SqliteConnectOptions::new().filename(directory.path().join("a.db")).create_if_missing(true);
        let mut connection = options.connect().await.expect("the file opens");
        sqlx::raw_sql("CREATE TABLE t (x INTEGER)").execute(&mut connection).await.expect("a table");
        connection.lock_handle().await.expect("the handle").set_commit_hook(|| false);

        let insert = || sqlx::query("INSERT INTO t VALUES (1) RETURNING x");
        // This is why one row is not enough: it is there before the commit, and the commit's failure comes behind it.
        assert!(insert().fetch_optional(&mut connection).await.expect("a row all the same").is_some());
        assert!(read(&mut connection, insert()).await.is_err());
    }
}
