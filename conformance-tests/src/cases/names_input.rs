//! Names and input: every name is its own lock, every bad value is refused before the store sees it (L14, L15, L17).

use std::{collections::BTreeSet, time::Duration};

use lock_core::{ErrorKind, LockClient, LockKind, Selector};

use super::{busy, refused, taken};
use crate::{Outcome, Stop, World, bounds::NOISE, case::cases, ensure, ensure_eq};

cases! {
    names_that_look_alike_are_different_locks: "L14.b";
    names_that_begin_alike_are_different_locks: "L14.b" "L14.c";
    names_of_every_length_that_is_allowed_work: "L14.a";
    names_that_are_empty_or_too_long_are_refused_unseen: "L14.a" "L15.a";
    a_prefix_is_taken_literally: "L14.c";
    inspect_shows_who_holds_and_for_how_long: "L14.c";
    namespaces_do_not_meet: "L17.a" "L14.a";
    foreign_data_neither_breaks_nor_blocks: "L17.b";
    leases_out_of_range_are_refused_unseen: "L15.a";
    a_short_lease_is_rounded_up_visibly: "L15.b";
    settings_out_of_range_are_refused: "L15.a";
    a_long_label_is_refused_unseen: "L15.a";
    idle_records_are_not_shown: "L20.c";
}

/// Names that some store, collation, file system or escape could take for one another.
const LOOK_ALIKES: &[&[&str]] = &[
    &["lock", "Lock", "LOCK", "lOCK"],
    &["a", "a ", "a  ", " a", "a\t", "a\n", "a\0", "a\u{a0}"],
    &["\u{e9}", "e\u{301}", "e", "E\u{301}"],
    &["ß", "ss", "SS", "ẞ"],
    &["i", "ı", "I", "İ"],
    &["\u{212b}", "\u{c5}", "A\u{30a}"],
    &["a/b", "a//b", "/a/b", "a/b/", "a\\b", "a%2Fb", "a%2fb", "a%252Fb", "a:b"],
    &[".", "..", "./", "%2E", "%2E%2E", "..."],
    &["%", "%%", "%25", "%2", "_", "a_", "ab"],
    &["{x}", "x", "{x", "x}", "{}x", "{x}y"],
    &["*", "?", "[a]", "a*"],
    &["\u{1}", "\u{7f}", "\u{9f}", "\u{200b}", "\u{feff}", "\u{fffd}"],
    &["x\u{200b}", "x\u{ad}", "x\u{202e}"],
    &["🔒", "🔒\u{fe0f}", "🔓"],
    &["'", "''", "\"", "`", ";--", "$1", "\\'"],
    &["１", "1", "①", "¹"],
];

async fn names_that_look_alike_are_different_locks(world: World) -> Outcome {
    let (client, other) = (world.client().await?, world.client().await?);
    for group in LOOK_ALIKES {
        let mut guards = Vec::new();
        let mut tokens = BTreeSet::new();
        for name in *group {
            let guard = client.lock(name).try_acquire().await?;
            let guard = guard.ok_or_else(|| {
                let others: Vec<_> = group.iter().take_while(|other| *other != name).collect();
                Stop::failed("L14.b", format!("{name:?} was taken for one of {others:?}"))
            })?;
            ensure_eq!("L14.b", guard.name(), *name, "the guard's name");
            world.shows("L14.b", &guard).await?;
            tokens.insert(guard.claim_id());
            guards.push(guard);
        }
        ensure_eq!("L14.b", tokens.len(), group.len(), "different claims for {group:?}");
        for name in *group {
            busy("L14.b", &other, name).await?;
        }
        // Each is released alone, and its neighbours stay.
        while let Some(guard) = guards.pop() {
            guard.release().await?;
            for guard in &guards {
                world.shows("L14.b", guard).await?;
            }
        }
    }
    Ok(())
}

async fn names_that_begin_alike_are_different_locks(world: World) -> Outcome {
    let client = world.client().await?;
    let names = ["foo", "foo/x", "foo/", "foo%", "foo.lock", "fo", "foo:fence", "foo-1", "foo\u{0}"];
    let mut guards = Vec::new();
    for name in names {
        guards.push(taken("L14.b", &client, name).await?);
    }
    for guard in &guards {
        world.shows("L14.b", guard).await?;
    }
    let shown: Vec<_> = client.inspect("foo/").await?.into_iter().map(|record| record.name).collect();
    ensure_eq!("L14.c", shown, ["foo/", "foo/x"], "the names that begin with \"foo/\"");
    let all = client.inspect("fo").await?;
    ensure_eq!("L14.c", all.len(), names.len(), "the number of names that begin with \"fo\"");
    let one: Vec<_> = client.inspect(Selector::name("foo")).await?.into_iter().map(|record| record.name).collect();
    ensure_eq!("L14.c", one, ["foo"], "the lock of the very name \"foo\"");
    for guard in guards {
        guard.release().await?;
    }
    Ok(())
}

