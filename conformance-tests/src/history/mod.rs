//! Histories: what several clients did and saw under faults, recorded as it happened and checked afterwards.

mod check;
mod event;
mod recorder;

pub use check::{Rules, Violation, check};
pub use event::{Event, History, What};
pub use recorder::Recorder;
