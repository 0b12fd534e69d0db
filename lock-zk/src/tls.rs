//! TLS: whom a client trusts and what it shows, read from files when a session begins.

use std::{fs, path::PathBuf};

use lock_core::{BackendError, BackendErrorKind};
use rustls::crypto::{CryptoProvider, ring};
use zookeeper_client::TlsOptions;

/// How TLS is spoken: files in PEM form, read whenever a session begins.
///
/// A server's certificate must name the host of the URL. There are no roots of the system here: an ensemble's
/// certificates are mostly signed by an authority of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZkTls {
    ca: PathBuf,
    identity: Option<(PathBuf, PathBuf)>,
}

impl ZkTls {
    /// Trusts the authorities in this file, and no others.
    pub fn new(ca: impl Into<PathBuf>) -> Self {
        ZkTls { ca: ca.into(), identity: None }
    }

    /// Shows this certificate, whose private key is in the other file.
    #[must_use]
    pub fn identity(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.identity = Some((certificate.into(), key.into()));
        self
    }

    /// What the client library takes.
    ///
    /// # Errors
    ///
    /// `Config` for files that cannot be read, and for what is in them.
    pub(crate) fn options(&self) -> Result<TlsOptions, BackendError> {
        choose_cryptography();
        let ca = &self.ca;
        let unfit = |error| config(format!("the TLS roots in {} are unfit: {error}", ca.display()));
        let options = TlsOptions::new().with_pem_ca(&read("TLS roots", ca)?).map_err(unfit)?;
        let Some((certificate, key)) = &self.identity else { return Ok(options) };
        let (shown, secret) = (read("TLS certificate", certificate)?, read("TLS key", key)?);
        options.with_pem_identity(&shown, &secret).map_err(|error| {
            config(format!(
                "the TLS certificate {} with the key {} is unfit: {error}",
                certificate.display(),
                key.display()
            ))
        })
    }
}

fn read(what: &str, file: &PathBuf) -> Result<String, BackendError> {
    fs::read_to_string(file)
        .map_err(|error| config(format!("the {what} in {} cannot be read: {error}", file.display())))
}

fn config(message: String) -> BackendError {
    BackendError::new(BackendErrorKind::Config, message)
}

/// TLS cannot choose its cryptography where the program has two, and the client library brings a second one. What the
/// program itself has chosen stays.
fn choose_cryptography() {
    if CryptoProvider::get_default().is_none() {
        // Another thread may have been first, and then its choice stays.
        let _ = ring::default_provider().install_default();
    }
}
