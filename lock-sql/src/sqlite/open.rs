//! Finding the file, opening it, and making sure that it is one of ours.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use lock_core::{BackendError, BackendErrorKind};
use sqlx::{
    Connection as _, Row as _, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteSynchronous},
};

use crate::{config::Limits, error::Fault, schedule};

/// The layout of the tables that this version reads and writes.
const VERSION: i64 = 1;

const PRESENT: &str = include_str!("../../sql/present.sqlite.sql");
const SCHEMA: &str = include_str!("../../sql/schema.sqlite.sql");
const STATE: &str = include_str!("../../sql/version.sqlite.sql");
const WRITABLE: &str = include_str!("../../sql/writable.sqlite.sql");

/// Copies the log into the file as far as nobody is in the way, after which the log begins anew.
pub(crate) const CHECKPOINT: &str = "PRAGMA wal_checkpoint(PASSIVE)";

/// Why a file could not be opened.
#[derive(Debug)]
pub(crate) enum OpenError {
    /// SQLite said so.
    Sqlite(sqlx::Error),
    /// It is not what it should be.
    Refused(String),
}

impl From<sqlx::Error> for OpenError {
    fn from(error: sqlx::Error) -> Self {
        OpenError::Sqlite(error)
    }
}

impl OpenError {
    /// Whether others only had the file locked for the moment.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self, OpenError::Sqlite(error) if Fault::of(error) == Fault::Busy)
    }
}

/// A file that was opened.
pub(crate) struct Opened {
    pub(crate) connection: SqliteConnection,
    pub(crate) file: Option<FileId>,
    pub(crate) sweep_is_due: bool,
    /// The tables were missing, and so perhaps was the file.
    pub(crate) created: bool,
}

/// The absolute path of the file, without links.
///
/// SQLite takes a path that begins with `file:` for a URI; an absolute one never does.
///
/// # Errors
///
/// `Config` for a path that can be no store's, `Refused` for one where no file can be.
pub(crate) fn locate(given: &Path) -> Result<PathBuf, BackendError> {
    let config = |what: &str| BackendError::new(BackendErrorKind::Config, format!("sqlite file {given:?} {what}"));
    let Some(name) = given.file_name() else {
        return Err(config("names no file; give the path of one, such as locks.db"));
    };
    if given.as_os_str().to_str().is_none_or(|path| path.contains('\0')) {
        return Err(config("is not a path in UTF-8 without NUL; rename it"));
    }
    if given.starts_with(":memory:") {
        return Err(config("would be private to one connection; use memory: for a store of this process"));
    }
    let given_shown = given.display();
    match fs::metadata(given) {
        Ok(file) if file.is_dir() => {
            Err(BackendError::refused(format!("sqlite file {given_shown} is a directory; name a file in it")))
        }
        Ok(file) if !file.is_file() => {
            Err(BackendError::refused(format!("sqlite file {given_shown} is not a regular file; name one")))
        }
        Ok(_) => fs::canonicalize(given).map_err(|error| unreachable(given, error)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let directory = match given.parent() {
                Some(parent) if parent != Path::new("") => parent,
                _ => Path::new("."),
            };
            let directory = fs::canonicalize(directory).map_err(|error| unreachable(given, error))?;
            Ok(directory.join(name))
        }
        Err(error) => Err(unreachable(given, error)),
    }
}

fn unreachable(given: &Path, error: io::Error) -> BackendError {
    let given = given.display();
    let sentence = match error.kind() {
        io::ErrorKind::NotFound => {
            format!("sqlite file {given} cannot be created: its directory does not exist; create it")
        }
        io::ErrorKind::NotADirectory => {
            format!("sqlite file {given} cannot be opened: a part of its path is no directory")
        }
        _ => format!("sqlite file {given} cannot be opened: {error}; check the permissions on its path"),
    };
    BackendError::refused(sentence).with_source(error)
}

/// Opens the file and checks it. If the future is dropped the connection closes, and with it any transaction.
pub(crate) async fn open(path: &Path, limits: &Limits) -> Result<Opened, OpenError> {
    let mut connection = SqliteConnection::connect_with(&options(path, limits)).await?;
    let mode: String = sqlx::query_scalar("PRAGMA journal_mode = WAL").fetch_one(&mut connection).await?;
    if mode != "wal" {
        return Err(OpenError::Refused(format!(
            "sqlite file {} cannot have a write-ahead log, only {mode}; put it on a local disk and make it writable",
            path.display()
        )));
    }
    let created = sqlx::query(PRESENT).fetch_all(&mut connection).await?.is_empty();
    if created {
        sqlx::raw_sql(SCHEMA).execute(&mut connection).await?;
        // The file takes the room that the tables need now, so that it can do with that on a disk that is full later.
        // Where others are creating it too, one of them gets to it.
        let _ = sqlx::query(CHECKPOINT).fetch_all(&mut connection).await;
    }
    let sweep_is_due = check_version(path, &mut connection).await?;
    match sqlx::query(WRITABLE).fetch_all(&mut connection).await {
        // Others are writing, so that it can be written.
        Err(error) if Fault::of(&error) != Fault::Busy => return Err(error.into()),
        _ => {}
    }
    Ok(Opened { connection, file: FileId::of(path), sweep_is_due, created })
}

fn options(path: &Path, limits: &Limits) -> SqliteConnectOptions {
    let mut options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .busy_timeout(limits.busy_timeout)
        // A power cut may take the last transactions, and takes their holders with them. A crash of the process does not.
        .synchronous(SqliteSynchronous::Normal)
        .thread_name(|number| format!("lease-sqlite-{number}"));
    if let Some(pages) = limits.max_page_count {
        options = options.pragma("max_page_count", pages.to_string());
    }
    sqlx::ConnectOptions::disable_statement_logging(options)
}

/// Whether a sweep is due, if the tables are of this version.
async fn check_version(path: &Path, connection: &mut SqliteConnection) -> Result<bool, OpenError> {
    let rows = sqlx::query(STATE).bind(schedule::PERIOD_US).fetch_all(connection).await?;
    let path = path.display();
    let Some(row) = rows.first() else {
        return Err(OpenError::Refused(format!("sqlite file {path} has lost its schema version; name another file")));
    };
    match row.try_get(0)? {
        VERSION => Ok(row.try_get::<i64, _>(1)? == 1),
        newer @ VERSION.. => Err(OpenError::Refused(format!(
            "sqlite file {path} has schema version {newer}, and this version of leasehold knows {VERSION}; upgrade leasehold"
        ))),
        other => Err(OpenError::Refused(format!(
            "sqlite file {path} has schema version {other}, which never was; leasehold knows {VERSION}; name another file"
        ))),
    }
}

/// Which file a path leads to, to notice when it leads to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// None where there is no file, or none that can be told from others.
    #[cfg(unix)]
    pub(crate) fn of(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        let file = fs::metadata(path).ok()?;
        Some(FileId { device: file.dev(), inode: file.ino() })
    }

    #[cfg(not(unix))]
    pub(crate) fn of(_path: &Path) -> Option<Self> {
        None
    }
}
