//! A trial: raise, start, verify, measure, stop. Always with fresh processes in fresh namespaces.

pub mod duet;
mod launch;
mod output;
pub mod profile;
mod progress;
pub mod running;
pub mod windows;
mod work;

use crate::lab::{ClientRun, Lab, LabError, Label, Purpose};
use crate::measurement::{
    ColdStart, CpuWindow, Found, LabFlag, Measurement, Metric, Outcome, PlannedCell, PlannedHost,
    PlannedSuite, PlannedTable, Stage, Unit, UsagePair, WireCounts,
};
use crate::plan::Step;
use crate::programs::Programs;
use crate::subject::Servers;
use crate::system::Registry;
use launch::Launches;
use linerate_contract::{Nanos, Role};
use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

/// Timeout of verification and of warm-up: a hundred times as long as the slowest system needs.
const VERIFY_TIMEOUT: Duration = Duration::from_secs(20);

/// Between two questions to a server that listens and does not respond as expected yet.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// Losses of the relay's own below this share of packets are far below any that a suite sets.
const MOST_OVERRUN: f64 = 1e-5;

/// Inputs of a trial besides the lab.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    pub registry: &'a Registry,
    pub programs: &'a Programs,
    /// CPUs that roles are pinned to.
    pub cpus: &'a [u32],
    /// The machines of the roles, where they are on several.
    pub hosts: &'a [PlannedHost],
    /// Servers of the user's own, in place of those of systems.
    pub(crate) servers: Option<&'a Servers>,
}

/// Why a trial has no measurement; the last two end the run.
enum Stopped {
    Outcome(Outcome),
    Interrupted,
    Lost(String),
}

/// Runs one trial to its end, successful or not.
///
/// # Errors
/// [`LabError::Interrupted`] or [`LabError::Lost`]: the run cannot go on. All else is an outcome.
pub fn run(
    lab: &mut dyn Lab,
    context: Context<'_>,
    suite: &PlannedSuite,
    step: &Step,
) -> Result<Unit, LabError> {
    let cell = &suite.cells[step.sides.cell()];
    let (round, warmup) = (step.round, step.warmup);
    let label = Label { suite: suite.name.clone(), cell: step.sides.id(suite), round, warmup };
    let mut stages = Stages { at: lab.now(), times: BTreeMap::new() };
    let at = stages.at;
    let has_usage = shows_growth(suite, cell) || context.servers.is_some();
    let result = up_to_measurement(lab, context, cell, has_usage, &label, &mut stages);
    // Also after a failure; a lost lab has no processes to stop.
    let stopped = stages.time(lab, Stage::Stop, |lab| lab.stop());
    let (outcome, measurement) = match (result, stopped) {
        (Ok(measurement), Ok(())) => (Outcome::Ok, Some(measurement)),
        (Err(Stopped::Outcome(outcome)), Ok(())) => (outcome, None),
        (Ok(_) | Err(Stopped::Outcome(_)), Err(Stopped::Outcome(outcome))) => (outcome, None),
        (Err(Stopped::Interrupted), _) | (_, Err(Stopped::Interrupted)) => return Err(LabError::Interrupted),
        (Err(Stopped::Lost(why)), _) | (_, Err(Stopped::Lost(why))) => return Err(LabError::Lost(why)),
    };
    Ok(Unit {
        suite: step.suite,
        number: step.number,
        warmup,
        at,
        outcome,
        stages: stages.times,
        ..Unit::new(step.sides, Found::Alone(measurement))
    })
}

/// Reading the server's resource usage takes time before and after, so only tables that show growth have it.
fn shows_growth(suite: &PlannedSuite, cell: &PlannedCell) -> bool {
    let of_cell = suite.tables.iter().filter(|table| table.cells.contains(&cell.id));
    of_cell.flat_map(PlannedTable::metrics).any(Metric::is_growth)
}

fn up_to_measurement(
    lab: &mut dyn Lab,
    context: Context<'_>,
    cell: &PlannedCell,
    usage: bool,
    label: &Label,
    stages: &mut Stages,
) -> Result<Measurement, Stopped> {
    let launches =
        Launches::new(context, cell, None).map_err(|reason| failed(Stage::Start, reason, String::new()))?;
    prepare(lab, &launches, label, stages)?;
    warm_up(lab, &launches, stages)?;
    let (measurement, _) = stages.time(lab, Stage::Measure, |lab| measure(lab, &launches, usage))?;
    Ok(measurement)
}

