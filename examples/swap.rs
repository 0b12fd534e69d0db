//! One program on two stores: what differs is one line of its configuration.
//!
//! `cargo run --example swap --features sqlite,redis -- examples/swap/sqlite.toml`, then with `redis.toml`. The second
//! needs a Redis server.

use std::{env, error::Error, fs};

use leasehold::Config;
use serde::Deserialize;

/// The service's own configuration, of which the locks are a part.
#[derive(Deserialize)]
struct Settings {
    lock: Config,
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it did")]
async fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args_os().nth(1).ok_or("which configuration? give its path as argument")?;
    let settings: Settings = toml::from_str(&fs::read_to_string(path)?)?;
    let client = leasehold::connect_config(&settings.lock).await?;

    let first = client.lock("order:1001").acquire().await?;
    let token = first.fencing_token();
    assert!(client.lock("order:1001").try_acquire().await?.is_none(), "it is held");
    first.release().await?;
    let second = client.lock("order:1001").acquire().await?;
    assert!(second.fencing_token() > token, "tokens grow");
    second.release().await?;

    println!("locked on {}", client.capabilities().store);
    client.close().await?;
    Ok(())
}
