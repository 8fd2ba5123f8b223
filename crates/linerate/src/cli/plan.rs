//! Flags as the nouns of a run: what is asked of a session, and the plan that they make.

use super::argv::again;
use super::{
    BuildFlags, CellFlags, CompareFlags, GivenServers, JudgeFlags, RunArgs, RunFlags, Selection, Settings,
};
use crate::arm::AS_IT_IS;
use crate::error::Error;
use crate::measurement::{
    ComparisonKind, LatencyMargin, PlannedArm, PlannedComparison, PlannedSource, Subject,
};
use crate::plan::Choice;
use crate::session::{HostRequest, Request, Why, fresh_seed};
use std::path::Path;
use std::time::Duration;

/// The difference that matters, unless the user says otherwise.
const MARGIN: f64 = 0.01;
/// The time of a comparison of builds, and of commands.
const BUDGET: Duration = Duration::from_secs(300);
const BUDGET_OF_COMMANDS: Duration = Duration::from_secs(30);
/// A unit of open loops is four times as long, and a gate needs a second series: with six or seven units of
/// 30 s, +64 % was open.
const BUDGET_OF_LATENCIES_OR_GATE: Duration = Duration::from_secs(60);

impl From<&Selection> for Choice {
    fn from(selection: &Selection) -> Self {
        Self {
            suites: selection.suites.clone(),
            published: selection.published,
            complete: selection.complete,
            rounds: selection.rounds,
            probe: selection.probe,
            ..Self::from(&selection.cells)
        }
    }
}

impl From<&CellFlags> for Choice {
    fn from(cells: &CellFlags) -> Self {
        Self { quick: cells.quick, only: cells.only.clone(), ..Self::default() }
    }
}

impl From<&RunArgs> for Request {
    fn from(args: &RunArgs) -> Self {
        let hosts = HostRequest {
            places: args.hosts.host.iter().chain(&args.hosts.server_at).cloned().collect(),
            servers: Vec::new(),
            file: args.hosts.hosts.clone(),
            network: args.hosts.host_network || args.hosts.server_at.is_some(),
        };
        let selection = &args.selection;
        let request = request(Choice::from(selection), &selection.cells, &args.run, &[]);
        let why = if args.why { Why::Always } else { Why::Never };
        Self { budget: args.budget, hosts, is_bare: true, why, ..request }
    }
}

fn request(choice: Choice, cells: &CellFlags, run: &RunFlags, keys: &[String]) -> Request {
    let drawn = cells.seed.is_none().then(fresh_seed);
    Request {
        choice,
        command: again(drawn, keys),
        seed: cells.seed.or(drawn).unwrap_or_default(),
        out: run.out.clone(),
        resume: run.resume.clone(),
        install: run.install,
        quiet: run.quiet,
        ..Request::default()
    }
}

impl CompareFlags {
    /// Two builds in the cells of a suite.
    pub fn of_suite(&self, suite: Option<String>, kind: ComparisonKind) -> Request {
        let choice = Choice {
            suites: suite.into_iter().collect(),
            comparison: Some(self.comparison(kind)),
            ..Choice::from(&self.cells)
        };
        Request {
            budget: Some(self.settings.judge.budget.unwrap_or(BUDGET)),
            is_bare: !self.given.has::<Settings>() && !self.given.has::<BuildFlags>(),
            why: self.why.chosen(),
            ..request(choice, &self.cells, &self.run, &[])
        }
    }

    /// Servers, the first of them the baseline.
    ///
    /// # Errors
    /// A command that cannot be started, or a body that cannot be read.
    pub fn of_servers(&self, servers: &GivenServers, kind: ComparisonKind) -> Result<Request, Error> {
        let usual = match kind {
            ComparisonKind::Compare if self.settings.load.rate.is_none() => BUDGET_OF_COMMANDS,
            _ => BUDGET_OF_LATENCIES_OR_GATE,
        };
        let comparison = self.with_servers(servers, self.comparison(kind))?;
        let choice = Choice { comparison: Some(comparison), ..Choice::from(&self.cells) };
        let (servers_at, file) = (self.places.host.clone(), self.places.hosts.clone());
        Ok(Request {
            budget: Some(self.settings.judge.budget.unwrap_or(usual)),
            hosts: HostRequest { servers: servers_at, file, ..HostRequest::default() },
            why: self.why.chosen(),
            ..request(choice, &self.cells, &self.run, &servers.keys)
        })
    }

    /// Revisions of a repository are compared.
    pub fn has_revisions(&self) -> bool {
        self.builds.checkout.is_some() || self.settings.subjects.build.is_some()
    }

    fn comparison(&self, kind: ComparisonKind) -> PlannedComparison {
        let Self { settings, builds, .. } = self;
        let judge = &settings.judge;
        let usual = if self.has_revisions() { ["git=merge-base", "git=working-tree"] } else { [AS_IT_IS; 2] };
        let subjects = [(&builds.base, usual[0]), (&builds.head, usual[1])].map(|(given, usual)| {
            let arm = given.as_deref().unwrap_or(usual).into();
            Subject::System(PlannedArm { arm, resolved: None })
        });
        PlannedComparison {
            kind,
            subjects: subjects.into(),
            system: builds.system.clone(),
            margin: judge.margin.unwrap_or(MARGIN),
            latency_margin: judge.latency_margin(),
            percentile: judge.percentile.unwrap_or_default(),
            rate: settings.load.rate,
            source: self.has_revisions().then(|| self.source()),
            load: None,
            remarks: Vec::new(),
            written: Vec::new(),
        }
    }

    fn source(&self) -> PlannedSource {
        let checkout = self.builds.checkout.as_deref().unwrap_or(Path::new("."));
        PlannedSource {
            checkout: checkout.display().to_string(),
            // Scripts need no build.
            build: self.settings.subjects.build.clone().unwrap_or_else(|| "true".into()),
            program: self.builds.program.clone(),
        }
    }
}

impl JudgeFlags {
    fn latency_margin(&self) -> LatencyMargin {
        match (self.margin_us, self.margin) {
            (Some(us), _) => LatencyMargin::Microseconds(us),
            (None, Some(share)) => LatencyMargin::Share(share),
            (None, None) => LatencyMargin::default(),
        }
    }
}
