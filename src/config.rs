//! A configuration: a store with its options, from a URL, from TOML, or from any format that serde reads.

use std::{fmt, path::Path, time::Duration};

use lock_core::Error;
use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, Visitor},
};

use crate::{
    options::Options,
    scheme::{Scheme, config},
    secret::first_line,
    store::Store,
    text::Parts,
};

/// Which store keeps the locks, and the settings of its clients.
///
/// A table of a configuration file has the URL as `store` and the options of [`connect`](crate::connect) as keys:
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), leasehold::Error> {
/// let config = leasehold::Config::from_toml_str(
///     r#"
///     [lock]
///     store = "memory:"
///     namespace = "shop"
///     lease = "30s"
///     wait = "10s"
///     "#,
/// )?;
/// let client = leasehold::connect_config(&config).await?;
/// assert_eq!(client.namespace(), "shop");
/// # Ok(()) }
/// ```
///
/// A password need not be in the file: `password_file` names a file that has it, `password_env` a variable of the
/// environment, and `store_file` a file with the whole URL; the first two are options of URLs as well. They are read when
/// the store is connected to, `store_file` when the table is read.
///
/// It is also a field of a service's own configuration, through [`Deserialize`]: such a table, or a URL alone. Its
/// `Debug` shows no password.
#[derive(Clone)]
pub struct Config {
    store: Store,
    pub(crate) options: Options,
    /// Where the store is, without the password that is kept elsewhere.
    place: Option<(Scheme, String)>,
}

impl Config {
    /// The configuration that a URL is.
    ///
    /// # Errors
    ///
    /// `Config` for a URL that is wrong, for unknown, bad or repeated options, and for a store that is not compiled in.
    pub fn from_url(url: &str) -> Result<Self, Error> {
        Config::read(url, &[])
    }

    /// The configuration that a URL is, with more options.
    fn read(url: &str, more: &[(String, Scalar)]) -> Result<Self, Error> {
        let parts = Parts::of(url)?;
        let scheme = Scheme::parse(parts.scheme)?;
        let mut options = Options::default();
        for option in parts.options() {
            let (key, value) = option?;
            options.set(scheme, &key, &value)?;
        }
        for (key, Scalar(value)) in more {
            options.set(scheme, key, value)?;
        }
        if options.secret.is_none() {
            return Ok(Config { store: Store::parse(scheme, parts.place)?, options, place: None });
        }
        // Any password shows whether the place could have one.
        let store = Store::parse(scheme, &with_password(scheme, parts.place, "x")?)?;
        Ok(Config { store, options, place: Some((scheme, parts.place.to_owned())) })
    }

    /// Whether connecting reads a password from a file or from the environment.
    ///
    /// Whoever reads a configuration that others may have written should ask: it can have any file or variable sent to
    /// the store that it names.
    #[must_use]
    pub fn reads_secrets(&self) -> bool {
        self.options.secret.is_some()
    }

    /// The store, with the password that is kept elsewhere.
    pub(crate) fn store(&self) -> Result<Store, Error> {
        match (&self.options.secret, &self.place) {
            (Some(secret), Some((scheme, place))) => {
                Store::parse(*scheme, &with_password(*scheme, place, &secret.read()?)?)
            }
            _ => Ok(self.store.clone()),
        }
    }

    /// The configuration in the table `[lock]` of a TOML text. Other tables are someone else's.
    ///
    /// # Errors
    ///
    /// `Config` for a text that is not TOML, for one without that table, and for what [`Config::from_url`] refuses.
    pub fn from_toml_str(text: &str) -> Result<Self, Error> {
        let missing = || config("the configuration has no table [lock]; add one with store = \"URL\"");
        Config::from_toml_table(text, &["lock"])?.ok_or_else(missing)
    }

    /// The configuration in another table of a TOML text, such as `["stores", "prod"]` for `[stores.prod]`; None where
    /// the text has no such table.
    ///
    /// # Errors
    ///
    /// Those of [`Config::from_toml_str`], but for the missing table.
    pub fn from_toml_table(text: &str, path: &[&str]) -> Result<Option<Self>, Error> {
        let file: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            // Not the whole error: it shows the line, and a line may have a password.
            let line =
                text.get(..error.span().map_or(0, |span| span.start)).map_or(0, |before| before.matches('\n').count());
            config(format!("the configuration is no TOML: line {}: {}", line + 1, error.message()))
        })?;
        let mut value = toml::Value::Table(file);
        for key in path {
            let toml::Value::Table(mut table) = value else { return Ok(None) };
            match table.remove(*key) {
                Some(inner) => value = inner,
                None => return Ok(None),
            }
        }
        let named = path.join(".");
        Config::deserialize(value).map(Some).map_err(|error| config(format!("[{named}]: {}", error.message())))
    }

    /// The same configuration with another namespace, whatever was set before.
    #[must_use]
    pub fn with_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.options.namespace = Some(namespace.into());
        self
    }

    /// The same configuration with another lease, whatever was set before.
    #[must_use]
    pub fn with_lease(mut self, lease: Duration) -> Self {
        self.options.lease = Some(lease);
        self
    }

    /// The same configuration with another limit of waiting, whatever was set before.
    #[must_use]
    pub fn with_wait(mut self, wait: Duration) -> Self {
        self.options.wait = Some(wait);
        self
    }

    /// The namespace that was set.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.options.namespace.as_deref()
    }

    /// The lease that was set.
    #[must_use]
    pub fn lease(&self) -> Option<Duration> {
        self.options.lease
    }

    /// The limit of waiting that was set.
    #[must_use]
    pub fn wait(&self) -> Option<Duration> {
        self.options.wait
    }

    /// The configuration of a table: the URL, and options beside it.
    fn from_table(keys: &[(String, Scalar)]) -> Result<Self, Error> {
        let value = |wanted: &str| keys.iter().find(|(key, _)| key == wanted).map(|(_, Scalar(value))| value);
        let url = match (value("store"), value(STORE_FILE)) {
            (Some(url), None) => url.clone(),
            (None, Some(file)) => first_line(STORE_FILE, Path::new(file))?,
            (Some(_), Some(_)) => return Err(config("the store is given twice; leave one of store and store_file")),
            (None, None) => return Err(config("key \"store\" is missing; write it as store = \"URL\"")),
        };
        let options: Vec<_> = keys.iter().filter(|(key, _)| key != "store" && key != STORE_FILE).cloned().collect();
        Config::read(&url, &options)
    }
}

