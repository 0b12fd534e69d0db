//! The memory backend: the reference for the suite, and the store for users' own unit tests.

mod backend;
mod store;

pub use backend::MemoryBackend;
