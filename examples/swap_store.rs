//! One program on SQLite and on Redis: what changes is a line of its configuration.
//!
//! `cargo run --example swap_store --features sqlite,redis -- shop.toml` with a file such as
//!
//! ```toml
//! [lock]
//! store = "sqlite:locks.db"       # or "redis://127.0.0.1:6379"
//! namespace = "shop"
//! lease = "10s"
//! ```
//!
//! Without an argument it takes a file of SQLite that it removes.

use std::{env, error::Error as StdError, fs};

use leasehold::{Config, LockClient};

#[tokio::main]
async fn main() -> Result<(), Box<dyn StdError>> {
    let directory = tempfile::tempdir()?;
    let text = match env::args_os().nth(1) {
        Some(path) => fs::read_to_string(path)?,
        None => format!("[lock]\nstore = \"sqlite:{}\"\n", directory.path().join("locks.db").display()),
    };
    // Two clients, as two processes would have.
    let config = Config::from_toml_str(&text)?;
    let (one, two) = (leasehold::connect_config(&config).await?, leasehold::connect_config(&config).await?);
    turns(&one, &two).await?;
    one.close().await?;
    two.close().await?;
    Ok(())
}

/// Nothing here knows the store.
#[expect(clippy::print_stdout, reason = "an example shows what it did")]
async fn turns(one: &LockClient, two: &LockClient) -> Result<(), leasehold::Error> {
    let first = one.lock("order:1001").acquire().await?;
    assert!(two.lock("order:1001").try_acquire().await?.is_none(), "it is held");
    let early = first.fencing_token();
    first.release().await?;
    let second = two.lock("order:1001").acquire().await?;
    assert!(second.fencing_token() > early, "tokens grow from grant to grant");
    second.release().await?;
    println!("two clients took turns on {}", one.capabilities().store);
    Ok(())
}
