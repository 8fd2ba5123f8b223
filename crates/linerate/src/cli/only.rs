//! Options that only some protocols have, as a table.

use super::argv::Given;
use crate::error::Error;
use crate::url::Scheme;

impl Given {
    /// Checks that the protocol has every option that is on the command line, by the rows of this command.
    ///
    /// # Errors
    /// An option that the protocol, or its streams, do not have.
    pub(crate) fn check(&self, own: &[Only], scheme: &Scheme, is_stream: bool) -> Result<(), Error> {
        let rows_of = |option: &String| {
            let rows = BOTH.iter().chain(own).filter(|only| only.options.contains(&option.as_str()));
            rows.collect::<Vec<_>>()
        };
        let restricted = self.0.iter().map(|option| (option, rows_of(option)));
        let restricted: Vec<_> = restricted.filter(|(_, rows)| !rows.is_empty()).collect();
        let lacking = restricted.iter().find(|(_, rows)| !rows.iter().any(|only| only.has(scheme)));
        let fits = |only: &&Only| only.has(scheme) && only.fits(is_stream);
        let misfit = restricted.iter().find(|(_, rows)| !rows.iter().any(fits));
        // --stream itself may be what the protocol lacks.
        match lacking.or(misfit) {
            Some((option, rows)) => Err(Error::Input(refusal(option, rows, scheme, is_stream))),
            None => Ok(()),
        }
    }
}

fn refusal(option: &str, rows: &[&Only], scheme: &Scheme, is_stream: bool) -> String {
    let name = format!("--{}", option.replace('_', "-"));
    if rows.iter().any(|only| only.has(scheme)) {
        return match is_stream {
            true => format!("{name} is not for streams over {}: leave it out", scheme.name),
            false => format!("{name} is for streams over {}: add --stream, or leave it out", scheme.name),
        };
    }
    let hint = HINTS.iter().find(|(hinted, _)| *hinted == option).map_or("", |(_, hint)| hint);
    let schemes: Vec<&str> = rows.iter().flat_map(|only| only.schemes.iter().copied()).collect();
    let (schemes, own) = (schemes.join(", "), scheme.name);
    format!("{name} is for {schemes}, and this URL is of {own}: leave it out{hint}")
}

/// Options, the schemes that have them, and whether these are loads of operations, streams, or both.
pub(crate) struct Only {
    options: &'static [&'static str],
    /// Empty: all.
    schemes: &'static [&'static str],
    pattern: Pattern,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pattern {
    Any,
    Operations,
    Stream,
}

impl Only {
    const fn new(options: &'static [&'static str], schemes: &'static [&'static str]) -> Self {
        Self { options, schemes, pattern: Pattern::Any }
    }

    const fn of_operations(self) -> Self {
        Self { pattern: Pattern::Operations, ..self }
    }

    const fn of_streams(self) -> Self {
        Self { pattern: Pattern::Stream, ..self }
    }

    fn has(&self, scheme: &Scheme) -> bool {
        self.schemes.is_empty() || self.schemes.contains(&scheme.name)
    }

    fn fits(&self, is_stream: bool) -> bool {
        match self.pattern {
            Pattern::Any => true,
            Pattern::Operations => !is_stream,
            Pattern::Stream => is_stream,
        }
    }
}

const ALL: &[&str] = &[];
const PAGES: &[&str] = &["http", "https"];
const REQUESTS: &[&str] = &["http", "https", "h2", "h2c", "h3"];
const REQUESTS_AND_CALLS: &[&str] = &["http", "https", "h2", "h2c", "h3", "grpc", "grpcs"];
const CALLS: &[&str] = &["grpc", "grpcs"];
const MULTIPLEXED: &[&str] = &["h2", "h2c", "h3", "grpc", "grpcs", "quic"];
const TLS: &[&str] = &["https", "h2", "h3", "grpcs", "tls", "wss", "quic"];
const WEBSOCKET: &[&str] = &["ws", "wss"];
const CONNECTED: &[&str] = &["tcp", "tls", "ws", "wss"];

/// Options of `load` and `serve` by their ids. One that is in no row, all protocols have.
const BOTH: &[Only] = &[
    Only::new(&["messages"], CALLS),
    Only::new(&["authority"], TLS),
    Only::new(&["handshake"], TLS),
    Only::new(&["congestion"], &["h3", "quic"]),
    Only::new(&["mtu", "window", "interval_us"], &["kcp"]),
    Only::new(&["stream"], &["tcp", "tls", "ws", "wss", "udp", "kcp"]),
];

