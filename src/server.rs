//! Database servers in a URL: the place, which may have a password, and the options that their drivers read.

use std::{fmt, time::Duration};

use lock_core::Error;
use lock_sql::ServerConfig;

use crate::{
    options::{Listen, Options},
    text::{encode, without_userinfo},
};

/// What a URL has between its scheme and its options.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Place {
    scheme: &'static str,
    place: String,
}

impl Place {
    /// The place of a server.
    ///
    /// # Errors
    ///
    /// `Config` for one without a database.
    pub(crate) fn new(scheme: &'static str, place: &str) -> Result<Self, Error> {
        let place = Place { scheme, place: place.to_owned() };
        ServerConfig::new(place.url(&[]))?;
        Ok(place)
    }

    /// What the backend is told.
    pub(crate) fn config(&self, options: &Options) -> Result<ServerConfig, Error> {
        let mut config = ServerConfig::new(self.url(&options.driver))?;
        if let Some(table) = &options.table {
            config = config.table(table)?;
        }
        if let Some(most) = options.max_connections {
            config = config.max_connections(most);
        }
        if let Some(limit) = options.connect_timeout {
            config = config.connect_timeout(limit);
        }
        if let Some(limit) = options.request_timeout {
            // A statement that waits for a row for longer than its call may take is of use to nobody.
            config = config.lock_timeout(limit.min(Duration::from_secs(1)));
        }
        Ok(if options.listen == Some(Listen::Off) { config.without_notifications() } else { config })
    }

    fn url(&self, options: &[(String, String)]) -> String {
        let options: Vec<String> = options.iter().map(|(key, value)| format!("{key}={}", encode(value))).collect();
        format!("{}:{}?{}", self.scheme, self.place, options.join("&"))
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:?}", self.scheme, without_userinfo(&self.place))
    }
}
