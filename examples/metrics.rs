//! What a service's locks do, as Prometheus reads it.
//!
//! The recorder is installed before the client is made. A service that has a web server hands out `handle.render()` under
//! `/metrics`; here ten lines of plain HTTP do, and the program scrapes itself once.

use std::{error::Error, time::Duration};

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

/// The upper ends of the histograms' buckets, in seconds: from a fast store's answer to a long job.
const BUCKETS: &[f64] = &[0.001, 0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 3_600.0];

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it did")]
async fn main() -> Result<(), Box<dyn Error>> {
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), BUCKETS)?
        .install_recorder()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(serve(listener, handle));

    let client = leasehold::connect("memory:?namespace=shop&metric_group=prefix").await?;
    let guard = client.lock("order:1001").acquire().await?;
    assert!(client.lock("order:1001").try_acquire().await?.is_none(), "it is held");
    guard.release().await?;
    let late = client.lock("report:daily").max_hold(Duration::from_millis(50)).acquire().await?;
    println!("the report took too long: {:?}", late.lost().await);
    drop(late);

    let page = scrape(address).await?;
    for line in page.lines().filter(|line| line.starts_with("leasehold_acquisitions") && !line.ends_with(" 0")) {
        println!("{line}");
    }
    assert!(page.contains("leasehold_losses_total{"), "{page}");
    client.close().await?;
    Ok(())
}

async fn serve(listener: TcpListener, handle: PrometheusHandle) -> std::io::Result<()> {
    loop {
        let (mut stream, _) = listener.accept().await?;
        let mut request = [0; 1_024];
        let _ = stream.read(&mut request).await?;
        let page = handle.render();
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            page.len()
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(page.as_bytes()).await?;
    }
}

async fn scrape(address: std::net::SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").await?;
    let mut page = String::new();
    stream.read_to_string(&mut page).await?;
    Ok(page)
}
