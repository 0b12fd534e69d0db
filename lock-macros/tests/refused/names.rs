//! Names that cannot be put together.
#![allow(unused)]

use leasehold::{Error, LockClient, locked};

#[locked(name = "order:{order_id")]
async fn open_brace(client: &LockClient, order_id: u64) -> Result<(), Error> {
    Ok(())
}

#[locked(name = "order:{}")]
async fn empty(client: &LockClient, order_id: u64) -> Result<(), Error> {
    Ok(())
}

#[locked(name = "order:{order_id + 1}")]
async fn computed(client: &LockClient, order_id: u64) -> Result<(), Error> {
    Ok(())
}

fn main() {}
