//! A TCP proxy in the test's own process: refuse, swallow, delay, cut, close one half, eat the answer.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    task::{AbortHandle, JoinSet},
};

/// What the proxy does to the bytes that pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Weather {
    /// They pass.
    #[default]
    Fair,
    /// They pass, later.
    Delay(Duration),
    /// They wait, in both directions, until the weather is fair again; connections stay open.
    Blackhole,
    /// What the client sends passes; what the server answers is thrown away and the connection then cut.
    EatAnswer,
    /// Connections are closed as soon as they are made.
    Refuse,
}

/// A listener that passes connections on to one server, in the weather that the test wants.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    weather: Arc<watch::Sender<Weather>>,
    connections: Arc<Mutex<JoinSet<()>>>,
    listener: AbortHandle,
}

impl Proxy {
    /// A proxy before this server, on a free port of the loopback interface.
    ///
    /// # Errors
    ///
    /// When no port can be bound.
    pub async fn before(server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let weather = Arc::new(watch::Sender::new(Weather::Fair));
        let connections = Arc::new(Mutex::new(JoinSet::new()));
        let (sky, all) = (Arc::clone(&weather), Arc::clone(&connections));
        let listener = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if *sky.borrow() == Weather::Refuse {
                    continue;
                }
                let connection = pass(client, server, sky.subscribe());
                all.lock().unwrap_or_else(PoisonError::into_inner).spawn(connection);
            }
        });
        Ok(Proxy { address, weather, connections, listener: listener.abort_handle() })
    }

    /// Where clients find the proxy.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on the weather is this, for connections that exist too.
    pub fn set(&self, weather: Weather) {
        self.weather.send_replace(weather);
    }

    /// Cuts every connection that exists.
    pub fn cut(&self) {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
    }

    /// How many connections there are.
    #[must_use]
    pub fn connections(&self) -> usize {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        while connections.try_join_next().is_some() {}
        connections.len()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listener.abort();
        self.cut();
    }
}

async fn pass(client: TcpStream, server: SocketAddr, sky: watch::Receiver<Weather>) {
    let Ok(server) = TcpStream::connect(server).await else { return };
    // Small requests must not wait for more to come, or the proxy would be slower than any network.
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (client_reads, client_writes) = client.into_split();
    let (server_reads, server_writes) = server.into_split();
    // Either side may close its half first; the other half then drains.
    tokio::select! {
        () = async {
            tokio::join!(
                pump(client_reads, server_writes, sky.clone(), Direction::Request),
                pump(server_reads, client_writes, sky.clone(), Direction::Answer),
            );
        } => {}
        () = eaten(sky.clone()) => {}
    }
}

/// Ends a connection some time after its answers began to be eaten: by then the server has applied what it was sent.
async fn eaten(mut sky: watch::Receiver<Weather>) {
    if sky.wait_for(|weather| *weather == Weather::EatAnswer).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Request,
    Answer,
}

async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut sky: watch::Receiver<Weather>, way: Direction) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count) = from.read(&mut buffer).await {
        let weather = *sky.borrow_and_update();
        match weather {
            Weather::Fair | Weather::Refuse => {}
            Weather::Delay(delay) => tokio::time::sleep(delay).await,
            Weather::Blackhole => {
                if sky.wait_for(|weather| *weather != Weather::Blackhole).await.is_err() {
                    return;
                }
            }
            Weather::EatAnswer if way == Direction::Answer => continue,
            Weather::EatAnswer => {}
        }
        if count == 0 || to.write_all(&buffer[..count]).await.is_err() {
            break;
        }
    }
    // Closes this half alone.
    let _ = to.shutdown().await;
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    async fn echo() -> SocketAddr {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut reads, mut writes) = stream.split();
                    let _ = tokio::io::copy(&mut reads, &mut writes).await;
                });
            }
        });
        address
    }

    async fn say(stream: &mut TcpStream, word: &[u8]) -> io::Result<usize> {
        stream.write_all(word).await?;
        let mut heard = vec![0; word.len()];
        match tokio::time::timeout(Duration::from_millis(300), stream.read(&mut heard)).await {
            Ok(count) => count,
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    #[tokio::test]
    async fn bytes_pass_wait_and_are_cut_as_the_weather_wants() {
        let proxy = Proxy::before(echo().await).await.expect("a proxy");
        let mut stream = TcpStream::connect(proxy.address()).await.expect("a connection");
        assert_eq!(say(&mut stream, b"fair").await.expect("an echo"), 4);

        proxy.set(Weather::Delay(Duration::from_millis(50)));
        let start = Instant::now();
        assert_eq!(say(&mut stream, b"late").await.expect("an echo"), 4);
        assert!(start.elapsed() >= Duration::from_millis(100), "both ways are delayed");

        proxy.set(Weather::Blackhole);
        assert_eq!(say(&mut stream, b"none").await.expect_err("nothing").kind(), io::ErrorKind::TimedOut);
        proxy.set(Weather::Fair);
        let mut heard = [0; 4];
        stream.read_exact(&mut heard).await.expect("what had waited");
        assert_eq!(&heard, b"none");

        proxy.cut();
        assert_eq!(stream.read(&mut heard).await.unwrap_or(0), 0);

        proxy.set(Weather::Refuse);
        let mut refused = TcpStream::connect(proxy.address()).await.expect("accepted, then closed");
        assert_eq!(refused.read(&mut heard).await.unwrap_or(0), 0);
    }

    #[tokio::test]
    async fn an_eaten_answer_is_followed_by_a_cut() {
        let proxy = Proxy::before(echo().await).await.expect("a proxy");
        let mut stream = TcpStream::connect(proxy.address()).await.expect("a connection");
        assert_eq!(say(&mut stream, b"fair").await.expect("an echo"), 4);
        proxy.set(Weather::EatAnswer);
        assert_eq!(say(&mut stream, b"gone").await.unwrap_or(0), 0);
    }
}
