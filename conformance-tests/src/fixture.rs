//! What a backend brings to the suite: a way to reach its store, a second way to look into it, and what can be done to it.

use std::{fmt::Debug, net::SocketAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use lock_core::{Backend, Clock};

use crate::{Oracle, Outcome, Stop, oracle::ThroughBackend};

/// One store that the suite runs against.
///
/// Only [`name`](Fixture::name) and [`connect`](Fixture::connect) must be written. Each further method lets more cases
/// run; a case whose method is missing is reported as ignored, with the reason.
///
/// Every future is polled in the runtime of one case, and whatever connects must not outlive it: a fixture keeps
/// addresses, paths and processes, never connections.
#[async_trait]
pub trait Fixture: Debug + Send + Sync + 'static {
    /// The store's name in reports, such as `sqlite`.
    fn name(&self) -> &str;

    /// A new connection to the store, as independent of all others as another process would have.
    async fn connect(&self) -> Outcome<Arc<dyn Backend>>;

    /// A second way to look into the store. Without one, the suite looks through another connection of the backend,
    /// which sees holders and waiters and little else.
    async fn oracle(&self) -> Outcome<Arc<dyn Oracle>> {
        Ok(Arc::new(ThroughBackend::new(self.connect().await?)))
    }

    /// The clock of every client that a case makes, where it is not the machine's.
    fn clock(&self) -> Option<Arc<dyn Clock>> {
        None
    }

    /// A store that only the calling case will use, since it restarts, stops or counts all of it.
    async fn private(&self) -> Outcome<Arc<dyn Fixture>> {
        Err(Stop::skipped("the fixture gives no store of a case's own"))
    }

    /// A store for one case, where making one costs next to nothing, so that cases do not slow each other down. None
    /// where all cases share the store.
    async fn of_one_case(&self) -> Outcome<Option<Arc<dyn Fixture>>> {
        Ok(None)
    }

    /// How another process reaches this store, as text that [`Fixture::open`] takes there. None where no other process
    /// can, as with a store in memory.
    fn spec(&self) -> Option<String> {
        None
    }

    /// In another process: the connection that a [`spec`](Fixture::spec) describes.
    async fn open(&self, spec: &str) -> Outcome<Arc<dyn Backend>> {
        Err(Stop::broken(format!("this fixture cannot open {spec:?}")))
    }

    /// The server, where there is one that this fixture may stop and start.
    fn server(&self) -> Option<Arc<dyn Server>> {
        None
    }

    /// Where the store listens, for cases that put a proxy before it.
    fn address(&self) -> Option<SocketAddr> {
        None
    }

    /// A connection by way of another address, such as a proxy's.
    async fn connect_by(&self, address: SocketAddr) -> Outcome<Arc<dyn Backend>> {
        Err(Stop::skipped(format!("the fixture cannot reach its store by way of {address}")))
    }
}

/// A server that a case may stop, start and cut off. Only that of a private fixture is ever touched.
#[async_trait]
pub trait Server: Debug + Send + Sync + 'static {
    /// Ends the server and starts it again with its data.
    async fn restart(&self) -> Outcome;

    /// Ends the server and starts it again without its data.
    async fn restart_empty(&self) -> Outcome {
        Err(Stop::skipped("the fixture cannot restart its server without its data"))
    }

    /// Stops the server's process; what is sent meanwhile waits in its buffers.
    ///
    /// # Errors
    ///
    /// When it is not running.
    fn pause(&self) -> Outcome;

    /// Lets a stopped server go on.
    ///
    /// # Errors
    ///
    /// When it is not running.
    fn resume(&self) -> Outcome;

    /// Cuts every client's connection, as an administrator can, and leaves the sessions behind them alone.
    async fn cut_connections(&self) -> Outcome {
        Err(Stop::skipped("the fixture cannot cut its server's connections"))
    }

    /// How long after a start the server may take until clients are served again.
    fn recovery(&self) -> Duration {
        Duration::from_secs(5)
    }
}
