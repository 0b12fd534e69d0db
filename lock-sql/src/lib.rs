//! Laid next.
