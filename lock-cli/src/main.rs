//! Laid next.
fn main() {}
