//! Commands of the user's own: the verdict as a line to paste.

use super::latency;
use super::made::{plain_percent, signed};
use super::model::{ChangeReport, ComparedCell, ComparisonReport, NamedCommand};
use crate::numbers::seconds;
use linerate_analysis::stats::verdict::Verdict;
use linerate_model::{PlannedComparison, Subject};

pub(super) fn named(plan: &PlannedComparison) -> Vec<NamedCommand> {
    let (servers, _) = plan.servers().unzip();
    let named = |one: &Subject| NamedCommand { name: one.name().to_owned(), command: one.text().to_owned() };
    servers.unwrap_or_default().iter().map(named).collect()
}

/// The meaning of each name.
pub(super) fn lines(comparison: &ComparisonReport) -> Vec<String> {
    let commands = comparison.commands.iter().zip(std::iter::once("baseline").chain(std::iter::repeat("")));
    let line = |(one, role): (&NamedCommand, &str)| match role {
        "" => format!("{}: {}", one.name, one.command),
        role => format!("{} ({role}): {}", one.name, one.command),
    };
    commands.map(line).collect()
}

/// Such as "v2 is 5.1 % slower than v1 (4.2 to 6.0 %); CPU per request +5.4 % (4.9 to 5.9); memory +2.1 MiB".
pub(super) fn sentence(comparison: &ComparisonReport) -> String {
    let base = comparison.commands.first().map_or("", |one| one.name.as_str());
    let each = comparison.cells.iter().map(|cell| of_cell(cell, base, comparison));
    each.collect::<Vec<_>>().join("; ")
}

fn of_cell(cell: &ComparedCell, base: &str, comparison: &ComparisonReport) -> String {
    let ComparedCell { id: name, cpu, units, .. } = cell;
    let Some(main) = cell.main() else {
        let reason = cell.detail.as_deref().unwrap_or("no unit was made");
        return format!("{name} could not be compared with {base}: {reason}");
    };
    let changed = |change: &ChangeReport, word: &str| {
        let [percent, interval] = size(change);
        format!("{name} is {percent} % {word} than {base}{interval}")
    };
    let margin = latency::margin(cell, comparison);
    // An open loop has the verdict of its latencies, and all of them after it.
    let is_open_loop = cell.latency_verdict.is_some();
    let (decided, found) = match cell.latency_verdict {
        Some(verdict) => (verdict, latency::sentence(cell, base)),
        None => (main.verdict, signed(main)),
    };
    // Equal rates leave the question open while the CPU time is.
    let is_by_rate = |cpu: &ChangeReport| {
        cpu.verdict == Verdict::CannotTell && matches!(main.verdict, Verdict::Slower | Verdict::Faster)
    };
    let first = cpu.as_ref().filter(|cpu| cell.cpu_first && !is_by_rate(cpu));
    let by_rate = match (cell.verdict, first) {
        (Verdict::Failed | Verdict::Missing, _) => {
            format!("{name} has no verdict: {}", cell.detail.as_deref().unwrap_or("it failed"))
        }
        (_, Some(cpu)) => by_cpu(cell, cpu, main, base, &margin),
        // Another reading than the rate may have decided about the cell.
        _ => match decided {
            Verdict::Slower if is_open_loop => format!("{name} responds later than {base}: {found}"),
            Verdict::Faster if is_open_loop => format!("{name} responds earlier than {base}: {found}"),
            Verdict::Slower => changed(main, "slower"),
            Verdict::Faster => changed(main, "faster"),
            Verdict::SmallDifference => {
                format!("{name} differs from {base} by less than {margin}: {found}")
            }
            Verdict::WithinMargin => {
                format!("no difference of {margin} between {name} and {base}: {found}")
            }
            Verdict::NotSlower => {
                format!("{name} is not slower than {base} by {margin}: {found}")
            }
            _ => format!("cannot tell whether {name} differs from {base}: {found}"),
        },
    };
    let second = cpu.as_ref().filter(|_| first.is_none());
    let by_cpu = second.map_or_else(String::new, |cpu| format!("; CPU per request {}", signed(cpu)));
    let memory = cell.memory_mib.map_or_else(String::new, |[base, head]| {
        // A rounded zero has no minus.
        let more = ((head - base) * 10.0).round() / 10.0 + 0.0;
        format!("; memory {more:+} MiB")
    });
    let overload = latency::overload(cell, comparison);
    let time = seconds(comparison.seconds);
    format!("{by_rate}{by_cpu}{memory}{overload} [{units} units, {time}]")
}

/// A role was saturated: the CPU time first, the rate second.
fn by_cpu(cell: &ComparedCell, cpu: &ChangeReport, rate: &ChangeReport, base: &str, margin: &str) -> String {
    let (name, [percent, interval], found) = (&cell.id, size(cpu), signed(cpu));
    let first = match cpu.verdict {
        Verdict::Slower => format!("{name} needs {percent} % more CPU per request than {base}{interval}"),
        Verdict::Faster => format!("{name} needs {percent} % less CPU per request than {base}{interval}"),
        Verdict::SmallDifference => {
            format!("{name} differs from {base} by less than {margin} in CPU per request: {found}")
        }
        Verdict::WithinMargin => {
            format!("no difference of {margin} in CPU per request between {name} and {base}: {found}")
        }
        Verdict::NotSlower => {
            format!("{name} does not need {margin} more CPU per request than {base}: {found}")
        }
        _ => format!("cannot tell whether {name} needs more CPU per request than {base}: {found}"),
    };
    let word = match rate.verdict {
        Verdict::Slower => ", slower",
        Verdict::Faster => ", faster",
        Verdict::CannotTell if cell.client_is_limit => ", where the client was the limit",
        _ => "",
    };
    format!("{first}; rate {}{word}", signed(rate))
}

/// `5.1` and ` (4.2 to 6.0 %)`, in the direction of the change.
fn size(change: &ChangeReport) -> [String; 2] {
    let text = |value: f64| plain_percent(value, change.ci95);
    let interval = change.ci95.map_or_else(String::new, |ends| {
        let [one, two] = ends.map(|end| end * change.percent.signum());
        format!(" ({} to {} %)", text(one.min(two)), text(one.max(two)))
    });
    [text(change.percent.abs()), interval]
}
