//! Watches on single keys, all of one client over one stream.

use std::{
    collections::HashMap,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use etcd_client::{WatchFilterType, WatchOptions, WatchRequestSender, WatchResponse, WatchResponseStream, WatchStream};
use tokio::sync::{mpsc, oneshot};

use crate::members::Members;

/// How long a new stream may take to be opened.
const OPEN_LIMIT: Duration = Duration::from_secs(5);

/// How long a stream without watches is kept.
const UNUSED: Duration = Duration::from_secs(1);

/// What a watch is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Events {
    /// Only that the key goes.
    Deletes,
    /// Also that it is written.
    All,
}

/// Why a watch has ended: each tells once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// The key changed at this revision.
    Changed(i64),
    /// What happened before this revision has been compacted away, and cannot be told.
    Compacted(i64),
    /// The stream has ended, or could not be opened: nothing is known.
    Broken,
}

/// The watches of one client. The stream is opened for the first of them, and again after it has ended.
#[derive(Debug)]
pub(crate) struct Watches {
    members: Arc<Members>,
    commands: Mutex<Option<mpsc::UnboundedSender<Command>>>,
    next_id: AtomicI64,
}

#[derive(Debug)]
enum Command {
    Watch(Request),
    Cancel(i64),
}

#[derive(Debug)]
struct Request {
    id: i64,
    key: String,
    from: i64,
    events: Events,
    tell: oneshot::Sender<Told>,
}

impl Request {
    fn options(&self) -> WatchOptions {
        // An id of our own lets answers be told apart without waiting for one before the next request (etcd 3.4).
        let options = WatchOptions::new().with_start_revision(self.from).with_watch_id(self.id);
        match self.events {
            Events::Deletes => options.with_filters([WatchFilterType::NoPut]),
            Events::All => options,
        }
    }
}

/// A watch under way. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Watch {
    id: i64,
    told: oneshot::Receiver<Told>,
    commands: mpsc::UnboundedSender<Command>,
}

impl Watches {
    /// The watches of a client to be. Needs a tokio runtime.
    pub(crate) fn new(members: Arc<Members>) -> Self {
        let commands = start(&members);
        Watches { members, commands: Mutex::new(Some(commands)), next_id: AtomicI64::new(1) }
    }

    /// Watches a key for what happens at `from` and later, also if that is past.
    pub(crate) fn watch(&self, key: String, from: i64, events: Events) -> Watch {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (tell, told) = oneshot::channel();
        let mut command = Command::Watch(Request { id, key, from, events, tell });
        let mut commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(commands) = &*commands {
            match commands.send(command) {
                Ok(()) => return Watch { id, told, commands: commands.clone() },
                // The task went with an earlier runtime.
                Err(returned) => command = returned.0,
            }
        }
        let sender = start(&self.members);
        // Its task has just begun.
        let _ = sender.send(command);
        *commands = Some(sender.clone());
        Watch { id, told, commands: sender }
    }

