//! What an ensemble's settings mean for locks, by the four-letter commands where the servers allow them.

use std::{collections::BTreeMap, io, time::Duration};

use futures_util::future::{join_all, join3};
use lock_core::{BackendError, Finding, Usage};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use zookeeper_client::{AuthId, Error, Permission};

use crate::{ZkConfig, path, session::Session};

/// How long one server may take to tell of itself.
const SERVER_LIMIT: Duration = Duration::from_secs(2);

/// The most that is read of an answer.
const MOST_BYTES: u64 = 64 << 10;

/// Whether a server's port takes four-letter commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Words {
    /// Those that its `4lw.commands.whitelist` has.
    Taken,
    /// It speaks TLS and nothing else.
    Refused,
}

/// One finding for each rule.
pub(crate) async fn check(session: &Session, config: &ZkConfig, usage: &Usage) -> Result<Vec<Finding>, BackendError> {
    // All at once: a server that is silent must not use up the time of the whole check.
    let servers = join_all(config.hosts.split(',').map(|host| Server::ask(host, config.words()))).await;
    Ok(vec![
        timeout(session.client.session_timeout(), config.session_timeout, usage),
        reachable(&servers),
        ensemble(&servers),
        read_only(&servers),
        bounds(&servers, usage),
        connections(&servers),
        access(session, config.credentials.is_some()).await?,
    ])
}

/// What one server says of itself; None for a command that it does not allow.
struct Server {
    address: String,
    reached: bool,
    mode: Option<String>,
    is_read_only: bool,
    settings: BTreeMap<String, String>,
}

impl Server {
    async fn ask(host: &str, words: Words) -> Self {
        let address = if host.contains(':') { host.to_owned() } else { format!("{host}:2181") };
        if words == Words::Refused {
            let reached = in_time(TcpStream::connect(&address)).await.is_ok();
            return Server { address, reached, mode: None, is_read_only: false, settings: BTreeMap::new() };
        }
        let (srvr, conf, isro) =
            join3(four_letters(&address, "srvr"), four_letters(&address, "conf"), four_letters(&address, "isro")).await;
        let reached = srvr.is_ok();
        let (srvr, conf, isro) = (srvr.unwrap_or_default(), conf.unwrap_or_default(), isro.unwrap_or_default());
        let mode = srvr.lines().find_map(|line| line.strip_prefix("Mode: ")).map(str::to_owned);
        let is_read_only = isro.trim() == "ro" || mode.as_deref() == Some("read-only");
        let settings = conf.lines().filter_map(|line| line.split_once('='));
        let settings = settings.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        Server { address, reached, mode, is_read_only, settings }
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.settings.get(key).and_then(|value| value.parse().ok())
    }
}

