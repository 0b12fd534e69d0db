//! No error, Debug or log line ever shows a password.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use lock_core::{Backend as _, LockClient, Selector};
use lock_redis::{RedisBackend, RedisConfig};
use tracing_subscriber::fmt::MakeWriter;

use crate::{Place, claim};

const PASSWORD: &str = "correct-horse-battery";

/// All that was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Log;

    fn make_writer(&'a self) -> Log {
        self.clone()
    }
}

/// An error with all that it came from, in both forms.
fn in_full(error: &dyn std::error::Error) -> String {
    let mut text = format!("{error} {error:?}");
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(&format!(" {inner} {inner:?}"));
        cause = inner.source();
    }
    text
}

#[tokio::test]
async fn a_password_is_nowhere() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(log.clone()).finish();
    let _logging = tracing::subscriber::set_default(subscriber);
    let place = Place::new().await;
    let mut seen = String::new();
    place.tell(&["CONFIG", "SET", "requirepass", PASSWORD]).await;
    // A server that tells what it was asked, as one does that does not know a command.
    let url = place.url(&format!("me-{PASSWORD}:{PASSWORD}@"));
    seen.push_str(&in_full(
        &RedisBackend::connect(&RedisConfig::from_url(&url).expect("a URL")).await.expect_err("no such user"),
    ));
    for broken in
        [format!("{url}/x"), format!("{url}?x"), url.replace("redis:", "rediss:").replace("rediss", "redisss")]
    {
        seen.push_str(&in_full(&RedisConfig::from_url(&broken).expect_err("wrong")));
    }
    let config = RedisConfig::from_url(&place.url(&format!(":{PASSWORD}@"))).expect("a URL");
    let config = config.connect_timeout(Duration::from_millis(300));
    let backend = RedisBackend::connect(&config).await.expect("the right password");
    seen.push_str(&format!("{config:?} {config:#?} {backend:?} {backend:#?}"));
    place.tell(&["RPUSH", "leasehold/{shop/lock/list}", "x"]).await;
    seen.push_str(&in_full(&backend.attempt(&claim("list")).await.expect_err("a list")));
    let client = LockClient::builder(backend).request_timeout(Duration::from_millis(100)).build().expect("a client");
    let guard = client.lock("x").acquire().await.expect("free");
    seen.push_str(&format!("{client:?} {guard:?} {:?}", client.inspect(Selector::prefix("")).await.expect("shown")));
    place.server.kill();
    seen.push_str(&in_full(&client.lock("y").try_acquire().await.expect_err("no server")));
    seen.push_str(&in_full(&guard.release().await.expect_err("no server")));
    let logged = String::from_utf8_lossy(&log.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned();
    assert!(logged.contains("lock acquired"), "the log is read: {logged}");
    // The user's name may be shown; here it is the password with something before it.
    let shown = [seen, logged].concat().replace(&format!("me-{PASSWORD}"), "me");
    assert!(!shown.contains(PASSWORD), "{shown}");
}
