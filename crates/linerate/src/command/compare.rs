//! `linerate compare`, and what it has in common with `linerate gate`.

use super::load::paths_are_in;
use super::{Terminal, has_json_alone, history, print, publish, report_note};
use crate::cli::{CompareArgs, CompareFlags, GivenServers, LoadFlags, Project, rpc_method};
use crate::error::Error;
use crate::journal::{self, RUNS};
use crate::judge::pairs::stored;
use crate::measurement::{ComparisonKind, PlannedTarget};
use crate::output::{self, note, warn};
use crate::report;
use crate::report::comparison::{ComparisonReport, comment, prospect};
use crate::session::{End, Event, Session, again};
use crate::stats::verdict::Verdict;
use crate::subject::words;
use crate::url::{Scheme, Url};
use crate::{address, home, suite};
use linerate_contract::Layer;
use linerate_contract::nearest::suggestion;
use std::path::Path;
use std::process::ExitCode;

/// The status of a slowdown, with `--fail-on slower`.
const SLOWER: u8 = 1;

/// Compares two builds, or two stored runs.
///
/// # Errors
/// Bad input, or nothing could be measured.
pub fn compare(args: &CompareArgs, script: Option<&Path>, terminal: Terminal) -> Result<ExitCode, Error> {
    let (what, flags) = What::from_words(&args.what, &args.flags)?;
    if let What::Runs([one, two]) = what {
        let (one, two) = (journal::read(Path::new(&one))?, journal::read(Path::new(&two))?);
        return print(&report::comparison::of_stored(&stored::compare(&one, &two), terminal.style));
    }
    let compared = measure(&flags, what, ComparisonKind::Compare, script, terminal, None)?;
    match compared {
        Measured { end: End::Interrupted, .. } => Ok(ExitCode::from(130)),
        Measured { comparison, .. } if comparison.conclusion == Verdict::Missing => {
            Err(Error::NothingMeasured(comparison.sentence))
        }
        Measured { comparison, .. } if comparison.conclusion == Verdict::Slower && args.fail_on.is_some() => {
            Ok(ExitCode::from(SLOWER))
        }
        Measured { .. } => Ok(ExitCode::SUCCESS),
    }
}

/// The subjects that are compared.
#[derive(Debug)]
pub(super) enum What {
    /// Builds in the cells of a suite; `None` with `--resume`.
    Suite(Option<String>),
    Servers(GivenServers),
    Runs([String; 2]),
}

impl What {
    /// By the words on the command line and the project's file; with the flags, completed by that file.
    ///
    /// # Errors
    /// Words that are neither; with the nearest suite.
    pub(super) fn from_words(words: &[String], flags: &CompareFlags) -> Result<(Self, CompareFlags), Error> {
        if let [] | [_] = words
            && let Some(project) = Project::find()?
            && words.iter().all(|name| project.has(name))
        {
            let (servers, flags) = project.complete(words.first().map(String::as_str), flags)?;
            return Ok((Self::Servers(servers), flags));
        }
        let mut flags = flags.clone();
        Self::of_words(words, &mut flags).map(|what| (what, flags))
    }

