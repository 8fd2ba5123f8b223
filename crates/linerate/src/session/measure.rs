//! A suite of a run: its systems are installed on request, built, and their versions read; servers are
//! learned, and the same start gives their first measurements. Then its trials are made, one after the other,
//! each into the journal before the next.

use super::{Event, Session, arms, stored, times};
use crate::error::Error;
use crate::lab::pair::{Pair, on_both};
use crate::lab::{LabError, Written};
use crate::measurement::{
    ComparisonKind, DEFAULT_BUILD, Outcome, PlannedComparison, PlannedSuite, Sharing, Sides, Stage, Unit,
};
use crate::output::note;
use crate::placement;
use crate::plan::{self, Step};
use crate::programs::elsewhere;
use crate::programs::{self, Machine};
use crate::progress::Left;
use crate::report::comparison::prospect;
use crate::stats::early::FEWEST_LAUNCHES;
use crate::stopping::first_rounds;
use crate::subject::{self, Learner};
use crate::system::VERIFIER;
use crate::system::build::Permission;
use crate::system::install;
use crate::trial::running::RunningPair;
use crate::trial::windows::{Manner, WINDOWS};
use crate::trial::{self, Context};
use linerate_contract::{Layer, Nanos, Role};
use std::collections::{BTreeMap, BTreeSet};

/// The events of learning.
#[derive(Default)]
struct First {
    /// The first measurements.
    units: Vec<Unit>,
    /// First lines of the servers on stderr.
    written: Vec<Written>,
}

impl Session {
    /// Prepares a suite for its first trial.
    ///
    /// # Errors
    /// The user stopped a build, `run.json` cannot be written, a system is not the one that the run began
    /// with, or an arm of a comparison cannot be built.
    pub(super) fn prepare(&mut self, suite: usize) -> Result<(), Error> {
        self.progress.stage(&self.run.suites[suite], "preparing");
        let mut replacements = BTreeMap::new();
        if let Some(comparison) = &mut self.run.comparison {
            replacements = arms::replacements(comparison, note)?;
            if let Some(servers) = self.servers.as_mut().filter(|_| self.script.is_none()) {
                servers.move_to(arms::trees(comparison, note)?);
            }
        }
        let planned = &self.run.suites[suite];
        if self.install && self.script.is_none() {
            let variants: BTreeSet<String> = planned
                .cells
                .iter()
                .flat_map(|cell| &cell.systems)
                .map(|system| system.name.clone())
                .collect();
            let packages = install::packages(&self.registry, &variants.into_iter().collect::<Vec<_>>());
            // Without rights, or on another distribution, the run goes on with the systems that are there.
            if let Err(error) = install::install(&packages, note) {
                note(&format!("linerate: {error}"));
            }
        }
        let mut now = planned.clone();
        let elsewhere = elsewhere::presences(self.lab.as_ref(), planned)?;
        let mut machine = Machine::new(Permission::Build(&note), self.script.as_ref())
            .with(replacements, self.lab.as_mut())
            .with_hosts(elsewhere, !self.run.hosts.is_empty());
        programs::resolve(&mut now, &self.registry, &mut self.programs, &mut machine);
        machine.check()?;
        if let Some(host) = placement::served(&self.run.hosts) {
            self.servers = Some(subject::served(host)?);
            for cell in now.cells.iter_mut().filter(|cell| cell.layer != Layer::Http) {
                let reason = format!("{} is a server of HTTP", host.place);
                cell.absent = Some(Outcome::Unsupported { reason });
            }
        }
        let first = self.learn(&now)?;
        arms::check_different(&now, &self.programs)?;
        self.find_capacities(suite, &mut now)?;
        if let Some(folder) = self.folder().filter(|_| self.has_trials(suite)) {
            stored::check_same(folder, &self.run.suites[suite], Some(&now))?;
        }
        self.run.suites[suite] = now;
        self.journal.plan(&self.run)?;
        first.units.into_iter().try_for_each(|unit| self.keep(unit))?;
        self.keep_written(suite, 0, first.written)
    }

    /// Learns what is not known yet of the servers of a comparison.
    ///
    /// # Errors
    /// A command does not serve, or answers otherwise than the baseline.
    fn learn(&mut self, suite: &PlannedSuite) -> Result<First, Error> {
        let planned = self.run.servers();
        let (Some(planned), Some(servers)) = (planned, &mut self.servers) else {
            return Ok(First::default());
        };
        if self.script.is_none() {
            self.tethers.extend(subject::set_up(planned, &self.interrupted)?);
        }
        servers.read_companions()?;
        if servers.awaits_upstream() {
            subject::find_upstream(self.lab.as_mut(), servers)?;
        }
        servers.read_lines()?;
        if servers.learned.is_complete() || self.script.is_some() {
            return Ok(First::default());
        }
        self.progress.stage(suite, "warming up");
        let first = self.learn_pairs(suite);
        self.run.learned = self.servers.as_ref().map(|servers| servers.learned.clone()).unwrap_or_default();
        first
    }

