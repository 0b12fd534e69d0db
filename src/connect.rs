//! From a URL or a configuration to a client.

use lock_core::{Error, ErrorKind, LockClient};

use crate::Config;

/// Connects to the store that a URL names.
///
/// - `memory:` is one store for the whole process.
/// - `sqlite:PATH` is a file on a local disk, made where it is missing; its directory must exist. The path is relative,
///   or absolute as in `sqlite:/var/lib/shop/locks.db` and `sqlite:///var/lib/shop/locks.db`. In it `%`, `?` and `#`
///   are written `%25`, `%3F` and `%23`.
/// - `etcd://HOST:PORT,HOST:PORT` is an etcd cluster, `etcds://` the same over TLS. A user is written before the first
///   host, as in `etcd://USER:PASSWORD@HOST:PORT`, and the port is 2379 unless given.
/// - `redis://[[user]:password@]host[:port][/database]` is a Redis server, port 6379 unless given; `rediss://` reaches it
///   by TLS. In the user and the password `%`, `/`, `?`, `#`, `@` and `:` are percent-encoded.
///
/// - `zk://HOST:PORT,HOST:PORT/CHROOT` is a ZooKeeper ensemble, `zks://` the same over TLS; the chroot must exist. With `zk://USER:PASSWORD@` the
///   nodes are that user's alone. The `lease` is the session's timeout that is asked for, and a session guarantees two
///   thirds of it at a time.
/// - `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, or `postgresql://`, is a table of a PostgreSQL server.
/// - `mysql://USER:PASSWORD@HOST:PORT/DATABASE`, or `mariadb://`, is one of a MySQL or MariaDB server. In a user and a
///   password, characters that mean something in a URL are percent-encoded.
///
/// Options follow a `?`, parted by `&`, each at most once. Durations are written `500ms`, `30s`, `1h30m`.
///
/// | option | meaning | unless given |
/// |---|---|---|
/// | `namespace` | where the client's names live: at most 64 bytes | empty |
/// | `lease` | how long a lock outlives its holder | `30s` |
/// | `wait` | how long `acquire` waits; `0s` is one attempt | without limit |
/// | `connect_timeout` | how long connecting may take | `5s` |
/// | `request_timeout` | how long one call to the store may take | a third of the lock's lease, at most `5s` |
/// | `fence_base` | added to every fencing token | `0` |
/// | `metric_group` | with the feature `metrics`: whether what is counted is told apart by the locks' names, by `prefix` (what comes before the first `:`) or by the whole `name` | `none` |
/// | `password_file`, `password_env` | on stores with users: the file whose first line is the password, or the variable of the environment that has it | none |
/// | `max_connections` | on SQL stores: how many connections; SQLite has one per file and process, so it takes only `1` | `8` |
/// | `table` | on PostgreSQL, MySQL and MariaDB: the table of the locks | `leasehold_locks` |
/// | `listen` | on PostgreSQL: `off` for behind a transaction pooler, where notifications never arrive and nothing may be prepared | `on` |
/// | `sslmode`, `sslrootcert`, `sslcert`, `sslkey`, `host`, `application_name`, `options` | on PostgreSQL: as its own programs read them; `host` may be the directory of a socket | encrypted where the server can |
/// | `ssl-mode`, `ssl-ca`, `ssl-cert`, `ssl-key`, `socket` | on MySQL and MariaDB: as their own programs read them | encrypted where the server can |
/// | `max_page_count` | on SQLite: how many pages of 4 KiB the file may grow to | without limit |
/// | `tls_ca` | on `rediss:`, `etcds:` and `zks:`: the file of certificates, in PEM form, that may have signed the server's | the system's; on `zks:` it must be given |
/// | `tls_cert`, `tls_key` | on `etcds:` and `zks:`: the files, in PEM form, of the certificate to show and of its key | none |
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), leasehold::Error> {
/// let client = leasehold::connect("memory:?namespace=shop&lease=10s&wait=2s").await?;
/// assert_eq!(client.namespace(), "shop");
/// let error = leasehold::connect("memory:?leese=10s").await.unwrap_err();
/// assert_eq!(error.kind(), leasehold::ErrorKind::Config);
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// `Config` for a URL that is wrong, that has an unknown option or a bad value, or whose store is not compiled in.
/// `Unavailable` if the store does not answer within the time to connect. `Backend` if it refuses: for `sqlite:` a file
/// that is a directory, read-only, corrupt or of a newer schema, or a directory that is missing.
///
/// # Cancel safety
///
/// If it is dropped, nothing stays open.
pub async fn connect(url: &str) -> Result<LockClient, Error> {
    connect_config(&Config::from_url(url)?).await
}

/// Connects to the store that a configuration names.
///
/// # Errors
///
/// Those of [`connect`].
///
/// # Cancel safety
///
/// If it is dropped, nothing stays open.
pub async fn connect_config(config: &Config) -> Result<LockClient, Error> {
    let builder = config.store()?.connect(&config.options).await?;
    // What is out of range was set in the configuration, so that is where it is wrong.
    config.options.apply(builder).build().map_err(|error| match error.kind() {
        ErrorKind::InvalidInput => Error::new(ErrorKind::Config, error.to_string()),
        _ => error,
    })
}
