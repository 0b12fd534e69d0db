//! The scripts: sent by their digest, and in full where the server does not have them (any more).

use std::sync::LazyLock;

use lock_core::BackendError;
use redis::{Cmd, Value};

use crate::{
    error::{Fault, foreign},
    link::{AfterCut, Failure, Link},
};

pub(crate) static CLAIM: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("../lua/claim.lua")));
pub(crate) static EXTEND: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("../lua/extend.lua")));
pub(crate) static RELEASE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("../lua/release.lua")));
pub(crate) static SHOW: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("../lua/show.lua")));

/// A script and its digest.
#[derive(Debug)]
pub(crate) struct Script {
    code: &'static str,
    digest: String,
}

impl Script {
    fn new(code: &'static str) -> Self {
        Script { code, digest: redis::Script::new(code).get_hash().to_owned() }
    }

    /// Runs the script on the server.
    ///
    /// # Errors
    ///
    /// A key of another type is named.
    pub(crate) async fn run(
        &self,
        link: &Link,
        keys: &[&str],
        arguments: &[&str],
        after_cut: AfterCut,
    ) -> Result<Value, BackendError> {
        let by_digest = link.send(&command("EVALSHA", &self.digest, keys, arguments), after_cut).await;
        let answer = match by_digest {
            // The server was restarted, or someone flushed its scripts: it takes the whole script, and keeps it again.
            Err(Failure::Said(error)) if Fault::of(&error) == Fault::NoScript => {
                link.send(&command("EVAL", self.code, keys, arguments), after_cut).await
            }
            answer => answer,
        };
        let connector = link.connector();
        answer.map_err(|failure| match failure {
            Failure::NotSent(error) => error,
            Failure::Said(error) if Fault::of(&error) == Fault::Foreign => {
                foreign(connector.place(), &keys.join(" or "))
            }
            Failure::Said(error) => connector.error(error),
        })
    }
}

fn command(name: &str, script: &str, keys: &[&str], arguments: &[&str]) -> Cmd {
    let length = arguments.iter().chain(keys).map(|part| part.len()).sum::<usize>() + script.len() + 64;
    let mut command = Cmd::with_capacity(3 + keys.len() + arguments.len(), length);
    command.arg(name).arg(script).arg(keys.len()).arg(keys).arg(arguments);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_says_what_it_takes_and_answers() {
        for script in [&*CLAIM, &*EXTEND, &*RELEASE, &*SHOW] {
            for part in ["-- KEYS: ", "-- ARGV: ", "-- Answer: "] {
                assert!(script.code.contains(part), "{part:?} is missing in\n{}", script.code);
            }
            assert_eq!(script.digest.len(), 40);
        }
    }
}