    /// Each server beside the baseline.
    fn learn_pairs(&mut self, suite: &PlannedSuite) -> Result<First, Error> {
        let can_share = self.can_share();
        let Self { registry, programs, servers, lab, second, run, .. } = self;
        let (Some(second), Some(servers)) = (second, servers) else {
            return Err(Error::Input("servers are measured in pairs".into()));
        };
        let cpus = lab.cpus();
        let sharing = if can_share { Sharing::Together } else { Sharing::Turns };
        let client = programs.command_line(Role::Client, VERIFIER, DEFAULT_BUILD).cloned();
        let client =
            client.ok_or_else(|| Error::NothingMeasured("linerate-load is not beside linerate".into()))?;
        let mut learner = Learner::new(&cpus, client, servers, run.budget);
        let mut all = First::default();
        for command in 1..suite.cells.len() {
            let [a, b]: Pair<'_> = [lab.as_mut(), second.as_mut()];
            let measured = match learner.pair([&mut *a, &mut *b], servers, command) {
                // An open loop has its own way to share the CPUs, and its rate may not be known before.
                Ok(stages) if suite.cells[command].parameters.rate.is_none() => {
                    let pair = RunningPair {
                        suite,
                        cells: [command, 0],
                        alone: if command == 1 { &[0, 1] } else { &[0] },
                        budget: run.budget,
                        least: servers.learned.least_window(),
                        sharing,
                        seed: run.seed,
                    };
                    let (cpus, servers) = (&cpus[..], Some(&*servers));
                    let context = Context { registry, programs, cpus, hosts: &run.hosts, servers };
                    pair.measure([&mut *a, &mut *b], context, stages).map_err(Error::from)
                }
                learned => learned.map(|_| Vec::new()),
            };
            all.written.extend([a.written(), b.written()].concat());
            let begin = a.now();
            let stopped = on_both([&mut *a, &mut *b], false, |lab, _| lab.stop());
            let stop = a.now().since(begin);
            // Of two errors, the first one is the cause.
            let mut measured = measured?;
            stopped.into_iter().collect::<Result<(), LabError>>()?;
            if let Some(unit) = measured.last_mut() {
                unit.stages.insert(Stage::Stop, stop);
            }
            all.units.extend(measured);
        }
        Ok(all)
    }

    /// Makes every trial of the suite's rounds that the journal lacks. A round that has begun is finished; no
    /// further one begins that does not fit into a budget.
    ///
    /// # Errors
    /// The user stopped the run, the journal cannot be written, or the lab is lost.
    pub(super) fn measure_suite(&mut self, suite: usize, on: &mut dyn FnMut(Event)) -> Result<(), Error> {
        let units = self.made.units.iter();
        let done: BTreeSet<_> =
            units.map(|unit| (unit.suite, unit.sides, unit.number, unit.warmup)).collect();
        let mut open = plan::order_of(&self.run, suite);
        open.retain(|step| !done.contains(&(step.suite, step.sides, step.number, step.warmup)));
        let cpus = self.lab.cpus();
        let later = self.later(suite);
        let (mut round, mut is_announced) = (1, false);
        for (index, step) in open.iter().enumerate() {
            if step.round > round && !step.warmup {
                round = step.round;
                let is_of_round =
                    |unit: &Unit| unit.sides.is_one() && (unit.number, unit.warmup) == (round, false);
                let has_begun = self.made.units.iter().any(|unit| unit.suite == suite && is_of_round(unit));
                let sides =
                    open[index..].iter().take_while(|step| step.round == round).map(|step| step.sides);
                if !has_begun && !self.questions().has_time_for(suite, sides) {
                    open[index..].iter().for_each(|_| self.progress.done());
                    break;
                }
            }
            // When a solo trial of each cell was made.
            if !is_announced && !step.warmup && !step.sides.is_one() {
                is_announced = true;
                let solos = open[index..].iter().filter(|step| step.sides.is_one()).count();
                if let Some(found) = self.questions().prospect(suite, solos) {
                    if self.is_gate_of_servers() && found.units < f64::from(FEWEST_LAUNCHES) {
                        return Err(Error::NothingMeasured(prospect(&found)));
                    }
                    on(Event::Prospect(found));
                }
            }
            let questions = self.questions();
            if questions.is_given_up(suite, step.sides) || questions.is_answered(suite, step.sides) {
                self.progress.done();
                continue;
            }
            let of_rounds = || times::seconds(&self.run, &self.timings, &open[index..]);
            let of_suite = self
                .run
                .budget
                .map_or_else(of_rounds, |_| Some(self.questions().seconds_left(suite).max(0.0)));
            self.progress.next(step, &self.run.suites[suite], Left { suite: of_suite, later });
            self.make(step, &cpus)?;
            self.take_written(step)?;
        }
        Ok(())
    }

