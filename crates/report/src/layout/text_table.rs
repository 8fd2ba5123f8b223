//! A table of text, which each readable format draws.

/// The first column names the row.
#[derive(Debug, Clone)]
pub(crate) struct TextTable {
    pub(crate) title: String,
    pub(crate) headers: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
    /// Sentences below it.
    pub(crate) notes: Vec<String>,
}

impl TextTable {
    pub(crate) fn new<'a>(title: &str, headers: impl IntoIterator<Item = &'a str>) -> Self {
        let headers = headers.into_iter().map(str::to_owned).collect();
        Self { title: title.to_owned(), headers, rows: Vec::new(), notes: Vec::new() }
    }

    pub(crate) fn with_rows(self, rows: impl Iterator<Item = Vec<String>>) -> Self {
        Self { rows: rows.collect(), ..self }
    }
}
