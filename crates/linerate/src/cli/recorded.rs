//! Requests that others have recorded: access logs of servers (Common Log Format and Combined), and archives
//! of browsers (HAR 1.2).

use super::request::read_base64;
use crate::error::Error;
use crate::measurement::{Expectation, PlannedRequest};
use crate::url::{Url, encoded};
use linerate_contract::Nanos;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The time of a line of an access log, which has whole seconds.
const LOG_TIME: &str =
    "[day]/[month repr:short]/[year]:[hour]:[minute]:[second] [offset_hour][offset_minute]";
const SECOND: u64 = 1_000_000_000;

/// Headers of a connection, which are not a request's.
const OF_CONNECTION: [&str; 6] =
    ["host", "connection", "content-length", "transfer-encoding", "keep-alive", "upgrade"];

/// The requests of a file.
#[derive(Debug, Default)]
pub struct Recorded {
    /// Each once, with its weight.
    pub requests: Vec<PlannedRequest>,
    /// When each was sent, since the first, and its place in `requests`; in the order of the times. Empty
    /// where the file has no times.
    pub times: Vec<(Nanos, u32)>,
    /// Lines or entries that are no request of this server.
    pub left_out: u64,
}

/// A request as it was recorded.
struct Sent {
    at: OffsetDateTime,
    request: PlannedRequest,
}

/// The requests of a log or an archive; `None`: the text is neither.
///
/// # Errors
/// A line that is none of a log, or an archive with a fault; a text without a request.
pub(super) fn parse(file: &Path, text: &str) -> Result<Option<Recorded>, Error> {
    let start = text.trim_start();
    let (sent, left_out, span) = match start.strip_prefix('{').map(str::trim_start) {
        None if start.is_empty() => return Ok(None),
        None => log(file, text)?,
        Some(rest) if rest.starts_with("\"log\"") => archive(file, text)?,
        Some(_) => return Ok(None),
    };
    if sent.is_empty() {
        let name = file.display();
        return Err(Error::Input(format!("{name}: there is no request in it that can be sent again")));
    }
    Ok(Some(gathered(sent, left_out, span)))
}

/// Each request once, and when it was sent. Those of one time are spread over the span that it stands for.
fn gathered(mut sent: Vec<Sent>, left_out: u64, span: u64) -> Recorded {
    sent.sort_by_key(|one| one.at);
    let first = sent[0].at;
    let mut recorded = Recorded { left_out, ..Recorded::default() };
    let mut known = BTreeMap::new();
    for of_one_time in sent.chunk_by(|one, next| one.at == next.at) {
        let since = (of_one_time[0].at - first).whole_nanoseconds();
        let since = u64::try_from(since).unwrap_or(u64::MAX / 2);
        for (one, number) in of_one_time.iter().zip(0_u64..) {
            let PlannedRequest { method, path, headers, body, expect, .. } = &one.request;
            let key = (method, path, headers, body.to_vec(), expect.status);
            let place = *known.entry(key).or_insert(recorded.requests.len());
            match recorded.requests.get_mut(place) {
                Some(request) => request.weight = request.weight.saturating_add(1),
                None => recorded.requests.push(one.request.clone()),
            }
            let at = Nanos(since.saturating_add(span * number / of_one_time.len() as u64));
            // Times that are centuries apart are all the longest one, and still in order.
            let last = recorded.times.last().map_or(Nanos::ZERO, |(last, _)| *last);
            recorded.times.push((at.max(last), place as u32));
        }
    }
    recorded
}

/// The expectation of a recorded status; an error of the client's was right to be one.
fn expectation(status: u16) -> Expectation {
    // 499 is nginx's word for a client that went away.
    Expectation { status: (400..499).contains(&status).then_some(status), ..Expectation::default() }
}

fn request(method: &str, path: &str, status: u16) -> PlannedRequest {
    PlannedRequest {
        method: method.into(),
        path: path.into(),
        headers: Vec::new(),
        body: "".into(),
        weight: 1,
        expect: expectation(status),
    }
}

/// The lines of an access log.
fn log(file: &Path, text: &str) -> Result<(Vec<Sent>, u64, u64), Error> {
    let format = time::format_description::parse_borrowed::<2>(LOG_TIME).expect("the format is constant");
    let (mut sent, mut left_out) = (Vec::new(), 0);
    for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()) {
        let (at, asked, status) = log_line(line).ok_or_else(|| {
            let (name, line) = (file.display(), line.chars().take(80).collect::<String>());
            Error::Input(format!(
                "{name}:{number}: neither JSON nor a line of an access log in Common Log Format or Combined \
                 (HOST - USER [TIME] \"GET /path HTTP/1.1\" STATUS SIZE ...): {line}"
            ))
        })?;
        let at = OffsetDateTime::parse(at, &format).map_err(|error| {
            Error::Input(format!("{}:{number}: the time [{at}]: {error}", file.display()))
        })?;
        match asked_again(&asked) {
            Some((method, path)) => sent.push(Sent { at, request: request(method, &path, status) }),
            None => left_out += 1,
        }
    }
    Ok((sent, left_out, SECOND))
}

