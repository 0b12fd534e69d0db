//! The metrics as they are documented, alerted on and told: one set of names and of values.

use std::{collections::BTreeSet, fs, path::Path};

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every metric's name in a text.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("leasehold_")).collect()
}

/// What a new client tells a scraper before anything has happened.
async fn told() -> String {
    let buckets = Matcher::Suffix("_seconds".to_owned());
    let recorder = PrometheusBuilder::new().set_buckets_for_metric(buckets, &[1.0]).expect("buckets").build_recorder();
    let handle = recorder.handle();
    let recorder = Box::leak(Box::new(recorder));
    let _installed = metrics::set_default_local_recorder(recorder);
    let client = leasehold::connect("memory:").await.expect("memory");
    client.lock("x").acquire().await.expect("free").release().await.expect("held");
    client.close().await.expect("memory");
    handle.render()
}

#[tokio::test]
async fn the_guide_lists_what_is_told_and_nothing_else() {
    let (told, guide) = (told().await, read("docs/guide/metrics.md"));
    let told: BTreeSet<_> = told.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    assert_eq!(told, names(&guide));
}

#[tokio::test]
async fn the_alerts_ask_for_series_that_are_told() {
    let (told, alerts) = (told().await, read("docs/alerts.yml"));
    let known = names(&told);
    for name in names(&alerts) {
        // A histogram that has recorded nothing yet has no buckets.
        let whole = name.trim_end_matches("_bucket");
        assert!(known.contains(name) || known.contains(whole), "{name} is in no scrape:\n{told}");
    }
    // The values between quotes that a rule compares a label with.
    let mut compared = 0;
    for matcher in alerts.split('{').skip(1).filter_map(|rest| rest.split('}').next()) {
        for value in matcher.split('"').skip(1).step_by(2).flat_map(|values| values.split('|')) {
            assert!(told.contains(&format!("\"{value}\"")), "no label has the value {value}");
            compared += 1;
        }
    }
    assert!(compared >= 4, "the rules compare {compared} values");
}