async fn names_of_every_length_that_is_allowed_work(world: World) -> Outcome {
    let client = world.client().await?;
    for name in ["x".to_owned(), "x".repeat(512), "é".repeat(256), "/".repeat(512), "🔒".repeat(128), "\0".repeat(512)]
    {
        let guard = taken("L14.a", &client, &name).await?;
        ensure_eq!("L14.a", guard.name(), name, "the guard's name");
        world.shows("L14.a", &guard).await?;
        guard.release().await?;
    }
    // Two long ones that differ in their last byte.
    let (a, b) = (format!("{}a", "n".repeat(511)), format!("{}b", "n".repeat(511)));
    let (first, second) = (taken("L14.b", &client, &a).await?, taken("L14.b", &client, &b).await?);
    first.release().await?;
    world.shows("L14.b", &second).await?;
    second.release().await?;
    Ok(())
}

async fn names_that_are_empty_or_too_long_are_refused_unseen(world: World) -> Outcome {
    let store = world.faulty().await?;
    let client = world.over(store.clone()).build()?;
    for name in [String::new(), "x".repeat(513), "é".repeat(257), "x".repeat(1 << 20)] {
        for waits in [false, true] {
            let lock = client.lock(&name);
            let result = if waits { lock.acquire().await.map(Some) } else { lock.try_acquire().await };
            let error = refused("L14.a", "a name out of range", result, ErrorKind::InvalidInput)?;
            let length = name.len().to_string();
            ensure!(
                "L15.a",
                error.to_string().contains(&length),
                "the error does not name the length {length}: {error}"
            );
            ensure!("L15.a", error.to_string().contains("512"), "the error does not name the range: {error}");
            ensure!("L15.a", error.to_string().len() < 1_000, "the error repeats the whole name");
        }
    }
    ensure_eq!("L14.a", store.calls().len(), 0, "calls that the store saw");
    let long = world.builder().await?.namespace("n".repeat(65)).build();
    refused("L14.a", "a namespace of 65 bytes", long, ErrorKind::InvalidInput)?;
    Ok(())
}

async fn a_prefix_is_taken_literally(world: World) -> Outcome {
    let client = world.client().await?;
    let names = ["100%", "100 %", "1000", "a_b", "axb", "a*b", "a\\b", "[a]", "Łódź", "łódź"];
    let mut guards = Vec::new();
    for name in names {
        guards.push(taken("L14.c", &client, name).await?);
    }
    let prefixes = [
        ("100%", vec!["100%"]),
        ("a_", vec!["a_b"]),
        ("a*", vec!["a*b"]),
        ("a\\", vec!["a\\b"]),
        ("[a", vec!["[a]"]),
        ("Ł", vec!["Łódź"]),
        ("zzz", vec![]),
        ("100", vec!["100 %", "100%", "1000"]),
    ];
    for (prefix, expected) in prefixes {
        let shown: Vec<_> = client.inspect(prefix).await?.into_iter().map(|record| record.name).collect();
        ensure_eq!("L14.c", shown, expected, "the names that begin with {prefix:?}");
    }
    let all: BTreeSet<_> = client.inspect("").await?.into_iter().map(|record| record.name).collect();
    ensure_eq!("L14.c", all, names.map(str::to_owned).into(), "all names");
    for guard in guards {
        guard.release().await?;
    }
    Ok(())
}

