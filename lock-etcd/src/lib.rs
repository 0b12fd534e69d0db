//! Locks as keys of an etcd cluster.
//!
//! A claim is a key that is bound to a lease of its own, so that it ends with its holder. The keys of one lock form a
//! line in the order of their creation: the first holds, each other one waits for the one before it. The revision that
//! created a key is its claim's fencing token.
//!
//! Needs etcd 3.4 or later; before 3.4.31 and 3.5.13, a leader that was stalled for longer than a lease may end it
//! although its holder renewed it with the next leader. The holder is told at once, but another may hold by then.
//!
//! Building needs `protoc` and the `.proto` files that come with it (on Debian and Ubuntu the
//! packages `protobuf-compiler` and `libprotobuf-dev`), for the sake of the client library.
//!
//! Where the cluster has users, a lock's user needs read and write permission for the keys that begin with
//! `leasehold/`, such as by `etcdctl role grant-permission locks --prefix=true readwrite leasehold/`.

mod attempt;
mod backend;
mod capabilities;
mod check;
mod claims;
mod config;
mod error;
mod extend;
mod inspect;
mod keys;
mod leases;
mod member;
mod members;
mod requests;
mod store;
mod watches;

pub use backend::EtcdBackend;
pub use config::{EtcdConfig, EtcdTls};
