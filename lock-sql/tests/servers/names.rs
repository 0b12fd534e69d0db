//! Names up to the longest, and names that a database takes for equal unless it is told otherwise.

use lock_core::{Backend as _, Namespace, Selector};

use crate::{claim, db::Db, granted, is_busy};

super::on_both!(names_of_512_bytes_differ_in_their_last_byte, names_that_look_alike_are_different_locks);

async fn all_are_different(db: &Db, names: &[String]) {
    let backend = db.backend().await;
    let claims: Vec<_> = names.iter().map(|name| claim(name)).collect();
    for claim in &claims {
        granted(&backend, claim).await;
    }
    for held in &claims {
        let name = held.name.as_str();
        assert!(is_busy(&backend, &claim(name)).await, "{name:?}");
        let seen = backend.inspect(&Selector::name(name)).await.expect("inspect");
        assert_eq!((seen.len(), seen[0].holders[0].claim), (1, held.id), "{name:?}");
        assert_eq!(seen[0].name, name);
    }
    assert_eq!(backend.inspect(&Selector::prefix("")).await.expect("inspect").len(), names.len());
    for claim in &claims {
        backend.release(claim).await.expect("release");
    }
}

async fn names_of_512_bytes_differ_in_their_last_byte(db: &Db) {
    let mut names: Vec<String> = ["a", "b", " ", "\0"].iter().map(|last| "n".repeat(511) + last).collect();
    // As many bytes in 128 characters, and one byte less.
    names.extend(["\u{1f512}".repeat(128), "n".repeat(511)]);
    all_are_different(db, &names).await;
    // The longest namespace beside the longest name: the whole of a key's room.
    let backend = db.backend().await;
    let mut longest = claim(&"n".repeat(512));
    longest.namespace = Namespace::new(&"s".repeat(64)).expect("a namespace");
    granted(&backend, &longest).await;
    granted(&backend, &claim(&"n".repeat(512))).await;
    backend.release(&longest).await.expect("release");
}

async fn names_that_look_alike_are_different_locks(db: &Db) {
    let names = [
        "job",
        "Job",
        "JOB",
        "job ",
        "job\0",
        " job",
        "j\u{f6}b",
        "jo\u{308}b",
        "j%b",
        "j_b",
        "j\\b",
        "j'b",
        "stra\u{df}e",
        "strasse",
    ];
    all_are_different(db, &names.map(str::to_owned)).await;
}