async fn four_letters(address: &str, word: &str) -> io::Result<String> {
    let asked = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(word.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.take(MOST_BYTES).read_to_end(&mut answer).await?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    in_time(asked).await
}

async fn in_time<T>(asked: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::time::timeout(SERVER_LIMIT, asked).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

fn timeout(negotiated: Duration, asked: Duration, usage: &Usage) -> Finding {
    const RULE: &str = "session";
    if negotiated > asked {
        let evidence = format!(
            "a session of {asked:?} was asked for and one of {negotiated:?} given: the lock of a killed holder is free \
             only after that"
        );
        return Finding::note(RULE, evidence);
    }
    if negotiated < usage.lease {
        let evidence = format!(
            "a session lasts {negotiated:?}, less than the lease of {:?}: a client that is silent for that long has lost \
             its locks",
            usage.lease
        );
        return Finding::note(RULE, evidence);
    }
    Finding::good(RULE, format!("a session lasts {negotiated:?}, as asked for"))
}

fn reachable(servers: &[Server]) -> Finding {
    const RULE: &str = "servers";
    let silent: Vec<&str> = servers.iter().filter(|one| !one.reached).map(|one| one.address.as_str()).collect();
    if silent.is_empty() {
        return Finding::good(RULE, format!("all {} servers of the URL answer", servers.len()));
    }
    Finding::warning(
        RULE,
        format!("{} of {} servers do not answer: {}", silent.len(), servers.len(), silent.join(", ")),
        "start these servers, or take them out of the URL",
    )
}

fn ensemble(servers: &[Server]) -> Finding {
    const RULE: &str = "ensemble";
    let modes: Vec<&str> = servers.iter().filter_map(|one| one.mode.as_deref()).collect();
    if modes.is_empty() {
        return Finding::note(
            RULE,
            "no server answers the command srvr (4lw.commands.whitelist; a port of TLS takes none)",
        );
    }
    if modes.contains(&"standalone") {
        return Finding::note(RULE, "a server stands alone: when it stops, no lock can be taken or kept");
    }
    if servers.len() > 1 && !modes.contains(&"leader") {
        let evidence = format!("of the servers of the URL none is the leader: {}", modes.join(", "));
        return Finding::note(RULE, evidence);
    }
    Finding::good(RULE, modes.join(", "))
}

fn read_only(servers: &[Server]) -> Finding {
    const RULE: &str = "read-only";
    match servers.iter().find(|one| one.is_read_only) {
        Some(one) => Finding::warning(
            RULE,
            format!("{} has lost its majority and serves reads alone", one.address),
            "start a majority of the servers; readonlymode.enabled=false turns such clients away",
        ),
        None => Finding::good(RULE, "no server says that it serves reads alone"),
    }
}

fn bounds(servers: &[Server], usage: &Usage) -> Finding {
    const RULE: &str = "ticks";
    let Some(one) = servers.iter().find(|one| one.number("tickTime").is_some()) else {
        return Finding::note(RULE, "no server answers the command conf, so its bounds of sessions are not known");
    };
    let millis = |key: &str| Duration::from_millis(one.number(key).unwrap_or_default());
    let (tick, least, most) = (millis("tickTime"), millis("minSessionTimeout"), millis("maxSessionTimeout"));
    let evidence = format!("tickTime {tick:?}, sessions of {least:?} to {most:?}");
    if usage.lease < least {
        return Finding::warning(
            RULE,
            format!("{evidence}: a lease of {:?} is below, and a crash holds a lock for {least:?}", usage.lease),
            format!("use a lease of {least:?} or longer, or lower minSessionTimeout"),
        );
    }
    if usage.lease > most {
        return Finding::note(RULE, format!("{evidence}: a lease of {:?} is held by being extended", usage.lease));
    }
    Finding::good(RULE, evidence)
}

fn connections(servers: &[Server]) -> Finding {
    const RULE: &str = "connections";
    match servers.iter().find_map(|one| one.number("maxClientCnxns")) {
        Some(0) => Finding::good(RULE, "maxClientCnxns is 0, without limit"),
        Some(most) => Finding::note(RULE, format!("maxClientCnxns is {most}: so many clients of one host are served")),
        None => Finding::note(RULE, "no server answers the command conf, so maxClientCnxns is not known"),
    }
}

/// Who may change our nodes.
async fn access(session: &Session, has_credentials: bool) -> Result<Finding, BackendError> {
    const RULE: &str = "access";
    match session.client.get_acl(path::ROOT).await {
        Ok((acls, _)) => {
            let open =
                acls.iter().any(|acl| *acl.auth_id() == AuthId::anyone() && acl.permission().has(Permission::WRITE));
            Ok(match (open, has_credentials) {
                (true, true) => Finding::warning(
                    RULE,
                    format!("{} may be changed by anyone, although this client has credentials", path::ROOT),
                    format!("setAcl {} to this user alone", path::ROOT),
                ),
                (true, false) => Finding::note(RULE, format!("{} may be changed by anyone who connects", path::ROOT)),
                (false, _) => Finding::good(RULE, format!("{} may not be changed by anyone", path::ROOT)),
            })
        }
        Err(Error::NoNode) => Ok(Finding::good(RULE, format!("{} is made with the first lock", path::ROOT))),
        Err(Error::NoAuth) => Ok(Finding::note(RULE, format!("the access list of {} may not be read", path::ROOT))),
        Err(error) => Err(session.told("reading an access list", error)),
    }
}
