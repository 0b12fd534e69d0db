//! Servers that refuse: each with the kind of error that core acts on, and none for longer than it lasts.

use lock_core::{Backend as _, BackendError, BackendErrorKind, Extension, LockClient, Release, Selector};
use lock_redis::{RedisBackend, RedisConfig};

use crate::{
    LEASE, NOISE, Place, busy, claim, connect, fence, granted, key,
    support::server::{self, Keeps},
};

async fn refused(backend: &RedisBackend, name: &str) -> BackendError {
    backend.attempt(&claim(name)).await.expect_err("refused")
}

#[tokio::test]
async fn a_server_without_memory_grants_nothing_and_keeps_what_is_held() {
    let place = Place::with(Keeps::Nothing, &["--maxmemory-policy", "noeviction"]).await;
    let (backend, held) = (place.backend().await, claim("x"));
    granted(&backend, &held).await;
    place.tell(&["CONFIG", "SET", "maxmemory", "1"]).await;
    let error = refused(&backend, "y").await;
    assert_eq!(error.kind(), BackendErrorKind::Refused);
    assert!(error.to_string().contains("OOM") && error.to_string().contains("raise maxmemory"), "{error}");
    assert_eq!(place.raw.keys("*y*").await.expect("an answer").len(), 0, "nothing is left of what was refused");
    busy(&backend, &claim("x")).await;
    assert_eq!(backend.extend(&held, LEASE * 2).await.expect("held"), Extension::Extended(LEASE * 2));
    assert_eq!(backend.release(&held).await.expect("held"), Release::Removed);
    place.tell(&["CONFIG", "SET", "maxmemory", "0"]).await;
    granted(&backend, &claim("y")).await;
}

#[tokio::test]
async fn a_key_of_another_type_is_named_and_left_alone() {
    let place = Place::new().await;
    let backend = place.backend().await;
    place.tell(&["RPUSH", &key("x"), "someone else's"]).await;
    place.tell(&["SET", &key("y"), "someone else's"]).await;
    place.tell(&["HSET", &fence("z"), "someone", "else's"]).await;
    for name in ["x", "y", "z"] {
        let error = refused(&backend, name).await;
        assert_eq!(error.kind(), BackendErrorKind::Refused, "{error}");
        assert!(error.to_string().contains(&key(name)), "{error}");
    }
    let namespace = claim("x").namespace;
    for name in ["x", "y"] {
        let selector = Selector::name(name).in_namespace(namespace.clone());
        let error = backend.inspect(&selector).await.expect_err("not a lock");
        assert!(error.to_string().contains(&key(name)), "{error}");
    }
    // A list of all locks is not spoilt by it, and what is someone else's is neither extended nor removed.
    assert_eq!(backend.inspect(&Selector::prefix("").in_namespace(namespace)).await.expect("shown"), []);
    for name in ["x", "y"] {
        assert_eq!(backend.extend(&claim(name), LEASE).await.expect("an answer"), Extension::NotHeld);
        assert_eq!(backend.release(&claim(name)).await.expect("an answer"), Release::Absent);
    }
    assert_eq!(place.tell(&["EXISTS", &key("x"), &key("y"), &fence("z")]).await, "3");
}

#[tokio::test]
async fn a_claim_that_became_something_else_is_lost() {
    let place = Place::new().await;
    let (backend, held) = (place.backend().await, claim("x"));
    granted(&backend, &held).await;
    place.tell(&["DEL", &key("x")]).await;
    place.tell(&["RPUSH", &key("x"), "someone else's"]).await;
    assert_eq!(backend.extend(&held, LEASE).await.expect("an answer"), Extension::NotHeld);
    assert_eq!(backend.release(&held).await.expect("an answer"), Release::Absent);
}

#[tokio::test]
async fn a_server_that_runs_someones_endless_script_is_unavailable_until_it_ends() {
    let place = Place::with(Keeps::Nothing, &["--busy-reply-threshold", "50"]).await;
    let backend = place.backend().await;
    let endless = tokio::spawn({
        let client = redis::Client::open(place.url("")).expect("a URL");
        async move {
            let config = redis::AsyncConnectionConfig::new().set_response_timeout(None);
            let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
            redis::cmd("EVAL").arg("while true do end").arg(0).exec_async(&mut connection).await
        }
    });
    place.shows("the server is busy", async |raw| raw.ask::<String>(&["PING"]).await.is_err()).await;
    let error = refused(&backend, "x").await;
    assert_eq!(error.kind(), BackendErrorKind::Unavailable, "{error}");
    place.tell(&["SCRIPT", "KILL"]).await;
    endless.await.expect("no panic").expect_err("killed");
    granted(&backend, &claim("x")).await;
}

