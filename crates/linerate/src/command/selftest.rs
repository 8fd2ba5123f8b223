//! `linerate selftest`.

use super::{Terminal, print};
use crate::cli::SelftestArgs;
use crate::engine::Engine;
use crate::error::Error;
use crate::interrupt;
use crate::progress::note;
use crate::report::selftest::{Section, text};
use crate::selftest::{Case, Row, Unit, cases, cost};
use linerate_contract::Event;
use nix::sys::resource::{UsageWho, getrusage};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

/// Measures the fault injector: 0 if every value is within its bound, 1 if not.
///
/// # Errors
/// The engine is missing or failed.
pub fn selftest(args: &SelftestArgs, terminal: Terminal) -> Result<ExitCode, Error> {
    let interrupted = interrupt::watch();
    let mut sections = vec![Section::new("instrument", "cost and resolution of measuring", cost::rows())];
    for case in cases(args.duration.into(), args.seed) {
        if interrupted.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        note(&format!("{}: {}", case.name, case.about));
        let rows = measure(&case, &interrupted)?;
        sections.push(Section::new(case.name, case.about, rows));
    }
    let all_within = sections.iter().all(Section::is_within_bounds);
    print(&text(&sections, terminal.style))?;
    Ok(if all_within { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn measure(case: &Case, interrupted: &AtomicBool) -> Result<Vec<Row>, Error> {
    let (mut server, ready) = Engine::start(&case.server)?.first()?;
    let Event::Ready { address } = ready else {
        return Err(Error::NothingMeasured(
            "linerate-load printed no address as a server: build it again with `cargo build --release`"
                .into(),
        ));
    };
    let mut client = case.client.clone();
    client.connect = Some(address);
    let preempted = preemptions();
    let measured = Engine::start(&client)?.result(interrupted, |_| {})?;
    server.stop();
    let truth = server.result(interrupted, |_| {})?;
    let mut rows = case.judge(&truth, &measured);
    rows.push(Row::shown("preemptions of both ends", (preemptions() - preempted) as f64, Unit::Count));
    Ok(rows)
}

/// Involuntary context switches of ended child processes (getrusage(2)); about zero on an idle machine for
/// ends that never sleep.
fn preemptions() -> i64 {
    // Fails only of an unknown argument.
    getrusage(UsageWho::RUSAGE_CHILDREN).map_or(0, |usage| usage.involuntary_context_switches())
}
