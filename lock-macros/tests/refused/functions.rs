//! Functions that cannot be locked.
#![allow(unused)]

use leasehold::{Error, LockClient, locked};

#[locked(name = "x")]
fn plain(client: &LockClient) -> Result<(), Error> {
    Ok(())
}

#[locked(name = "x")]
async fn without_an_answer(client: &LockClient) {}

#[locked(name = "x")]
async fn a_pair(client: &LockClient) -> (u8, u8) {
    (1, 2)
}

#[locked(name = "x")]
async fn without_a_client() -> Result<(), Error> {
    Ok(())
}

fn main() {}
