//! `leasehold init`: creates what the store needs before its first lock.

use crate::{
    cli::StoreArgs,
    exit::{Exit, Failure},
    out, session,
};

/// Creates it, and says what was created.
pub(crate) fn init(store: &StoreArgs) -> Result<Exit, Failure> {
    let created = session::ask(store, async |client| Ok(client.prepare().await?))?;
    let text = match created.as_slice() {
        [] => "nothing to create: all is there\n".to_owned(),
        created => created.iter().map(|what| format!("created {what}\n")).collect(),
    };
    out::write(&text)?;
    Ok(Exit::Done)
}
