//! `linerate compare`, and what it has in common with `linerate gate`.

use super::load::target::{HTTP, TCP, Target, UDP, WEBSOCKET};
use super::{Terminal, history, print, report_note};
use crate::cli::{BuildOptions, CommandOptions, CompareArgs, with_settings};
use crate::comparison::stored;
use crate::error::Error;
use crate::journal::{self, RUNS};
use crate::measurement::{ComparisonKind, PlannedTarget};
use crate::progress::note;
use crate::project::Project;
use crate::report;
use crate::report::comparison::{ComparisonReport, comment, keep_history, prospect, with_history, written};
use crate::session::{End, Event, Request, Session};
use crate::stats::verdict::Verdict;
use crate::subject::words;
use crate::{home, suite};
use linerate_contract::nearest::suggestion;
use std::path::Path;
use std::process::ExitCode;

/// Compares two builds, or two stored runs.
///
/// # Errors
/// Bad input, or nothing could be measured.
pub fn compare(args: &CompareArgs, script: Option<&Path>, terminal: Terminal) -> Result<ExitCode, Error> {
    let (what, builds) = What::from_words(&args.what, &args.commands, &args.builds)?;
    if let What::Runs([one, two]) = what {
        let (one, two) = (journal::read(Path::new(&one))?, journal::read(Path::new(&two))?);
        return print(&report::comparison::of_stored(&stored::compare(&one, &two), terminal.style));
    }
    let compared = measure(&builds, what, ComparisonKind::Compare, script, terminal, None)?;
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
    Commands(Vec<String>, Box<CommandOptions>),
    Runs([String; 2]),
}

impl What {
    /// By the words on the command line and the project's file; with the options, completed by that file.
    ///
    /// # Errors
    /// Words that are neither; with the nearest suite.
    pub(super) fn from_words(
        words: &[String],
        options: &CommandOptions,
        builds: &BuildOptions,
    ) -> Result<(Self, BuildOptions), Error> {
        if let [] | [_] = words
            && let Some(project) = Project::find()?
            && words.iter().all(|name| project.settings.compare.contains_key(name))
        {
            let name = words.first().map(String::as_str);
            let settings = project.comparison(name)?;
            let (options, builds) = with_settings(std::env::args_os().collect(), &project, name, &settings)?;
            return Ok((Self::Commands(settings.start.0, Box::new(options)), builds));
        }
        Self::of_words(words, options, builds.has_revisions()).map(|what| (what, builds.clone()))
    }

    fn of_words(words: &[String], options: &CommandOptions, has_revisions: bool) -> Result<Self, Error> {
        let is_run = |word: &String| journal::is_run(Path::new(word));
        let commands = || Self::Commands(words.to_vec(), Box::new(options.clone()));
        match words {
            [] => return Ok(Self::Suite(None)),
            [_] if !options.lists.is_empty() => return Ok(commands()),
            [one] if has_revisions && one.contains([' ', '/']) => return Ok(commands()),
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
                return Self::of_addresses(words, options);
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

impl What {
    /// Servers that run elsewhere.
    fn of_addresses(words: &[String], options: &CommandOptions) -> Result<Self, Error> {
        if let Some(command) = words.iter().find(|word| !is_address(word)) {
            return Err(Error::Input(format!(
                "`{command}` is no address, and commands are not compared with addresses: give http://... \
                 for each, or commands alone"
            )));
        }
        let CommandOptions { tcp, udp, ws, .. } = *options;
        if options.url.is_some() || !options.companions.is_empty() || tcp || udp || ws {
            return Err(Error::Input(
                "--url, --with, --tcp, --udp and --ws are for commands: an address has its scheme (http, \
                 https, tcp, udp, ws) and its path in it"
                    .into(),
            ));
        }
        let scheme = |url: &str| url.split_once("://").map_or("", |(scheme, _)| scheme).to_owned();
        let first = scheme(&words[0]);
        if let Some(other) = words.iter().map(|url| scheme(url)).find(|scheme| *scheme != first) {
            return Err(Error::Input(format!(
                "{first}:// and {other}:// are not compared: give one of them"
            )));
        }
        let [tcp, udp, ws] = ["tcp", "udp", "ws"].map(|name| name == first);
        if options.h2 && (tcp || udp || ws) {
            return Err(Error::Input(format!(
                "--h2 is for http:// and https://, and these are addresses of {first}://: leave it out"
            )));
        }
        if options.h3 && first != "https" {
            return Err(Error::Input(format!(
                "--h3 is for https://, and these are addresses of {first}://: HTTP/3 has no form without TLS"
            )));
        }
        let echoes = [(tcp, &TCP), (udp, &UDP), (ws, &WEBSOCKET)];
        let schemes =
            echoes.into_iter().find(|(is_chosen, _)| *is_chosen).map_or(&HTTP, |(_, schemes)| schemes);
        let resolved = words.iter().map(|url| {
            let target = Target::parse(url, schemes)?;
            target.path_beside(options.request.requests.as_deref())?;
            // A datagram would have to be answered.
            let is_of_datagrams = udp || options.h3;
            let address = if is_of_datagrams { target.datagram_address()? } else { target.resolve()? };
            Ok((PlannedTarget { host: target.authority, path: target.path }, address))
        });
        let targets = resolved.collect::<Result<_, Error>>()?;
        let options = CommandOptions { targets, https: first == "https", tcp, udp, ws, ..options.clone() };
        Ok(Self::Commands(words.to_vec(), Box::new(options)))
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
}

/// Measures both builds, writes the reports and prints them. A history gets a line of what is complete.
///
/// # Errors
/// Bad input, or the lab is lost.
pub(super) fn measure(
    builds: &BuildOptions,
    what: What,
    kind: ComparisonKind,
    script: Option<&Path>,
    terminal: Terminal,
    history: Option<&Path>,
) -> Result<Measured, Error> {
    let comparison = builds.comparison(kind);
    let request = match what {
        What::Suite(None) | What::Runs(_) if builds.resume.is_none() => {
            return Err(Error::Input(
                "name two commands, such as './old' './new', or a suite; `linerate list` shows these; \
                 `linerate init` writes a linerate.toml, with which there is nothing to name"
                    .into(),
            ));
        }
        What::Suite(suite) => builds.request(suite, comparison),
        What::Runs(_) => builds.request(None, comparison),
        What::Commands(commands, options) => {
            let comparison = options.comparison(&commands, comparison)?;
            let budget = builds.budget_of_commands(kind);
            let hosts = options.host_request();
            Request { budget: Some(budget), hosts, ..builds.request(None, comparison) }
        }
    };
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
    print(&report::TERMINAL.render(&report, terminal.style))?;
    folder.map(report_note).into_iter().for_each(|text| note(&text));
    if let Some(file) = &builds.comment {
        journal::write(file, &comment(&report, comparison))?;
    }
    if let (End::Interrupted, Some(folder)) = (end, folder) {
        let name = if kind == ComparisonKind::Gate { "gate" } else { "compare" };
        note(&format!("interrupted; go on with: linerate {name} --resume {}", folder.display()));
    }
    Ok(Measured { end, comparison: comparison.clone() })
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
