//! The options that URLs and TOML tables have in common: one name, one text, one meaning.

use std::time::Duration;

use lock_core::{ClientBuilder, Error, Namespace};

use crate::{
    scheme::{Scheme, config},
    secret::Secret,
};

/// The options of a configuration, checked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    pub(crate) namespace: Option<String>,
    pub(crate) lease: Option<Duration>,
    pub(crate) wait: Option<Duration>,
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) request_timeout: Option<Duration>,
    pub(crate) fence_base: Option<u64>,
    #[cfg(feature = "metrics")]
    pub(crate) metric_group: Option<lock_core::MetricGroup>,
    pub(crate) max_connections: Option<u32>,
    pub(crate) max_page_count: Option<u32>,
    pub(crate) tls_ca: Option<String>,
    pub(crate) tls_cert: Option<String>,
    pub(crate) tls_key: Option<String>,
    pub(crate) secret: Option<Secret>,
    pub(crate) table: Option<String>,
    pub(crate) listen: Option<Listen>,
    /// Options that a database's driver reads.
    pub(crate) driver: Vec<(String, String)>,
}

/// Whether a server is asked to notify those who wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listen {
    On,
    Off,
}

impl Options {
    /// Reads one option.
    ///
    /// # Errors
    ///
    /// `Config` for an option that this scheme does not have, for one that was read before, and for a bad value.
    pub(crate) fn set(&mut self, scheme: Scheme, key: &str, value: &str) -> Result<(), Error> {
        #[cfg(not(feature = "metrics"))]
        if key == "metric_group" {
            return Err(config(
                "option metric_group is not compiled in; build leasehold with its Cargo feature \"metrics\"",
            ));
        }
        if !scheme.options().contains(&key) {
            let (prefix, known) = (scheme.prefix(), scheme.options());
            let meant = nearest(key, &known).map(|meant| format!("did you mean {meant}? ")).unwrap_or_default();
            let known = known.join(", ");
            return Err(config(format!("unknown option {key:?} of store {prefix}; {meant}the known ones are {known}")));
        }
        match key {
            "namespace" => once(&mut self.namespace, key, namespace(value)?),
            "lease" => once(&mut self.lease, key, positive(key, value)?),
            "wait" => once(&mut self.wait, key, duration(key, value)?),
            "connect_timeout" => once(&mut self.connect_timeout, key, positive(key, value)?),
            "request_timeout" => once(&mut self.request_timeout, key, positive(key, value)?),
            "fence_base" => once(&mut self.fence_base, key, number(key, value, 0, u64::MAX)?),
            #[cfg(feature = "metrics")]
            "metric_group" => once(&mut self.metric_group, key, metric_group(value)?),
            "max_connections" => once(&mut self.max_connections, key, number(key, value, 1, scheme.max_connections())?),
            "max_page_count" => once(&mut self.max_page_count, key, number(key, value, 1, u32::MAX)?),
            "tls_ca" => once(&mut self.tls_ca, key, file(key, value)?),
            "tls_cert" => once(&mut self.tls_cert, key, file(key, value)?),
            "tls_key" => once(&mut self.tls_key, key, file(key, value)?),
            "password_file" => self.secret(Secret::File(file(key, value)?.into())),
            "password_env" => self.secret(Secret::Variable(variable(value)?)),
            "table" => once(&mut self.table, key, value.to_owned()),
            "listen" => once(&mut self.listen, key, listen(value)?),
            _ if self.driver.iter().any(|(known, _)| known == key) => Err(twice(key)),
            _ => {
                self.driver.push((key.to_owned(), value.to_owned()));
                Ok(())
            }
        }
    }

    fn secret(&mut self, secret: Secret) -> Result<(), Error> {
        if self.secret.replace(secret).is_some() {
            return Err(config(
                "a password is kept in one place: give password_file or password_env, and give it once",
            ));
        }
        Ok(())
    }

    /// A client's builder with these options.
    pub(crate) fn apply(&self, mut builder: ClientBuilder) -> ClientBuilder {
        if let Some(namespace) = &self.namespace {
            builder = builder.namespace(namespace);
        }
        if let Some(lease) = self.lease {
            builder = builder.lease(lease);
        }
        if let Some(limit) = self.request_timeout {
            builder = builder.request_timeout(limit);
        }
        #[cfg(feature = "metrics")]
        if let Some(group) = self.metric_group {
            builder = builder.metric_group(group);
        }
        builder.wait(self.wait).fence_base(self.fence_base.unwrap_or_default())
    }
}

fn once<T>(slot: &mut Option<T>, key: &str, value: T) -> Result<(), Error> {
    if slot.replace(value).is_some() { Err(twice(key)) } else { Ok(()) }
}

fn twice(key: &str) -> Error {
    config(format!("option {key} is given twice; leave one of them"))
}

fn listen(value: &str) -> Result<Listen, Error> {
    match value {
        "on" => Ok(Listen::On),
        "off" => Ok(Listen::Off),
        _ => Err(config(format!("option listen={value} is neither on nor off"))),
    }
}

#[cfg(feature = "metrics")]
fn metric_group(value: &str) -> Result<lock_core::MetricGroup, Error> {
    match value {
        "none" => Ok(lock_core::MetricGroup::None),
        "prefix" => Ok(lock_core::MetricGroup::Prefix),
        "name" => Ok(lock_core::MetricGroup::Name),
        _ => Err(config(format!("option metric_group={value} is none of none, prefix and name"))),
    }
}

fn namespace(value: &str) -> Result<String, Error> {
    Namespace::new(value).map_err(|error| config(error.to_string()))?;
    Ok(value.to_owned())
}

/// The known key that was probably meant by one that is not known.
fn nearest<'a>(key: &str, known: &[&'a str]) -> Option<&'a str> {
    /// Below this, two words have little in common.
    const ALIKE: f64 = 0.8;
    let alike = known.iter().map(|known| (strsim::jaro_winkler(key, known), *known));
    alike.filter(|(how, _)| *how >= ALIKE).max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, known)| known)
}

fn variable(value: &str) -> Result<String, Error> {
    // What the environment cannot have in a name (environ(7)); the standard library panics on it.
    if value.is_empty() || value.contains(['=', '\0']) {
        return Err(config(format!("option password_env={value:?} is no name of a variable")));
    }
    Ok(value.to_owned())
}

fn file(key: &str, value: &str) -> Result<String, Error> {
    if value.is_empty() {
        return Err(config(format!("option {key} names no file")));
    }
    Ok(value.to_owned())
}

fn duration(key: &str, value: &str) -> Result<Duration, Error> {
    humantime::parse_duration(value).map_err(|error| {
        config(format!("option {key}={value} is no duration ({error}); write it as 500ms, 30s or 1h30m"))
    })
}

fn positive(key: &str, value: &str) -> Result<Duration, Error> {
    let duration = duration(key, value)?;
    if duration.is_zero() {
        return Err(config(format!("option {key}={value} is out of range: it must be longer than zero")));
    }
    Ok(duration)
}

fn number<T>(key: &str, value: &str, min: T, max: T) -> Result<T, Error>
where
    T: std::str::FromStr + PartialOrd + std::fmt::Display,
{
    let number = value.parse().ok().filter(|number| (&min..=&max).contains(&number));
    number.ok_or_else(|| {
        let range =
            if min == max { format!("only {min} is") } else { format!("whole numbers from {min} to {max} are") };
        config(format!("option {key}={value} is out of range: {range} allowed"))
    })
}
