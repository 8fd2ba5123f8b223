//! linerate: argv in, exit status out.

use clap::Parser;
use linerate::cli::{Cli, Request};
use linerate::command::{self, Terminal};
use linerate::error::Error;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let terminal = Terminal::new(cli.color);
    let done = match cli.request {
        Request::LabAgent => return command::lab_agent(),
        Request::Run(args) => command::run(&args, cli.lab_script.as_deref(), terminal),
        Request::Plan(args) => command::plan(&args, cli.lab_script.as_deref()),
        Request::List(args) => command::list(&args),
        Request::Systems(args) => command::systems(&args, terminal),
        Request::Load(args) => command::load(&args, terminal),
        Request::Serve(args) => command::serve(&args),
        Request::Selftest(args) => command::selftest(&args, terminal),
        Request::Report(args) => command::report(&args, terminal),
        Request::Doctor => command::doctor(),
        Request::New(args) => command::new(&args),
        Request::Completions(args) => command::completions(&args),
    };
    done.unwrap_or_else(|error| tell(&error))
}

#[allow(clippy::print_stderr, reason = "this is where errors reach the user")]
fn tell(error: &Error) -> ExitCode {
    eprintln!("linerate: {error}");
    ExitCode::from(error.exit_status())
}
