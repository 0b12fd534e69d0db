//! One question to the store: connected, asked, closed.

use std::time::Duration;

use leasehold::LockClient;

use crate::{
    cli::StoreArgs,
    exit::{Exit, Failure},
    store,
};

/// No store may keep the command from ending once it has its answer.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// Connects to the store that is meant, and asks it.
pub(crate) fn ask<T>(
    args: &StoreArgs,
    question: impl AsyncFnOnce(&LockClient) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let store = store::choose(args, &store::Environment::of_this_process())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(Exit::Unavailable, format!("no runtime: {error}")))?;
    runtime.block_on(async {
        let client = store.connect().await?;
        let answer = question(&client).await;
        // Nothing was locked, so there is nothing that a close which fails could leave behind.
        let _ = tokio::time::timeout(CLOSE_LIMIT, client.close()).await;
        answer
    })
}
