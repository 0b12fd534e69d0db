//! Private Redis servers, a second way into them, and the fixture that the suite is given.

pub(crate) mod fixture;
pub(crate) mod oracle;
pub(crate) mod server;
