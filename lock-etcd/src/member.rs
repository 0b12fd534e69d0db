//! One connection to one member, with the keep-alive streams that were opened on it.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
};

use etcd_client::{
    AlarmAction, AlarmResponse, AlarmType, Client, Error, KvClient, LeaseClient, LeaseKeepAliveStream, LeaseKeeper,
    MemberListResponse, StatusResponse, WatchClient,
};

/// How many keep-alive streams are kept for later calls. Idle leases need few calls, and those of holds are spread.
const IDLE_STREAMS: usize = 1;

/// A connection to a member.
pub(crate) struct Member {
    client: Client,
    /// Streams that no call uses at present. One stream could serve all leases, but the server answers a stream's
    /// requests one after the other, and one about a lease that is just running out waits until its end is written:
    /// so each call has a stream to itself.
    idle_streams: Mutex<Vec<(LeaseKeeper, LeaseKeepAliveStream)>>,
}

/// What a keep-alive said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeepAlive {
    /// The lease has its whole length again.
    Alive {
        ttl_s: i64,
        /// The term of the leader that the answering member knew. See [`crate::requests`] for what it proves.
        term: u64,
    },
    /// There is no such lease.
    Dead,
}

impl Member {
    pub(crate) fn new(client: Client) -> Self {
        Member { client, idle_streams: Mutex::default() }
    }

    pub(crate) fn kv(&self) -> KvClient {
        self.client.kv_client()
    }

    pub(crate) fn lease(&self) -> LeaseClient {
        self.client.lease_client()
    }

    pub(crate) fn watch(&self) -> WatchClient {
        self.client.watch_client()
    }

    /// What the member says of itself.
    pub(crate) async fn status(&self) -> Result<StatusResponse, Error> {
        self.client.maintenance_client().status().await
    }

    /// Alarms of all members.
    pub(crate) async fn alarm(&self, action: AlarmAction, of: AlarmType) -> Result<AlarmResponse, Error> {
        self.client.maintenance_client().alarm(action, of, None).await
    }

    /// The members of the cluster.
    pub(crate) async fn member_list(&self) -> Result<MemberListResponse, Error> {
        self.client.cluster_client().member_list().await
    }

    /// Authenticates again.
    pub(crate) async fn refresh_token(&self) -> Result<(), Error> {
        self.client.refresh_token().await
    }

    /// Sets a lease back to its whole length. If this is dropped, so is the stream that it ran on.
    pub(crate) async fn keep_alive(&self, id: i64) -> Result<KeepAlive, Error> {
        let idle = self.idle_streams.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some((keeper, stream)) = idle {
            // A stream may have ended while nobody used it; that says nothing of the lease.
            match self.ask(keeper, stream, id).await {
                Err(error) => tracing::trace!(%error, "a kept stream has ended"),
                answered => return answered,
            }
        }
        // The client reads the first answer of a new stream itself and passes on neither its length nor its term:
        // it is asked for twice.
        match self.lease().keep_alive(id).await {
            Ok((keeper, stream)) => self.ask(keeper, stream, id).await,
            Err(Error::LeaseKeepAliveError(_)) => Ok(KeepAlive::Dead),
            Err(error) => Err(error),
        }
    }

    async fn ask(
        &self,
        mut keeper: LeaseKeeper,
        mut stream: LeaseKeepAliveStream,
        id: i64,
    ) -> Result<KeepAlive, Error> {
        keeper.id = id;
        keeper.keep_alive().await?;
        let ended = || Error::IoError(std::io::ErrorKind::UnexpectedEof.into());
        let answer = stream.message().await?.filter(|answer| answer.id() == id).ok_or_else(ended)?;
        let term = answer.header().map_or(0, etcd_client::ResponseHeader::raft_term);
        let mut idle = self.idle_streams.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_STREAMS {
            idle.push((keeper, stream));
        }
        drop(idle);
        // A length of zero, and no error, is how a dead lease is told (api/v3rpc/lease.go).
        Ok(if answer.ttl() > 0 { KeepAlive::Alive { ttl_s: answer.ttl(), term } } else { KeepAlive::Dead })
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Member")
    }
}
