//! ZooKeeper by URL: `zk://USER:PASSWORD@HOST:PORT,HOST:PORT/CHROOT`.

use lock_core::{ClientBuilder, Error, LockClient};
use lock_zk::{ZkBackend, ZkConfig};

use crate::{options::Options, scheme::config, text::decode};

/// The ensemble that stands between a URL's scheme and its options.
///
/// # Errors
///
/// `Config` for servers that are badly written, for a user without a password, and for what is not percent-encoded
/// UTF-8. No message has the password.
pub(crate) fn parse(place: &str) -> Result<ZkConfig, Error> {
    let place =
        place.strip_prefix("//").ok_or_else(|| config("store zk: names no server; write it as zk://HOST:2181"))?;
    let (credentials, rest) = match place.rsplit_once('@') {
        Some((credentials, rest)) => (Some(credentials), rest),
        None => (None, place),
    };
    let (hosts, chroot) = rest.split_once('/').unwrap_or((rest, ""));
    let chroot = decode(chroot).ok_or_else(|| {
        config(format!("the chroot {chroot:?} of store zk: is not percent-encoded UTF-8; write % as %25"))
    })?;
    let mut ensemble = ZkConfig::new(hosts).chroot(format!("/{chroot}"));
    if let Some(credentials) = credentials {
        let (user, password) = credentials
            .split_once(':')
            .ok_or_else(|| config("store zk: has a user without a password; write them as USER:PASSWORD@"))?;
        let undecoded = || config("the user or the password of store zk: is not percent-encoded UTF-8; write % as %25");
        let (user, password) = (decode(user).ok_or_else(undecoded)?, decode(password).ok_or_else(undecoded)?);
        if user.contains(':') {
            return Err(config(
                "the user of store zk: has a ':', which parts it from the password in ZooKeeper as well",
            ));
        }
        ensemble = ensemble.credentials(user, password);
    }
    ensemble.check()?;
    Ok(ensemble)
}

/// Connects, and gives a builder of clients.
pub(crate) async fn connect(ensemble: &ZkConfig, options: &Options) -> Result<ClientBuilder, Error> {
    let mut ensemble = ensemble.clone();
    if let Some(lease) = options.lease {
        ensemble = ensemble.session_timeout(lease);
    }
    if let Some(limit) = options.connect_timeout {
        ensemble = ensemble.connect_timeout(limit);
    }
    Ok(LockClient::builder(ZkBackend::connect(&ensemble).await?))
}
