//! A password that is kept beside the configuration, in a file or in the environment, and read only when it is needed.

use std::{env, fs, path::PathBuf};

use lock_core::Error;

use crate::scheme::config;
#[cfg(any(feature = "etcd", feature = "mysql", feature = "postgres", feature = "redis", feature = "zookeeper"))]
use crate::{scheme::Scheme, text::encode};

/// Where a password is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Secret {
    /// The first line of a file.
    File(PathBuf),
    /// A variable of the environment.
    Variable(String),
}

impl Secret {
    /// The password.
    ///
    /// # Errors
    ///
    /// `Config` for a file or a variable that is not there, is empty, or is not UTF-8.
    pub(crate) fn read(&self) -> Result<String, Error> {
        match self {
            Secret::File(path) => first_line("password_file", path),
            Secret::Variable(name) => match env::var(name) {
                Ok(password) if !password.is_empty() => Ok(password),
                Ok(_) => Err(config(format!("option password_env={name}: the variable is empty"))),
                Err(env::VarError::NotPresent) => {
                    Err(config(format!("option password_env={name}: the variable is not set")))
                }
                Err(env::VarError::NotUnicode(_)) => {
                    Err(config(format!("option password_env={name}: the variable is not UTF-8")))
                }
            },
        }
    }
}

/// The first line of a file that keeps one secret.
///
/// # Errors
///
/// `Config`, with the file and never with what is in it.
pub(crate) fn first_line(option: &str, path: &std::path::Path) -> Result<String, Error> {
    let shown = path.display();
    let text = fs::read_to_string(path)
        .map_err(|error| config(format!("option {option}={shown}: the file cannot be read: {error}")))?;
    match text.lines().next() {
        Some(line) if !line.is_empty() => Ok(line.to_owned()),
        _ => Err(config(format!("option {option}={shown}: the first line of the file is empty"))),
    }
}

/// The place of a URL with a password put behind its user.
///
/// # Errors
///
/// `Config` if there is a password already, or no user that it could be of.
#[cfg(any(feature = "etcd", feature = "mysql", feature = "postgres", feature = "redis", feature = "zookeeper"))]
pub(crate) fn insert(scheme: Scheme, place: &str, password: &str) -> Result<String, Error> {
    let prefix = scheme.prefix();
    let rest = place.strip_prefix("//").unwrap_or(place);
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let password = encode(password).replace('/', "%2F");
    match authority.rsplit_once('@') {
        Some((user, _)) if user.contains(':') => Err(config(format!(
            "store {prefix} has a password in its URL already; take that away, or the option password_file or password_env"
        ))),
        Some((user, hosts)) => Ok(format!("//{user}:{password}@{hosts}{path}")),
        None if scheme.has_default_user() => Ok(format!("//:{password}@{authority}{path}")),
        None => Err(config(format!(
            "store {prefix} has no user that the password would be of; write it as {prefix}//USER@HOST"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_gives_its_first_line_and_errors_name_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("secret");
        let secret = Secret::File(path.clone());
        assert!(secret.read().expect_err("not there").to_string().contains("cannot be read"));
        fs::write(&path, "hunter2\nmore\n").expect("written");
        assert_eq!(secret.read().expect("a password"), "hunter2");
        fs::write(&path, "\n").expect("written");
        assert!(secret.read().expect_err("empty").to_string().contains("is empty"));
        let error = Secret::Variable("LEASEHOLD_NO_SUCH_VARIABLE".to_owned()).read().expect_err("not set");
        assert!(error.to_string().ends_with("the variable is not set"), "{error}");
    }

    #[cfg(feature = "redis")]
    #[test]
    fn a_password_goes_behind_its_user() {
        let put = |place: &str| insert(Scheme::Redis, place, "p@s/s:%");
        assert_eq!(put("//shop@h:1/0").expect("put"), "//shop:p%40s%2Fs%3A%25@h:1/0");
        assert_eq!(put("//h").expect("put"), "//:p%40s%2Fs%3A%25@h");
        assert!(put("//shop:x@h").expect_err("twice").to_string().contains("already"));
    }
}
