//! What the libraries log and where they panic, kept apart per case, so that a failed case shows its own story.

use std::{
    collections::HashMap,
    io,
    panic::PanicHookInfo,
    sync::{LazyLock, Mutex, Once, PoisonError},
    thread,
};

use tracing::Level;
use tracing_subscriber::{Layer as _, filter::filter_fn, fmt::MakeWriter, layer::SubscriberExt as _};

/// Every thread of a case's runtime has a name that begins with this, and that is all that tells cases apart.
const THREAD: &str = "case ";

/// A panic that a case makes on purpose, with `std::panic::panic_any`. It is not reported.
#[derive(Clone, Copy, Debug)]
pub struct Deliberate;

#[derive(Default)]
struct Story {
    log: Vec<u8>,
    panics: Vec<String>,
}

static STORIES: LazyLock<Mutex<HashMap<String, Story>>> = LazyLock::new(Mutex::default);

fn with_story<T>(thread: &str, act: impl FnOnce(&mut Story) -> T) -> T {
    let mut stories = STORIES.lock().unwrap_or_else(PoisonError::into_inner);
    act(stories.entry(thread.to_owned()).or_default())
}

/// The name that every thread of this run of a case must have.
pub(crate) fn thread_name(run: u64, case: &str) -> String {
    format!("{THREAD}{run} {case}")
}

/// Takes what was logged and where was panicked on threads of this name.
pub(crate) fn take(thread: &str) -> (String, Vec<String>) {
    let story = STORIES.lock().unwrap_or_else(PoisonError::into_inner).remove(thread).unwrap_or_default();
    (String::from_utf8_lossy(&story.log).into_owned(), story.panics)
}

/// What the current case has logged until now.
pub(crate) fn so_far() -> String {
    on_case_thread(|name| with_story(name, |story| String::from_utf8_lossy(&story.log).into_owned()))
        .unwrap_or_default()
}

/// The current thread's name, for further threads of the same run.
pub(crate) fn current() -> String {
    thread::current().name().unwrap_or_default().to_owned()
}

fn on_case_thread<T>(act: impl FnOnce(&str) -> T) -> Option<T> {
    let current = thread::current();
    current.name().filter(|name| name.starts_with(THREAD)).map(act)
}

/// Begins to keep logs and panics apart. Only the first call does anything.
pub(crate) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Of store clients only what they warn of: some tell of every frame, which is slow and hides our own story.
        let ours = filter_fn(|metadata| {
            let ours =
                ["lock_", "leasehold", "conformance_tests"].iter().any(|name| metadata.target().starts_with(name));
            ours || *metadata.level() <= Level::WARN
        });
        let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(Writers).with_filter(ours);
        let subscriber = tracing_subscriber::registry().with(lines);
        // A stranger's test binary may have installed its own; then that one tells the story.
        let _ = tracing::subscriber::set_global_default(subscriber);
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if on_case_thread(|name| note_panic(name, info)).is_none() {
                before(info);
            }
        }));
    });
}

fn note_panic(thread: &str, info: &PanicHookInfo<'_>) {
    if info.payload().is::<Deliberate>() {
        return;
    }
    let message = info.payload_as_str().unwrap_or("a panic without words");
    let at = info.location().map(ToString::to_string).unwrap_or_default();
    with_story(thread, |story| story.panics.push(format!("{message} at {at}")));
}

struct Writers;

/// Writes to the story of the thread that it was made on, and nowhere on other threads.
struct Writer(Option<String>);

impl<'a> MakeWriter<'a> for Writers {
    type Writer = Writer;

    fn make_writer(&'a self) -> Writer {
        Writer(on_case_thread(str::to_owned))
    }
}

impl io::Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        /// A case that logs more than this is told by its end.
        const KEPT: usize = 1 << 20;
        if let Some(thread) = &self.0 {
            with_story(thread, |story| {
                story.log.extend_from_slice(bytes);
                if story.log.len() > 2 * KEPT {
                    let cut = story.log.len() - KEPT;
                    story.log.drain(..cut);
                }
            });
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
