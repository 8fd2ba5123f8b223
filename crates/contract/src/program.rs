//! The frame of a program that speaks the contract: argument, output lines, exit status.

pub use crate::Refusal;
use crate::options::Choice;
use crate::{Describe, Done, Event, Role, Spec};
use std::ffi::OsString;
use std::io::{self, Read, Write};

/// Runs the spec in `argv[1]`, or describes the program: the whole of a `main`. A client returns its
/// [`Done`].
///
/// With `-` in place of the spec, the spec is read from stdin: arguments are readable by every user of the
/// machine, and the spec of a server with TLS has its private key.
///
/// `own_options` are the option names that only this program supports.
pub fn run(
    name: &str,
    own_options: &[&str],
    describe: impl FnOnce(&Spec) -> Describe,
    act: impl FnOnce(&Spec) -> Result<Option<Done>, Refusal>,
) {
    let outcome =
        task(std::env::args_os().skip(1), io::stdin(), own_options).and_then(|spec| match spec.role {
            Role::Describe => Ok(Some(Event::Describe(describe(&spec)))),
            _ => has_ends(&spec, || describe(&spec).ends)
                .and_then(|()| act(&spec))
                .map(|done| done.map(|done| Event::Done(Box::new(done)))),
        });
    match outcome {
        Ok(event) => event.iter().for_each(emit),
        Err(refusal) => {
            complain(&format!("{name}: {refusal}"));
            std::process::exit(refusal.exit_status());
        }
    }
}

/// Writes a line to the log of a program, which is standard error. A log that cannot be written is no end.
#[allow(clippy::disallowed_methods, reason = "the contract sends logs to stderr")]
fn complain(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Prints one event and flushes it. Does nothing if the reader has closed the pipe.
#[allow(clippy::disallowed_methods, reason = "the contract sends events to stdout")]
pub fn emit(event: &Event) {
    write(event, io::stdout().lock());
}

fn write(event: &Event, mut out: impl Write) {
    // EPIPE is the only likely error. The task goes on: the parent ends it by SIGTERM, and println! would
    // panic.
    let _ = writeln!(out, "{}", event.to_json()).and_then(|()| out.flush());
}

/// Refuses a form of both ends that is not among `known`, the program's own.
fn has_ends(spec: &Spec, known: impl FnOnce() -> Vec<String>) -> Result<(), Refusal> {
    match spec.ends()? {
        Some(ends) if spec.role != Role::Client || !known().iter().any(|word| word == ends.word()) => {
            Err(Refusal::Unsupported(format!("both ends of a {} in {}", spec.role, ends.word())))
        }
        _ => Ok(()),
    }
}

fn task(
    mut arguments: impl Iterator<Item = OsString>,
    stdin: impl Read,
    own_options: &[&str],
) -> Result<Spec, Refusal> {
    let (Some(argument), None) = (arguments.next(), arguments.next()) else {
        return Err(Refusal::BadSpec("expected one argument, the spec as JSON (sdk/CONTRACT.md)".into()));
    };
    let no_text = |_| Refusal::BadSpec("the spec is not UTF-8".into());
    let mut json = argument.into_string().map_err(no_text)?;
    if json == "-" {
        let read = io::read_to_string(stdin);
        json = read.map_err(|e| Refusal::BadSpec(format!("the spec on stdin: {e}")))?;
    }
    let spec = Spec::parse(&json)?;
    spec.check_options(own_options)?;
    Ok(spec)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layer, Workload};
    use std::os::unix::ffi::OsStringExt;

    #[test]
    fn a_spec_with_known_options_is_the_only_argument() {
        let mut spec = Spec::new(Role::Client, Layer::Tcp, Workload::Rr);
        spec.set_option("offload", "yes");
        let parsed =
            |arguments: &[String], own: &[&str]| task(arguments.iter().map(OsString::from), io::empty(), own);
        assert_eq!(parsed(&[spec.to_json()], &["offload"]).unwrap(), spec);
        for (wrong, own) in [
            (&[][..], &["offload"][..]),
            (&[spec.to_json(), "more".into()], &["offload"]),
            (&["{".into()], &["offload"]),
            (&[spec.to_json()], &[]),
        ] {
            assert_eq!(parsed(wrong, own).unwrap_err().exit_status(), 2, "{wrong:?}");
        }
    }

    #[test]
    fn ends_that_a_program_does_not_have_are_unsupported() {
        let mut spec = Spec::new(Role::Client, Layer::Tcp, Workload::Rr);
        let status = |spec: &Spec, known: &[&str]| {
            let known = known.iter().map(|word| (*word).to_owned()).collect();
            has_ends(spec, || known).map_or_else(|refusal| refusal.exit_status(), |()| 0)
        };
        assert_eq!(status(&spec, &[]), 0);
        spec.set_option("ends", "one-loop");
        assert_eq!((status(&spec, &["one-loop"]), status(&spec, &[])), (0, crate::EXIT_UNSUPPORTED));
        spec.role = Role::Server;
        assert_eq!(status(&spec, &["one-loop"]), crate::EXIT_UNSUPPORTED);
        spec.set_option("ends", "two-loops");
        assert_eq!(status(&spec, &["one-loop"]), 2);
    }

    #[test]
    fn a_dash_is_the_spec_on_stdin() {
        let spec = Spec::new(Role::Client, Layer::Tcp, Workload::Rr);
        let parsed = |stdin: &str| task(["-".into()].into_iter(), stdin.as_bytes(), &[]);
        assert_eq!(parsed(&spec.to_json()).unwrap(), spec);
        assert_eq!(parsed("").unwrap_err().exit_status(), 2);
        let latin = task([OsString::from_vec(vec![b'{', 0xe9])].into_iter(), io::empty(), &[]);
        assert_eq!(latin.unwrap_err().exit_status(), 2);
    }

    #[test]
    fn a_closed_pipe_does_not_end_the_program() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
        }
        write(&Event::Ready { address: "127.0.0.1:80".parse().unwrap() }, Closed);
    }
}
