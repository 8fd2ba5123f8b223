//! The reports of the runs, each by itself, put side by side. Nothing is pooled: a ratio is made of one
//! host's trials, and each host counts once.

use super::model::{
    Disagreement, MERGE_SCHEMA, MergedCell, MergedHost, MergedReport, MergedSuite, MergedTable, OnHost,
    OverHosts, Subject,
};
use crate::csv::in_order;
use crate::layout;
use crate::model::{CellReport, OutcomeWord, Report, SuiteReport, TableCell, TableReport};
use crate::words::{accuracy_name, verdict_name};
use linerate_analysis::stats::over_hosts::{HostRatio, disagreeing, median_and_range};
use std::collections::{BTreeMap, BTreeSet};

/// One report of these runs, each with the name of its host; runs of one host follow each other.
pub fn build(runs: Vec<(String, Report)>) -> MergedReport {
    let suites = in_order(runs.iter().flat_map(|(_, report)| &report.suites).map(|suite| &suite.name));
    MergedReport {
        schema: MERGE_SCHEMA.to_owned(),
        suites: suites.iter().filter_map(|name| suite(name, &runs)).collect(),
        flags: flags(&runs),
        hosts: hosts(runs),
    }
}

fn hosts(runs: Vec<(String, Report)>) -> Vec<MergedHost> {
    let mut hosts: Vec<MergedHost> = Vec::new();
    for (name, report) in runs {
        let versions = layout::versions(&report.suites);
        match hosts.last_mut().filter(|host| host.name == name) {
            Some(host) => {
                host.runs.push(report.run);
                host.versions.extend(versions);
            }
            None => hosts.push(MergedHost {
                name,
                machine: report.host,
                runs: vec![report.run],
                versions: versions.into_iter().collect(),
            }),
        }
    }
    hosts
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

/// A table as the runs have it, with its suite and the name of the host.
type TableOfRun<'a> = (&'a str, &'a SuiteReport, &'a TableReport);

fn suite(name: &str, runs: &[(String, Report)]) -> Option<MergedSuite> {
    let suites: Vec<(&str, &SuiteReport)> = runs
        .iter()
        .filter_map(|(host, report)| {
            Some((host.as_str(), report.suites.iter().find(|suite| suite.name == name)?))
        })
        .collect();
    let (_, first) = suites.first()?;
    let names = in_order(suites.iter().flat_map(|(_, suite)| &suite.tables).map(|table| &table.name));
    let tables = names.iter().filter_map(|name| {
        let there = suites.iter().filter_map(|(host, suite)| {
            Some((*host, *suite, suite.tables.iter().find(|table| table.name == *name)?))
        });
        table(&there.collect::<Vec<_>>())
    });
    Some(MergedSuite { name: name.to_owned(), question: first.question.clone(), tables: tables.collect() })
}

fn table(runs: &[TableOfRun<'_>]) -> Option<MergedTable> {
    let (_, _, first) = runs.first()?;
    let mut cells: Vec<MergedCell> = Vec::new();
    for (host, suite, table) in runs {
        for entry in &table.cells {
            let Some(cell) = suite.cells.iter().find(|cell| cell.id == entry.id) else { continue };
            let on_host = on_host(host, cell, entry);
            match cells.iter_mut().find(|known| known.id == entry.id && known.metric == entry.metric) {
                Some(known) => known.hosts.push(on_host),
                None => cells.push(MergedCell {
                    id: entry.id.clone(),
                    axes: cell.axes.clone(),
                    metric: entry.metric,
                    over_hosts: None,
                    hosts: vec![on_host],
                }),
            }
        }
    }
    cells.iter_mut().for_each(|cell| cell.over_hosts = over_hosts(cell));
    Some(MergedTable {
        name: first.name.clone(),
        title: first.title.clone(),
        unit: first.unit,
        better: first.better,
        margin: first.margin,
        disagreements: cells.iter().flat_map(|cell| disagreements(cell, first.margin)).collect(),
        cells,
        failed_controls: runs
            .iter()
            .filter(|(_, _, t)| t.control_fails())
            .map(|(host, ..)| (*host).to_owned())
            .collect(),
    })
}

fn on_host(host: &str, cell: &CellReport, entry: &TableCell) -> OnHost {
    OnHost {
        host: host.to_owned(),
        outcome: cell.outcome,
        detail: cell.detail.clone(),
        value: entry.value,
        ci95: entry.ci95,
        alone: entry.alone,
        vs_baseline: entry.vs_baseline.clone(),
        vs_truth: entry.vs_truth.clone(),
        bound_by: cell.bound_by,
        flags: cell.flags.clone(),
    }
}

/// The ratio within a host: of the baseline, else of the truth.
pub(super) fn ratio(on_host: &OnHost) -> Option<HostRatio> {
    let baseline = on_host.vs_baseline.as_ref();
    let of_baseline = baseline.map(|c| HostRatio { ratio: c.ratio, interval: c.ci95, n: c.n });
    let truth = on_host.vs_truth.as_ref();
    of_baseline.or_else(|| truth.map(|c| HostRatio { ratio: c.ratio, interval: c.ci95, n: c.n }))
}

/// The verdict within a host, in a word.
pub(super) fn verdict(on_host: &OnHost) -> Option<&'static str> {
    let of_baseline = on_host.vs_baseline.as_ref().map(|c| verdict_name(c.verdict));
    of_baseline.or_else(|| on_host.vs_truth.as_ref().map(|found| accuracy_name(found.accuracy)))
}

fn over_hosts(cell: &MergedCell) -> Option<OverHosts> {
    let ratios: Vec<HostRatio> = cell.hosts.iter().filter_map(ratio).collect();
    let (median, range) = median_and_range(&ratios)?;
    let mut verdicts = BTreeMap::new();
    for verdict in cell.hosts.iter().filter_map(verdict) {
        *verdicts.entry(verdict.to_owned()).or_insert(0) += 1;
    }
    Some(OverHosts { hosts: u32::try_from(ratios.len()).unwrap_or(u32::MAX), median, range, verdicts })
}

fn disagreements(cell: &MergedCell, margin: f64) -> Vec<Disagreement> {
    let of = |host: &OnHost, about: Subject| Disagreement {
        id: cell.id.clone(),
        metric: cell.metric,
        host: host.host.clone(),
        about,
        ratio: None,
        ci95: None,
        others: None,
        detail: None,
    };
    let (hosts, ratios): (Vec<&OnHost>, Vec<HostRatio>) =
        cell.hosts.iter().filter_map(|host| Some((host, ratio(host)?))).unzip();
    let by_ratio = disagreeing(&ratios, margin).into_iter().map(|(index, others)| Disagreement {
        ratio: Some(ratios[index].ratio),
        ci95: Some(ratios[index].interval),
        others: Some(others),
        ..of(hosts[index], Subject::Ratio)
    });
    let is_ok_somewhere = cell.hosts.iter().any(|host| host.outcome == OutcomeWord::Ok);
    let failed = cell.hosts.iter().filter(|host| is_ok_somewhere && host.outcome == OutcomeWord::Failed);
    let failed =
        failed.map(|host| Disagreement { detail: host.detail.clone(), ..of(host, Subject::Outcome) });
    by_ratio.chain(failed).collect()
}