    fn of_words(words: &[String], flags: &mut CompareFlags) -> Result<Self, Error> {
        let is_run = |word: &String| journal::is_run(Path::new(word));
        let commands = || Self::Servers(GivenServers { lines: words.to_vec(), ..GivenServers::default() });
        match words {
            [] => return Ok(Self::Suite(None)),
            [_] if !flags.settings.subjects.values.is_empty() => return Ok(commands()),
            [one] if flags.has_revisions() && one.contains([' ', '/']) => return Ok(commands()),
            [one] if !one.contains([' ', '/']) => return Ok(Self::Suite(Some(one.clone()))),
            [one] => {
                return Err(Error::Input(format!(
                    "`{one}` is one command: name two to compare, such as linerate compare './old' './new', \
                     or values for it: -L threads 1,2,4; or two revisions of it: --build 'make'"
                )));
            }
            [one, two] if is_run(one) && is_run(two) => return Ok(Self::Runs([one.clone(), two.clone()])),
            _ => {}
        }
        for word in words {
            let path = Path::new(word);
            if is_run(word) {
                return Err(Error::Input(format!(
                    "{word} is a stored run: two of these are compared, alone"
                )));
            }
            if path.is_dir() {
                return Err(Error::Input(format!(
                    "{word} is a folder without run.json: neither a stored run nor a command"
                )));
            }
            if Url::has_scheme(word) {
                return addresses(words, flags).map(Self::Servers);
            }
            if !words::is_command(word) {
                let suites = suite::load_all(&home::find()?)?;
                let near = suggestion(word, suites.iter().map(|suite| suite.name.as_str()));
                return Err(Error::Input(format!(
                    "`{word}` is neither a program nor a stored run, and a suite is named alone; {near}"
                )));
            }
        }
        Ok(commands())
    }
}

/// Servers that run elsewhere; their scheme becomes a part of the load.
fn addresses(words: &[String], flags: &mut CompareFlags) -> Result<GivenServers, Error> {
    if let Some(command) = words.iter().find(|word| !Url::has_scheme(word)) {
        return Err(Error::Input(format!(
            "`{command}` is no address, and commands are not compared with addresses: give http://... \
             for each, or commands alone"
        )));
    }
    let settings = &mut flags.settings;
    let LoadFlags { tcp, udp, ws, .. } = settings.load;
    if !settings.load.url.is_empty() || !settings.subjects.with.is_empty() || tcp || udp || ws {
        return Err(Error::Input(
            "--url, --with, --tcp, --udp and --ws are for commands: an address has its protocol \
             (http://, tcp://, ...) and its path in it"
                .into(),
        ));
    }
    let urls = words.iter().map(|word| Url::parse(word)).collect::<Result<Vec<_>, _>>();
    let urls = urls.map_err(Error::Input)?;
    let scheme = urls[0].scheme;
    if let Some(other) = urls.iter().map(|url| url.scheme).find(|other| *other != scheme) {
        return Err(Error::Input(format!(
            "{}:// and {}:// are not compared: give one of them",
            scheme.name, other.name
        )));
    }
    let layer = scheme.layer;
    if matches!(layer, Layer::Kcp | Layer::Quic) {
        return Err(Error::Input(format!("{0}:// is not compared: use linerate load {0}://", scheme.name)));
    }
    let load = &mut settings.load;
    check_version(load, scheme)?;
    load.https = scheme.has_tls();
    load.h2 |= matches!(layer, Layer::H2 | Layer::H2c) && !scheme.is_of_calls();
    load.h3 |= layer == Layer::H3;
    load.tcp = matches!(layer, Layer::Tcp | Layer::Tls);
    (load.udp, load.ws) = (layer == Layer::Udp, layer.is_websocket());
    if scheme.is_of_calls() && load.grpc.is_none() {
        let has_file = load.request.requests.is_some();
        let method = (!has_file).then(|| rpc_method(&urls[0].path)).transpose();
        load.grpc = Some(method.map_err(Error::Input)?);
    }
    let resolved = urls.into_iter().map(|url| {
        if let Some(file) = load.request.requests.as_deref().filter(|_| url.path != "/") {
            return Err(paths_are_in(file, &url.path));
        }
        // A datagram would have to be answered.
        let is_of_datagrams = load.h3 || scheme.is_of_datagrams();
        let mut all =
            if is_of_datagrams { vec![address::usual(&url)?] } else { address::all_to_connect(&url)? };
        let address = all.remove(0);
        Ok((PlannedTarget { host: url.authority(), path: url.path }, address, all))
    });
    let targets = resolved.collect::<Result<_, Error>>()?;
    Ok(GivenServers { lines: words.to_vec(), targets, ..GivenServers::default() })
}

