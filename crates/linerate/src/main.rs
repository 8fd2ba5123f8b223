//! linerate: argv in, exit status out.

use clap::FromArgMatches;
use linerate::cli::{self, Cli, Command};
use linerate::command::{self, Terminal};
use std::process::ExitCode;

fn main() -> ExitCode {
    let matches = cli::command().try_get_matches();
    let cli = match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(refusal) => return command::refused(refusal),
    };
    let terminal = Terminal::new(cli.color);
    let done = match cli.command {
        Command::LabAgent(args) => return command::lab_agent(&args),
        Command::LabWatch => return command::lab_watch(),
        Command::LabAsk { question } => command::lab_ask(&question),
        Command::LabPresence => command::lab_presence(),
        Command::Run(args) => command::run(&args, cli.lab_script.as_deref(), terminal),
        Command::Init(args) => command::init(&args),
        Command::Plan(args) => command::plan(&args, cli.lab_script.as_deref()),
        Command::List(args) => command::list(&args),
        Command::Systems(args) => command::systems(&args, terminal),
        Command::Load(args) => command::load(&args, terminal),
        Command::Serve(args) => command::serve(&args),
        Command::Selftest(args) => command::selftest(&args, terminal),
        Command::Report(args) => command::report(&args, terminal),
        Command::Fleet(args) => command::fleet(&args),
        Command::Merge(args) => command::merge(&args, terminal),
        Command::Site(args) => command::site(&args),
        Command::Compare(args) => command::compare(&args, cli.lab_script.as_deref(), terminal),
        Command::Gate(args) => return command::gate(&args, cli.lab_script.as_deref(), terminal),
        Command::History(args) => command::history(&args, terminal),
        Command::Doctor => command::doctor(),
        Command::New(args) => command::new(&args),
        Command::Completions(args) => command::completions(&args),
        Command::Man(args) => command::man(&args),
    };
    done.unwrap_or_else(|error| command::failed(&error))
}