/// The key of a table whose value is a file with the URL in it, for URLs that have a password.
const STORE_FILE: &str = "store_file";

#[cfg(any(feature = "etcd", feature = "mysql", feature = "postgres", feature = "redis", feature = "zookeeper"))]
fn with_password(scheme: Scheme, place: &str, password: &str) -> Result<String, Error> {
    crate::secret::insert(scheme, place, password)
}

/// No store of this build has a password, so none has the option either.
#[cfg(not(any(feature = "etcd", feature = "mysql", feature = "postgres", feature = "redis", feature = "zookeeper")))]
fn with_password(_: Scheme, place: &str, _: &str) -> Result<String, Error> {
    Ok(place.to_owned())
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A store that has a password hides it in its own Debug.
        f.debug_struct("Config").field("store", &self.store).field("options", &self.options).finish()
    }
}

impl<'de> Deserialize<'de> for Config {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Table;

        impl<'de> Visitor<'de> for Table {
            type Value = Config;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a URL, or a table with store = \"URL\"")
            }

            // Also so that serde's own words for a wrong type, which show the text, are never used on a URL.
            fn visit_str<E: de::Error>(self, url: &str) -> Result<Config, E> {
                Config::from_url(url).map_err(de::Error::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Config, A::Error> {
                let mut keys = Vec::new();
                while let Some(key) = map.next_key::<String>()? {
                    let value = map.next_value().map_err(|error| de::Error::custom(format!("key {key:?}: {error}")))?;
                    keys.push((key, value));
                }
                Config::from_table(&keys).map_err(de::Error::custom)
            }
        }

        deserializer.deserialize_any(Table)
    }
}

/// A text, or a number as a text: URLs have only texts, and one reading serves both.
#[derive(Clone)]
struct Scalar(String);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;

        impl Visitor<'_> for Any {
            type Value = Scalar;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a whole number")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Scalar, E> {
                Ok(Scalar(text.to_owned()))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Scalar, E> {
                Ok(Scalar(number.to_string()))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Scalar, E> {
                Ok(Scalar(number.to_string()))
            }
        }

        deserializer.deserialize_any(Any)
    }
}
