//! Making connections: one for requests, one for notifications, both with a limit of time and with what was configured.

use std::{future::Future, io, sync::Arc};

use lock_core::BackendError;
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, IntoConnectionInfo as _, RedisConnectionInfo, RedisError,
    TlsCertificates,
    aio::{MultiplexedConnection, PubSubSink, PubSubStream},
    io::tcp::TcpSettings,
};
use rustls::crypto::{CryptoProvider, ring};

use crate::{
    RedisConfig,
    config::{Tls, config_error},
    error::{backend_error, unread},
};

/// How many requests may wait to be written; more wait for their turn.
const WRITE_QUEUE: usize = 1_024;

/// What is needed to make a connection at any time.
#[derive(Clone)]
pub(crate) struct Connector {
    client: Client,
    config: Arc<RedisConfig>,
    /// The server as messages name it.
    place: Arc<str>,
}

impl Connector {
    /// Reads the roots of TLS, and connects to nothing.
    pub(crate) fn new(config: &RedisConfig) -> Result<Self, BackendError> {
        let place: Arc<str> = config.address().into();
        let client = client(config).map_err(|error| match error {
            Setup::Roots(error) => error,
            Setup::Client(error) => config_error(format!("redis {place} cannot be used: {error}")),
        })?;
        Ok(Connector { client, config: Arc::new(config.clone()), place })
    }

    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    pub(crate) fn database(&self) -> u32 {
        self.config.database
    }

    /// A connection for requests, on which the server has answered.
    pub(crate) async fn open(&self) -> Result<MultiplexedConnection, BackendError> {
        // Core gives a call up by dropping it, and so sets the limit of an answer; the client library has none.
        let settings = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None)
            .set_pipeline_buffer_size(WRITE_QUEUE);
        self.within_limit(async {
            let mut connection = self.client.get_multiplexed_async_connection_with_config(&settings).await?;
            // A server that wants a login, or is loading, says so to the first command and to no connection before it.
            redis::cmd("PING").exec_async(&mut connection).await?;
            Ok(connection)
        })
        .await
    }

    /// A connection for notifications.
    pub(crate) async fn listen(&self) -> Result<(PubSubSink, PubSubStream), BackendError> {
        self.within_limit(async { Ok(self.client.get_async_pubsub().await?.split()) }).await
    }

    async fn within_limit<T>(
        &self,
        connecting: impl Future<Output = Result<T, RedisError>>,
    ) -> Result<T, BackendError> {
        let limit = self.config.connect_timeout;
        match tokio::time::timeout(limit, connecting).await {
            Ok(connected) => connected.map_err(|error| self.error(error)),
            Err(_) => {
                let place = &self.place;
                Err(BackendError::unavailable(format!("redis {place} could not be connected to within {limit:?}")))
            }
        }
    }

    /// What core is told of an error.
    pub(crate) fn error(&self, error: RedisError) -> BackendError {
        backend_error(&self.place, error)
    }

    /// What core is told of an answer that makes no sense.
    pub(crate) fn unread(&self) -> BackendError {
        unread(&self.place)
    }
}

enum Setup {
    Roots(BackendError),
    Client(RedisError),
}

fn client(config: &RedisConfig) -> Result<Client, Setup> {
    let (host, port) = (config.host.clone(), config.port);
    let address = match config.tls {
        Tls::Off => ConnectionAddr::Tcp(host, port),
        Tls::SystemRoots | Tls::Roots(_) => ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None },
    };
    let mut login = RedisConnectionInfo::default().set_db(i64::from(config.database)).set_skip_set_lib_name();
    if let Some(user) = &config.user {
        login = login.set_username(user);
    }
    if let Some(password) = &config.password {
        login = login.set_password(password);
    }
    // A request is one small packet, which must not wait for more to come.
    let tcp = TcpSettings::default().set_nodelay(true);
    let info = address.into_connection_info().map_err(Setup::Client)?.set_redis_settings(login).set_tcp_settings(tcp);
    match &config.tls {
        Tls::Off => Client::open(info).map_err(Setup::Client),
        Tls::SystemRoots => {
            choose_cryptography();
            Client::open(info).map_err(Setup::Client)
        }
        Tls::Roots(file) => {
            choose_cryptography();
            let unusable = |error: io::Error| {
                Setup::Roots(config_error(format!("the TLS roots in {} cannot be read: {error}", file.display())))
            };
            let roots = std::fs::read(file).map_err(unusable)?;
            if !roots.windows(PEM.len()).any(|window| window == PEM) {
                return Err(unusable(io::Error::other("it has no certificate in PEM form")));
            }
            let certificates = TlsCertificates { client_tls: None, root_cert: Some(roots) };
            Client::build_with_tls(info, certificates).map_err(Setup::Client)
        }
    }
}

const PEM: &[u8] = b"-----BEGIN CERTIFICATE-----";

/// TLS cannot choose its cryptography where other crates of the program bring a second one; what the program itself has
/// chosen stays.
fn choose_cryptography() {
    if CryptoProvider::get_default().is_none() {
        // Another thread may have been first, and then its choice stays.
        let _ = ring::default_provider().install_default();
    }
}
