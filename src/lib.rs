//! Laid next.
pub use lock_core::*;
