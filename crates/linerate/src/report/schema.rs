//! The JSON schema of `report.json`, derived from the model and published as `docs/report.schema.json`.

use super::model::Report;

/// Pretty, with a line break at its end.
#[must_use]
pub(super) fn schema() -> String {
    let schema = schemars::schema_for!(Report);
    let json = serde_json::to_string_pretty(&schema)
        .expect("a schema has string keys only, so it always serialises");
    json + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// If set, the test writes the file.
    const UPDATE: &str = "UPDATE_SCHEMA";

    #[test]
    fn the_published_schema_equals_the_model() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/report.schema.json");
        if std::env::var_os(UPDATE).is_some() {
            std::fs::write(&path, schema()).unwrap();
        }
        let published = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            published == schema(),
            "docs/report.schema.json is out of date; `{UPDATE}=1 cargo test -p linerate schema` writes it"
        );
    }
}
