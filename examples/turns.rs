//! Workers that take turns at a counter in a file, so that no update is lost.
//!
//! `cargo run --example turns --features sqlite` does it with tasks. Run it in two shells at once with a path, such as
//! `-- /tmp/turns`, and the processes take turns too.

use std::{env, fs, path::PathBuf};

use leasehold::{Error, ErrorKind, LockClient};

const WORKERS: u64 = 4;
const ROUNDS: u64 = 25;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it did")]
async fn main() -> Result<(), Error> {
    let directory = env::args_os().nth(1).map_or_else(|| env::temp_dir().join("leasehold-turns"), PathBuf::from);
    fs::create_dir_all(&directory).map_err(io_error)?;
    let counter = directory.join("counter");
    let url = format!("sqlite:{}?namespace=turns", directory.join("locks.db").display());
    let client = leasehold::connect(&url).await?;

    let before = read(&counter);
    let workers: Vec<_> = (0..WORKERS).map(|_| tokio::spawn(work(client.clone(), counter.clone()))).collect();
    for worker in workers {
        worker.await.expect("a worker does not panic")?;
    }
    let after = read(&counter);
    println!("{} + {WORKERS} x {ROUNDS} = {after}, or more if others took turns with us", before);
    client.close().await
}

async fn work(client: LockClient, counter: PathBuf) -> Result<(), Error> {
    for _ in 0..ROUNDS {
        let guard = client.lock("counter").acquire().await?;
        // Nobody else is between these two lines.
        let value = read(&counter);
        fs::write(&counter, (value + 1).to_string()).map_err(io_error)?;
        guard.release().await?;
    }
    Ok(())
}

fn read(counter: &PathBuf) -> u64 {
    fs::read_to_string(counter).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn io_error(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Backend, error.to_string()).with_source(error)
}
