//! A case: one named async function that proves clauses of the contract on one store.

use std::{fmt, time::Duration};

use futures_util::future::LocalBoxFuture;

use crate::{Outcome, World};

/// One proof, to be run on any store.
#[derive(Clone)]
pub struct Case {
    name: String,
    clauses: &'static [&'static str],
    load: Load,
    limit: Duration,
    run: fn(World) -> LocalBoxFuture<'static, Outcome>,
}

/// How much of the machine a case needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Mostly waits: runs beside others.
    Light,
    /// Keeps the processors busy: one at a time, so that it does not starve itself.
    Heavy,
}

impl Case {
    /// The limit of a case that states none: far above what any case needs, far below a person's patience.
    pub const LIMIT: Duration = Duration::from_secs(60);

    /// A case of the module `topic`, which is a path whose last part counts.
    pub fn new(
        topic: &str,
        name: &str,
        clauses: &'static [&'static str],
        run: fn(World) -> LocalBoxFuture<'static, Outcome>,
    ) -> Self {
        let topic = topic.rsplit("::").next().unwrap_or(topic);
        Case { name: format!("{topic}::{name}"), clauses, load: Load::Light, limit: Case::LIMIT, run }
    }

    /// The same case, run alone among the heavy ones.
    #[must_use]
    pub fn heavy(mut self) -> Self {
        self.load = Load::Heavy;
        self
    }

    /// Its topic and name, such as `release::frees_at_once`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The clauses that it proves.
    #[must_use]
    pub fn clauses(&self) -> &'static [&'static str] {
        self.clauses
    }

    /// How much of the machine it needs.
    #[must_use]
    pub fn load(&self) -> Load {
        self.load
    }

    /// When it counts as hung.
    #[must_use]
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Runs it, without the runner's limit and without its look at what is left behind.
    ///
    /// # Errors
    ///
    /// Why it stopped before it had proved what it cites.
    pub async fn run(&self, world: World) -> Outcome {
        (self.run)(world).await
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case").field("name", &self.name).field("clauses", &self.clauses).finish_non_exhaustive()
    }
}

/// The cases of one topic file: each function's name, and the clauses that it proves.
macro_rules! cases {
    ($($(#[$load:ident])? $name:ident: $($clause:literal)+;)+) => {
        /// The cases of this topic.
        pub(crate) fn cases() -> Vec<$crate::Case> {
            vec![$(
                $crate::Case::new(module_path!(), stringify!($name), &[$($clause),+], |world| Box::pin($name(world)))
                    $(.$load())?
            ),+]
        }
    };
}
pub(crate) use cases;
