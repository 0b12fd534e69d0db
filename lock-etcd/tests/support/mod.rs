//! What tests on etcd need: servers of their own, a fixture for the suite, and a look past the backend.

pub(crate) mod oracle;
pub(crate) mod server;