async fn inspect_shows_who_holds_and_for_how_long(world: World) -> Outcome {
    let (client, lease) = (world.client().await?, world.bounds().granted(Duration::from_secs(20)));
    let guard = client.lock("x/y z").lease(lease).label("nightly ✓").acquire().await?;
    for selector in [Selector::name("x/y z"), Selector::prefix("x/")] {
        let records = world.client().await?.inspect(selector).await?;
        let [record] = records.as_slice() else {
            return Err(Stop::failed("L14.c", format!("one record was expected: {records:?}")));
        };
        ensure_eq!("L14.c", (record.name.as_str(), record.kind), ("x/y z", LockKind::Exclusive), "the record is of");
        ensure_eq!("L14.c", record.namespace, world.namespace().as_str(), "the record's namespace");
        let [holder] = record.holders.as_slice() else {
            return Err(Stop::failed("L14.c", format!("one holder was expected: {record:?}")));
        };
        ensure_eq!("L14.c", (holder.claim, holder.token), (guard.claim_id(), guard.fencing_token()), "the holder is");
        ensure_eq!("L14.c", holder.pid, std::process::id(), "the holder's process");
        ensure!("L14.c", !holder.host.is_empty(), "the holder's host is not shown");
        ensure_eq!("L14.c", holder.label.as_deref(), Some("nightly ✓"), "the holder's label");
        if let Some(remaining) = holder.remaining {
            // A store with sessions, or one that cannot renew by less, may keep it longer than was asked.
            ensure!("L14.c", remaining + NOISE + NOISE >= lease, "{remaining:?} of {lease:?} remain");
        }
        if let Some(since) = holder.since {
            // By the store's clock, which may differ from ours; on one machine not by much.
            let age = since.elapsed().unwrap_or_else(|ahead| ahead.duration());
            ensure!("L14.c", age < Duration::from_secs(60), "held since {since:?}");
        }
    }
    guard.release().await?;
    ensure!("L14.c", client.inspect("").await?.is_empty(), "a released lock is shown");
    Ok(())
}

async fn namespaces_do_not_meet(world: World) -> Outcome {
    let base = world.namespace().as_str().to_owned();
    // Neither by a name that looks like the end of another's namespace, nor by its length.
    let spaces = [
        base.clone(),
        format!("{base}/x"),
        format!("{base}:x"),
        format!("{base} "),
        base.to_uppercase(),
        format!("{base}é%2F"),
        format!("{base}{}", "n".repeat(64 - base.len())),
        format!("{base}{}", "/".repeat(64 - base.len())),
    ];
    let mut clients: Vec<LockClient> = Vec::new();
    for space in &spaces {
        clients.push(world.builder().await?.namespace(space.as_str()).build()?);
    }
    let mut guards = Vec::new();
    for client in &clients {
        for name in ["x", "x/x", ":x"] {
            guards.push(taken("L17.a", client, name).await?);
        }
    }
    for (client, space) in clients.iter().zip(&spaces) {
        let shown: Vec<_> =
            client.inspect("").await?.into_iter().map(|record| (record.namespace, record.name)).collect();
        let expected = [":x", "x", "x/x"].map(|name| (space.clone(), name.to_owned()));
        ensure_eq!("L17.a", shown, expected, "the records of namespace {space:?}");
    }
    // Breaking reaches its own namespace alone.
    clients[0].break_lock("x", None).await?;
    for guard in &guards[1..] {
        ensure!("L17.a", guard.is_held(), "a break in another namespace ended a hold of {:?}", guard.name());
    }
    let held: usize = {
        let mut held = 0;
        for client in &clients {
            held += client.inspect("x").await?.len();
        }
        held
    };
    ensure_eq!("L17.a", held, spaces.len() * 2 - 1, "locks that are held after one was broken");
    for guard in guards {
        // The first one has been broken.
        let _ = guard.release().await;
    }
    // The empty namespace is one like any other.
    let empty = world.builder().await?.namespace("").build()?;
    let guard = taken("L14.a", &empty, &base).await?;
    ensure!("L17.a", world.client().await?.inspect("").await?.is_empty(), "the empty namespace is shown in another");
    guard.release().await?;
    Ok(())
}

async fn foreign_data_neither_breaks_nor_blocks(world: World) -> Outcome {
    let client = world.client().await?;
    let key = world.key("x")?;
    world.oracle().plant_foreign(&key).await?;
    let guard = taken("L17.b", &client, "x").await?;
    world.oracle().plant_foreign(&key).await?;
    world.shows("L17.b", &guard).await?;
    busy("L17.b", &world.client().await?, "x").await?;
    guard.extend(world.bounds().long()).await?;
    let names: Vec<_> = client.inspect("").await?.into_iter().map(|record| record.name).collect();
    ensure_eq!("L17.b", names, ["x"], "the names that are shown beside foreign data");
    guard.release().await?;
    world.free("L17.b", "x", world.bounds().prompt()).await
}

