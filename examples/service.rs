//! A web service with a lock in it, its store in a TOML file, and its metrics under `/metrics`.
//!
//! `cargo run --example service --features sqlite,redis,metrics -- shop.toml` serves on a free port of this machine and
//! says which. `shop.toml` has a table `[lock]`, as in docs/guide/web-service.md. Then:
//!
//! ```text
//! curl -X POST http://127.0.0.1:PORT/orders/1001/pay
//! curl http://127.0.0.1:PORT/metrics
//! leasehold --config shop.toml ls
//! ```

use std::{env, error::Error, fs, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Path, State},
    http::StatusCode,
    routing::{get, post},
};
use leasehold::{Config, ErrorKind, LockClient};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
use serde::Deserialize;

/// The upper ends of the histograms' buckets, in seconds.
const BUCKETS: &[f64] = &[0.001, 0.01, 0.1, 1.0, 10.0, 60.0, 600.0];

#[derive(Deserialize)]
struct Settings {
    lock: Config,
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "the address is what its user needs")]
async fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args_os().nth(1).ok_or("which configuration? give its path as argument")?;
    let settings: Settings = toml::from_str(&fs::read_to_string(path)?)?;
    // Before the client is made, which looks its instruments up once.
    let page = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), BUCKETS)?
        .install_recorder()?;
    // One client for the whole service: its clones share connections, renewals and clean-up.
    let client = leasehold::connect_config(&settings.lock).await?;
    let service = Router::new()
        .route("/orders/{order}/pay", post(pay))
        .route("/metrics", get(async move || page.render()))
        .with_state(Arc::new(client.clone()));

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}", listener.local_addr()?);
    axum::serve(listener, service).with_graceful_shutdown(stopped()).await?;
    // What is held is released now instead of with its lease.
    client.close().await?;
    Ok(())
}

async fn pay(State(client): State<Arc<LockClient>>, Path(order): Path<u64>) -> (StatusCode, String) {
    // A request that waits for longer than its caller would is of no use to anyone.
    let lock = client.lock(format!("order:{order}")).wait(Duration::from_secs(2));
    match lock.run(async |guard| charge(order, guard.fencing_token().get()).await).await {
        Ok(receipt) => (StatusCode::OK, receipt),
        Err(error) => {
            let status = match error.kind() {
                ErrorKind::TimedOut => StatusCode::CONFLICT,
                ErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
                _ => StatusCode::INTERNAL_SERVER_ERROR,
            };
            (status, error.to_string())
        }
    }
}

/// Stands for the work. The token goes along, for whoever keeps the money to refuse a late writer.
async fn charge(order: u64, token: u64) -> String {
    tokio::time::sleep(Duration::from_millis(20)).await;
    format!("order {order} is paid, under token {token}\n")
}

/// Resolves on the signals that ask a service to stop.
async fn stopped() {
    let terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate());
    match terminated {
        Ok(mut terminated) => tokio::select! {
            _ = terminated.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        },
        Err(_) => drop(tokio::signal::ctrl_c().await),
    }
}
