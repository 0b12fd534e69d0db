//! From `etcd://USER:PASSWORD@HOST:PORT,HOST:PORT` to the backend's configuration.

use std::fmt;

use lock_core::Error;
use lock_etcd::{EtcdConfig, EtcdTls};

use crate::{
    options::Options,
    scheme::{Scheme, config},
    text::decode,
};

/// A cluster and who asks it. Its `Debug` shows no password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Cluster {
    endpoints: Vec<String>,
    user: Option<(String, String)>,
    tls: bool,
}

/// The port of an endpoint that names none.
const PORT: &str = "2379";

impl Cluster {
    /// The cluster at this place of a URL.
    ///
    /// # Errors
    ///
    /// `Config` for a place without members, with a path, or with half of a user and a password.
    pub(crate) fn parse(scheme: Scheme, place: &str) -> Result<Self, Error> {
        let prefix = scheme.prefix();
        let write = format!("write it as {prefix}//HOST:2379,HOST:2379 or {prefix}//USER:PASSWORD@HOST:2379");
        let Some(authority) = place.strip_prefix("//") else {
            return Err(config(format!("store {prefix} names no members; {write}")));
        };
        // A password may have an @ that is not encoded; an address has none.
        let (userinfo, hosts) = match authority.rsplit_once('@') {
            Some((userinfo, hosts)) => (Some(userinfo), hosts),
            None => (None, authority),
        };
        let hosts = hosts.strip_suffix('/').unwrap_or(hosts);
        if hosts.contains('/') {
            return Err(config(format!("store {prefix} takes no path; use namespace=... to keep locks apart")));
        }
        let endpoints: Vec<String> = hosts
            .split(',')
            .map(endpoint)
            .collect::<Option<_>>()
            .ok_or_else(|| config(format!("store {prefix} has a member that is no HOST:PORT; {write}")))?;
        let user = userinfo.map(|userinfo| {
            let (name, password) = userinfo.split_once(':')?;
            Some((decode(name).filter(|name| !name.is_empty())?, decode(password)?))
        });
        let user = match user {
            None => None,
            Some(Some(user)) => Some(user),
            Some(None) => {
                return Err(config(format!(
                    "store {prefix} has a user and a password that are no USER:PASSWORD in percent-encoded UTF-8; {write}"
                )));
            }
        };
        Ok(Cluster { endpoints, user, tls: scheme == Scheme::Etcds })
    }

    /// The backend's configuration.
    ///
    /// # Errors
    ///
    /// `Config` for a certificate without its key, or the other way round.
    pub(crate) fn config(&self, options: &Options) -> Result<EtcdConfig, Error> {
        let mut told = EtcdConfig::new(self.endpoints.clone());
        if let Some((name, password)) = &self.user {
            told = told.user(name, password);
        }
        if self.tls {
            let mut tls = EtcdTls::new();
            if let Some(ca) = &options.tls_ca {
                tls = tls.ca(ca);
            }
            match (&options.tls_cert, &options.tls_key) {
                (Some(certificate), Some(key)) => tls = tls.identity(certificate, key),
                (None, None) => {}
                _ => return Err(config("options tls_cert and tls_key go together; give both or neither")),
            }
            told = told.tls(tls);
        }
        if let Some(limit) = options.connect_timeout {
            told = told.connect_timeout(limit);
        }
        if let Some(limit) = options.request_timeout {
            told = told.request_timeout(limit);
        }
        Ok(told)
    }
}

/// One member's address, with the usual port where it names none.
fn endpoint(text: &str) -> Option<String> {
    let plain = |host: &str| !host.is_empty() && !host.contains([':', '[', ']', ' ', '%', '@']);
    // An IPv6 address is in brackets, since it has colons of its own.
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            (format!("[{host}]"), if port.is_empty() { PORT } else { port.strip_prefix(':')? })
        }
        None => {
            let (host, port) = text.split_once(':').unwrap_or((text, PORT));
            plain(host).then(|| (host.to_owned(), port))?
        }
    };
    port.parse::<u16>().ok().filter(|port| *port != 0)?;
    Some(format!("{host}:{port}"))
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("endpoints", &self.endpoints)
            .field("user", &self.user.as_ref().map(|(name, _)| name))
            .field("tls", &self.tls)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(place: &str) -> Result<Cluster, Error> {
        Cluster::parse(Scheme::Etcd, place)
    }

    #[test]
    fn members_users_and_ports_are_read() {
        let cluster = parse("//shop:p%40ss%3A@h1:1,h2,[::1]:3/").expect("a cluster");
        assert_eq!(cluster.endpoints, ["h1:1", "h2:2379", "[::1]:3"]);
        assert_eq!(cluster.user, Some(("shop".to_owned(), "p@ss:".to_owned())));
        assert!(!format!("{cluster:?}").contains("p@ss"));
    }

    #[test]
    fn what_is_no_cluster_is_told_without_its_password() {
        let wrong = ["", "h1:1", "//", "//h1:1,", "//h1:x", "//h1:0", "//h1:1/path", "//::1", "//[::1", "//[x]:1"];
        let users = ["//sesame@h1", "//:sesame@h1", "//me:sesame%zz@h1", "//me:sesame@h1/path", "//me:sesame@"];
        for place in wrong.into_iter().chain(users) {
            let error = parse(place).expect_err(place);
            assert_eq!(error.kind(), lock_core::ErrorKind::Config);
            assert!(!error.to_string().contains("sesame"), "{error}");
        }
    }

    #[test]
    fn a_certificate_needs_its_key() {
        let cluster = Cluster::parse(Scheme::Etcds, "//h1").expect("a cluster");
        let half = Options { tls_cert: Some("c.pem".to_owned()), ..Options::default() };
        assert!(cluster.config(&half).expect_err("half").to_string().contains("go together"));
        let whole = Options { tls_key: Some("k.pem".to_owned()), ..half };
        assert!(format!("{:?}", cluster.config(&whole).expect("whole")).contains("k.pem"));
    }
}
