//! The command that makes a run again, with the seed that this one drew.

use crate::cli::RunArgs;
use crate::measurement::{ComparisonKind, PlannedComparison};
use crate::shell::quoted;
use crate::suite;
use std::time::Duration;

pub(super) fn line(args: &RunArgs, comparison: Option<&PlannedComparison>, seed: u64) -> String {
    let subcommand = match comparison.map(|comparison| comparison.kind) {
        None => "run",
        Some(ComparisonKind::Compare) => "compare",
        Some(ComparisonKind::Gate) => "gate",
    };
    let mut words = vec![format!("linerate {subcommand}")];
    let all = args.selection.suites.is_empty().then(|| suite::ALL.to_owned());
    words.extend(all.into_iter().chain(args.selection.suites.iter().cloned()));
    words.extend(args.selection.quick.then(|| "--quick".into()));
    words.extend(args.selection.published.then(|| "--published".into()));
    words.extend(args.selection.rounds.map(|rounds| format!("--rounds {rounds}")));
    words.extend(args.budget.map(|budget| format!("--budget {}", time(budget))));
    words.extend(args.selection.only.iter().map(|glob| format!("--only {}", quoted(glob))));
    words.extend(args.hosts.host.iter().map(|given| format!("--host {given}")));
    words.extend(
        args.hosts.hosts.iter().map(|file| format!("--hosts {}", quoted(&file.display().to_string()))),
    );
    words.extend(args.hosts.host_network.then(|| "--host-network".into()));
    words.extend(args.selection.probe.then(|| "--probe".into()));
    words.extend(comparison.into_iter().flat_map(of_comparison));
    words.push(format!("--seed {seed}"));
    words.join(" ")
}

fn of_comparison(comparison: &PlannedComparison) -> Vec<String> {
    let PlannedComparison { base, head, subject, margin, source, .. } = comparison;
    let mut words = vec![format!("--base {} --head {}", quoted(&base.arm), quoted(&head.arm))];
    words.extend(subject.iter().map(|subject| format!("--system {subject}")));
    words.extend(source.iter().flat_map(|source| {
        let required = [("checkout", &source.checkout), ("build", &source.build)];
        let all = required.into_iter().chain(source.program.iter().map(|program| ("program", program)));
        all.map(|(name, value)| format!("--{name} {}", quoted(value)))
    }));
    words.push(format!("--margin {}%", (margin * 1e6).round() / 1e4));
    words
}

fn time(time: Duration) -> String {
    humantime::format_duration(time).to_string().replace(' ', "")
}
