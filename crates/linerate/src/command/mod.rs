//! The subcommands: from arguments to an exit status, by the pipeline of `lib.rs`.

mod compare;
mod doctor;
mod fleet;
mod gate;
mod history;
mod init;
mod list;
mod load;
mod merge;
mod new;
mod overview;
mod plan;
mod report;
mod run;
mod selftest;
mod serve;
mod site;
mod systems;

pub use compare::compare;
pub use doctor::doctor;
pub use fleet::fleet;
pub use gate::{gate, refused};
pub use history::history;
pub use init::init;
pub use list::list;
pub use load::load;
pub use merge::merge;
pub use new::new;
pub use plan::plan;
pub use report::report;
pub use run::run;
pub use selftest::selftest;
pub use serve::serve;
pub use site::site;
pub use systems::systems;

use crate::cli::{CompletionsArgs, LabAgentArgs, ManArgs, RunFlags, When};
use crate::error::Error;
use crate::journal;
use crate::lab::agent::PathOf;
use crate::measurement::Stored;
use crate::output::{self, note, warn};
use crate::programs::elsewhere;
use crate::report::model::Report;
use crate::report::{Style, files, format};
use crate::subject::ask::{Outcome, ask};
use crate::system::Registry;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;

/// Colours and width of standard output.
#[derive(Debug, Clone, Copy)]
pub struct Terminal {
    style: Style,
}

impl Terminal {
    /// `Auto` is colours on a terminal, unless `NO_COLOR` (no-color.org) is set.
    pub fn new(when: When) -> Self {
        let width = output::stdout_width();
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let colour = match when {
            When::Always => true,
            When::Never => false,
            When::Auto => width.is_some() && !no_color,
        };
        Self { style: Style { colour, width, long: false } }
    }

    /// With every number, or in brief.
    fn style(self, long: bool) -> Style {
        Style { long, ..self.style }
    }
}

/// Serves as the agent of a lab; its socket is standard input.
pub fn lab_agent(args: &LabAgentArgs) -> ExitCode {
    if args.stdio {
        let network: &[&str] = if args.host_network { &["--host-network"] } else { &[] };
        return match crate::lab::agent::link::serve(network) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::from(3), // the near end has the channel's end as the only sign
        };
    }
    let path = if args.host_network { PathOf::Host } else { PathOf::Lab };
    let Ok(socket) = std::io::stdin().as_fd().try_clone_to_owned() else { return ExitCode::from(2) };
    match crate::lab::agent::serve(socket, path) {
        Ok(status) => ExitCode::from(u8::try_from(status).unwrap_or(1)),
        Err(_) => ExitCode::from(3), // reported over the socket
    }
}

/// Answers with the CPU times of servers that linerate did not start.
pub fn lab_watch() -> ExitCode {
    match crate::lab::listening::serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(3), // the near end has the channel's end as the only sign
    }
}

/// Answers a run on another machine whose roles are here.
///
/// # Errors
/// There are no systems beside the program, or the questions cannot be read.
pub fn lab_presence() -> Result<ExitCode, Error> {
    let questions =
        std::io::read_to_string(std::io::stdin()).map_err(Error::file(Path::new("standard input")))?;
    let registry = Registry::load(&crate::home::find()?)?;
    print(&elsewhere::answers(&questions, &registry, &note))
}

/// Makes requests inside a lab.
///
/// # Errors
/// The server does not answer.
pub fn lab_ask(question: &str) -> Result<ExitCode, Error> {
    // A question that is too long for an argument is on standard input.
    let read = || std::io::read_to_string(std::io::stdin()).map_err(Error::file(Path::new("-")));
    let question = if question == "-" { read()? } else { question.to_owned() };
    let question = serde_json::from_str(&question)
        .map_err(|e| Error::Input(format!("the question is not valid: {e}")))?;
    let mut lines = String::new();
    let mut add = |outcome: &Outcome| {
        lines += &serde_json::to_string(outcome).expect("an outcome has string keys only");
        lines.push('\n');
    };
    if let Err(reason) = ask(&question, |response| add(&Outcome::Response(response))) {
        add(&Outcome::None { reason });
    }
    print(&lines)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints a completion script.
///
/// # Errors
/// Standard output cannot be written to.
pub fn completions(args: &CompletionsArgs) -> Result<ExitCode, Error> {
    print(&crate::cli::completions(args.shell))
}

/// Writes man pages.
///
/// # Errors
/// A file cannot be written.
pub fn man(args: &ManArgs) -> Result<ExitCode, Error> {
    crate::cli::man_pages(&args.dir).map_err(Error::file(&args.dir))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints an error on stderr; returns its exit status.
pub fn failed(error: &Error) -> ExitCode {
    note(&format!("linerate: {error}"));
    ExitCode::from(error.exit_status())
}

/// Prints the whole of what a command was asked for.
fn print(text: &str) -> Result<ExitCode, Error> {
    output::print(text).map(|()| ExitCode::SUCCESS)
}

/// True if standard output is for JSON alone.
fn has_json_alone(flags: &RunFlags) -> bool {
    flags.json.as_deref() == Some(Path::new("-"))
}

/// Writes a report into the folder of its run, and where the user asked for it. What cannot be written is a
/// warning: the answer was printed.
fn publish(report: &Report, folder: Option<&Path>, flags: &RunFlags) {
    if let Some(folder) = folder {
        warn(journal::write_report(folder, files(report)));
    }
    let files = [("json", &flags.json), ("md", &flags.export_markdown), ("svg", &flags.export_svg)];
    for (name, file) in files.into_iter().filter_map(|(name, file)| Some((name, file.as_ref()?))) {
        let format = format(name).expect("it is one of the formats");
        let text = format.render(report, Style::default());
        let is_stdout = file == Path::new("-");
        warn(if is_stdout { output::print(&text) } else { journal::write(file, &text) });
    }
}

/// Where the report of a run or of several is.
fn report_note(folder: &Path) -> String {
    format!("report: {}/report.md (also .html, .json, .csv)", folder.display())
}

/// A stored run; its warnings are printed.
fn stored(folder: &Path) -> Result<Stored, Error> {
    let stored = journal::read(folder)?;
    stored.journal.warnings.iter().for_each(|warning| note(&format!("warning: {warning}")));
    Ok(stored)
}
