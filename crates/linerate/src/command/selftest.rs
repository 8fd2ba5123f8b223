//! `linerate selftest`.

use super::Terminal;
use crate::cli::SelftestArgs;
use crate::engine::{Engine, LOAD, NATIVES};
use crate::error::Error;
use crate::interrupt;
use crate::output::{self, note, warn};
use crate::path::Means;
use crate::report::selftest::{Section, text};
use crate::selftest::lost::Watch;
use crate::selftest::path::{self, Bench};
use crate::selftest::{Case, cases, cost};
use linerate_analysis::selftest::{Row, RowState, TRIES, Unit};
use linerate_contract::Event;
use nix::sys::resource::{UsageWho, getrusage};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

/// Measures the fault injector: 0 if every value is within its bound, 1 if not.
///
/// # Errors
/// The engine is missing or failed.
pub fn selftest(args: &SelftestArgs, terminal: Terminal) -> Result<ExitCode, Error> {
    if args.path {
        return finish(&of_paths(args)?, terminal);
    }
    let interrupted = interrupt::watch();
    let about = "cost and resolution of measuring";
    let way = cost::way().map_err(|error| Error::NothingMeasured(format!("the loopback: {error}")))?;
    let mut sections = vec![Section::new("instrument", about, cost::rows(way), 0.0)];
    for case in cases(args.duration.into(), args.seed, way) {
        if interrupted.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        note(&format!("{}: {}", case.name, case.about));
        sections.push(section(&case, &interrupted)?);
    }
    finish(&sections, terminal)
}

fn finish(sections: &[Section], terminal: Terminal) -> Result<ExitCode, Error> {
    let all_within = sections.iter().all(|section| section.count(RowState::Off) == 0);
    warn(output::print(&text(sections, terminal.style)));
    Ok(if all_within { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Rates of packets that are tried, from the lowest, until one is not exact.
const PACKET_RATES: [f64; 7] = [5e3, 1e4, 2e4, 4e4, 8e4, 1.6e5, 3.2e5];

/// The relay, and what the kernel has of netem and TBF.
fn of_paths(args: &SelftestArgs) -> Result<Vec<Section>, Error> {
    let mut bench = Bench::raise(interrupt::watch())?;
    let mut sections = Vec::new();
    for means in [Means::Relay, Means::Kernel] {
        let (mut reference, mut left_out) = (None, None);
        for case in path::cases(args.duration.into()) {
            let (done, wire) = match bench.run(&case, means)? {
                Ok(measured) => measured,
                Err(reason) if means == Means::Relay => return Err(Error::NothingMeasured(reason)),
                Err(reason) => {
                    left_out.get_or_insert(reason);
                    continue;
                }
            };
            if case.name == path::REFERENCE {
                reference = path::median(&done);
            }
            note(&format!("{}: {}", wire.means, case.path(means)));
            let about = format!("{}, by {}", case.path(means), wire.means);
            sections.push(Section::new(&case.name, &about, path::rows(&case, &done, &wire, reference), 0.0));
        }
        if let Some(reason) = left_out {
            sections.push(Section::new("left out", &reason, Vec::new(), 0.0));
        }
    }
    let exact = exact_up_to(&mut bench)?;
    let row = Row::shown("packets per second, by the relay", exact.unwrap_or(0.0), Unit::Count);
    sections.push(Section::new("exact up to", "nothing lost, one in a hundred late", vec![row], 0.0));
    Ok(sections)
}

fn exact_up_to(bench: &mut Bench) -> Result<Option<f64>, Error> {
    let mut exact = None;
    for rate in PACKET_RATES {
        match bench.run(&path::at_rate(rate), Means::Relay)? {
            Ok((done, wire)) if path::is_exact(&done, &wire) => exact = Some(rate),
            _ => break,
        }
    }
    Ok(exact)
}

/// The try in which the client lost least.
fn section(case: &Case, interrupted: &AtomicBool) -> Result<Section, Error> {
    let mut best: Option<(Vec<Row>, f64)> = None;
    for _ in 0..TRIES {
        let (rows, lost) = measure(case, interrupted)?;
        let is_judged = rows.iter().all(|row| row.state(lost) != RowState::Disturbed);
        if best.as_ref().is_none_or(|(_, least)| lost < *least) {
            best = Some((rows, lost));
        }
        if is_judged {
            break;
        }
    }
    let (rows, lost) = best.expect("it was measured at least once");
    Ok(Section::new(case.name, case.about, rows, lost))
}

/// The rows of a case, and the share of the time that the client lost.
fn measure(case: &Case, interrupted: &AtomicBool) -> Result<(Vec<Row>, f64), Error> {
    let (mut server, ready) = Engine::start(NATIVES, &case.server)?.first()?;
    let Event::Ready { address } = ready else {
        return Err(Error::NothingMeasured(format!(
            "{NATIVES} printed no address as a server: build it again with `cargo build --release`"
        )));
    };
    let mut client = case.client.clone();
    client.connect = Some(address);
    let preempted = preemptions();
    let driver = Engine::start(LOAD, &client)?;
    let watch = Watch::start(driver.id());
    let measured = driver.result(interrupted, |_| {})?;
    let lost = watch.sum().as_secs_f64();
    server.stop();
    let truth = server.result(interrupted, |_| {})?;
    let mut rows = case.judge(&truth, &measured);
    rows.push(Row::shown("preemptions of both ends", (preemptions() - preempted) as f64, Unit::Count));
    rows.push(Row::shown("client without a CPU", lost * 1e9, Unit::Nanos));
    let elapsed = measured.end_ns.since(measured.start_ns).as_secs_f64();
    Ok((rows, lost / elapsed.max(1e-9)))
}

/// Involuntary context switches of ended child processes (getrusage(2)); about zero on an idle machine for
/// ends that never sleep.
fn preemptions() -> i64 {
    // Fails only of an unknown argument.
    getrusage(UsageWho::RUSAGE_CHILDREN).map_or(0, |usage| usage.involuntary_context_switches())
}
