//! What is really in ZooKeeper's tree, read through a session that the backend knows nothing of.

use std::{net::SocketAddr, time::Duration};

use async_trait::async_trait;
use conformance_tests::{Blind, Key, Oracle, Seen};
use lock_core::{ClaimId, FencingToken, Holder, HolderInfo, Namespace, decode_name, encode_name};
use tokio::sync::Mutex;
use zookeeper_client::{Acls, Client, CreateMode, Error};

use super::server::srvr;

/// A look at the nodes.
#[derive(Debug)]
pub(crate) struct Nodes {
    client: Mutex<Client>,
    hosts: String,
}

async fn connect(hosts: &str) -> Result<Client, Error> {
    // A server that is just starting may take a connection and never answer.
    let connector = Client::connector().with_connection_timeout(Duration::from_secs(2));
    connector.with_session_timeout(Duration::from_secs(20)).connect(hosts).await
}

/// A claim's node.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) path: String,
    pub(crate) claim: ClaimId,
    pub(crate) number: i64,
}

impl Nodes {
    pub(crate) async fn of(hosts: &str) -> Result<Self, Error> {
        Ok(Nodes { client: Mutex::new(connect(hosts).await?), hosts: hosts.to_owned() })
    }

    /// A session that lives: a server without its data knows none of before.
    pub(crate) async fn client(&self) -> Result<Client, Error> {
        let mut client = self.client.lock().await;
        // The session's state lags behind the server's word, so the server is asked.
        if client.state().is_terminated() || matches!(client.check_stat("/").await, Err(Error::SessionExpired)) {
            *client = connect(&self.hosts).await?;
        }
        Ok(client.clone())
    }

    pub(crate) fn space(namespace: &Namespace) -> String {
        let space = namespace.as_str();
        format!("/leasehold/{}", if space.is_empty() { "%none".to_owned() } else { encode_name(space) })
    }

    pub(crate) fn directory(key: &Key) -> String {
        format!("{}/lock/{}", Nodes::space(&key.namespace), encode_name(key.name.as_str()))
    }

    /// The names below a node; none where there is no node.
    pub(crate) async fn children(&self, path: &str) -> Result<Vec<String>, Error> {
        match self.client().await?.list_children(path).await {
            Err(Error::NoNode) => Ok(Vec::new()),
            other => other,
        }
    }

    /// The claims in a lock's directory, the earliest first. Numbers do not wrap in so short a test.
    pub(crate) async fn line(&self, directory: &str) -> Result<Vec<Node>, Error> {
        let mut line = Vec::new();
        for name in self.children(directory).await? {
            let Some((id, number)) = name.split_once('-') else { continue };
            let (Ok(claim), Ok(number)) = (id.parse(), number.parse()) else { continue };
            line.push(Node { path: format!("{directory}/{name}"), claim, number });
        }
        line.sort_by_key(|node| node.number);
        Ok(line)
    }

    /// The directories of a namespace's locks.
    async fn locks(&self, namespace: &Namespace) -> Result<Vec<String>, Error> {
        let parent = format!("{}/lock", Nodes::space(namespace));
        let names = self.children(&parent).await?;
        let ours = names.into_iter().filter(|name| decode_name(name).is_some());
        Ok(ours.map(|name| format!("{parent}/{name}")).collect())
    }