#[tokio::test]
async fn a_server_that_is_loading_is_unavailable_until_it_has_loaded() {
    // Each record takes a while, and the server answers after every 1,024 of them.
    let slowly = ["--key-load-delay", "300"];
    let ready = Box::new(|address| {
        server::says(address, b"PING\r\n").is_ok_and(|said| said.starts_with("+PONG") || said.starts_with("-LOADING"))
    });
    let server = server::start_with_ready(Keeps::Everything, &slowly, ready).expect("redis-server starts");
    let raw = crate::Raw::connect(server.address()).await.expect("the server answers");
    let place = Place { server, raw };
    // As long as a busy machine may take to load: until then the first attempt is repeated.
    let client = LockClient::builder(place.backend().await).lease(LEASE).request_timeout(LEASE);
    let client = client.build().expect("a client");
    let guard = client.lock("x").acquire().await.expect("free");
    let fill = "for i = 1, 10000 do redis.call('SET', 'other:' .. i, i) end";
    place.tell(&["EVAL", fill, "0"]).await;
    place.server.kill();
    place.server.launch().expect("redis-server starts again");
    let config = RedisConfig::new("127.0.0.1", place.address().port());
    let error = RedisBackend::connect(&config).await.expect_err("loading");
    assert_eq!(error.kind(), BackendErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("LOADING"), "{error}");
    // The client that was there before waits for it, and its claim was kept.
    let next = client.lock("y").wait(LEASE).acquire().await.expect("loaded in time");
    guard.extend(LEASE).await.expect("its record was loaded");
    next.release().await.expect("held");
    guard.release().await.expect("held");
}

#[tokio::test]
async fn a_replica_grants_nothing_and_knows_of_no_release() {
    // A primary that sends its data at once, and not in five seconds.
    let at_once = ["--repl-diskless-sync-delay", "0"];
    let (primary, replica) = (Place::with(Keeps::Nothing, &at_once).await, Place::new().await);
    let port = primary.address().port().to_string();
    let (backend, held) = (replica.backend().await, claim("x"));
    granted(&backend, &held).await;
    replica.tell(&["REPLICAOF", "127.0.0.1", &port]).await;
    replica
        .shows("it replicates", async |raw| {
            raw.info("replication", "master_link_status").await.is_ok_and(|status| status == "up")
        })
        .await;
    for error in [refused(&backend, "y").await, backend.release(&held).await.expect_err("a replica's word is old")] {
        assert_eq!(error.kind(), BackendErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains("READONLY"), "{error}");
    }
    let original = connect(&primary.url("")).await;
    granted(&original, &held).await;
    replica
        .shows("the claim is copied", async |raw| raw.ask::<u64>(&["EXISTS", &key("x")]).await.is_ok_and(|n| n == 1))
        .await;
    let error = backend.attempt(&held).await.expect_err("its own claim, on a replica");
    assert_eq!(error.kind(), BackendErrorKind::Unavailable, "{error}");
    // Once it is a primary, the same backend works.
    replica.tell(&["REPLICAOF", "NO", "ONE"]).await;
    assert_eq!(backend.release(&held).await.expect("held"), Release::Removed);
    granted(&backend, &claim("y")).await;
}

#[tokio::test]
async fn too_many_clients_are_unavailable() {
    let place = Place::with(Keeps::Nothing, &["--maxclients", "2"]).await;
    let backend = place.backend().await;
    let config = RedisConfig::from_url(&place.url("")).expect("a URL").connect_timeout(NOISE);
    let error = RedisBackend::connect(&config).await.expect_err("no room");
    assert_eq!(error.kind(), BackendErrorKind::Unavailable, "{error}");
    backend.close().await;
    place.shows("there is room", async |_| RedisBackend::connect(&config).await.is_ok()).await;
}
