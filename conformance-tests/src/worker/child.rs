//! The worker's own end: it does one order after another and answers each with one line.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, BufRead as _, Write as _},
    path::Path,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use lock_core::{LockClient, LockGuard};

use crate::{
    Fixture, Outcome,
    history::Recorder,
    worker::{Plan, Task, work},
};

type Failing<T> = Result<T, Box<dyn std::error::Error>>;

/// Works until the case closes the pipe. A runtime of several threads, as a service has.
pub(crate) fn serve(task: &Task, fixture: &Arc<dyn Fixture>) -> Failing<()> {
    let runtime = crate::run::runtime("worker")?;
    let connected = async {
        let backend = fixture.open(&task.spec).await?;
        let lease = Duration::from_millis(task.lease_ms);
        Outcome::Ok(LockClient::builder(backend).namespace(task.namespace.as_str()).lease(lease).build()?)
    };
    let client = runtime.block_on(connected).map_err(|stop| format!("{stop:?}"))?;
    let lease = Duration::from_millis(task.lease_ms);
    let mut child = Child { client, lease, guards: HashMap::new(), watch: None };
    answer("ready")?;
    for order in io::stdin().lock().lines() {
        let order = order?;
        let parts: Vec<_> = order.split('\t').collect();
        let said = runtime.block_on(child.obey(&parts)).unwrap_or_else(|error| format!("error\t{error}"));
        answer(&said)?;
    }
    Ok(())
}

/// Standard output is how a worker answers; it writes nothing else there.
fn answer(line: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{line}")?;
    output.flush()
}

struct Child {
    client: LockClient,
    lease: Duration,
    guards: HashMap<String, LockGuard>,
    watch: Option<thread::JoinHandle<Watched>>,
}

/// What a loop around `is_held` saw.
struct Watched {
    longest_gap: Duration,
    held_after_it: bool,
}

impl Child {
    async fn obey(&mut self, order: &[&str]) -> Failing<String> {
        match order {
            ["acquire", name] => {
                let guard = self.client.lock(name).acquire().await?;
                Ok(self.keep(name, guard))
            }
            ["try", name] => match self.client.lock(name).try_acquire().await? {
                Some(guard) => Ok(self.keep(name, guard)),
                None => Ok("busy".to_owned()),
            },
            ["held", name] => Ok(self.guards.get(*name).is_some_and(LockGuard::is_held).to_string()),
            ["release", name] => match self.guards.remove(*name) {
                Some(guard) => Ok(guard.release().await.map(|()| "released".to_owned())?),
                None => Ok("no guard".to_owned()),
            },
            ["watch", name, millis] => {
                let guard = self.guards.remove(*name).ok_or("no guard")?;
                let time = Duration::from_millis(millis.parse()?);
                self.watch = Some(thread::spawn(move || watch(&guard, time)));
                Ok("watching".to_owned())
            }
            ["watched"] => {
                let watched = self.watch.take().ok_or("no watch")?.join().map_err(|_| "the watch panicked")?;
                Ok(format!("{}\t{}", watched.longest_gap.as_millis(), watched.held_after_it))
            }
            ["count", name, directory, rounds] => {
                count(&self.client, name, Path::new(directory), rounds.parse()?).await
            }
            ["work", directory, client, seed, millis] => {
                let recorder = Recorder::new(Path::new(directory), client.parse()?)?;
                let time = Duration::from_millis(millis.parse()?);
                let plan = Plan { seed: seed.parse()?, lease: self.lease, time };
                work(&self.client, &recorder, plan).await;
                Ok("worked".to_owned())
            }
            _ => Err(format!("unknown order {order:?}").into()),
        }
    }

    fn keep(&mut self, name: &str, guard: LockGuard) -> String {
        let token = guard.fencing_token().get();
        self.guards.insert(name.to_owned(), guard);
        format!("granted\t{token}")
    }
}

/// Asks a guard again and again, on a thread of its own, and remembers the first answer after the longest silence: the
/// first call after the process was stopped.
fn watch(guard: &LockGuard, time: Duration) -> Watched {
    let end = Instant::now() + time;
    let mut seen = Watched { longest_gap: Duration::ZERO, held_after_it: false };
    let mut last = Instant::now();
    while last < end {
        let now = Instant::now();
        let held = guard.is_held();
        if now - last > seen.longest_gap {
            seen = Watched { longest_gap: now - last, held_after_it: held };
        }
        last = now;
        thread::sleep(Duration::from_millis(1));
    }
    seen
}

/// Adds one to a number in a file, under the lock, again and again; a second worker inside at the same time is noticed
/// by the marker file, and one that was not noticed by an update that is missing at the end.
async fn count(client: &LockClient, name: &str, directory: &Path, rounds: u32) -> Failing<String> {
    let (marker, counter) = (directory.join("inside"), directory.join("counter"));
    for _ in 0..rounds {
        let guard = client.lock(name).acquire().await?;
        let _inside = File::create_new(&marker).map_err(|error| format!("another is inside: {error}"))?;
        let before: u32 = fs::read_to_string(&counter)?.trim().parse()?;
        tokio::task::yield_now().await;
        fs::write(&counter, (before + 1).to_string())?;
        fs::remove_file(&marker)?;
        guard.release().await?;
    }
    Ok("counted".to_owned())
}