/// Checks that the version of HTTP which the options say is not another one than that of the addresses.
fn check_version(options: &LoadFlags, scheme: &Scheme) -> Result<(), Error> {
    let versions: [(&str, bool, &[&str]); 3] = [
        ("h2", options.h2, &["http", "https", "h2", "h2c"]),
        ("h3", options.h3, &["https", "h3"]),
        ("grpc", options.grpc.is_some(), &["http", "https", "h2", "h2c", "grpc", "grpcs"]),
    ];
    match versions.into_iter().find(|(_, given, of)| *given && !of.contains(&scheme.name)) {
        Some((name, _, of)) => Err(Error::Input(format!(
            "--{name} is for {}, and these are addresses of {}: leave it out",
            of.join(", "),
            scheme.name
        ))),
        None => Ok(()),
    }
}

/// A comparison of builds that was measured and published.
pub(super) struct Measured {
    pub(super) end: End,
    pub(super) comparison: ComparisonReport,
}

/// Measures both builds, writes the reports and prints them. A history gets a line of what is complete.
///
/// # Errors
/// Bad input, or the lab is lost.
pub(super) fn measure(
    flags: &CompareFlags,
    what: What,
    kind: ComparisonKind,
    script: Option<&Path>,
    terminal: Terminal,
    history: Option<&Path>,
) -> Result<Measured, Error> {
    let request = match what {
        What::Suite(None) | What::Runs(_) if flags.run.resume.is_none() => {
            return Err(Error::Input(
                "name two commands, such as './old' './new', or a suite; `linerate list` shows these; \
                 `linerate init` writes a linerate.toml, with which there is nothing to name"
                    .into(),
            ));
        }
        What::Suite(suite) => flags.of_suite(suite, kind),
        What::Runs(_) => flags.of_suite(None, kind),
        What::Servers(servers) => flags.of_servers(&servers, kind)?,
    };
    let mut session = Session::open(&request, script)?;
    let is_shown = crate::output::stderr_is_terminal();
    let end = session.measure(&mut |event| match event {
        // On a terminal the answer is alone; it has what the time can find where that matters.
        Event::Prospect(found) if !is_shown && !flags.run.quiet => note(&prospect(&found)),
        Event::Prospect(_) | Event::Suite(..) => {}
    });
    // What was measured before a disk was full has its answer, too.
    let has_units = !session.made().units.is_empty();
    let is_answered = end.is_ok() || has_units && matches!(end, Err(Error::File { .. }));
    let cleaned = session.clean_up();
    let end = end.and_then(|end| cleaned.map(|()| end));
    let folder = session.folder();
    let mut report = report::build(session.run(), session.made());
    if let (Err(error), false, Some(comparison)) = (&end, has_units, &mut report.comparison) {
        comparison.never_began(&error.to_string());
    }
    if let (Ok(End::Complete), Some(file), Some(comparison)) = (&end, history, &report.comparison) {
        let kept = || folder.map_or(Ok(()), |folder| history::keep(file, folder, comparison));
        warn(history::append(file, &report, comparison).and_then(|()| kept()));
    }
    if let Some(folder) = folder {
        report = history::with_files(report, folder);
    }
    if is_answered && report.comparison.is_some() && !has_json_alone(&flags.run) {
        warn(output::print(&report::TERMINAL.render(&report, terminal.style)));
    }
    publish(&report, folder, &flags.run);
    let end = end?;
    if end == End::Interrupted && folder.is_none() {
        return Err(Error::Interrupted);
    }
    let comparison = report.comparison.as_ref().ok_or_else(|| {
        let folder = folder.unwrap_or(Path::new(RUNS)).display();
        Error::Input(format!("{folder}: this run compares no builds: `linerate run --resume {folder}`"))
    })?;
    folder.map(report_note).into_iter().for_each(|text| note(&text));
    if let Some(file) = &flags.comment {
        warn(journal::write(file, &comment(&report, comparison)));
    }
    if let (End::Interrupted, Some(folder)) = (end, folder) {
        note(&format!("interrupted; go on with: {}", again(folder, &report.run.command)));
    }
    Ok(Measured { end, comparison: comparison.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use crate::measurement::Learned;
    use crate::subject;
    use clap::Parser;
    use linerate_contract::{Layer, Role, Spec, Workload};
    use std::net::{TcpListener, UdpSocket};

    fn parsed(words: &[&str]) -> CompareArgs {
        let cli = Cli::parse_from([&["linerate", "compare"], words].concat());
        let Command::Compare(args) = cli.command else { panic!("it is a comparison") };
        args
    }

    fn of_addresses(words: &[&str]) -> Result<(GivenServers, CompareFlags), String> {
        let CompareArgs { what, mut flags, .. } = parsed(words);
        match What::of_words(&what, &mut flags).map_err(|e| e.to_string())? {
            What::Servers(servers) => Ok((servers, flags)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_scheme_of_addresses_is_their_protocol_as_of_a_load() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (tcp, udp) = (listener.local_addr().unwrap(), socket.local_addr().unwrap());
        for (scheme, place, layer) in [
            ("http", tcp, "http"),
            ("https", tcp, "https"),
            ("h2", tcp, "h2"),
            ("h2c", tcp, "h2c"),
            ("h3", udp, "h3"),
            ("tcp", tcp, "tcp"),
            ("tls", tcp, "tls"),
            ("udp", udp, "udp"),
            ("ws", tcp, "websocket"),
            ("wss", tcp, "wss"),
        ] {
            let url = format!("{scheme}://{place}/");
            assert_eq!(of_addresses(&[&url, &url]).unwrap().1.settings.load.layer().as_str(), layer);
        }
        let url = format!("grpcs://{tcp}/shop.Items/Get");
        let load = of_addresses(&[&url, &url]).unwrap().1.settings.load;
        assert_eq!((load.layer(), load.grpc), (Layer::H2, Some(Some("shop.Items/Get".into()))));
    }

    #[test]
    fn echoes_over_tls_come_from_servers_whose_certificates_are_not_verified() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("wss://{}/chat", listener.local_addr().unwrap());
        let (servers, flags) = of_addresses(&[&url, &url]).unwrap();
        let request = flags.of_servers(&servers, ComparisonKind::Compare).unwrap();
        let comparison = request.choice.comparison.unwrap();
        let (subjects, load) = comparison.servers().unwrap();
        let mut spec = Spec::new(Role::Client, load.layer, Workload::Rr);
        subject::Servers::new(subjects, load, Learned::default()).server(0).ask(&mut spec, 1);
        assert!(spec.request.unwrap().insecure && spec.tls.is_some());
        assert_eq!((spec.path.as_deref(), load.size), (Some("/chat"), Some(64)));
    }

    #[test]
    fn addresses_that_are_not_compared_are_refused_with_the_reason() {
        for (words, part) in [
            (&["http://a", "tcp://b:1"][..], "http:// and tcp:// are not compared"),
            (&["kcp://a:1", "kcp://b:1"], "linerate load kcp://"),
            (&["htps://a", "htps://b"], "nearest: \"https\""),
            (&["http://a", "./server"], "is no address"),
            (&["tcp://a:1", "tcp://b:1", "--h2"], "--h2 is for http, https"),
            (&["http://a", "http://b", "--h3"], "--h3 is for https, h3"),
            (&["grpc://a/", "grpc://b/"], "a method such as"),
            (&["http://a", "http://b", "--url", "/x"], "has its protocol"),
            (&["http://a/x", "http://b", "--requests", "mix"], "give the URL without /x"),
        ] {
            let error = of_addresses(words).unwrap_err();
            assert!(error.contains(part), "{words:?}: {error}");
        }
    }
}
