//! What the attribute refuses, and where its words point.

#[test]
fn mistakes_are_told_where_they_are() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
