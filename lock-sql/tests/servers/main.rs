//! What is special to database servers, each proved by what an administrator sees there. The same on both kinds.

mod db;
#[path = "../support/mysql.rs"]
#[expect(dead_code, reason = "the suite uses the rest of it")]
mod mysql;
#[path = "../support/postgres.rs"]
#[expect(dead_code, reason = "the suite uses the rest of it")]
mod postgres;

mod blocked;
mod check;
mod connections;
mod crowded;
mod daylight;
mod full;
mod mysql8;
mod names;
mod pooler;
mod programs;
mod read_only;
mod rights;
mod settings;
mod sweep;
mod tls;

use std::{sync::Arc, time::Duration};

use lock_core::{
    Attempt, Backend as _, BackendError, Claim, ClaimId, FencingToken, Grant, HolderInfo, Intent, LockKind, LockName,
    Namespace,
};
use lock_sql::SqlBackend;

const LEASE: Duration = Duration::from_secs(30);

/// Runs each of these functions against a PostgreSQL and a MariaDB server of its own.
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(&crate::db::postgres(&[])).await;
            })+
        }
        mod on_mysql {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(&crate::db::mysql(&[])).await;
            })+
        }
    };
}
pub(crate) use on_both;

fn claim(name: &str) -> Claim {
    Claim {
        namespace: Namespace::default(),
        name: LockName::new(name).expect("a good name"),
        kind: LockKind::Exclusive,
        id: ClaimId::random(),
        intent: Intent::Try,
        lease: LEASE,
        holder: Arc::new(HolderInfo { host: "here".to_owned(), pid: 7, label: Some("night\0ly".to_owned()) }),
        min_token: FencingToken::ZERO,
    }
}

fn grant(answer: Result<Attempt, BackendError>) -> Grant {
    match answer.expect("the server answers") {
        Attempt::Granted(grant) => grant,
        Attempt::Busy(busy) => panic!("it is taken: {busy:?}"),
    }
}

async fn granted(backend: &SqlBackend, claim: &Claim) -> Grant {
    grant(backend.attempt(claim).await)
}

async fn is_busy(backend: &SqlBackend, claim: &Claim) -> bool {
    matches!(backend.attempt(claim).await.expect("the server answers"), Attempt::Busy(_))
}
