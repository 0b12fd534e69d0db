//! Fault tools: what can go wrong between a client and its store, made to go wrong at will.

mod faulty;
mod proxy;

pub use faulty::{Call, Fault, Faulty, Op};
pub use proxy::{Proxy, Weather};
