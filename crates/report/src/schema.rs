//! The JSON schemas of `report.json`, derived from the models and published in `docs/`. Only this test
//! derives them, so that the program builds without it.

mod tests {
    use crate::load_json::LoadJson;
    use crate::merged::MergedReport;
    use crate::model::Report;
    use std::path::Path;

    /// If set, the tests write the files.
    const UPDATE: &str = "UPDATE_SCHEMA";

    /// Published pretty, with a line break at its end.
    fn assert_published(file: &str, schema: &schemars::Schema) {
        let schema = serde_json::to_string_pretty(schema).expect("a schema has string keys only") + "\n";
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(file);
        if std::env::var_os(UPDATE).is_some() {
            std::fs::write(&path, &schema).unwrap();
        }
        let published = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            published == schema,
            "docs/{file} is out of date; `{UPDATE}=1 cargo test -p linerate-report schema` writes it"
        );
    }

    #[test]
    fn the_published_schema_equals_the_model() {
        assert_published("report.schema.json", &schemars::schema_for!(Report));
    }

    #[test]
    fn the_published_schema_of_a_load_equals_the_model() {
        assert_published("load.schema.json", &schemars::schema_for!(LoadJson<'_>));
    }

    #[test]
    fn the_published_schema_of_several_hosts_equals_the_model() {
        assert_published("merge.schema.json", &schemars::schema_for!(MergedReport));
    }
}
