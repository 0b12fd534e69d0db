//! What a single server does not promise, shown: a replica that takes over without the last writes grants a held lock
//! again. The token still tells the two holders apart, so that a resource that checks it refuses the late one.

use conformance_tests::{Proxy, Weather};
use lock_core::{FencingToken, Verdict};
use lock_redis::RedisBackend;

use crate::{Place, support::server::Keeps};

/// A resource that remembers the largest token it has seen.
#[derive(Default)]
struct Register {
    last: FencingToken,
    value: &'static str,
}

impl Register {
    fn write(&mut self, token: FencingToken, value: &'static str) -> bool {
        let in_order = token >= self.last;
        if in_order {
            (self.last, self.value) = (token, value);
        }
        in_order
    }
}

#[tokio::test]
async fn a_failover_breaks_exclusion_and_fencing_refuses_the_late_writer() {
    // A primary that sends its data at once, and not in five seconds.
    let at_once = ["--repl-diskless-sync-delay", "0"];
    let (primary, replica) = (Place::with(Keeps::Nothing, &at_once).await, Place::new().await);
    let wire = Proxy::before(primary.address()).await.expect("a proxy");
    replica.tell(&["REPLICAOF", "127.0.0.1", &wire.address().port().to_string()]).await;
    replica
        .shows("it replicates", async |raw| {
            raw.info("replication", "master_link_status").await.is_ok_and(|status| status == "up")
        })
        .await;
    let (old, mut register) = (primary.client().await, Register::default());
    let earlier = old.lock("x").acquire().await.expect("free");
    replica
        .shows("the claim is copied", async |raw| {
            raw.ask::<u64>(&["EXISTS", "leasehold/{/lock/x}"]).await.is_ok_and(|count| count == 1)
        })
        .await;
    earlier.release().await.expect("held");
    replica
        .shows("the release is copied", async |raw| {
            raw.ask::<u64>(&["EXISTS", "leasehold/{/lock/x}"]).await.is_ok_and(|count| count == 0)
        })
        .await;

    // The last writes stay on the wire, and then the primary is gone.
    wire.set(Weather::Blackhole);
    let late = old.lock("x").acquire().await.expect("free");
    assert!(register.write(late.fencing_token(), "from the old primary's holder"));
    primary.server.kill();
    drop(wire);
    replica.tell(&["REPLICAOF", "NO", "ONE"]).await;

    // The new primary has never heard of the claim: two hold the lock, and both guards say so.
    let new = replica.client().await;
    let successor = new.lock("x").try_acquire().await.expect("an answer").expect("granted a second time");
    assert!(late.is_held() && successor.is_held(), "this is what is not promised");
    let promised = RedisBackend::redis_capabilities();
    assert_eq!(promised.exclusion.async_failover, Verdict::No);

    // The clocks of the two servers agree, and so do the tokens.
    assert!(successor.fencing_token() > late.fencing_token());
    assert!(register.write(successor.fencing_token(), "from the new primary's holder"));
    assert!(!register.write(late.fencing_token(), "too late"), "the late writer is refused");
    assert_eq!(register.value, "from the new primary's holder");
    successor.release().await.expect("held");
    drop(late);
}