pub(crate) const LOAD: &[Only] = &[
    Only::new(&["method", "body"], REQUESTS),
    Only::new(&["header", "user", "expect", "events", "requests", "feed", "replay"], REQUESTS_AND_CALLS),
    Only::new(&["header", "user", "subprotocol"], WEBSOCKET),
    Only::new(&["text", "greetings"], WEBSOCKET).of_operations(),
    Only::new(&["unix_socket"], &["http", "https", "h2", "h2c", "grpc", "grpcs"]),
    Only::new(&["pipeline", "coalesce", "proxy"], PAGES),
    Only::new(&["message"], CALLS),
    Only::new(&["streams"], MULTIPLEXED),
    Only::new(&["insecure", "cert", "key"], TLS),
    Only::new(&["size"], &["tcp", "tls", "ws", "wss", "udp", "kcp", "quic"]),
    Only::new(&["response_size"], &["quic"]),
    Only::new(&["reverse"], CONNECTED),
    Only::new(&["both"], &["tcp"]),
    Only::new(&["search"], &["udp"]),
    Only::new(&["bitrate"], &["udp", "tcp", "tls", "ws", "wss"]),
    Only::new(&["datagrams"], &["h3", "quic", "kcp"]),
    Only::new(&["datagrams"], &["udp"]).of_streams(),
    Only::new(&["no_keepalive"], REQUESTS_AND_CALLS).of_operations(),
    Only::new(&["no_keepalive"], &["quic", "tcp"]).of_operations(),
    Only::new(&["count", "arrival", "seed", "sweep", "warmup", "repeat"], ALL).of_operations(),
    Only::new(&["rate"], ALL).of_operations(),
    Only::new(&["rate"], &["udp"]).of_streams(),
    Only::new(&["csv"], ALL).of_operations(),
    Only::new(&["csv"], CONNECTED).of_streams(),
];

pub(crate) const SERVE: &[Only] = &[
    Only::new(&["size"], REQUESTS_AND_CALLS),
    Only::new(&["size"], &["tcp", "tls", "ws", "wss", "udp", "kcp"]).of_streams(),
    Only::new(&["datagrams"], &["h3", "quic", "udp", "kcp"]),
    Only::new(&["reverse"], &["tls", "ws", "wss"]).of_streams(),
];

/// Ends of messages about options that are called otherwise elsewhere.
const HINTS: &[(&str, &str)] =
    &[("body", "; a call of gRPC has --message"), ("message", "; a request has --body")];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use crate::url::SCHEMES;
    use clap::{CommandFactory, Parser};

    fn refused(words: &[&str], is_stream: bool) -> String {
        let cli = Cli::parse_from([&["linerate", "load", "x"], words].concat());
        let Command::Load(args) = cli.command else { panic!("it is a load") };
        let of = |scheme: &Scheme| Some(args.given.check(LOAD, scheme, is_stream).err()?.to_string());
        SCHEMES.iter().filter_map(of).next().unwrap_or_default()
    }

    #[test]
    fn an_option_that_a_protocol_lacks_is_refused_with_those_that_have_it() {
        for (words, is_stream, message) in [
            (
                &["-k"][..],
                false,
                "--insecure is for https, h2, h3, grpcs, tls, wss, quic, and this URL is of http",
            ),
            (&["--message", "x"], false, "of http: leave it out; a request has --body"),
            (&["--body", "x"], false, "of grpc: leave it out; a call of gRPC has --message"),
            (
                &["-n", "5", "--stream"],
                true,
                "--stream is for tcp, tls, ws, wss, udp, kcp, and this URL is of http",
            ),
            (&["-n", "5"], true, "--count is not for streams over http"),
            (&["--rate", "5"], true, "--rate is not for streams over http"),
            (&["--window", "5"], true, "--window is for kcp, and"),
            (&["-c", "5", "-t", "1", "-d", "1s", "--connect-to", "a:1"], true, ""),
        ] {
            let error = refused(words, is_stream);
            assert!(error.contains(message) && error.is_empty() == message.is_empty(), "{words:?}: {error}");
        }
    }

    #[test]
    fn every_option_and_scheme_of_the_table_exists() {
        let cli = Cli::command();
        for (name, own) in [("load", LOAD), ("serve", SERVE)] {
            let command = cli.find_subcommand(name).unwrap();
            let ids: Vec<&str> = command.get_arguments().map(|option| option.get_id().as_str()).collect();
            for only in BOTH.iter().chain(own) {
                assert!(only.options.iter().all(|option| ids.contains(option)), "{:?}", only.options);
                assert!(only.schemes.iter().all(|name| Scheme::named(name).is_ok()), "{:?}", only.schemes);
            }
        }
    }
}
