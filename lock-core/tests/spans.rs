//! The spans of an acquisition, a hold and a release, as a subscriber that joins traces sees them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use lock_core::{LockClient, MemoryBackend};
use tracing::{
    Event, Instrument as _, Subscriber,
    field::{Field, Visit},
    info_span,
    instrument::WithSubscriber as _,
    span,
    subscriber::DefaultGuard,
};
use tracing_subscriber::{Layer, layer::Context, layer::SubscriberExt as _, registry::LookupSpan};

/// What is known of a span that has been opened.
#[derive(Clone, Debug, Default)]
struct Seen {
    parent: Option<String>,
    fields: HashMap<&'static str, String>,
    events: Vec<String>,
    closed: bool,
}

/// A layer that writes down every span by its name; each name is used once in a test.
#[derive(Clone, Debug, Default)]
struct Notes(Arc<Mutex<HashMap<&'static str, Seen>>>);

impl Notes {
    fn of(&self, name: &str) -> Seen {
        let notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        notes.get(name).cloned().unwrap_or_else(|| panic!("no span {name} in {notes:?}"))
    }

    fn edit(&self, name: &'static str, edit: impl FnOnce(&mut Seen)) {
        edit(self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_default());
    }
}

struct Fields<'a>(&'a mut HashMap<&'static str, String>);

impl Visit for Fields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Notes {
    fn on_new_span(&self, attributes: &span::Attributes<'_>, id: &span::Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let parent = span.parent().map(|parent| parent.name().to_owned());
        self.edit(span.name(), |seen| {
            seen.parent = parent;
            attributes.record(&mut Fields(&mut seen.fields));
        });
    }

    fn on_record(&self, id: &span::Id, values: &span::Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        self.edit(span.name(), |seen| values.record(&mut Fields(&mut seen.fields)));
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let Some(span) = context.event_span(event) else { return };
        let mut fields = HashMap::new();
        event.record(&mut Fields(&mut fields));
        self.edit(span.name(), |seen| seen.events.extend(fields.remove("message")));
    }

    fn on_close(&self, id: span::Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        self.edit(span.name(), |seen| seen.closed = true);
    }
}

fn client(store: &MemoryBackend) -> LockClient {
    LockClient::builder(store.clone()).namespace("shop").build().expect("a client")
}

/// Subscribes for this thread, which runs all of a test's tasks.
fn subscribe() -> (Notes, DefaultGuard) {
    let notes = Notes::default();
    let subscriber = tracing_subscriber::registry().with(notes.clone());
    (notes, tracing::subscriber::set_default(subscriber))
}

/// What a service does for a request.
async fn in_request<T>(work: impl Future<Output = T>) -> T {
    work.instrument(info_span!("request")).await
}

#[tokio::test]
async fn the_acquisition_the_hold_and_the_release_belong_to_the_callers_trace() {
    let (notes, _default) = subscribe();
    let work = async {
        let client = client(&MemoryBackend::new());
        let guard = client.lock("order:1001").acquire().await.expect("free");
        let token = guard.fencing_token().to_string();
        assert!(notes.of("lock.acquire").closed, "the acquisition is over");
        assert!(!notes.of("lock.hold").closed, "the hold goes on");
        guard.release().await.expect("held");
        token
    };
    let token = in_request(work).await;

    for name in ["lock.acquire", "lock.hold", "lock.release"] {
        let seen = notes.of(name);
        assert_eq!(seen.parent.as_deref(), Some("request"), "{name}");
        assert_eq!(seen.fields.get("lock.name").map(String::as_str), Some("order:1001"), "{name}: {seen:?}");
        assert_eq!(seen.fields.get("lock.store").map(String::as_str), Some("memory"), "{name}: {seen:?}");
        assert!(seen.closed, "{name} is over");
    }
    let (acquired, held) = (notes.of("lock.acquire"), notes.of("lock.hold"));
    assert_eq!(acquired.fields.get("lock.outcome").map(String::as_str), Some("granted"));
    assert_eq!(acquired.fields.get("lock.token"), Some(&token));
    assert_eq!(held.fields.get("lock.token"), Some(&token));
    assert_eq!(held.fields.get("lock.end").map(String::as_str), Some("released"));
}

#[tokio::test]
async fn a_loss_is_told_in_the_trace_of_who_held() {
    let (notes, _default) = subscribe();
    let work = async {
        let store = MemoryBackend::new();
        let (ours, theirs) = (client(&store), client(&store));
        let guard = ours.lock("x").acquire().await.expect("free");
        theirs.break_lock("x", None).await.expect("answered");
        guard.lost().await;
        let end = std::time::Instant::now() + Duration::from_secs(10);
        while !notes.of("lock.hold").closed {
            assert!(std::time::Instant::now() < end, "the hold of a lost lock never ends");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        drop(guard);
    };
    in_request(work).await;
    let held = notes.of("lock.hold");
    assert_eq!(held.parent.as_deref(), Some("request"));
    assert_eq!(held.fields.get("lock.end").map(String::as_str), Some("gone"));
    assert!(held.events.iter().any(|event| event == "lock lost"), "{held:?}");
}

#[tokio::test]
async fn an_acquisition_that_is_dropped_was_cancelled() {
    let (notes, _default) = subscribe();
    let work = async {
        let store = MemoryBackend::new();
        let guard = client(&store).lock("x").acquire().with_subscriber(tracing::subscriber::NoSubscriber::new()).await;
        let waiting = client(&store).lock("x").acquire();
        assert!(tokio::time::timeout(Duration::from_millis(20), waiting).await.is_err(), "held");
        drop(guard);
    };
    work.await;
    let seen = notes.of("lock.acquire");
    assert_eq!(seen.fields.get("lock.outcome").map(String::as_str), Some("cancelled"));
    assert!(seen.closed);
}
