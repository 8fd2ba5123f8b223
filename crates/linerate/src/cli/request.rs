//! Requests and correct responses of `load`, and of `compare` and `gate` of commands.

use super::feed::{self, Feed};
use super::recorded::{self, Recorded};
use crate::bounded;
use crate::error::Error;
use crate::measurement::{Expectation, PlannedRequest};
use crate::output::note;
use crate::toml_file;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use linerate_contract::Body;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Args)]
pub struct RequestArgs {
    /// Request method [default: GET, or POST with --body]
    #[arg(long, short = 'X', value_name = "METHOD")]
    pub method: Option<String>,

    /// Additional header, 'Name: value' (repeatable)
    #[arg(long, short = 'H', value_name = "LINE")]
    pub header: Vec<String>,

    /// Request body; @FILE: from a file
    #[arg(long, visible_alias = "data", value_name = "TEXT")]
    pub body: Option<String>,

    /// Basic authentication (RFC 7617)
    #[arg(
        hide_short_help = true, long, short = 'u', value_name = "NAME:PASSWORD", value_parser = credentials
    )]
    pub user: Option<String>,

    /// Several requests: JSON lines with path, method, headers, body and weight of each, an access log
    /// (common or combined), or a HAR; headers of the options are added to each
    #[arg(hide_short_help = true, long, value_name = "FILE", conflicts_with_all = ["method", "body"])]
    pub requests: Option<PathBuf>,

    /// A CSV file with names of columns: a request for each row, which replaces {csv:COLUMN} in paths,
    /// headers and bodies
    #[arg(hide_short_help = true, long, value_name = "FILE")]
    pub feed: Option<PathBuf>,
}

/// A line of `--requests`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    path: String,
    method: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: Option<String>,
    #[serde(default = "once")]
    weight: u32,
}

fn once() -> u32 {
    1
}

impl RequestArgs {
    /// A request of each path, or those of the file; files are relative to `folder`.
    ///
    /// # Errors
    /// A file that cannot be read or is not UTF-8, or a line that is no request.
    pub fn requests(&self, paths: &[&str], folder: &Path) -> Result<Recorded, Error> {
        let mut recorded = self.given(paths, folder)?;
        if recorded.left_out > 0 {
            note(&format!("{} lines are no request of this server, and left out", recorded.left_out));
        }
        if let Some(file) = &self.feed {
            recorded.requests = Feed::read(&folder.join(file))?.filled(recorded.requests)?;
        } else if let Some(request) = recorded.requests.iter().find(|one| feed::is_wanted(one)) {
            let path = &request.path;
            return Err(Error::Input(format!(
                "{path}: {{csv:COLUMN}} needs --feed, a CSV file with the column"
            )));
        }
        Ok(recorded)
    }

    fn given(&self, paths: &[&str], folder: &Path) -> Result<Recorded, Error> {
        let Some(file) = &self.requests else {
            let requests =
                paths.iter().map(|path| self.request(path, folder)).collect::<Result<_, Error>>()?;
            return Ok(Recorded { requests, ..Recorded::default() });
        };
        let file = folder.join(file);
        let text = bounded::text(&file).map_err(|error| match file.file_name() {
            Some(name) if name.to_str().is_some_and(|name| name.parse::<u64>().is_ok()) => {
                Error::Input(format!("--requests is a file; a number of requests is -n {}", name.display()))
            }
            _ => error,
        })?;
        let mut recorded = parse_requests(&file, &text, &|name| read_body(&folder.join(name)))?;
        recorded.requests.iter_mut().for_each(|one| one.headers.extend(self.headers()));
        Ok(recorded)
    }

    /// The header lines of the options.
    pub fn headers(&self) -> Vec<String> {
        let basic = |user: &String| format!("Authorization: {}", basic(user));
        self.header.iter().cloned().chain(self.user.as_ref().map(basic)).collect()
    }

    fn request(&self, path: &str, folder: &Path) -> Result<PlannedRequest, Error> {
        self.planned(path, &|name| read_body(&folder.join(name)))
    }

    fn planned(&self, path: &str, read: &ReadBody<'_>) -> Result<PlannedRequest, Error> {
        let body = match self.body.as_deref().map(|body| (body, body.strip_prefix('@'))) {
            None => Body::default(),
            Some((text, None)) => text.into(),
            Some((_, Some(file))) => read(file)?,
        };
        let usual = if self.body.is_some() { "POST" } else { "GET" };
        Ok(PlannedRequest {
            method: self.method.clone().unwrap_or_else(|| usual.into()),
            path: path.into(),
            headers: self.headers(),
            body,
            weight: 1,
            expect: Expectation::default(),
        })
    }
}

/// Reads the file of a body.
type ReadBody<'a> = dyn Fn(&str) -> Result<Body, Error> + 'a;

