//! Looking at what a backend's `check` found, for tests of its rules.

use lock_core::{Finding, Level};

/// What a rule found. It must have found one thing.
///
/// # Panics
///
/// If the rule is not among the findings, or is twice.
#[must_use]
#[track_caller]
pub fn finding<'f>(findings: &'f [Finding], rule: &str) -> &'f Finding {
    let mut found = findings.iter().filter(|finding| finding.rule == rule);
    let Some(one) = found.next() else { panic!("no rule {rule} in {findings:?}") };
    assert!(found.next().is_none(), "{rule} twice in {findings:?}");
    one
}

/// Asserts that a rule warns, with this in its evidence, and has a remedy.
///
/// # Panics
///
/// If it does not.
#[track_caller]
pub fn assert_warns(findings: &[Finding], rule: &str, evidence: &str) {
    let told = finding(findings, rule);
    assert_eq!(told.level, Level::Warning, "{told:?}");
    assert!(told.evidence.contains(evidence) && told.remedy.is_some(), "{told:?}");
}