    /// Lets the stream end when the last watch has.
    pub(crate) fn close(&self) {
        *self.commands.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Future for Watch {
    type Output = Told;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Told> {
        Pin::new(&mut self.told).poll(cx).map(|told| told.unwrap_or(Told::Broken))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // One that has told is over at the server too, or is ended by whoever told.
        self.told.close();
        if self.told.try_recv().is_err() {
            // The task has ended with its runtime, and the stream with it.
            let _ = self.commands.send(Command::Cancel(self.id));
        }
    }
}

/// Begins the task behind a client's watches.
fn start(members: &Arc<Members>) -> mpsc::UnboundedSender<Command> {
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::spawn(run(Arc::clone(members), receiver));
    sender
}

/// The task behind a client's watches: opens a stream while there is something to watch.
async fn run(members: Arc<Members>, mut commands: mpsc::UnboundedReceiver<Command>) {
    while let Some(command) = commands.recv().await {
        let Command::Watch(request) = command else { continue };
        if request.tell.is_closed() {
            continue;
        }
        let mut current = members.current();
        let index = *current.borrow_and_update();
        let Some(stream) = open(&members, index, &request).await else {
            members.leave(index);
            // Those that came meanwhile would find no more than this one did. Dropping what tells is telling `Broken`.
            while commands.try_recv().is_ok() {}
            continue;
        };
        let (sender, responses) = stream.split();
        let watching = Watching::from([(request.id, request.tell)]);
        let watching = Mutex::new(watching);
        let (ends, ended) = mpsc::unbounded_channel();
        // Beside each other: a server whose answers nobody reads takes no more requests.
        let ended = tokio::select! {
            ended = send(sender, &mut commands, ended, &watching) => ended,
            ended = hear(responses, ends, &watching) => ended,
            _ = current.changed() => Ended::Moved,
        };
        tracing::debug!(?ended, "the stream of watches has ended");
        if ended == Ended::Failed {
            members.leave(index);
        }
    }
}

async fn open(members: &Members, index: usize, request: &Request) -> Option<WatchStream> {
    let opening = async {
        let member = members.member(index).await?;
        member.watch().watch(request.key.as_str(), Some(request.options())).await
    };
    match tokio::time::timeout(OPEN_LIMIT, opening).await {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            tracing::debug!(%error, "no stream of watches");
            None
        }
        Err(_) => None,
    }
}

/// Why a stream was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// By the server, or with its connection.
    Failed,
    /// Requests go to another member now.
    Moved,
    /// Nobody watches any more.
    Unused,
}

/// Who is told what comes, by the watch's id.
type Watching = HashMap<i64, oneshot::Sender<Told>>;

fn lock(watching: &Mutex<Watching>) -> MutexGuard<'_, Watching> {
    watching.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends what is asked for, and the end of what has told.
async fn send(
    mut sender: WatchRequestSender,
    commands: &mut mpsc::UnboundedReceiver<Command>,
    mut ended: mpsc::UnboundedReceiver<i64>,
    watching: &Mutex<Watching>,
) -> Ended {
    loop {
        let unused = lock(watching).is_empty();
        let sent = tokio::select! {
            () = tokio::time::sleep(UNUSED), if unused => return Ended::Unused,
            command = commands.recv() => match command {
                None => return Ended::Unused,
                Some(Command::Watch(request)) if request.tell.is_closed() => Ok(()),
                Some(Command::Watch(request)) => {
                    let options = request.options();
                    lock(watching).insert(request.id, request.tell);
                    sender.watch(request.key, Some(options)).await
                }
                Some(Command::Cancel(id)) => {
                    let known = lock(watching).remove(&id).is_some();
                    if known { sender.cancel(id).await } else { Ok(()) }
                }
            },
            Some(id) = ended.recv() => sender.cancel(id).await,
        };
        if sent.is_err() {
            return Ended::Failed;
        }
    }
}

/// Tells what comes.
async fn hear(
    mut responses: WatchResponseStream,
    ended: mpsc::UnboundedSender<i64>,
    watching: &Mutex<Watching>,
) -> Ended {
    while let Ok(Some(response)) = responses.message().await {
        let id = response.watch_id();
        if response.canceled() && id < 0 {
            // The server refuses a watch and does not say which: it may be that the stream's token has run out.
            return Ended::Failed;
        }
        let Some(told) = told_by(&response) else { continue };
        let Some(tell) = lock(watching).remove(&id) else { continue };
        // Whoever has stopped listening needs no word.
        let _ = tell.send(told);
        if !response.canceled() {
            // The other half ends together with this one.
            let _ = ended.send(id);
        }
    }
    Ended::Failed
}

fn told_by(response: &WatchResponse) -> Option<Told> {
    if response.canceled() {
        return Some(match response.compact_revision() {
            0 => Told::Broken,
            revision => Told::Compacted(revision),
        });
    }
    let last = response.events().iter().filter_map(etcd_client::Event::kv).next_back()?;
    Some(Told::Changed(last.mod_revision()))
}
