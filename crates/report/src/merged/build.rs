//! The reports of the runs, each by itself, put side by side. Nothing is pooled: a ratio is made of one
//! host's trials, and each host counts once.

use super::model::{
    Disagreement, MERGE_SCHEMA, MergedCell, MergedHost, MergedReport, MergedSuite, MergedTable, OnHost,
    OverHosts, Subject, tables_of_runs,
};
use crate::csv::in_order;
use crate::model::{OutcomeWord, Report, SuiteReport};
use crate::words::{accuracy_name, verdict_name};
use linerate_analysis::stats::over_hosts::{HostRatio, disagreeing, median_and_range};
use std::collections::{BTreeMap, BTreeSet};

/// One report of these runs, each with the name of its host; runs of one host follow each other.
pub fn build(runs: Vec<(String, Report)>) -> MergedReport {
    let flags = flags(&runs);
    let mut hosts: Vec<MergedHost> = Vec::new();
    for (name, report) in runs {
        match hosts.last_mut().filter(|host| host.name == name) {
            Some(host) => host.runs.push(report),
            None => hosts.push(MergedHost { name, runs: vec![report] }),
        }
    }
    let all = || hosts.iter().flat_map(|host| &host.runs).flat_map(|run| &run.suites);
    let suite = |name: String| {
        let tables = all().filter(|suite| suite.name == name).flat_map(|suite: &SuiteReport| &suite.tables);
        let tables = in_order(tables.map(|table| &table.name));
        let tables = tables.into_iter().filter_map(|table| merged_table(&hosts, &name, table)).collect();
        MergedSuite { name, tables }
    };
    let suites = in_order(all().map(|suite| &suite.name)).into_iter().map(suite).collect();
    MergedReport { schema: MERGE_SCHEMA.to_owned(), hosts, suites, flags }
}

fn flags(runs: &[(String, Report)]) -> Vec<String> {
    let versions: BTreeSet<&str> = runs.iter().map(|(_, report)| report.run.linerate.as_str()).collect();
    let differ = || versions.iter().copied().collect::<Vec<_>>().join(", ");
    let different =
        (versions.len() > 1).then(|| format!("runs of different versions of linerate: {}", differ()));
    let incomplete = runs.iter().filter(|(_, report)| !report.run.complete);
    let incomplete = incomplete.map(|(host, report)| format!("{host}: run {} is incomplete", report.run.id));
    different.into_iter().chain(incomplete).collect()
}

fn merged_table(hosts: &[MergedHost], suite: &str, name: String) -> Option<MergedTable> {
    let runs = tables_of_runs(hosts, suite, &name);
    let margin = runs.first()?.table.margin;
    let mut cells: Vec<(MergedCell, Vec<OnHost<'_>>)> = Vec::new();
    for on_host in runs.iter().flat_map(|run| run.cells()) {
        let (id, metric) = (&on_host.entry.id, on_host.entry.metric);
        match cells.iter_mut().find(|(known, _)| known.id == *id && known.metric == metric) {
            Some((_, there)) => there.push(on_host),
            None => cells.push((MergedCell { id: id.clone(), metric, over_hosts: None }, vec![on_host])),
        }
    }
    cells.iter_mut().for_each(|(cell, there)| cell.over_hosts = over_hosts(there));
    Some(MergedTable {
        name,
        disagreements: cells.iter().flat_map(|(cell, there)| disagreements(cell, there, margin)).collect(),
        cells: cells.into_iter().map(|(cell, _)| cell).collect(),
    })
}

/// The ratio within a host: of the baseline, else of the truth.
pub(super) fn ratio(on_host: &OnHost<'_>) -> Option<HostRatio> {
    let baseline = on_host.entry.vs_baseline.as_ref();
    let of_baseline = baseline.map(|c| HostRatio { ratio: c.ratio, interval: c.ci95, n: c.n });
    let truth = on_host.entry.vs_truth.as_ref();
    of_baseline.or_else(|| truth.map(|c| HostRatio { ratio: c.ratio, interval: c.ci95, n: c.n }))
}

/// The verdict within a host, in a word.
pub(super) fn verdict(on_host: &OnHost<'_>) -> Option<&'static str> {
    let of_baseline = on_host.entry.vs_baseline.as_ref().map(|c| verdict_name(c.verdict));
    of_baseline.or_else(|| on_host.entry.vs_truth.as_ref().map(|found| accuracy_name(found.accuracy)))
}

fn over_hosts(there: &[OnHost<'_>]) -> Option<OverHosts> {
    let ratios: Vec<HostRatio> = there.iter().filter_map(ratio).collect();
    let (median, range) = median_and_range(&ratios)?;
    let mut verdicts = BTreeMap::new();
    for verdict in there.iter().filter_map(verdict) {
        *verdicts.entry(verdict.to_owned()).or_insert(0) += 1;
    }
    Some(OverHosts { hosts: u32::try_from(ratios.len()).unwrap_or(u32::MAX), median, range, verdicts })
}

fn disagreements(cell: &MergedCell, there: &[OnHost<'_>], margin: f64) -> Vec<Disagreement> {
    let of = |host: &OnHost<'_>, about: Subject| Disagreement {
        id: cell.id.clone(),
        metric: cell.metric,
        host: host.host.to_owned(),
        about,
        ratio: None,
        ci95: None,
        others: None,
        detail: None,
    };
    let (hosts, ratios): (Vec<&OnHost<'_>>, Vec<HostRatio>) =
        there.iter().filter_map(|host| Some((host, ratio(host)?))).unzip();
    let by_ratio = disagreeing(&ratios, margin).into_iter().map(|(index, others)| Disagreement {
        ratio: Some(ratios[index].ratio),
        ci95: Some(ratios[index].interval),
        others: Some(others),
        ..of(hosts[index], Subject::Ratio)
    });
    let is_ok_somewhere = there.iter().any(|host| host.cell.outcome == OutcomeWord::Ok);
    let failed = there.iter().filter(|host| is_ok_somewhere && host.cell.outcome == OutcomeWord::Failed);
    let failed =
        failed.map(|host| Disagreement { detail: host.cell.detail.clone(), ..of(host, Subject::Outcome) });
    by_ratio.chain(failed).collect()
}
