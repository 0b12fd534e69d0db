//! Arguments that the function does not have.
#![allow(unused)]

use leasehold::{Error, LockClient, locked};

#[locked(name = "order:{other_id}")]
async fn unknown_argument(client: &LockClient, order_id: u64) -> Result<(), Error> {
    Ok(())
}

fn main() {}
