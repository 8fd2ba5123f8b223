//! The start and the end of a program that speaks the contract: its only argument, its lines, its exit status.

use crate::{Describe, Done, EXIT_UNSUPPORTED, Event, Role, Spec};
use std::fmt;
use std::io::{self, Write};

/// Why a task ended without its result.
#[derive(Debug)]
pub enum Refusal {
    /// The contract allows it, this program does not do it: 127.
    Unsupported(String),
    /// The spec contradicts itself or lacks something: 2.
    BadSpec(String),
    /// It was tried: 1.
    Failed(io::Error),
}

impl Refusal {
    #[must_use]
    pub fn exit_status(&self) -> i32 {
        match self {
            Self::Unsupported(_) => EXIT_UNSUPPORTED,
            Self::BadSpec(_) => 2,
            Self::Failed(_) => 1,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported(text) => write!(f, "unsupported: {text}"),
            Self::BadSpec(text) => write!(f, "bad spec: {text}"),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Refusal {}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// Does what the spec of the command line says, or tells about the program; the whole of a `main`. A client has its account at the end.
#[allow(clippy::print_stderr, reason = "logs go to stderr, says the contract")]
pub fn run(
    name: &str,
    describe: impl FnOnce(&Spec) -> Describe,
    act: impl FnOnce(&Spec) -> Result<Option<Done>, Refusal>,
) {
    let outcome = task(std::env::args().skip(1)).and_then(|spec| match spec.role {
        Role::Describe => Ok(Some(Event::Describe(describe(&spec)))),
        _ => act(&spec).map(|done| done.map(|done| Event::Done(Box::new(done)))),
    });
    match outcome {
        Ok(event) => event.iter().for_each(emit),
        Err(refusal) => {
            eprintln!("{name}: {refusal}");
            std::process::exit(refusal.exit_status());
        }
    }
}

/// Prints one event and flushes it.
#[allow(clippy::print_stdout, reason = "events go to stdout, says the contract")]
pub fn emit(event: &Event) {
    println!("{}", event.to_json());
    // A reader that went away is no reason to fail.
    let _ = io::stdout().flush();
}

fn task(mut arguments: impl Iterator<Item = String>) -> Result<Spec, Refusal> {
    match (arguments.next(), arguments.next()) {
        (Some(json), None) => Spec::parse(&json).map_err(Refusal::BadSpec),
        _ => Err(Refusal::BadSpec("expected one argument, the spec as JSON (sdk/CONTRACT.md)".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_is_the_only_argument() {
        let spec = Spec::new(Role::Client, "tcp", "rr");
        let told = |arguments: &[String]| task(arguments.iter().cloned());
        assert_eq!(told(&[spec.to_json()]).unwrap(), spec);
        for wrong in [&[][..], &[spec.to_json(), "more".into()], &["{".into()]] {
            assert_eq!(told(wrong).unwrap_err().exit_status(), 2, "{wrong:?}");
        }
    }

    #[test]
    fn each_refusal_has_its_words_and_its_status() {
        let failed = Refusal::from(io::Error::other("no such device"));
        for (refusal, text, status) in [
            (Refusal::Unsupported("\"rate\"".into()), "unsupported: \"rate\"", 127),
            (Refusal::BadSpec("\"size\" is missing".into()), "bad spec: \"size\" is missing", 2),
            (failed, "no such device", 1),
        ] {
            assert_eq!((refusal.to_string().as_str(), refusal.exit_status()), (text, status));
        }
    }
}
