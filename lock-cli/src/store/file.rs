//! The configuration file: where it is, and the tables of it that describe stores.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use leasehold::Config;
use toml::{Table, Value};

use super::Environment;
use crate::exit::Failure;

/// Whose words the file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    /// The user's own file, or one that the user named.
    Named,
    /// It was found in the working directory, which may be someone else's: a file there must not be able to send the
    /// user's secrets to a store of its own choice.
    Found,
}

/// The keys that read a secret from elsewhere.
const SECRETS: [&str; 3] = ["store_file", "password_file", "password_env"];

/// A configuration file that has been read. Its keys are checked, the tables' own keys are the library's to check.
#[derive(Debug)]
pub(super) struct File {
    path: PathBuf,
    trust: Trust,
    lock: Option<Table>,
    stores: Table,
}

impl File {
    /// The file that was asked for, or the first of the usual ones that exists.
    pub(super) fn find(asked_for: Option<&Path>, environment: &Environment) -> Result<Option<Self>, Failure> {
        if let Some(path) = asked_for.or(environment.config.as_deref().map(Path::new)) {
            let text = fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
            return File::parse(path, Trust::Named, &text).map(Some);
        }
        let usual = [(Some(PathBuf::from("leasehold.toml")), Trust::Found), (environment.user_config(), Trust::Named)];
        for (path, trust) in usual.into_iter().filter_map(|(path, trust)| Some((path?, trust))) {
            match fs::read_to_string(environment.directory.join(&path)) {
                Ok(text) => return File::parse(&path, trust, &text).map(Some),
                Err(error) if is_absent(&error) => {}
                Err(error) => return Err(unreadable(&path, &error)),
            }
        }
        Ok(None)
    }

    fn parse(path: &Path, trust: Trust, text: &str) -> Result<Self, Failure> {
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            // Its Display shows the line itself, which may hold a password.
            let line = error.span().map_or(1, |span| text[..span.start].lines().count().max(1));
            Failure::config(format!("{}, line {line}: {}", path.display(), error.message()))
        })?;
        let mut file = File { path: path.to_owned(), trust, lock: None, stores: Table::new() };
        let (mut ours, mut other_table) = (false, None);
        for (key, value) in table {
            ours |= matches!(key.as_str(), "lock" | "stores");
            match (key.as_str(), value) {
                ("lock", Value::Table(lock)) => file.lock = Some(lock),
                ("stores", Value::Table(stores)) => file.stores = stores,
                ("lock", _) => return Err(file.wrong("`lock` must be a table: write [lock]")),
                ("stores", _) => return Err(file.wrong("`stores` must hold tables: write [stores.NAME]")),
                (other, value) => {
                    let meant = nearest(other, ["lock", "stores"]);
                    // The file may be a service's own, of which other tables are none of our business.
                    if meant.is_none() && value.is_table() {
                        other_table = Some(key);
                        continue;
                    }
                    let meant = meant.map(|meant| format!("did you mean [{meant}]? ")).unwrap_or_default();
                    let known = "known are [lock] and [stores.NAME], and tables of others are let be";
                    return Err(file.wrong(&format!("unknown key `{other}`; {meant}{known}")));
                }
            }
        }
        if let (false, Some(other)) = (ours, other_table) {
            return Err(file.wrong(&format!("it has [{other}], but neither [lock] nor [stores.NAME]")));
        }
        Ok(file)
    }

    /// The store that is used when none is named, if the file has one.
    pub(super) fn default_store(&self) -> Option<Result<Config, Failure>> {
        self.lock.as_ref().map(|table| self.config("[lock]", table))
    }

    /// The store of this name.
    pub(super) fn named_store(&self, name: &str) -> Result<Config, Failure> {
        match self.stores.get(name) {
            Some(Value::Table(table)) => self.config(&format!("[stores.{name}]"), table),
            Some(_) => Err(self.wrong(&format!("`stores.{name}` must be a table: write [stores.{name}]"))),
            None if self.stores.is_empty() => {
                Err(self.wrong(&format!("no store named {name:?}: the file has no [stores.NAME] table")))
            }
            None => {
                let known: Vec<&str> = self.stores.keys().map(String::as_str).collect();
                let meant = nearest(name, known.iter().copied()).map(|meant| format!("did you mean {meant}? "));
                let meant = meant.unwrap_or_default();
                Err(self.wrong(&format!("no store named {name:?}; {meant}the file has {}", known.join(", "))))
            }
        }
    }

    fn config(&self, title: &str, table: &Table) -> Result<Config, Failure> {
        let untrusted = |key: &str| {
            Failure::config(format!(
                "{}: {title}: {key} is not obeyed in a file that was only found in the working directory, since it \
                 could send your secrets to a store of its choice; name the file with --config if you trust it",
                self.path.display()
            ))
        };
        let secret = table.keys().find(|key| SECRETS.contains(&key.as_str()));
        if let (Trust::Found, Some(key)) = (self.trust, secret) {
            return Err(untrusted(key));
        }
        // Only the message: the library keeps passwords out of that.
        let read = Value::Table(table.clone()).try_into();
        let read: Config =
            read.map_err(|error: toml::de::Error| self.wrong(&format!("{title}: {}", error.message())))?;
        // The URL has options too.
        if self.trust == Trust::Found && read.reads_secrets() {
            return Err(untrusted("the URL's password_file or password_env"));
        }
        Ok(read)
    }

    fn wrong(&self, what: &str) -> Failure {
        Failure::config(format!("{}: {what}", self.path.display()))
    }
}

