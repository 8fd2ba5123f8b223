//! The JSON schema of `report.json`, derived from the model and published as `docs/report.schema.json`.
//! Only this test derives it, so that the program builds without it.

mod tests {
    use crate::report::model::Report;
    use std::path::Path;

    /// Pretty, with a line break at its end.
    fn schema() -> String {
        let schema = schemars::schema_for!(Report);
        serde_json::to_string_pretty(&schema).expect("a schema has string keys only") + "\n"
    }

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
