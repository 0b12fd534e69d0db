//! Which store keeps the locks: the flag says it, else the environment, else the configuration file, else the default.
//!
//! Each of these describes one store as a whole. A URL is not mixed with what a file says of another store.

mod environment;
mod file;

use std::{future::Future, path::Path, time::Duration};

use leasehold::{Config, Error, ErrorKind, LockClient, Namespace};

pub(crate) use self::environment::Environment;
use self::file::File;
use crate::{cli::StoreArgs, exit::Failure};

/// The lease of a client that was not told any.
const DEFAULT_LEASE: Duration = Duration::from_secs(30);

/// The store of this run, with its settings.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    config: Config,
}

impl Store {
    /// How long a lock lasts that is not given a lease of its own.
    pub(crate) fn lease(&self) -> Duration {
        self.config.lease().unwrap_or(DEFAULT_LEASE)
    }

    /// Connects to it.
    pub(crate) fn connect(&self) -> impl Future<Output = Result<LockClient, Error>> + Send + 'static {
        let config = self.config.clone();
        async move {
            leasehold::connect_config(&config).await.map_err(|error| match error.kind() {
                ErrorKind::Unavailable => Error::new(
                    ErrorKind::Unavailable,
                    format!("{error}; is the store running, and is its address right?"),
                ),
                _ => error,
            })
        }
    }
}

/// Finds out which store is meant. Nothing is connected to yet.
pub(crate) fn choose(args: &StoreArgs, environment: &Environment) -> Result<Store, Failure> {
    let mut config = described(args, environment)?;
    if let Some(namespace) = &args.namespace {
        // An argument, so a bad one is wrong usage and not a wrong configuration.
        config = config.with_namespace(Namespace::new(namespace)?.as_str());
    }
    Ok(Store { config })
}

fn described(args: &StoreArgs, environment: &Environment) -> Result<Config, Failure> {
    let file = || File::find(args.config.as_deref(), environment);
    match (&args.store, &environment.store) {
        (Some(value), _) => url_or_name("--store", value, file),
        (None, Some(value)) => match value.to_str() {
            Some(value) => url_or_name("LEASEHOLD_STORE", value, file),
            None => Err(Failure::config(format!("LEASEHOLD_STORE is not UTF-8: {value:?}"))),
        },
        (None, None) => match file()?.and_then(|file| file.default_store()) {
            Some(config) => config,
            None => from_url("the default store", &sqlite_url(&environment.default_database()?)?),
        },
    }
}

/// A value without ':' names a store of the file; no URL is without one.
fn url_or_name(
    origin: &str,
    value: &str,
    file: impl FnOnce() -> Result<Option<File>, Failure>,
) -> Result<Config, Failure> {
    if value.contains(':') {
        return from_url(origin, value);
    }
    match file()? {
        Some(file) => file.named_store(value),
        None => Err(Failure::config(format!(
            "{origin} {value:?} is no URL, and no configuration file has a [stores.{value}]; write a URL such as \
             sqlite:{value}, or use --config"
        ))),
    }
}

fn from_url(origin: &str, url: &str) -> Result<Config, Failure> {
    Config::from_url(url).map_err(|error| Failure::config(format!("{origin}: {error}")))
}

/// The URL of a file, with the characters escaped that mean something in URLs.
fn sqlite_url(path: &Path) -> Result<String, Failure> {
    let Some(path) = path.to_str() else {
        return Err(Failure::config(format!("the default store's path {path:?} is not UTF-8; use --store")));
    };
    Ok(format!("sqlite:{}", path.replace('%', "%25").replace('?', "%3F").replace('#', "%23")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_survives_its_url() {
        let url = sqlite_url(Path::new("/a b/50%?#x")).expect("a URL");
        assert_eq!(url, "sqlite:/a b/50%25%3F%23x");
    }

    #[test]
    fn a_bad_namespace_is_wrong_usage_and_a_bad_url_a_wrong_configuration() {
        let code = |store: &str, namespace: &str| {
            let (store, namespace) = (Some(store.to_owned()), Some(namespace.to_owned()));
            let args = StoreArgs { store, namespace, ..StoreArgs::default() };
            choose(&args, &Environment::default()).map_or_else(|failure| failure.exit.code(), |_| 0)
        };
        assert_eq!(code("memory:", "n"), 0);
        assert_eq!(code("memory:", &"n".repeat(65)), 2);
        assert_eq!(code("memory:?namespace=a", "b"), 0);
        assert_eq!(code("nosuch:x", "n"), 78);
    }
}