fn read_body(file: &Path) -> Result<Body, Error> {
    bounded::bytes(file).map(Body::from)
}

/// The bytes of a text in Base64.
pub(super) fn read_base64(text: &str) -> Result<Vec<u8>, base64::DecodeError> {
    STANDARD.decode(text)
}

/// The requests of the text of `file`.
fn parse_requests(file: &Path, text: &str, read: &ReadBody<'_>) -> Result<Recorded, Error> {
    if let Some(recorded) = recorded::parse(file, text)? {
        return Ok(recorded);
    }
    let of_line = |line: Line| {
        let Line { path, method, headers, body, weight } = line;
        let header = headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let one = RequestArgs { method, body, header, user: None, requests: None, feed: None };
        Ok(PlannedRequest { weight, ..one.planned(&path, read)? })
    };
    let requests: Vec<PlannedRequest> =
        toml_file::parse_lines(file, text)?.into_iter().map(of_line).collect::<Result<_, Error>>()?;
    if requests.is_empty() {
        return Err(Error::Input(format!("{}: there is no request in it", file.display())));
    }
    Ok(Recorded { requests, ..Recorded::default() })
}

/// Code of the fuzz target `requests`: no text is a panic, and an error names the file.
#[cfg(any(test, fuzzing))]
pub fn fuzz_requests(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let read = |name: &str| Ok(name.into());
    match parse_requests(Path::new("mix.jsonl"), text, &read) {
        Ok(recorded) => {
            let places = 0..recorded.requests.len() as u32;
            assert!(!places.is_empty() && recorded.times.iter().all(|(_, place)| places.contains(place)));
            assert!(recorded.times.is_sorted_by_key(|(at, _)| *at));
        }
        Err(error) => assert!(error.to_string().starts_with("mix.jsonl:"), "{error}"),
    }
}

/// The value of a header for `NAME:PASSWORD` (RFC 7617).
pub fn basic(credentials: &str) -> String {
    format!("Basic {}", STANDARD.encode(credentials))
}

fn credentials(text: &str) -> Result<String, String> {
    if text.contains(':') { Ok(text.into()) } else { Err("expected NAME:PASSWORD".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn every_seed_of_requests_and_changes_of_it_are_accepted_or_refused() {
        crate::each_seed::each_seed("requests", fuzz_requests);
    }

    fn none() -> RequestArgs {
        RequestArgs { method: None, header: Vec::new(), body: None, user: None, requests: None, feed: None }
    }

    #[test]
    fn a_body_makes_a_post_and_credentials_make_a_header() {
        let mut args = RequestArgs { header: vec!["A: b".into()], ..none() };
        assert_eq!(args.request("/x", Path::new("")).unwrap().method, "GET");
        (args.body, args.user) = (Some("hello".into()), Some("Aladdin:open sesame".into()));
        let request = args.request("/x", Path::new("")).unwrap();
        assert_eq!((request.method.as_str(), &*request.body), ("POST", &b"hello"[..]));
        // The example of RFC 7617, section 2.
        assert_eq!(request.headers, ["A: b", "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="]);
        args.method = Some("PUT".into());
        assert_eq!(args.request("/x", Path::new("")).unwrap().method, "PUT");
        args.body = Some("@/no/such/file".into());
        assert!(args.request("/x", Path::new("")).unwrap_err().to_string().contains("/no/such/file"));
    }

    #[test]
    fn a_file_has_requests_with_their_headers_and_weights() {
        let folder = std::env::temp_dir();
        let file = folder.join(format!("linerate-test-{}-requests", std::process::id()));
        let with = |text: &str| {
            fs::write(&file, text).unwrap();
            RequestArgs { requests: Some(file.clone()), ..none() }
                .requests(&["/"], &folder)
                .map(|recorded| recorded.requests)
                .map_err(|e| e.to_string())
        };
        let text = "{\"path\": \"/a\", \"weight\": 9}\n\
                    {\"path\": \"/b\", \"body\": \"x\", \"headers\": {\"C\": \"d\"}}\n";
        let all = with(text).unwrap();
        assert_eq!((all[0].method.as_str(), all[0].weight, &all[0].headers[..]), ("GET", 9, &[][..]));
        assert_eq!((all[1].method.as_str(), all[1].weight), ("POST", 1));
        assert_eq!(all[1].headers, ["C: d"]);
        let error = with("{\"path\": \"/a\"}\n{\"pth\": \"/b\"}\n").unwrap_err();
        assert!(error.ends_with("-requests:2: unknown field `pth`; nearest: \"path\""), "{error}");
        assert!(with("\n").unwrap_err().contains("no request in it"));
        fs::remove_file(&file).unwrap();
        let number = RequestArgs { requests: Some("1000".into()), ..none() };
        assert!(number.requests(&["/"], &folder).unwrap_err().to_string().contains("-n 1000"));
    }
}
