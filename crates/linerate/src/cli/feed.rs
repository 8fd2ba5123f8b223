//! Requests that are filled with the rows of a CSV file: `{csv:COLUMN}` in a path, a header or a body.

use crate::bounded;
use crate::error::Error;
use crate::measurement::PlannedRequest;
use crate::url::encoded;
use linerate_contract::nearest::suggestion;
use std::path::Path;

const OPEN: &[u8] = b"{csv:";
/// Bytes of all requests that are made: more do not fit in the spec of a program.
const LONGEST: usize = 64 << 20;

/// A table of texts with names for its columns.
#[derive(Debug)]
pub(super) struct Feed {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// Whether a request has a place for a column.
pub(super) fn is_wanted(request: &PlannedRequest) -> bool {
    let mut texts =
        request.headers.iter().map(String::as_bytes).chain([request.path.as_bytes(), &request.body]);
    texts.any(|text| text.windows(OPEN.len()).any(|part| part == OPEN))
}

impl Feed {
    /// # Errors
    /// A file that cannot be read, without rows, or with rows of unlike lengths.
    pub(super) fn read(file: &Path) -> Result<Self, Error> {
        Self::parse(file, &bounded::text(file)?)
    }

    pub(super) fn parse(file: &Path, text: &str) -> Result<Self, Error> {
        let wrong = |what: String| Error::Input(format!("{}: {what}", file.display()));
        // Spreadsheets begin a file with a byte order mark.
        let text = text.trim_start_matches('\u{feff}');
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let owned = |record: &csv::StringRecord| record.iter().map(str::to_owned).collect();
        let columns: Vec<String> = owned(reader.headers().map_err(|e| wrong(e.to_string()))?);
        let rows: Result<Vec<Vec<String>>, csv::Error> =
            reader.records().map(|record| record.map(|record| owned(&record))).collect();
        let rows = rows.map_err(|e| wrong(e.to_string()))?;
        if rows.is_empty() {
            return Err(wrong("there is no row below the names of its columns".into()));
        }
        Ok(Self { columns, rows })
    }

    /// A request for each row in place of one that has places for its columns; the others keep their share.
    ///
    /// # Errors
    /// A column that the file lacks, or too many bytes.
    pub(super) fn filled(&self, requests: Vec<PlannedRequest>) -> Result<Vec<PlannedRequest>, Error> {
        let (mut all, mut bytes) = (Vec::new(), 0);
        for mut request in requests {
            if !is_wanted(&request) {
                request.weight = request.weight.saturating_mul(self.rows.len() as u32);
                all.push(request);
                continue;
            }
            for row in &self.rows {
                let text = |text: &str| {
                    self.fill(text.as_bytes(), row).map(|text| String::from_utf8_lossy(&text).into_owned())
                };
                let filled = PlannedRequest {
                    path: encoded(&self.fill(request.path.as_bytes(), row)?),
                    headers: request.headers.iter().map(|line| text(line)).collect::<Result<_, Error>>()?,
                    body: self.fill(&request.body, row)?.into(),
                    ..request.clone()
                };
                bytes += filled.path.len() + filled.body.len();
                if bytes > LONGEST {
                    let most = LONGEST >> 20;
                    return Err(Error::Input(format!(
                        "--feed makes requests of more than {most} MiB: use fewer rows"
                    )));
                }
                all.push(filled);
            }
        }
        Ok(all)
    }

    fn fill(&self, mut text: &[u8], row: &[String]) -> Result<Vec<u8>, Error> {
        let mut filled = Vec::new();
        while let Some(at) = text.windows(OPEN.len()).position(|part| part == OPEN) {
            let rest = &text[at + OPEN.len()..];
            let end = rest.iter().position(|byte| *byte == b'}').unwrap_or(rest.len());
            let name = String::from_utf8_lossy(&rest[..end]);
            let place = self.columns.iter().position(|column| *column == name).filter(|_| end < rest.len());
            let place = place.ok_or_else(|| {
                let near = suggestion(&name, self.columns.iter().map(String::as_str));
                Error::Input(format!("{{csv:{name}}}: the file of --feed has no such column; {near}"))
            })?;
            filled.extend_from_slice(&text[..at]);
            filled.extend_from_slice(row[place].as_bytes());
            text = &rest[end + 1..];
        }
        filled.extend_from_slice(text);
        Ok(filled)
    }
}

/// Code of the fuzz target `feed`: the first line of the input is a path, the rest a table.
#[cfg(any(test, fuzzing))]
pub fn fuzz_feed(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let (path, table) = text.split_once('\n').unwrap_or((text, ""));
    let Ok(feed) = Feed::parse(Path::new("users.csv"), table) else { return };
    let request: PlannedRequest =
        serde_json::from_value(serde_json::json!({ "method": "GET", "path": path })).expect("a request");
    if let Ok(all) = feed.filled(vec![request]) {
        assert!(all.len() == 1 || all.len() == feed.rows.len());
        assert!(all.iter().all(|one| one.path.is_ascii() || !path.contains("{csv:")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_input_of_the_fuzz_target_fails() {
        crate::each_seed::each_seed("feed", fuzz_feed);
    }

    fn request(path: &str, headers: &[&str], body: &str) -> PlannedRequest {
        let headers: Vec<String> = headers.iter().map(|line| (*line).to_owned()).collect();
        let json = serde_json::json!({ "method": "POST", "path": path, "headers": headers, "body": body });
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn each_row_is_a_request_and_the_others_keep_their_share() {
        let feed = Feed::parse(Path::new("u.csv"), "\u{feff}id,name\n7,\"J. Doe\"\n8,Zoë\n").unwrap();
        let given = vec![
            request("/u/{csv:id}?n={csv:name}", &["X-Name: {csv:name}"], "{\"id\": {csv:id}}"),
            request("/all", &[], ""),
        ];
        let all = feed.filled(given).unwrap();
        let paths: Vec<(&str, u32)> = all.iter().map(|one| (one.path.as_str(), one.weight)).collect();
        assert_eq!(paths, [("/u/7?n=J.%20Doe", 1), ("/u/8?n=Zo%C3%AB", 1), ("/all", 2)]);
        assert_eq!((&all[1].headers[..], &*all[1].body), (&["X-Name: Zoë".into()][..], &b"{\"id\": 8}"[..]));
    }

    #[test]
    fn an_unknown_column_and_a_table_without_rows_are_refused() {
        let feed = Feed::parse(Path::new("u.csv"), "id,name\n7,x\n").unwrap();
        let error = feed.filled(vec![request("/{csv:nme}", &[], "")]).unwrap_err().to_string();
        assert!(
            error.starts_with("{csv:nme}: the file of --feed has no such column; nearest: \"name\""),
            "{error}"
        );
        assert!(feed.filled(vec![request("/{csv:id", &[], "")]).is_err());
        for (table, what) in [("id\n", "no row below"), ("a,b\n1\n", "found record with 1 field")] {
            let error = Feed::parse(Path::new("u.csv"), table).unwrap_err().to_string();
            assert!(error.starts_with("u.csv: ") && error.contains(what), "{error}");
        }
    }
}