/// The time, the first line of the request, and the status of a line.
fn log_line(line: &str) -> Option<(&str, Vec<u8>, u16)> {
    let (before, rest) = line.split_once('"')?;
    let (_, time) = before.split_once('[')?;
    let (time, _) = time.split_once(']')?;
    let mut bytes = rest.bytes();
    let mut asked = Vec::new();
    loop {
        match bytes.next()? {
            b'"' => break,
            b'\\' => asked.push(match bytes.next()? {
                b'x' => {
                    let digit = |byte: u8| char::from(byte).to_digit(16);
                    (digit(bytes.next()?)? << 4 | digit(bytes.next()?)?) as u8
                }
                other => other,
            }),
            byte => asked.push(byte),
        }
    }
    let rest = rest.get(rest.len() - bytes.len()..)?;
    Some((time, asked, rest.split_whitespace().next()?.parse().ok()?))
}

/// The method and target of a request line; `None`: it is none, such as `-` or the first bytes of TLS.
fn asked_again(line: &[u8]) -> Option<(&str, String)> {
    let mut words = line.split(|byte| *byte == b' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    let is_token = !method.is_empty() && method.iter().all(u8::is_ascii_uppercase);
    if !is_token || !version.starts_with(b"HTTP/") || words.next().is_some() || method == b"CONNECT" {
        return None;
    }
    // A proxy is asked for a whole URL.
    let from = match target.windows(3).position(|part| part == b"://") {
        Some(at) if !target.starts_with(b"/") => {
            at + 3 + target[at + 3..].iter().position(|byte| *byte == b'/')?
        }
        _ => 0,
    };
    let path = &target[from..];
    path.starts_with(b"/").then(|| (std::str::from_utf8(method).unwrap_or("GET"), encoded(path)))
}

#[derive(Deserialize)]
struct Archive {
    log: Entries,
}

#[derive(Deserialize)]
struct Entries {
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    started_date_time: String,
    request: Asked,
    response: Option<Answered>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<Header>,
    post_data: Option<Posted>,
}

#[derive(Deserialize)]
struct Header {
    name: String,
    value: String,
}

#[derive(Deserialize)]
struct Posted {
    #[serde(default)]
    text: String,
    encoding: Option<String>,
}

#[derive(Deserialize)]
struct Answered {
    status: i32,
}

/// The entries of an archive that are of the same host as the first.
fn archive(file: &Path, text: &str) -> Result<(Vec<Sent>, u64, u64), Error> {
    let wrong = |what: String| Error::Input(format!("{}: {what}", file.display()));
    let archive: Archive = serde_json::from_str(text).map_err(|e| wrong(format!("as an HAR: {e}")))?;
    let (mut sent, mut left_out, mut host) = (Vec::new(), 0, None);
    for (entry, number) in archive.log.entries.into_iter().zip(1..) {
        let asked = entry.request;
        let url = Url::parse(&asked.url).ok().filter(|url| ["http", "https"].contains(&url.scheme.name));
        let Some(url) = url.filter(|url| url.place() == *host.get_or_insert_with(|| url.place())) else {
            left_out += 1;
            continue;
        };
        let at = OffsetDateTime::parse(&entry.started_date_time, &Rfc3339)
            .map_err(|error| wrong(format!("entry {number}: startedDateTime: {error}")))?;
        let status = entry.response.and_then(|one| one.status.try_into().ok()).unwrap_or(0);
        let mut request = request(&asked.method, &url.path, status);
        let own = asked.headers.iter().filter(|header| {
            let name = header.name.to_ascii_lowercase();
            !name.starts_with(':') && !OF_CONNECTION.contains(&name.as_str())
        });
        request.headers = own.map(|header| format!("{}: {}", header.name, header.value)).collect();
        if let Some(posted) = asked.post_data {
            request.body = match posted.encoding.as_deref() {
                Some("base64") => read_base64(&posted.text)
                    .map_err(|error| wrong(format!("entry {number}: postData: {error}")))?
                    .into(),
                _ => posted.text.into_bytes().into(),
            };
        }
        sent.push(Sent { at, request });
    }
    Ok((sent, left_out, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(text: &str) -> Result<Recorded, String> {
        parse(Path::new("access.log"), text).map(|found| found.expect("a record")).map_err(|e| e.to_string())
    }

    #[test]
    fn an_access_log_is_its_requests_by_weight_with_their_times() {
        // The examples of Apache's manual, what scanners send, a proxy, nginx's way to write bytes.
        let log = r#"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326
::1 - - [10/Oct/2000:20:55:38 +0000] "GET /gone?a=%20 HTTP/1.1" 404 12 "http://a/\"b\"" "Mozilla/4.08 [en]"
::1 - - [10/Oct/2000:20:55:38 +0000] "GET /apache_pb.gif HTTP/1.1" 304 0 "-" "x"

::1 - - [10/Oct/2000:20:55:38 +0000] "\x16\x03\x01\x02" 400 0 "-" "-"
::1 - - [10/Oct/2000:20:55:39 +0000] "-" 408 0
::1 - - [10/Oct/2000:20:55:39 +0000] "POST http://shop:80/caf\xC3\xA9 HTTP/1.1" 500 1"#;
        let Recorded { requests, times, left_out } = recorded(log).unwrap();
        let seen: Vec<(&str, &str, u32, Option<u16>)> =
            requests.iter().map(|one| (&*one.method, &*one.path, one.weight, one.expect.status)).collect();
        assert_eq!(
            seen,
            [
                ("GET", "/apache_pb.gif", 2, None),
                ("GET", "/gone?a=%20", 1, Some(404)),
                ("POST", "/caf%C3%A9", 1, None)
            ]
        );
        // Of two in one second the later one is in its middle.
        let times: Vec<(f64, u32)> = times.iter().map(|(at, place)| (at.0 as f64 / 1e9, *place)).collect();
        assert_eq!(times, [(0.0, 0), (2.0, 1), (2.5, 0), (3.0, 2)]);
        assert_eq!(left_out, 2);
    }

    #[test]
    fn an_archive_is_its_requests_to_the_first_host() {
        let entry = |time: &str, method: &str, url: &str, rest: &str| {
            format!(
                r#"{{"startedDateTime": "{time}", "request": {{"method": "{method}", "url": "{url}",
                "headers": [{{"name": ":authority", "value": "a"}}, {{"name": "Host", "value": "a"}},
                {{"name": "Accept", "value": "text/html"}}]{rest}}}, "response": {{"status": 404}}}}"#
            )
        };
        let entries = [
            entry("2026-04-16T12:07:23.596Z", "GET", "https://a.example/x?q=1", ""),
            entry(
                "2026-04-16T14:07:23.600+02:00",
                "POST",
                "https://a.example/y",
                r#", "postData": {"text": "é"}"#,
            ),
            entry("2026-04-16T12:07:23.601Z", "GET", "https://other.example/", ""),
            entry("2026-04-16T12:07:23.602Z", "GET", "data:text/plain,x", ""),
        ];
        let har = format!("{{\n  \"log\": {{\"version\": \"1.2\", \"entries\": [{}]}}}}", entries.join(","));
        let Recorded { requests, times, left_out } = recorded(&har).unwrap();
        assert_eq!(
            (requests[0].path.as_str(), &requests[0].headers[..]),
            ("/x?q=1", &["Accept: text/html".into()][..])
        );
        assert_eq!((&*requests[1].body, requests[1].expect.status), ("é".as_bytes(), Some(404)));
        assert_eq!((times, left_out), (vec![(Nanos(0), 0), (Nanos(4_000_000), 1)], 2));
        let error = recorded("{\"log\": {\"entries\": [{}]}}").unwrap_err();
        assert!(error.starts_with("access.log: as an HAR: missing field"), "{error}");
    }

    #[test]
    fn what_is_no_record_is_named_with_its_line() {
        let error = recorded("\nhello world\n").unwrap_err();
        assert!(error.starts_with("access.log:2: neither JSON nor a line of an access log"), "{error}");
        let error = recorded("a - - [yesterday] \"GET / HTTP/1.1\" 200 1").unwrap_err();
        assert!(error.starts_with("access.log:1: the time [yesterday]: "), "{error}");
        let error = recorded("a - - [10/Oct/2000:20:55:38 +0000] \"-\" 408 1").unwrap_err();
        assert_eq!(error, "access.log: there is no request in it that can be sent again");
        assert!(parse(Path::new("a"), "{\"path\": \"/\"}").unwrap().is_none());
    }
}
