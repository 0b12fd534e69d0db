//! Options that are wrong.
#![allow(unused)]

use leasehold::{Error, LockClient, locked};

#[locked(wait = "5s")]
async fn without_a_name(client: &LockClient) -> Result<(), Error> {
    Ok(())
}

#[locked(name = "x", weit = "5s")]
async fn unknown(client: &LockClient) -> Result<(), Error> {
    Ok(())
}

#[locked(name = "x", name = "y")]
async fn twice(client: &LockClient) -> Result<(), Error> {
    Ok(())
}

#[locked(name = "x", wait = "5 parsecs")]
async fn no_duration(client: &LockClient) -> Result<(), Error> {
    Ok(())
}

#[locked(name = "x", lease = 5)]
async fn no_unit(client: &LockClient) -> Result<(), Error> {
    Ok(())
}

#[locked(name = 5)]
async fn no_text(client: &LockClient) -> Result<(), Error> {
    Ok(())
}

fn main() {}
