//! ZooKeeper by URL: `zk://USER:PASSWORD@HOST:PORT,HOST:PORT/CHROOT`, and `zks://` by TLS.

use lock_core::{ClientBuilder, Error, LockClient};
use lock_zk::{ZkBackend, ZkConfig};

use crate::{
    options::Options,
    scheme::{Scheme, config},
    text::decode,
};

/// An ensemble and how it is reached. Its `Debug` shows no password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ensemble {
    config: ZkConfig,
    #[cfg(feature = "zookeeper-tls")]
    by_tls: bool,
}

/// The ensemble that stands between a URL's scheme and its options.
///
/// # Errors
///
/// `Config` for servers that are badly written, for a user without a password, and for what is not percent-encoded
/// UTF-8. No message has the password.
pub(crate) fn parse(scheme: Scheme, place: &str) -> Result<Ensemble, Error> {
    let store = scheme.prefix();
    let place = place
        .strip_prefix("//")
        .ok_or_else(|| config(format!("store {store} names no server; write it as {store}//HOST:2181")))?;
    let (credentials, rest) = match place.rsplit_once('@') {
        Some((credentials, rest)) => (Some(credentials), rest),
        None => (None, place),
    };
    let (hosts, chroot) = rest.split_once('/').unwrap_or((rest, ""));
    let chroot = decode(chroot).ok_or_else(|| {
        config(format!("the chroot {chroot:?} of store {store} is not percent-encoded UTF-8; write % as %25"))
    })?;
    let mut ensemble = ZkConfig::new(hosts).chroot(format!("/{chroot}"));
    if let Some(credentials) = credentials {
        let (user, password) = credentials.split_once(':').ok_or_else(|| {
            config(format!("store {store} has a user without a password; write them as USER:PASSWORD@"))
        })?;
        let undecoded = || {
            config(format!("the user or the password of store {store} is not percent-encoded UTF-8; write % as %25"))
        };
        let (user, password) = (decode(user).ok_or_else(undecoded)?, decode(password).ok_or_else(undecoded)?);
        if user.contains(':') {
            return Err(config(format!(
                "the user of store {store} has a ':', which parts it from the password in ZooKeeper as well"
            )));
        }
        ensemble = ensemble.credentials(user, password);
    }
    ensemble.check()?;
    Ok(Ensemble {
        config: ensemble,
        #[cfg(feature = "zookeeper-tls")]
        by_tls: scheme == Scheme::ZooKeeperTls,
    })
}

/// Connects, and gives a builder of clients.
pub(crate) async fn connect(ensemble: &Ensemble, options: &Options) -> Result<ClientBuilder, Error> {
    #[cfg(feature = "zookeeper-tls")]
    let by_tls = ensemble.by_tls;
    let mut ensemble = ensemble.config.clone();
    if let Some(lease) = options.lease {
        ensemble = ensemble.session_timeout(lease);
    }
    if let Some(limit) = options.connect_timeout {
        ensemble = ensemble.connect_timeout(limit);
    }
    #[cfg(feature = "zookeeper-tls")]
    if by_tls {
        ensemble = ensemble.tls(tls(options)?);
    }
    Ok(LockClient::builder(ZkBackend::connect(&ensemble).await?))
}

/// Whom to trust and what to show.
///
/// # Errors
///
/// `Config` without an authority, and for a certificate without its key, or the other way round.
#[cfg(feature = "zookeeper-tls")]
fn tls(options: &Options) -> Result<lock_zk::ZkTls, Error> {
    let ca = options.tls_ca.as_ref();
    let ca = ca.ok_or_else(|| config("store zks: trusts nobody; give the file of its authority as tls_ca=FILE"))?;
    let tls = lock_zk::ZkTls::new(ca);
    match (&options.tls_cert, &options.tls_key) {
        (Some(certificate), Some(key)) => Ok(tls.identity(certificate, key)),
        (None, None) => Ok(tls),
        _ => Err(config("options tls_cert and tls_key go together; give both or neither")),
    }
}
