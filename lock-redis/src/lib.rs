//! Locks in Redis, on a single server.
//!
//! A claim is a key that ends by itself, set by a script only where there is none, with a fencing token beside it that
//! outlives it. Those who wait subscribe to a channel of the lock, on which its release is published. The scripts are in
//! `lua/`, a file each.
//!
//! The keys of the lock `order:1001` in the namespace `shop` are `leasehold/{shop/lock/order:1001}` for the claim and
//! `leasehold/{shop/lock/order:1001}/fence` for its last token, so that an ACL of `~leasehold/*` and `&leasehold/*`
//! covers all of them. What a single server cannot promise, such as exclusion across an asynchronous failover, is in
//! the backend's capabilities.

mod backend;
mod capabilities;
mod check;
mod config;
mod connector;
mod error;
mod inspect;
mod keys;
mod link;
mod record;
mod scripts;
mod sync;
mod wakes;

pub use backend::RedisBackend;
pub use config::RedisConfig;
