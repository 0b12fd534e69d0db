//! Names as bytes (L14), and rows that are not ours (L17).

use lock_core::{Backend as _, Namespace, Selector};
use lock_sql::SqlBackend;

use crate::{Place, busy, claim, granted};

const NAMES: [&str; 16] =
    ["a", "A", "a ", " a", "é", "e\u{301}", "a/b", ".", "..", "%", "_", "a%", "{a}", "a\u{0}", "a\u{0}b", "\u{1F512}"];

async fn shown(backend: &SqlBackend, selector: Selector) -> Vec<String> {
    backend.inspect(&selector).await.expect("inspect").into_iter().map(|record| record.name).collect()
}

#[tokio::test]
async fn names_that_differ_in_a_byte_are_different_locks() {
    let place = Place::new();
    let (backend, mut oracle) = (place.backend().await, place.oracle().await);
    for name in NAMES {
        granted(&backend, &claim(name)).await;
    }
    for name in NAMES {
        busy(&backend, &claim(name)).await;
        assert_eq!(shown(&backend, Selector::name(name)).await, [name]);
    }
    assert_eq!(oracle.rows().await.len(), NAMES.len());
}

#[tokio::test]
async fn a_prefix_is_literal() {
    let place = Place::new();
    let backend = place.backend().await;
    for name in NAMES {
        granted(&backend, &claim(name)).await;
    }
    for prefix in ["", "a", "a%", "%", "_", "e", "a\u{0}", "zz", "\u{10FFFF}"] {
        let mut expected: Vec<&str> = NAMES.into_iter().filter(|name| name.starts_with(prefix)).collect();
        expected.sort_unstable();
        assert_eq!(shown(&backend, Selector::prefix(prefix)).await, expected, "{prefix:?}");
    }
}

#[tokio::test]
async fn namespaces_do_not_meet() {
    let place = Place::new();
    let backend = place.backend().await;
    granted(&backend, &claim("job")).await;
    let mut other = claim("job");
    other.namespace = Namespace::new("shop").expect("a namespace");
    granted(&backend, &other).await;
    let records = backend.inspect(&Selector::prefix("").in_namespace(other.namespace.clone())).await.expect("inspect");
    assert_eq!(records.len(), 1);
    assert_eq!((records[0].namespace.as_str(), records[0].name.as_str()), ("shop", "job"));
    assert_eq!(records[0].holders[0].claim, other.id);
    assert_eq!(records[0].holders[0].pid, 7);
}

#[tokio::test]
async fn the_longest_name_in_the_longest_namespace_is_a_name() {
    let place = Place::new();
    let backend = place.backend().await;
    let mut long = claim(&"é".repeat(256));
    long.namespace = Namespace::new(&"n".repeat(64)).expect("64 bytes");
    granted(&backend, &long).await;
    busy(&backend, &lock_core::Claim { id: lock_core::ClaimId::random(), ..long }).await;
}

#[tokio::test]
async fn the_users_own_tables_and_rows_of_other_families_are_left_alone() {
    let place = Place::new();
    let mut oracle = place.oracle().await;
    oracle.execute("PRAGMA user_version = 42; CREATE TABLE orders (id INTEGER); INSERT INTO orders VALUES (1)").await;
    let backend = place.backend().await;
    oracle
        .execute(
            "INSERT INTO leasehold_locks (namespace, family, name, slot, claim, token, since, expires)
             VALUES (x'', 'semaphore', CAST('job' AS BLOB), 3, zeroblob(16), 1, 1, 9000000000000000),
                    (x'', 'lock', x'ff', 0, zeroblob(16), 1, 1, 9000000000000000)",
        )
        .await;
    granted(&backend, &claim("job")).await;
    assert_eq!(shown(&backend, Selector::prefix("")).await, ["job"]);
    assert_eq!(oracle.number("SELECT count(*) FROM orders").await, 1);
    assert_eq!(oracle.number("PRAGMA user_version").await, 42);
    assert_eq!(oracle.rows().await.len(), 3);
}