async fn leases_out_of_range_are_refused_unseen(world: World) -> Outcome {
    let store = world.faulty().await?;
    let client = world.over(store.clone()).build()?;
    let most = world.capabilities().lease_max;
    let wrong =
        [Duration::ZERO, most.saturating_add(Duration::from_millis(1)), Duration::from_millis(u64::MAX), Duration::MAX];
    for lease in wrong {
        for waits in [false, true] {
            let lock = client.lock("x").lease(lease);
            let result = if waits { lock.acquire().await.map(Some) } else { lock.try_acquire().await };
            let error =
                refused("L15.a", &format!("a lease of {lease:?}"), result, ErrorKind::InvalidInput)?.to_string();
            ensure!("L15.a", error.contains(&format!("{lease:?}")), "the error does not name {lease:?}: {error}");
            ensure!(
                "L15.a",
                error.contains(&format!("{most:?}")),
                "the error does not name the most, {most:?}: {error}"
            );
        }
    }
    ensure_eq!("L15.a", store.calls().len(), 0, "calls that the store saw");
    // The longest one works.
    let guard = client.lock("x").lease(most).acquire().await?;
    ensure!("L15.a", guard.is_held(), "a hold of the longest lease is not held");
    guard.release().await?;
    Ok(())
}

async fn a_short_lease_is_rounded_up_visibly(world: World) -> Outcome {
    let client = world.client().await?;
    let shortest = world.bounds().granted(Duration::from_nanos(1));
    let guard = client.lock("x").lease(Duration::from_nanos(1)).acquire().await?;
    let (remaining, margin) = (guard.remaining(), world.capabilities().margin);
    ensure!("L15.b", remaining <= shortest, "{remaining:?} remain of a lease rounded up to {shortest:?}");
    if shortest > NOISE {
        ensure!("L15.b", remaining + margin + NOISE >= shortest, "{remaining:?} remain of {shortest:?}");
    }
    let asked = Duration::from_nanos(1);
    ensure!("L15.b", remaining > asked || !guard.is_held(), "the lease was not rounded up");
    // So short a hold may have been lost on a busy machine.
    let _ = guard.release().await;
    let uneven = Duration::from_millis(20_123) + Duration::from_nanos(1);
    let guard = client.lock("y").lease(uneven).acquire().await?;
    ensure!("L15.b", guard.remaining() + NOISE >= uneven.saturating_sub(margin), "{:?} remain", guard.remaining());
    ensure!("L15.b", guard.remaining() <= world.bounds().granted(uneven), "{:?} remain", guard.remaining());
    guard.release().await?;
    world.gone("L5.b", "x", world.bounds().prompt()).await
}

async fn settings_out_of_range_are_refused(world: World) -> Outcome {
    let most = world.capabilities().lease_max;
    for lease in [Duration::ZERO, most.saturating_add(Duration::from_secs(1)), Duration::MAX] {
        let built = world.builder().await?.lease(lease).build();
        let error = refused("L15.a", &format!("a client lease of {lease:?}"), built, ErrorKind::InvalidInput)?;
        ensure!(
            "L15.a",
            error.to_string().contains(&format!("{lease:?}")),
            "the error does not name {lease:?}: {error}"
        );
    }
    let client = world.client().await?;
    let zero = client.lock("x").max_hold(Duration::ZERO).try_acquire().await;
    refused("L15.a", "a max_hold of zero", zero, ErrorKind::InvalidInput)?;
    // What is merely huge is no error: a wait without end, a hold without end.
    let guard = client.lock("x").wait(Duration::MAX).max_hold(Duration::MAX).acquire().await?;
    ensure!("L15.a", guard.is_held(), "a hold with the longest max_hold is not held");
    guard.release().await?;
    Ok(())
}

async fn a_long_label_is_refused_unseen(world: World) -> Outcome {
    let store = world.faulty().await?;
    let client = world.over(store.clone()).build()?;
    let result = client.lock("x").label("l".repeat(100_000)).try_acquire().await;
    refused("L15.a", "a label of 100,000 bytes", result, ErrorKind::InvalidInput)?;
    ensure_eq!("L15.a", store.calls().len(), 0, "calls that the store saw");
    Ok(())
}

async fn idle_records_are_not_shown(world: World) -> Outcome {
    let client = world.client().await?;
    for name in ["x", "y"] {
        taken("L20.c", &client, name).await?.release().await?;
    }
    let held = taken("L20.c", &client, "z").await?;
    let shown: Vec<_> = client.inspect("").await?.into_iter().map(|record| record.name).collect();
    ensure_eq!("L20.c", shown, ["z"], "the names that are shown when only \"z\" is held");
    ensure!("L20.c", client.inspect(Selector::name("x")).await?.is_empty(), "a lock that nobody holds is shown");
    held.release().await?;
    Ok(())
}