/// The topology, its systems, and the check that they do the work; how a server of the user's own started.
fn prepare(
    lab: &mut dyn Lab,
    launches: &Launches,
    label: &Label,
    stages: &mut Stages,
) -> Result<Option<ColdStart>, Stopped> {
    stages.time(lab, Stage::Raise, |lab| lab.raise(label, launches.path(), launches.shared_files()))?;
    let listens = stages.time(lab, Stage::Start, |lab| {
        launches.systems().try_fold(Nanos::ZERO, |_, launch| lab.start(launch))
    })?;
    let responds = stages.time(lab, Stage::Verify, |lab| first_response(lab, launches, listens))?;
    Ok(responds.map(|responds| ColdStart { listens, responds, failed: Vec::new() }))
}

/// Verifies the systems; the time from when it listens until the first response, of a server of the user's
/// own. Such a server may need more time than until it listens, so it is asked until it responds as expected.
fn first_response(lab: &mut dyn Lab, launches: &Launches, listens: Nanos) -> Result<Option<Nanos>, LabError> {
    let (begin, mut pause) = (lab.now(), FIRST_PAUSE);
    loop {
        let asked = lab.now();
        let verified = lab.run(launches.verifier(), Purpose::Verify, VERIFY_TIMEOUT);
        let checked = verified.and_then(|run| launches.check_verified(&run).map_err(LabError::system));
        let waited = asked.since(begin);
        match (checked, launches.ready_within()) {
            // That linerate starts a client is no time of the server.
            (Ok(first), Some(_)) => return Ok(Some(waited + first)),
            (Ok(_), None) => return Ok(None),
            (Err(LabError::System { .. }), Some(within)) if listens + waited < within && lab.is_running() => {
                thread::sleep(pause);
                pause = (2 * pause).min(LONGEST_PAUSE);
            }
            (Err(error), _) => return Err(error),
        }
    }
}

/// Loads the systems until they are warm, where the cell asks for that.
fn warm_up(lab: &mut dyn Lab, launches: &Launches, stages: &mut Stages) -> Result<(), Stopped> {
    let Some(warmer) = launches.warmer() else { return Ok(()) };
    stages.time(lab, Stage::Verify, |lab| lab.run(warmer, Purpose::Verify, VERIFY_TIMEOUT).map(|_| ()))
}

/// One window; also returns the CPU time of the brake, if there is one.
fn measure(
    lab: &mut dyn Lab,
    launches: &Launches,
    usage: bool,
) -> Result<(Measurement, Option<Nanos>), LabError> {
    let before = if usage { lab.usage()? } else { None };
    let run = lab.run(launches.client(), Purpose::Measure, launches.timeout())?;
    let after = if usage { lab.usage()? } else { None };
    let mut measurement =
        launches.read(&run).map_err(|reason| LabError::System { reason, log: run.stderr.join("\n") })?;
    launches.check(&measurement).map_err(LabError::system)?;
    // A side that takes turns is timed in its own.
    measurement.elapsed = Nanos((measurement.elapsed.0 as f64 * run.record.running) as u64);
    launches.check_progress(&run.record.progress, &measurement).map_err(LabError::system)?;
    measurement.cpus = cpu_windows(&run, launches);
    // Ticks are too coarse for a client, whose own clock is better then.
    let is_coarse = run.flags.contains(&LabFlag::CpuFromProc);
    let of_roles = run.cpu.iter().filter(|(role, _)| !(is_coarse && *role == Role::Client));
    let cpu = of_roles.map(|(role, time)| (*role, without_steal(*role, *time, &measurement.cpus)));
    measurement.cpu.extend(cpu.collect::<Vec<_>>());
    measurement.others = run.others;
    measurement.peak_memory = run.peak_memory;
    measurement.counts.clone_from(&run.record.counts);
    measurement.usage = before.zip(after).map(|(before, after)| UsagePair { before, after });
    measurement.flags = run.flags;
    measurement.flags.extend(overrun(&run.record.wires));
    measurement.wires = run.record.wires;
    measurement.flags.extend(launches.flags());
    let brake = run.brake.map(|(role, time)| without_steal(role, time, &measurement.cpus));
    Ok((measurement, brake))
}

