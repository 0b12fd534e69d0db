//! The documented shapes of the command's JSON.

use std::path::Path;

use boon::{Compiler, Schemas};
use serde_json::Value;

/// Reads what a command wrote, and holds it against its schema.
#[track_caller]
pub(crate) fn read(schema: &str, written: &[u8]) -> Value {
    let value: Value = serde_json::from_slice(written).expect("JSON");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas").join(schema);
    let mut schemas = Schemas::new();
    let index = Compiler::new().compile(file.to_str().expect("UTF-8"), &mut schemas).expect("a sound schema");
    if let Err(error) = schemas.validate(&value, index) {
        panic!("{schema}: {error:#}\n{value:#}");
    }
    value
}