    /// Makes what the open questions of the suite need, until none is open or the time is used.
    ///
    /// # Errors
    /// As of [`Session::measure_suite`].
    pub(super) fn go_on(&mut self, suite: usize, on: &mut dyn FnMut(Event)) -> Result<(), Error> {
        let cpus = self.lab.cpus();
        let later = self.later(suite);
        // Once more, by the spread of the first units.
        if self.together().map(|unit| unit.number).max() == Some(first_rounds(&self.run)) {
            self.questions().prospect(suite, 0).map(Event::Prospect).into_iter().for_each(on);
        }
        loop {
            let open =
                plan::further(&self.run, suite, &self.questions().needs(suite), self.together().count());
            if open.is_empty() {
                return Ok(());
            }
            self.progress.add(open.len() as u64);
            for step in &open {
                let of_suite = Some(self.questions().seconds_left(suite).max(0.0));
                self.progress.next(step, &self.run.suites[suite], Left { suite: of_suite, later });
                self.make(step, &cpus)?;
            }
        }
    }

    fn is_gate_of_servers(&self) -> bool {
        let is_gate = |plan: &PlannedComparison| plan.kind == ComparisonKind::Gate;
        self.run.servers().is_some() && self.run.policy().verdict().is_some_and(is_gate)
    }

    /// Makes one trial or unit and appends it to the journal.
    fn make(&mut self, step: &Step, cpus: &[u32]) -> Result<(), Error> {
        let (registry, programs, servers) = (&self.registry, &self.programs, self.servers.as_ref());
        let context = Context { registry, programs, cpus, hosts: &self.run.hosts, servers };
        let planned = &self.run.suites[step.suite];
        let least =
            if step.warmup { Nanos::ZERO } else { self.questions().least_window(step.suite, step.number) };
        // Tables have one window: their units decide by ranks alone.
        let is_compared = self.run.policy().is_sequential() && !step.warmup && step.sides.probed().is_none();
        let windows = if is_compared { WINDOWS } else { 1 };
        let least = least.max(Nanos(self.run.learned.least_window().0 * u64::from(windows)));
        let manner = Manner::at_least(self.sharing_of(step), least, windows);
        let second_load = match step.sides {
            // Of an open loop, requests on connections that are kept waiting would wait without end.
            Sides::Two([head, base]) if is_compared && head != base && !self.run.learned.has_unserved() => {
                self.questions().second_load(step.suite, [head, base])
            }
            _ => None,
        };
        let units = match &mut self.second {
            Some(second) if !step.sides.is_one() => {
                let labs = [self.lab.as_mut(), second.as_mut()];
                trial::duet::run(labs, context, planned, step, manner, self.run.seed, second_load)?
            }
            _ => vec![trial::run(self.lab.as_mut(), context, planned, step)?],
        };
        units.into_iter().try_for_each(|unit| self.keep(unit))?;
        self.progress.done();
        Ok(())
    }

    /// Appends a unit to the journal.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub(super) fn keep(&mut self, unit: Unit) -> Result<(), Error> {
        self.journal.append(&unit)?;
        let suite = &self.run.suites[unit.suite];
        // A second load that a kind of server does not have is left out.
        let is_second = matches!(unit.sides, Sides::AtRate(_));
        if let Outcome::Failed { stage, reason, .. } = &unit.outcome
            && !is_second
        {
            let (id, round) = (unit.sides.id(suite), unit.number);
            self.progress.failed(&format!("{id} failed in round {round} at {stage}: {reason}"));
        }
        self.timings.update(suite, &unit);
        self.made.units.push(unit);
        Ok(())
    }

    /// The units of two cells so far.
    fn together(&self) -> impl Iterator<Item = &Unit> {
        self.made.units.iter().filter(|unit| !unit.sides.is_one())
    }
}