/// The flag of a trial in which the relay of a path lost packets of its own.
fn overrun(wires: &[WireCounts]) -> Option<LabFlag> {
    let ways = wires.iter().flat_map(|wire| wire.up.iter().chain(&wire.down));
    let (lost, all) = ways.fold((0, 0), |(lost, all), way| (lost + way.overrun, all + way.packets));
    (lost as f64 > MOST_OVERRUN * all as f64).then_some(LabFlag::PathOverrun)
}

/// A perf clock runs on while the hypervisor runs another guest in the task's place; `/proc/stat` has that
/// time apart. Where a role's CPUs were busy, this share of the time was its own.
fn without_steal(role: Role, time: Nanos, cpus: &[CpuWindow]) -> Nanos {
    let of_role = || cpus.iter().filter(|cpu| cpu.roles.contains(&role));
    let busy: u64 = of_role().map(|cpu| cpu.busy.0).sum();
    let steal: u64 = of_role().map(|cpu| cpu.steal.0).sum();
    if steal == 0 { time } else { Nanos((time.0 as f64 * busy as f64 / (busy + steal) as f64) as u64) }
}

fn cpu_windows(run: &ClientRun, launches: &Launches) -> Vec<CpuWindow> {
    let (before, after) = (&run.record.before.cpus, &run.record.after.cpus);
    let pairs = after.iter().filter_map(|now| Some((now, before.iter().find(|c| c.cpu == now.cpu)?)));
    pairs
        .map(|(now, then)| CpuWindow {
            cpu: now.cpu,
            roles: launches.roles_on(now.cpu),
            total: now.total.since(then.total),
            busy: now.busy.since(then.busy),
            interrupts: now.interrupts.since(then.interrupts),
            steal: now.steal.since(then.steal),
        })
        .collect()
}

/// Wall time by stage.
struct Stages {
    at: Nanos,
    times: BTreeMap<Stage, Nanos>,
}

impl Stages {
    fn time<T>(
        &mut self,
        lab: &mut dyn Lab,
        stage: Stage,
        work: impl FnOnce(&mut dyn Lab) -> Result<T, LabError>,
    ) -> Result<T, Stopped> {
        let start = lab.now();
        let result = work(lab);
        *self.times.entry(stage).or_default() += lab.now().since(start);
        result.map_err(|error| Stopped::from_error(stage, error))
    }
}

impl Stopped {
    /// The outcome of the trial; an error ends the run.
    fn outcome(self) -> Result<Outcome, LabError> {
        match self {
            Self::Outcome(outcome) => Ok(outcome),
            Self::Interrupted => Err(LabError::Interrupted),
            Self::Lost(why) => Err(LabError::Lost(why)),
        }
    }

    fn from_error(stage: Stage, error: LabError) -> Self {
        match error {
            LabError::System { reason, log } => failed(stage, reason, log),
            LabError::Unsupported(reason) => Self::Outcome(Outcome::Unsupported { reason }),
            LabError::Interrupted => Self::Interrupted,
            LabError::Lost(why) => Self::Lost(why),
        }
    }
}

fn failed(stage: Stage, reason: String, log: String) -> Stopped {
    Stopped::Outcome(Outcome::Failed { stage, reason, log })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_taken_from_the_roles_of_its_cpu_alone() {
        let cpu = |cpu, role, busy, steal| CpuWindow {
            cpu,
            roles: vec![role],
            total: Nanos(100),
            busy: Nanos(busy),
            interrupts: Nanos::ZERO,
            steal: Nanos(steal),
        };
        let cpus = [cpu(0, Role::Client, 60, 20), cpu(1, Role::Server, 50, 0)];
        assert_eq!(without_steal(Role::Client, Nanos(80), &cpus), Nanos(60));
        assert_eq!(without_steal(Role::Server, Nanos(50), &cpus), Nanos(50));
        assert_eq!(without_steal(Role::Relay, Nanos(7), &cpus), Nanos(7));
    }
}
