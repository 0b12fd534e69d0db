//! The connections of one backend: each has one statement at a time, and goes when its state is in doubt.

use std::{
    collections::VecDeque,
    fmt,
    future::Future,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use lock_core::BackendError;
use sqlx::Connection as _;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::server::{
    Answer, Connection, PrepareError, Server, config::ServerConfig, fault::Fault, statement::Statement,
};

/// A connection that nobody used for so long is asked whether it lives before a statement is trusted to it: servers and
/// firewalls end idle connections, and the first statement would find that out at the caller's expense.
const ASK_AFTER: Duration = Duration::from_secs(30);

/// How long a connection may take to say that it lives.
const ASK_LIMIT: Duration = Duration::from_secs(1);

/// A connection that nobody used for so long is closed.
const IDLE_LIMIT: Duration = Duration::from_secs(600);

/// How often a statement is sent again that met another transaction. Core asks again after that anyhow.
const ROUNDS: u32 = 6;

/// Whether a statement may be sent again by itself when nobody knows whether it was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfUnanswered {
    /// It may: the second answer is as good as the first.
    Again,
    /// Its second answer would mean something else: core decides.
    Tell,
}

/// The connections of one backend.
///
/// **A dropped call** takes its connection with it: what was sent on it may or may not be applied, and nothing else is
/// ever sent behind an answer that nobody read. Connections are held for one statement and never while anything is
/// waited for, so that waiters cannot use up those that a release needs: one is enough for any number of locks.
pub(crate) struct Pool<S: Server> {
    server: S,
    permits: Semaphore,
    idle: Mutex<Idle<Connection<S>>>,
    closed: AtomicBool,
    created: AtomicBool,
    connect_timeout: Duration,
}

struct Idle<C> {
    /// The last is the one that was used last.
    parked: VecDeque<(C, Instant)>,
    /// Connections that were last used before this may have gone with one that was found broken.
    doubted_at: Option<Instant>,
}

impl<S: Server> Pool<S> {
    /// A pool of connections to this server; none is made yet.
    pub(crate) fn new(server: S, config: &ServerConfig) -> Self {
        let most = usize::try_from(config.max_connections).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        Pool {
            server,
            permits: Semaphore::new(most),
            idle: Mutex::new(Idle { parked: VecDeque::new(), doubted_at: None }),
            closed: AtomicBool::new(false),
            created: AtomicBool::new(false),
            connect_timeout: config.connect_timeout,
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// What was created here and nobody has asked for yet, in words.
    pub(crate) fn take_created(&self, table: &str) -> Option<String> {
        let created = self.created.swap(false, Ordering::AcqRel);
        created.then(|| format!("the table {table} and its schema version on {}", self.server.shown()))
    }

    /// What core is told of this error.
    pub(crate) fn error(&self, error: sqlx::Error) -> BackendError {
        S::fault(&error).told(self.server.shown(), error)
    }

    /// Makes the first connection, and the tables where they are missing. Tells whether a sweep is due.
    pub(crate) async fn open(&self) -> Result<bool, BackendError> {
        let mut leased = self.lease().await?;
        let due = self.prepare(&mut leased).await?;
        leased.give_back();
        Ok(due)
    }

    /// Runs a statement, which is its own transaction, and reads its answer to the end.
    ///
    /// What met another transaction is sent again, for nothing was done (L9). What found a connection broken that had
    /// lain idle is sent again on another one, where its second answer is as good as the first.
    pub(crate) async fn run<'q>(
        &self,
        unanswered: IfUnanswered,
        statement: impl Fn() -> Statement<'q>,
    ) -> Result<Answer<S>, BackendError> {
        let mut round = 0;
        loop {
            round += 1;
            let mut leased = self.lease().await?;
            let error = match self.server.read(leased.connection(), statement()).await {
                Ok(answer) => {
                    leased.give_back();
                    return Ok(answer);
                }
                Err(error) => error,
            };
            let fault = S::fault(&error);
            let lay_idle = leased.lay_idle;
            match fault {
                // Somebody dropped the tables, or put an empty database in the server's place.
                Fault::NoTable if round == 1 => {
                    self.prepare(&mut leased).await?;
                    leased.give_back();
                    continue;
                }
                _ if fault.keeps_connection() => leased.give_back(),
                _ => drop(leased),
            }
            match fault {
                Fault::Conflict if round < ROUNDS => {
                    tracing::trace!(%error, round, "met another transaction; asking again");
                    tokio::time::sleep(Duration::from_micros(jitter_us() << round.min(4))).await;
                }
                Fault::NoConnection => {
                    self.doubt();
                    if round > 1 || !lay_idle || unanswered == IfUnanswered::Tell {
                        return Err(fault.told(self.server.shown(), error));
                    }
                }
                _ => return Err(fault.told(self.server.shown(), error)),
            }
        }
    }

    /// Ends the connections. Those in use end with their calls.
    pub(crate) async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.permits.close();
        let parked = std::mem::take(&mut self.idle().parked);
        for (connection, _) in parked {
            // A server that does not answer learns of it by the closed socket.
            let _ = tokio::time::timeout(ASK_LIMIT, connection.close()).await;
        }
    }