/// The known word that was probably meant.
fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// Below this, two words have little in common.
    const ALIKE: f64 = 0.8;
    let alike = known.into_iter().map(|known| (strsim::jaro_winkler(word, known), known));
    alike.filter(|(how, _)| *how >= ALIKE).max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, known)| known)
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::config(format!("configuration file {} cannot be read: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<File, Failure> {
        File::parse(Path::new("x.toml"), Trust::Named, text)
    }

    #[test]
    fn tables_are_found_by_name() {
        let text = "[lock]\nstore = 'memory:'\nnamespace = 'a'\n[stores.prod]\nstore = 'memory:'\nnamespace = 'b'\n";
        let file = parse(text).expect("a file");
        let namespace = |config: Config| config.namespace().map(str::to_owned);
        assert_eq!(file.default_store().expect("[lock]").map(namespace), Ok(Some("a".to_owned())));
        assert_eq!(file.named_store("prod").map(namespace), Ok(Some("b".to_owned())));
        let error = file.named_store("prd").expect_err("unknown").message;
        assert!(error.contains("\"prd\"") && error.contains("prod"), "{error}");
    }

    #[test]
    fn what_is_wrong_is_named_without_the_line_itself() {
        for (text, hint) in [
            ("[lok]\n", "`lok`"),
            ("lock = 1", "[lock]"),
            ("stores = 1", "[stores.NAME]"),
            ("[lock]\nstore = \"redis://:secret@h\" x\n", "line 2"),
        ] {
            let failure = parse(text).expect_err(text);
            assert_eq!(failure.exit.code(), 78);
            assert!(failure.message.starts_with("x.toml"), "{failure}");
            assert!(failure.message.contains(hint) && !failure.message.contains("secret"), "{failure}");
        }
        let file = parse("[stores]\na = 1\n").expect("a file");
        assert!(file.named_store("a").is_err());
    }

    #[test]
    fn a_services_own_file_does() {
        let text = "[http]\nport = 8080\n[lock]\nstore = 'memory:'\n";
        assert!(parse(text).expect("a file").default_store().expect("[lock]").is_ok());
        let failure = parse("[http]\nport = 8080\n").expect_err("no store");
        assert!(failure.message.contains("[http]") && failure.message.contains("neither [lock]"), "{failure}");
        assert!(parse("store = 'memory:'\n").expect_err("no table").message.contains("`store`"));
    }

    #[test]
    fn a_file_that_was_only_found_reads_no_secret() {
        let inside = "[lock]\nstore = 'redis://h'\npassword_env = 'AWS_SECRET'\n";
        let whole = "[lock]\nstore_file = '/etc/passwd'\n";
        let hidden = "[lock]\nstore = 'redis://h?password%5Ffile=/etc/passwd'\n";
        for text in [inside, whole, hidden] {
            let file = File::parse(Path::new("leasehold.toml"), Trust::Found, text).expect("a file");
            let failure = file.default_store().expect("[lock]").expect_err(text);
            assert!(failure.message.contains("--config"), "{failure}");
        }
        assert!(parse(inside).expect("a file").default_store().expect("[lock]").is_ok());
    }

    #[test]
    fn a_misspelt_name_finds_the_one_that_was_meant() {
        let file = parse("[stores.production]\nstore = 'memory:'\n").expect("a file");
        let failure = file.named_store("prodution").expect_err("misspelt");
        assert!(failure.message.contains("did you mean production?"), "{failure}");
        assert!(parse("[stors.a]\n").expect_err("misspelt").message.contains("did you mean [stores]?"));
    }
}
