//! The case's end of a worker: start it, tell it what to do, stop it, kill it.

use std::{io, process::Stdio, time::Duration};

use rustix::process::Signal;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

use crate::{Outcome, Stop, World, process::send, worker::Task};

/// Another process with a client of its own on the case's store and in its namespace. Dropping it kills it.
#[derive(Debug)]
pub struct Worker {
    child: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Worker {
    /// Starts one, whose client takes leases of this length.
    ///
    /// # Errors
    ///
    /// Skipped where no other process can reach the store.
    pub async fn start(world: &World, lease: Duration) -> Outcome<Self> {
        let spec = world.fixture().spec();
        let spec = spec.ok_or_else(|| Stop::skipped("no other process can reach the store"))?;
        let task = Task {
            fixture: world.fixture().name().to_owned(),
            spec,
            namespace: world.namespace().as_str().to_owned(),
            lease_ms: u64::try_from(lease.as_millis()).unwrap_or(u64::MAX),
        };
        let mut child = Command::new(std::env::current_exe()?)
            .args(task.arguments())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (Some(orders), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Stop::broken("a worker without pipes"));
        };
        let mut worker = Worker { child, orders, answers: BufReader::new(answers).lines() };
        match worker.hear().await?.as_str() {
            "ready" => Ok(worker),
            other => Err(Stop::broken(format!("the worker did not start: {other}"))),
        }
    }

    /// Tells it to do something. Its answer is heard with [`hear`](Worker::hear).
    ///
    /// # Errors
    ///
    /// When it has ended.
    pub async fn tell(&mut self, order: &[&str]) -> Outcome {
        self.orders.write_all(format!("{}\n", order.join("\t")).as_bytes()).await?;
        Ok(())
    }

    /// Its next answer.
    ///
    /// # Errors
    ///
    /// When it has ended, or says nothing for half a minute.
    pub async fn hear(&mut self) -> Outcome<String> {
        let patience = Duration::from_secs(30);
        let line = tokio::time::timeout(patience, self.answers.next_line()).await;
        let line = line.map_err(|_| Stop::broken(format!("a worker said nothing for {patience:?}")))??;
        line.ok_or_else(|| Stop::broken("a worker ended without an answer"))
    }

    /// Tells it to do something and hears the answer.
    ///
    /// # Errors
    ///
    /// As for [`tell`](Worker::tell) and [`hear`](Worker::hear).
    pub async fn ask(&mut self, order: &[&str]) -> Outcome<String> {
        self.tell(order).await?;
        self.hear().await
    }

    /// Has it take a lock, and gives the fencing token.
    ///
    /// # Errors
    ///
    /// When it does not get the lock.
    pub async fn acquire(&mut self, name: &str) -> Outcome<u64> {
        granted(&self.ask(&["acquire", name]).await?)
    }

    /// Kills it, and returns when it is dead.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub async fn kill(&mut self) -> Outcome {
        self.child.kill().await?;
        Ok(())
    }

    /// Stops it, as a suspend or a long pause would.
    ///
    /// # Errors
    ///
    /// When it has ended.
    pub fn stop(&self) -> Outcome {
        self.signal(Signal::STOP)
    }

    /// Lets it go on.
    ///
    /// # Errors
    ///
    /// When it has ended.
    pub fn resume(&self) -> Outcome {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> Outcome {
        let pid = self.child.id().ok_or_else(|| Stop::from(io::Error::from(io::ErrorKind::NotFound)))?;
        Ok(send(pid, signal)?)
    }
}

/// The token in a worker's answer to `acquire`.
pub(crate) fn granted(answer: &str) -> Outcome<u64> {
    let token = answer.strip_prefix("granted\t").and_then(|token| token.parse().ok());
    token.ok_or_else(|| Stop::broken(format!("a worker did not get the lock: {answer}")))
}
