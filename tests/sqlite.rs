//! SQLite by URL; or, without its feature, the error that names it.

#[cfg(not(feature = "sqlite"))]
#[tokio::test]
async fn without_its_feature_the_error_names_it() {
    let error = leasehold::connect("sqlite:locks.db").await.expect_err("not compiled in");
    assert_eq!(error.kind(), leasehold::ErrorKind::Config);
    assert_eq!(
        error.to_string(),
        "store sqlite: is not compiled in; build leasehold with its Cargo feature \"sqlite\""
    );
    assert!(!std::path::Path::new("locks.db").exists());
}

#[cfg(feature = "sqlite")]
mod with_the_feature {
    use std::{fs, path::Path};

    use leasehold::{Error, ErrorKind, LockClient};

    async fn refused(url: &str) -> Error {
        leasehold::connect(url).await.expect_err("refused")
    }

    async fn taken_by_another(client: &LockClient, url: &str) -> bool {
        let guard = client.lock("job").acquire().await.expect("free");
        let other = leasehold::connect(url).await.expect("the same file");
        let taken = other.lock("job").try_acquire().await.expect("answers").is_none();
        guard.release().await.expect("held");
        taken
    }

    #[tokio::test]
    async fn every_way_to_write_a_path_leads_to_the_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let directory = directory.path().canonicalize().expect("its path");
        let shown = directory.display();
        let plain = leasehold::connect(&format!("sqlite:{shown}/my%20locks%3F.db")).await.expect("opens");
        assert!(directory.join("my locks?.db").exists());
        assert!(taken_by_another(&plain, &format!("sqlite://{shown}/my%20locks%3f.db?max_connections=1")).await);
        assert!(taken_by_another(&plain, &format!("SQLITE:{shown}/./my locks%3F.db?lease=1s")).await);
        let config = format!("[lock]\nstore = \"sqlite:{shown}/my locks%3F.db\"\nmax_connections = 1");
        leasehold::connect_config(&leasehold::Config::from_toml_str(&config).expect("TOML")).await.expect("opens");
    }

    #[tokio::test]
    async fn bad_urls_and_options_are_errors_of_the_configuration_and_open_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("locks.db");
        for (rest, expected) in [
            ("?max_connections=8", "option max_connections=8 is out of range: only 1 is allowed"),
            ("?max_page_count=0", "option max_page_count=0 is out of range"),
            ("?lease=1000years", "option lease=1000years is out of range: sqlite gives at most"),
            ("?mode=ro", "unknown option \"mode\" of store sqlite:"),
            ("%zz", "is not percent-encoded UTF-8; write % as %25"),
            ("#x", "write it as %23"),
        ] {
            let error = refused(&format!("sqlite:{}{rest}", path.display())).await;
            assert_eq!(error.kind(), ErrorKind::Config, "{error}");
            assert!(error.to_string().contains(expected), "{error}");
        }
        for url in ["sqlite:", "sqlite://", "sqlite::memory:", "sqlite:?lease=1s"] {
            assert_eq!(refused(url).await.kind(), ErrorKind::Config, "{url}");
        }
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn files_that_cannot_be_a_store_are_errors_with_their_path() {
        let directory = tempfile::tempdir().expect("a directory");
        let corrupt = directory.path().join("corrupt.db");
        fs::write(&corrupt, "not a database, whatever its name is\n".repeat(100)).expect("a file");
        let missing = directory.path().join("missing").join("locks.db");
        for (path, expected) in [
            (directory.path(), "is a directory; name a file in it"),
            (corrupt.as_path(), "is no usable SQLite database (file is not a database); name another file"),
            (missing.as_path(), "cannot be created: its directory does not exist; create it"),
            (Path::new("/dev/null"), "is not a regular file; name one"),
        ] {
            let error = refused(&format!("sqlite:{}", path.display())).await;
            assert_eq!(error.kind(), ErrorKind::Backend, "{error}");
            assert!(error.to_string().contains(&format!("sqlite file {} {expected}", path.display())), "{error}");
        }
    }

    #[tokio::test]
    async fn a_full_store_refuses_and_recovers_without_a_new_client() {
        let directory = tempfile::tempdir().expect("a directory");
        let url = format!("sqlite:{}?max_page_count=16", directory.path().join("locks.db").display());
        let client = leasehold::connect(&url).await.expect("opens");
        let mut guards = Vec::new();
        let error = loop {
            match client.lock(format!("{:0>500}", guards.len())).acquire().await {
                Ok(guard) => guards.push(guard),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Backend, "{error}");
        assert!(error.to_string().contains("is full (database or disk is full); make room"), "{error}");
        assert!(guards.iter().all(leasehold::LockGuard::is_held), "those that hold go on");
        let name = guards[0].name().to_owned();
        for guard in guards {
            guard.release().await.expect("a full store releases");
        }
        client.lock(name).acquire().await.expect("free again").release().await.expect("held");
    }
}
