//! `linerate load`: the load engine standalone, like wrk, hey, h2load or iperf3.

mod failed;
mod operations;
mod route;
mod spec;
mod streams;
mod sweep;

pub(super) use spec::{paths_are_in, usual_size};

use super::Terminal;
use crate::cli::{LOAD, LoadArgs, ResultArgs};
use crate::error::Error;
use crate::journal;
use crate::output::{self, note, warn};
use crate::url::Url;
use linerate_contract::{Layer, Nanos};
use operations::Operations;
use std::path::Path;
use std::process::ExitCode;

/// Interval of the progress line. Each sample costs a thread 50 us to copy its histogram.
const LIVE: Nanos = Nanos(500_000_000);
/// Interval of the rows of `--csv` and of `by_second` in `--json`.
const SECOND: Nanos = Nanos(1_000_000_000);

/// Loads a server and prints the result: 0, 1 if too much failed, 3 if no operation succeeded, or 130 after
/// Ctrl-C.
///
/// # Errors
/// An invalid URL, an option that its protocol lacks, an unreachable host, a file that cannot be written.
pub fn load(args: &LoadArgs, terminal: Terminal) -> Result<ExitCode, Error> {
    let urls = urls("load", &args.url, Url::parse)?;
    let scheme = urls[0].scheme;
    let is_stream = scheme.layer == Layer::Kcp || args.flow.has_stream();
    args.given.check(LOAD, scheme, is_stream)?;
    let mut specs = spec::clients(args, &urls, is_stream)?;
    let target = urls.iter().map(Url::to_string).collect::<Vec<_>>().join(" ");
    for spec in &mut specs {
        route::set(&args.route, &urls[0], spec)?;
    }
    match &mut specs[..] {
        [spec] if !is_stream => {
            let load = Operations::new(args, &target, scheme, terminal.style);
            if args.volume.sweep { sweep::sweep(&load, spec, args.volume.at_most) } else { load.run(spec) }
        }
        _ => streams::run(specs, &target, &args.result),
    }
}

/// The URLs on the command line of `linerate NAME`, which are one server's.
///
/// # Errors
/// An invalid URL, two servers, or a protocol in front of the URL.
pub(super) fn urls(
    name: &str,
    words: &[String],
    parse: fn(&str) -> Result<Url, String>,
) -> Result<Vec<Url>, Error> {
    let is_scheme = |word: &String| crate::url::Scheme::named(word).is_ok();
    if let [first, rest @ ..] = words
        && is_scheme(first)
    {
        let place = rest.first().map_or("127.0.0.1:8080", |url| url.split("://").last().unwrap_or(url));
        return Err(Error::Input(format!(
            "{first} is a protocol, which is the scheme of the URL: linerate {name} {first}://{place}"
        )));
    }
    let all = words.iter().map(|word| parse(word)).collect::<Result<Vec<_>, _>>().map_err(Error::Input)?;
    let first = &all[0];
    let is_elsewhere = |url: &&Url| url.scheme != first.scheme || url.place() != first.place();
    if let Some(other) = all.iter().find(is_elsewhere) {
        return Err(Error::Input(format!(
            "{first} and {other} are on two servers: give one of them, or linerate compare both"
        )));
    }
    if all.len() > 1 && (!first.scheme.is_of_requests() || first.scheme.is_of_calls()) {
        return Err(Error::Input(format!(
            "several URLs are for HTTP, and these are of {}: give one of them",
            first.scheme.name
        )));
    }
    Ok(all)
}

/// Prints the text, unless the JSON goes to standard output, and writes the JSON where it was requested. What
/// was measured stands, whatever cannot be written.
fn publish(args: &ResultArgs, json: &str, text: &str) {
    if args.json.as_deref() != Some(Path::new("-")) {
        warn(output::print(text));
    }
    if let Some(path) = &args.json {
        write_result(path, json);
    }
}

/// Writes a result to a file, or to standard output for `-`.
pub(super) fn write_result(path: &Path, text: &str) {
    if path == Path::new("-") {
        return warn(output::print(text));
    }
    match journal::write(path, text) {
        Ok(()) => note(&format!("written: {}", path.display())),
        failed => warn(failed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Vec<String>, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let all = urls("load", &words, Url::parse).map_err(|e| e.to_string())?;
        Ok(all.into_iter().map(|url| url.path).collect())
    }

    #[test]
    fn several_urls_are_of_one_server_of_http() {
        assert_eq!(parsed(&["http://a/x", "a/y?z"]).unwrap(), ["/x", "/y?z"]);
        for other in ["http://a:81/", "https://a/", "http://b/"] {
            let error = parsed(&["http://a/", other]).unwrap_err();
            assert!(error.contains("two servers") && error.contains(other), "{error}");
        }
        assert_eq!(parsed(&["h2://a/x", "h2://a/y"]).unwrap(), ["/x", "/y"]);
        assert!(parsed(&["tcp://a:1", "tcp://a:1"]).unwrap_err().contains("are for HTTP"));
    }

    #[test]
    fn a_protocol_in_front_of_the_url_is_refused_with_the_command_that_is_right() {
        for (words, right) in [
            (&["http", "http://127.0.0.1:8080/x"][..], "linerate load http://127.0.0.1:8080/x"),
            (&["h2", "https://localhost/"], "linerate load h2://localhost/"),
            (&["tcp", "127.0.0.1:9000"], "linerate load tcp://127.0.0.1:9000"),
            (&["http"], "linerate load http://127.0.0.1:8080"),
        ] {
            let error = parsed(words).unwrap_err();
            assert!(error.ends_with(right), "{error}");
        }
    }
}
