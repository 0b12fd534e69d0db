//! The files that TLS needs, and what its refusals look like.

use std::io;

use lock_core::BackendError;
use rustls::crypto::{CryptoProvider, ring};

use crate::server::config::config;

/// The options that name a file, of both drivers as they show them.
const FILES: [&str; 6] = ["sslrootcert", "sslcert", "sslkey", "ssl-ca", "ssl-cert", "ssl-key"];

/// Chooses the cryptography of TLS, which rustls cannot where other crates of the program bring a second one: it panics.
/// What the program itself has chosen stays.
pub(crate) fn choose_cryptography() {
    if CryptoProvider::get_default().is_none() {
        // Another thread may have been first, and then its choice stays.
        let _ = ring::default_provider().install_default();
    }
}

/// Looks whether the files that a driver was told of can be read. It would only say that there is no such file, and that
/// at each connection, where it cannot be told from a server that is away.
pub(crate) fn check_files<K, V>(shown: &str, options: impl Iterator<Item = (K, V)>) -> Result<(), BackendError>
where
    K: AsRef<str>,
    V: AsRef<str>,
{
    for (key, value) in options.filter(|(key, _)| FILES.contains(&key.as_ref())) {
        // Shown so by both drivers. A certificate may stand in the option itself, and is shown in another way.
        let (key, Some(file)) = (key.as_ref(), value.as_ref().strip_prefix("file: ")) else {
            continue;
        };
        let text = std::fs::read_to_string(file)
            .map_err(|error| config(format!("{shown}: {key}={file} cannot be read ({error})")))?;
        if !text.contains("-----BEGIN ") {
            return Err(config(format!("{shown}: {key}={file} is no PEM file")));
        }
    }
    Ok(())
}

/// Whether an error is TLS's word about a certificate, ours or the server's, which no other attempt would change.
///
/// The driver hands on what rustls says as an error of the socket. All of these are said before a session begins, so that
/// no statement was applied; other alerts may end a session at any time.
pub(crate) fn is_refusal(error: &io::Error) -> bool {
    let said = error.get_ref().map(ToString::to_string).unwrap_or_default();
    let alert = said.strip_prefix("received fatal alert: ");
    error.kind() == io::ErrorKind::InvalidData
        && (said.starts_with("invalid peer certificate") || alert.is_some_and(|alert| ALERTS.contains(&alert)))
}

/// What a server says of the certificate that it was shown, or that it was not, and of what it cannot speak.
const ALERTS: [&str; 9] = [
    "BadCertificate",
    "UnsupportedCertificate",
    "CertificateRevoked",
    "CertificateExpired",
    "CertificateUnknown",
    "CertificateRequired",
    "UnknownCA",
    "HandshakeFailure",
    "ProtocolVersion",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_come_in_the_middle_of_a_session_is_no_refusal() {
        let said = |text: &str| io::Error::new(io::ErrorKind::InvalidData, text.to_owned());
        assert!(is_refusal(&said("received fatal alert: CertificateRequired")));
        assert!(is_refusal(&said("invalid peer certificate: UnknownIssuer")));
        assert!(!is_refusal(&said("received fatal alert: InternalError")));
        assert!(!is_refusal(&io::ErrorKind::BrokenPipe.into()));
    }
}
