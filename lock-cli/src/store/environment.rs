//! What the environment says about stores and about where their files are.

use std::{
    env,
    ffi::OsString,
    fs,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use crate::exit::Failure;

/// The variables that count, and the working directory; a value of its own so that tests need not change the process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment {
    /// `LEASEHOLD_STORE`.
    pub(super) store: Option<OsString>,
    /// `LEASEHOLD_CONFIG`.
    pub(super) config: Option<OsString>,
    /// `XDG_CONFIG_HOME`.
    pub(super) config_home: Option<OsString>,
    /// `XDG_STATE_HOME`.
    pub(super) state_home: Option<OsString>,
    /// `HOME`.
    pub(super) home: Option<OsString>,
    /// Where `leasehold.toml` is looked for; empty for the working directory.
    pub(super) directory: PathBuf,
}

impl Environment {
    /// What this process was given.
    pub(crate) fn of_this_process() -> Self {
        // An empty variable means the same as none.
        let variable = |name| env::var_os(name).filter(|value| !value.is_empty());
        Environment {
            store: variable("LEASEHOLD_STORE"),
            config: variable("LEASEHOLD_CONFIG"),
            config_home: variable("XDG_CONFIG_HOME"),
            state_home: variable("XDG_STATE_HOME"),
            home: variable("HOME"),
            directory: PathBuf::new(),
        }
    }

    /// The user's own configuration file, if it can be said where that would be.
    pub(super) fn user_config(&self) -> Option<PathBuf> {
        let home =
            absolute(&self.config_home).or_else(|| self.home.as_ref().map(|home| Path::new(home).join(".config")));
        home.map(|home| home.join("leasehold/config.toml"))
    }

    /// The file of the embedded default store, with its directory made.
    pub(super) fn default_database(&self) -> Result<PathBuf, Failure> {
        let home = || self.home.as_ref().map(|home| Path::new(home).join(".local/state"));
        let Some(state) = absolute(&self.state_home).or_else(home) else {
            return Err(Failure::config(
                "no store is named, and HOME is not set to say where the default one is; set LEASEHOLD_STORE or use --store",
            ));
        };
        let directory = state.join("leasehold");
        // As the XDG base directory specification wants it: for the user alone.
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory).map_err(|error| {
            let directory = directory.display();
            Failure::config(format!("the default store's directory {directory} cannot be made: {error}; use --store"))
        })?;
        Ok(directory.join("locks.db"))
    }
}

/// The XDG specification: a relative path in one of its variables is to be ignored.
fn absolute(variable: &Option<OsString>) -> Option<PathBuf> {
    variable.as_ref().map(PathBuf::from).filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_default_database_is_the_users_own() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut environment = Environment { home: Some(dir.path().into()), ..Environment::default() };
        assert_eq!(environment.default_database(), Ok(dir.path().join(".local/state/leasehold/locks.db")));
        let made = fs::metadata(dir.path().join(".local/state/leasehold")).expect("a directory");
        assert_eq!(made.permissions().mode() & 0o777, 0o700);
        environment.state_home = Some("relative".into());
        assert_eq!(environment.default_database(), Ok(dir.path().join(".local/state/leasehold/locks.db")));
        environment.state_home = Some(dir.path().join("s").into());
        assert_eq!(environment.default_database(), Ok(dir.path().join("s/leasehold/locks.db")));
    }

    #[test]
    fn without_a_home_there_is_no_default() {
        let failure = Environment::default().default_database().expect_err("no home");
        assert_eq!(failure.exit.code(), 78);
        assert!(failure.message.contains("HOME") && failure.message.contains("--store"), "{failure}");
        assert_eq!(Environment::default().user_config(), None);
    }
}
