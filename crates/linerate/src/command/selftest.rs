//! `linerate selftest`.

use super::{Terminal, print, remark};
use crate::cli::SelftestArgs;
use crate::engine::Engine;
use crate::error::Error;
use crate::interrupt;
use crate::report::selftest::{Section, text};
use crate::selftest::{Case, Row, Unit, cases, cost};
use linerate_contract::Event;
use nix::sys::resource::{UsageWho, getrusage};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

/// Measures injected truth: 0 if everything is within its bound, 1 if not.
///
/// # Errors
/// The engine is missing or failed.
pub fn selftest(args: &SelftestArgs, terminal: Terminal) -> Result<ExitCode, Error> {
    let interrupted = interrupt::watch();
    let mut sections = vec![Section::new("instrument", "what measuring itself costs", cost::rows())];
    for case in cases(args.duration.into(), args.seed) {
        if interrupted.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        remark(&format!("{}: {}", case.name, case.about));
        let rows = measure(&case, &interrupted)?;
        sections.push(Section::new(case.name, case.about, rows));
    }
    let all_hold = sections.iter().all(Section::holds);
    print(&text(&sections, terminal.style))?;
    Ok(if all_hold { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn measure(case: &Case, interrupted: &AtomicBool) -> Result<Vec<Row>, Error> {
    let (mut server, ready) = Engine::start(&case.server)?.first()?;
    let Event::Ready { address } = ready else {
        return Err(Error::NothingMeasured(
            "linerate-load, as a server, does not say where it listens".into(),
        ));
    };
    let mut client = case.client.clone();
    client.connect = Some(address);
    let preempted = preemptions();
    let measured = Engine::start(&client)?.account(interrupted, |_| {})?;
    server.stop();
    let truth = server.account(interrupted, |_| {})?;
    let mut rows = case.judge(&truth, &measured);
    rows.push(Row::shown("an end was taken off its CPU", (preemptions() - preempted) as f64, Unit::Count));
    Ok(rows)
}

/// How often this process's children that have ended lost their CPU to others while they wanted it (getrusage(2)). Ends that never
/// sleep lose it to nobody on a quiet machine.
fn preemptions() -> i64 {
    // Fails only of an unknown argument.
    getrusage(UsageWho::RUSAGE_CHILDREN).map_or(0, |usage| usage.involuntary_context_switches())
}
