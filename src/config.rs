//! A configuration: a store with its options, from a URL, from TOML, or from any format that serde reads.

use std::{fmt, time::Duration};

use lock_core::Error;
use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, Visitor},
};

use crate::{
    options::Options,
    scheme::{Scheme, config},
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
/// It is also a field of a service's own configuration, through [`Deserialize`]: such a table, or a URL alone. Its
/// `Debug` shows no password.
#[derive(Clone)]
pub struct Config {
    pub(crate) store: Store,
    pub(crate) options: Options,
}

impl Config {
    /// The configuration that a URL is.
    ///
    /// # Errors
    ///
    /// `Config` for a URL that is wrong, for unknown, bad or repeated options, and for a store that is not compiled in.
    pub fn from_url(url: &str) -> Result<Self, Error> {
        let parts = Parts::of(url)?;
        let scheme = Scheme::parse(parts.scheme)?;
        let mut options = Options::default();
        for option in parts.options() {
            let (key, value) = option?;
            options.set(scheme, &key, &value)?;
        }
        Ok(Config { store: Store::parse(scheme, parts.place)?, options })
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
        let url = keys.iter().find(|(key, _)| key == "store");
        let Some((_, Scalar(url))) = url else {
            return Err(config("key \"store\" is missing; write it as store = \"URL\""));
        };
        let mut read = Config::from_url(url)?;
        let scheme = Scheme::parse(Parts::of(url)?.scheme)?;
        for (key, Scalar(value)) in keys.iter().filter(|(key, _)| key != "store") {
            read.options.set(scheme, key, value)?;
        }
        Ok(read)
    }
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
