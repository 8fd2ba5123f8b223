//! `linerate compare`, and what it has in common with `linerate gate`.

use super::load::target::{HTTP, TCP, Target, UDP, WEBSOCKET};
use super::{Terminal, history, print, report_note};
use crate::cli::{CompareArgs, CompareFlags, LoadFlags, Project, Servers};
use crate::comparison::stored;
use crate::error::Error;
use crate::journal::{self, RUNS};
use crate::measurement::{ComparisonKind, PlannedTarget};
use crate::progress::note;
use crate::report;
use crate::report::comparison::{ComparisonReport, comment, keep_history, prospect, with_history, written};
use crate::session::{End, Event, Request, Session, again};
use crate::stats::verdict::Verdict;
use crate::subject::words;
use crate::{home, suite};
use linerate_contract::nearest::suggestion;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

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
    let compared = measure(&flags, what, ComparisonKind::Compare, script, Some(terminal), None)?;
    match compared {
        Measured { end: End::Interrupted, .. } => Ok(ExitCode::from(130)),
        Measured { comparison, .. } if comparison.conclusion == Verdict::Missing => {
            Err(Error::NothingMeasured(comparison.sentence))
        }
        Measured { .. } => Ok(ExitCode::SUCCESS),
    }
}

/// What is compared.
#[derive(Debug)]
pub(super) enum What {
    /// Builds in the cells of a suite; `None` with `--resume`.
    Suite(Option<String>),
    Servers(Servers),
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
        let commands = || Self::Servers(Servers { lines: words.to_vec(), ..Servers::default() });
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
            if is_address(word) {
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
fn addresses(words: &[String], flags: &mut CompareFlags) -> Result<Servers, Error> {
    if let Some(command) = words.iter().find(|word| !is_address(word)) {
        return Err(Error::Input(format!(
            "`{command}` is no address, and commands are not compared with addresses: give http://... \
             for each, or commands alone"
        )));
    }
    let settings = &mut flags.settings;
    let LoadFlags { tcp, udp, ws, .. } = settings.load;
    if settings.load.url.is_some() || !settings.subjects.with.is_empty() || tcp || udp || ws {
        return Err(Error::Input(
            "--url, --with, --tcp, --udp and --ws are for commands: an address has its scheme (http, \
             https, tcp, udp, ws) and its path in it"
                .into(),
        ));
    }
    let load = &mut settings.load;
    let scheme = common_scheme(words)?;
    (load.tcp, load.udp, load.ws) = (scheme == "tcp", scheme == "udp", scheme == "ws");
    load.https = scheme == "https";
    let schemes = match scheme {
        "tcp" => &TCP,
        "udp" => &UDP,
        "ws" => &WEBSOCKET,
        _ => &HTTP,
    };
    if load.h2 && (load.tcp || load.udp || load.ws) {
        return Err(Error::Input(format!(
            "--h2 is for http:// and https://, and these are addresses of {scheme}://: leave it out"
        )));
    }
    if load.h3 && !load.https {
        return Err(Error::Input(format!(
            "--h3 is for https://, and these are addresses of {scheme}://: HTTP/3 has no form without TLS"
        )));
    }
    let resolved = words.iter().map(|url| {
        let target = Target::parse(url, schemes)?;
        target.path_beside(load.request.requests.as_deref())?;
        // A datagram would have to be answered.
        let is_of_datagrams = load.udp || load.h3;
        let address = if is_of_datagrams { target.datagram_address()? } else { target.resolve()? };
        Ok((PlannedTarget { host: target.authority, path: target.path }, address))
    });
    let targets = resolved.collect::<Result<_, Error>>()?;
    Ok(Servers { lines: words.to_vec(), targets, ..Servers::default() })
}

/// The scheme of all addresses.
fn common_scheme(urls: &[String]) -> Result<&str, Error> {
    let mut schemes = urls.iter().map(|url| url.split_once("://").map_or("", |(scheme, _)| scheme));
    let first = schemes.next().unwrap_or_default();
    match schemes.find(|scheme| *scheme != first) {
        None => Ok(first),
        Some(other) => {
            Err(Error::Input(format!("{first}:// and {other}:// are not compared: give one of them")))
        }
    }
}

/// Whether a word begins with the scheme of a URL. A command may have a URL among its arguments.
fn is_address(word: &str) -> bool {
    word.split_once("://").is_some_and(|(scheme, _)| scheme.chars().all(|c| c.is_ascii_alphanumeric()))
}

/// A comparison of builds that was measured and published.
pub(super) struct Measured {
    pub(super) end: End,
    pub(super) comparison: ComparisonReport,
    /// `None`: nothing was measured.
    pub(super) folder: Option<PathBuf>,
}

/// Measures both builds and writes the reports; prints them to the terminal, if one is given. Without one,
/// both arms may be the same build. A history gets a line of what is complete.
///
/// # Errors
/// Bad input, or the lab is lost.
pub(super) fn measure(
    flags: &CompareFlags,
    what: What,
    kind: ComparisonKind,
    script: Option<&Path>,
    terminal: Option<Terminal>,
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
    let request = Request { allows_equal_arms: terminal.is_none(), ..request };
    let mut session = Session::open(&request, script)?;
    let end = session.measure(&mut |event| match event {
        Event::Prospect(found) => note(&prospect(&found)),
        Event::Written(lines) => note(&written(&lines)),
        Event::Suite(_) => {}
    });
    let cleaned = session.clean_up();
    let end = end.and_then(|end| cleaned.map(|()| end));
    let folder = session.folder();
    let mut report = report::build(session.run(), session.trials(), session.duets());
    if let (Ok(End::Complete), Some(file), Some(comparison)) = (&end, history, &report.comparison) {
        history::append(file, &report, comparison)?;
        folder.map_or(Ok(()), |folder| keep_history(file, folder, comparison))?;
    }
    if let Some(folder) = folder {
        report = with_history(report, folder);
        report::write_files(folder, &report)?;
    }
    let end = end?;
    if end == End::Interrupted && folder.is_none() {
        return Err(Error::Interrupted);
    }
    let comparison = report.comparison.as_ref().ok_or_else(|| {
        let folder = folder.unwrap_or(Path::new(RUNS)).display();
        Error::Input(format!("{folder}: this run compares no builds: `linerate run --resume {folder}`"))
    })?;
    if let Some(terminal) = terminal {
        print(&report::TERMINAL.render(&report, terminal.style))?;
        folder.map(report_note).into_iter().for_each(|text| note(&text));
    }
    if let Some(file) = &flags.comment {
        journal::write(file, &comment(&report, comparison))?;
    }
    if let (End::Interrupted, Some(folder)) = (end, folder) {
        note(&format!("interrupted; go on with: {}", again(folder, &report.run.command)));
    }
    Ok(Measured { end, comparison: comparison.clone(), folder: folder.map(Path::to_owned) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_with_a_url_among_its_arguments_is_no_address() {
        assert!(is_address("http://127.0.0.1:80/") && is_address("tcp://[::1]:9"));
        assert!(!is_address("puma -b tcp://127.0.0.1:{port}") && !is_address("./server"));
    }
}