    async fn prepare(&self, leased: &mut Leased<'_, S>) -> Result<bool, BackendError> {
        let prepared = self.server.prepare(leased.connection()).await.map_err(|error| match error {
            PrepareError::Sql(error) => self.error(error),
            PrepareError::Refused(sentence) => BackendError::refused(sentence),
        })?;
        self.created.fetch_or(prepared.created, Ordering::AcqRel);
        Ok(prepared.sweep_is_due)
    }

    async fn lease(&self) -> Result<Leased<'_, S>, BackendError> {
        let closed = |_| BackendError::unavailable(format!("{} was closed", self.server.shown()));
        let permit = self.permits.acquire().await.map_err(closed)?;
        while let Some((mut connection, asks)) = self.unpark() {
            if !asks || in_time(ASK_LIMIT, connection.ping()).await.is_ok() {
                return Ok(Leased { pool: self, connection: Some(connection), lay_idle: !asks, _permit: permit });
            }
        }
        let connection = in_time(self.connect_timeout, self.server.connect()).await;
        let connection = connection.map_err(|error| self.error(error))?;
        Ok(Leased { pool: self, connection: Some(connection), lay_idle: false, _permit: permit })
    }

    /// The connection that was used last, and whether it must be asked if it lives.
    fn unpark(&self) -> Option<(Connection<S>, bool)> {
        let mut idle = self.idle();
        let (connection, used_at) = idle.parked.pop_back()?;
        let asks = used_at.elapsed() > ASK_AFTER || idle.doubted_at.is_some_and(|doubted| used_at <= doubted);
        Some((connection, asks))
    }

    fn park(&self, connection: Connection<S>) {
        let now = Instant::now();
        let mut idle = self.idle();
        // Checked under the lock, so that a pool that is closed meanwhile keeps nothing.
        if self.is_closed() {
            return;
        }
        idle.parked.push_back((connection, now));
        let stale = idle.parked.front().is_some_and(|(_, used_at)| now.duration_since(*used_at) > IDLE_LIMIT);
        let stale = if stale { idle.parked.pop_front() } else { None };
        drop(idle);
        drop(stale);
    }

    /// A connection was found broken: all that lie idle may be, after a restart of the server.
    fn doubt(&self) {
        self.idle().doubted_at = Some(Instant::now());
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Idle<Connection<S>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Server> fmt::Debug for Pool<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("server", &self.server).finish_non_exhaustive()
    }
}

/// A connection while a statement has it. Dropped, it closes the connection.
struct Leased<'p, S: Server> {
    pool: &'p Pool<S>,
    connection: Option<Connection<S>>,
    /// It was used before and not asked whether it lives.
    lay_idle: bool,
    _permit: SemaphorePermit<'p>,
}

impl<S: Server> Leased<'_, S> {
    fn connection(&mut self) -> &mut Connection<S> {
        self.connection.as_mut().expect("it has its connection until it gives it back")
    }

    /// Keeps the connection for the next statement: its answer was read to the end.
    fn give_back(mut self) {
        if let Some(connection) = self.connection.take() {
            self.pool.park(connection);
        }
    }
}

async fn in_time<T>(limit: Duration, work: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, sqlx::Error> {
    let late = || std::io::Error::new(std::io::ErrorKind::TimedOut, format!("no answer within {limit:?}"));
    tokio::time::timeout(limit, work).await.unwrap_or_else(|_| Err(late().into()))
}

/// About a millisecond. Those who met each other must not meet again, and nothing more is asked of the randomness.
fn jitter_us() -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    500 + RandomState::new().hash_one(()) % 1_000
}
