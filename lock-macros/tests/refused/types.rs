//! Answers that do not fit.
#![allow(unused)]

use leasehold::{Error, LockClient, locked};

#[locked(name = "x")]
async fn no_result(client: &LockClient) -> String {
    String::new()
}

#[locked(name = "x")]
async fn foreign_error(client: &LockClient) -> Result<(), std::fmt::Error> {
    Ok(())
}

fn main() {}
