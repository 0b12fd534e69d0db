//! The suite on a backend of one's own.

use std::{process::ExitCode, sync::Arc};

use async_trait::async_trait;
use conformance_tests::{Fixture, Outcome, Suite};
use lock_core::Backend;
use own_backend::OwnBackend;

#[derive(Debug)]
struct Own(OwnBackend);

#[async_trait]
impl Fixture for Own {
    fn name(&self) -> &str {
        "own"
    }

    async fn connect(&self) -> Outcome<Arc<dyn Backend>> {
        Ok(Arc::new(self.0.clone()))
    }

    async fn private(&self) -> Outcome<Arc<dyn Fixture>> {
        Ok(Arc::new(Own(OwnBackend::new())))
    }
}

fn main() -> ExitCode {
    Suite::new().on(Own(OwnBackend::new())).main()
}