    pub(crate) async fn create(&self, path: &str, mode: CreateMode) -> Result<(), Error> {
        match self.client().await?.create(path, b"not ours", &mode.with_acls(Acls::anyone_all())).await {
            Ok(_) | Err(Error::NodeExists) => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn make(&self, directory: &str) -> Result<(), Error> {
        self.client().await?.mkdir(directory, &CreateMode::Container.with_acls(Acls::anyone_all())).await
    }
}

fn info(data: &[u8]) -> HolderInfo {
    let told: serde_json::Value = serde_json::from_slice(data).unwrap_or_default();
    HolderInfo {
        host: told["host"].as_str().unwrap_or_default().to_owned(),
        pid: told["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).unwrap_or_default(),
        label: told["label"].as_str().map(str::to_owned),
    }
}

#[async_trait]
impl Oracle for Nodes {
    async fn holders(&self, key: &Key) -> Seen<Vec<Holder>> {
        let line = self.line(&Nodes::directory(key)).await.map_err(Blind::failed)?;
        let Some(first) = line.first() else { return Ok(Vec::new()) };
        match self.client().await.map_err(Blind::failed)?.get_data(&first.path).await {
            Ok((data, stat)) => {
                let token = FencingToken::new(stat.czxid.unsigned_abs());
                Ok(vec![Holder::new(first.claim, token, &info(&data))])
            }
            Err(Error::NoNode) => Ok(Vec::new()),
            Err(error) => Err(Blind::failed(error)),
        }
    }

    async fn waiting(&self, key: &Key) -> Seen<u64> {
        let line = self.line(&Nodes::directory(key)).await.map_err(Blind::failed)?;
        Ok(line.len().saturating_sub(1) as u64)
    }

    async fn claims(&self, namespace: &Namespace) -> Seen<u64> {
        let mut claims = 0;
        for lock in self.locks(namespace).await.map_err(Blind::failed)? {
            claims += self.line(&lock).await.map_err(Blind::failed)?.len() as u64;
        }
        Ok(claims)
    }

    async fn records(&self, namespace: &Namespace) -> Seen<u64> {
        Ok(self.locks(namespace).await.map_err(Blind::failed)?.len() as u64)
    }

    async fn remove(&self, key: &Key) -> Seen<()> {
        let line = self.line(&Nodes::directory(key)).await.map_err(Blind::failed)?;
        match line.first() {
            Some(first) => match self.client().await.map_err(Blind::failed)?.delete(&first.path, None).await {
                Ok(()) | Err(Error::NoNode) => Ok(()),
                Err(error) => Err(Blind::failed(error)),
            },
            None => Ok(()),
        }
    }

    async fn overwrite(&self, key: &Key, claim: ClaimId, _lease: Duration) -> Seen<()> {
        let directory = Nodes::directory(key);
        let line = self.line(&directory).await.map_err(Blind::failed)?;
        let first = line.first().ok_or_else(|| Blind::Failed("nobody holds".to_owned()))?;
        // In the holder's very place, before all who wait; it ends with this oracle's session.
        let path = format!("{directory}/{claim}-{:010}", first.number);
        self.create(&path, CreateMode::Ephemeral).await.map_err(Blind::failed)?;
        self.client().await.map_err(Blind::failed)?.delete(&first.path, None).await.map_err(Blind::failed)
    }

    async fn endless(&self, namespace: &Namespace) -> Seen<Vec<String>> {
        let mut endless = Vec::new();
        for lock in self.locks(namespace).await.map_err(Blind::failed)? {
            for node in self.line(&lock).await.map_err(Blind::failed)? {
                let stat =
                    self.client().await.map_err(Blind::failed)?.check_stat(&node.path).await.map_err(Blind::failed)?;
                if stat.is_some_and(|stat| stat.ephemeral_owner == 0) {
                    endless.push(node.path);
                }
            }
        }
        Ok(endless)
    }

    async fn plant_foreign(&self, key: &Key) -> Seen<()> {
        let (space, directory) = (Nodes::space(&key.namespace), Nodes::directory(key));
        let other = format!("{space}/otherkind/{}", encode_name(key.name.as_str()));
        for parent in [&directory, &other, &format!("{space}/lock/%zz")] {
            self.make(parent).await.map_err(Blind::failed)?;
        }
        let claim = ClaimId::from_u128(7);
        let foreign = [
            format!("{directory}/README"),
            format!("{directory}/lock-0000000000"),
            format!("{directory}/{claim}"),
            format!("{directory}/{claim}-x"),
            format!("{other}/{claim}-0000000000"),
            format!("{space}/lock/%zz/{claim}-0000000000"),
        ];
        for path in foreign {
            self.create(&path, CreateMode::Persistent).await.map_err(Blind::failed)?;
        }
        Ok(())
    }

    async fn age_idle(&self, namespace: &Namespace) -> Seen<()> {
        // The server reaps directories without claims by itself; this only waits for it.
        for _ in 0..1_000 {
            if self.locks(namespace).await.map_err(Blind::failed)?.is_empty() {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Err(Blind::Failed("the server does not reap directories".to_owned()))
    }

    async fn connections(&self) -> Seen<u64> {
        let address: SocketAddr = self.hosts.parse().map_err(Blind::failed)?;
        let said = tokio::task::spawn_blocking(move || srvr(address)).await.map_err(Blind::failed)?;
        let said = said.map_err(Blind::failed)?;
        let count = said.lines().find_map(|line| line.strip_prefix("Connections: "));
        count.and_then(|count| count.trim().parse().ok()).ok_or_else(|| Blind::Failed(said.clone()))
    }
}
