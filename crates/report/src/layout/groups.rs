//! The cells of a table in groups: a group has one baseline, and its cells are alternatives to each other.

use super::named;
use super::tiers::{is_sound, tiers};
use crate::model::{CellReport, Comparison, Flag, LOAD_AXIS, ShareOf, SuiteReport, TableCell, TableReport};
use linerate_analysis::stats::verdict::Verdict;
use linerate_contract::Role;
use linerate_model::axes::Axes;
use linerate_model::{Better, PlannedSystem};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// The highest loss of a row that may be ahead of others.
const MOST_LOST_PERCENT: f64 = 1.0;

/// Cells that are compared with the same baseline.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    /// The values that distinguish the group from others, such as `server nginx`; empty if it is the only
    /// one.
    pub(crate) label: String,
    /// The members are one system with several values of a parameter.
    pub(crate) is_of_a_parameter: bool,
    /// Rows that a reader chooses from, the best first; then the ones apart. Rows of a parameter, such as
    /// sizes, keep their order.
    pub(crate) members: Vec<Alternative<'a>>,
}

/// A cell among its alternatives.
#[derive(Debug)]
pub(crate) struct Alternative<'a> {
    /// Within the group: `haproxy-http`.
    pub(crate) label: String,
    pub(crate) cell: &'a CellReport,
    /// By the table's first metric.
    pub(crate) entry: &'a TableCell,
    pub(crate) part: Part,
    /// The row is below a rule and has no place: a limit, a reference, a baseline with nothing in place of
    /// what is compared, or linerate's own.
    pub(crate) is_apart: bool,
    /// All in which it differs from others is linerate's own.
    pub(crate) is_own: bool,
    /// From 1, the best; cells whose intervals overlap with that of the best of them have the same. `None`
    /// where the run does not show it.
    pub(crate) tier: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Competitor,
    Baseline,
    Limit,
    Reference,
}

impl Part {
    /// As a mark beside a name; empty for competitors.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Competitor => "",
            Self::Baseline => "baseline",
            Self::Limit => "limit",
            Self::Reference => "reference",
        }
    }
}

impl<'a> Group<'a> {
    pub(crate) fn baseline(&self) -> Option<&Alternative<'a>> {
        self.members.iter().find(|member| member.part == Part::Baseline)
    }

    pub(crate) fn is_measured(&self) -> bool {
        self.members.iter().any(|member| member.entry.value.is_some())
    }

    /// A member is compared with a baseline or with the truth.
    pub(crate) fn is_compared(&self) -> bool {
        self.members.iter().any(|m| m.entry.vs_baseline.is_some() || m.entry.vs_truth.is_some())
    }

    /// The number of members above the rule.
    pub(crate) fn choices(&self) -> usize {
        self.members.iter().filter(|member| !member.is_apart).count()
    }

    /// True if one load generator was the limit of every measured member: their values are its own. Where
    /// load generators are compared, their limits are what was asked for.
    pub(crate) fn is_of_the_generator(&self) -> bool {
        let measured = || self.members.iter().filter(|member| member.entry.value.is_some());
        let clients: BTreeSet<&str> = measured().filter_map(|member| member.client()).collect();
        clients.len() == 1 && measured().all(Alternative::is_bound_by_generator)
    }

    /// The baseline, where it has nothing in place of what is compared: the others cost something beside it.
    pub(crate) fn nothing(&self) -> Option<&Alternative<'a>> {
        self.baseline().filter(|baseline| baseline.is_apart && !baseline.is_own)
    }

    /// Measured cells that a reader chooses from, the best ratio first.
    pub(crate) fn ranked(&self) -> Vec<&Alternative<'a>> {
        let is_choice = |member: &&Alternative<'_>| !member.is_apart && member.ratio().is_some();
        let mut ranked: Vec<&Alternative<'_>> = self.members.iter().filter(is_choice).collect();
        ranked.sort_by(|a, b| b.ratio().unwrap_or(0.0).total_cmp(&a.ratio().unwrap_or(0.0)));
        ranked
    }
}

impl Alternative<'_> {
    /// Performance in relation to the baseline, which has 1; `None` where it is not known.
    pub(crate) fn ratio(&self) -> Option<f64> {
        self.entry.value?;
        match self.part {
            Part::Baseline => Some(1.0),
            _ => self.entry.vs_baseline.as_ref().map(|comparison| comparison.ratio),
        }
    }

    /// The cell lost so much of what was sent that its rate is no merit.
    pub(crate) fn loses(&self) -> bool {
        self.cell.datagrams.as_ref().is_some_and(|datagrams| datagrams.lost_percent > MOST_LOST_PERCENT)
    }

    /// The cell's data deny each other, so it has no verdict.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.entry.vs_baseline.as_ref().is_some_and(Comparison::is_in_doubt)
    }

    /// The comparison with the baseline has this verdict.
    pub(crate) fn has(&self, verdict: Verdict) -> bool {
        self.entry.vs_baseline.as_ref().is_some_and(|c| c.verdict == verdict)
    }

    /// The comparison with the baseline shows what the cell costs.
    pub(crate) fn is_placed(&self, table: &TableReport) -> bool {
        let found = self.entry.vs_baseline.as_ref();
        !self.is_open() && !self.loses() && found.is_some_and(|found| is_sound(table, found))
    }

    /// The comparison with the baseline is not decided.
    pub(crate) fn is_open(&self) -> bool {
        self.has(Verdict::CannotTell)
    }

    /// As a mark beside the name: its part, or why it is below the rule; empty for what is compared.
    pub(crate) fn mark(&self) -> &'static str {
        match (self.is_apart, self.part) {
            (true, Part::Competitor | Part::Reference) if self.is_own => "linerate's own",
            (true, Part::Competitor) => "not compared",
            _ => self.part.name(),
        }
    }

    /// Whether all in which it differs from others is linerate's own.
    fn is_own_among(&self, all: &[Self]) -> bool {
        let has = |member: &Self, system: &PlannedSystem| {
            member.cell.systems.iter().any(|other| (other.role, &other.name) == (system.role, &system.name))
        };
        let differs = |system: &&PlannedSystem| all.iter().any(|member| !has(member, system));
        let mut own = self.cell.systems.iter().filter(differs).map(|system| system.own.is_some()).peekable();
        own.peek().is_some() && own.all(|is_own| is_own)
    }

    /// The number that rows are sorted by, higher is better: the ratio to the baseline, else the value; of a
    /// report the distance from the truth.
    fn merit(&self) -> Option<f64> {
        let value = self.entry.value?;
        let by_value = if self.cell.better == Better::Higher { value } else { 1.0 / value };
        let by_truth = self.entry.vs_truth.as_ref().map(|truth| -truth.ratio.ln().abs());
        by_truth.or_else(|| self.ratio()).or(Some(by_value))
    }

    fn client(&self) -> Option<&str> {
        let client = self.cell.systems.iter().find(|system| system.role == Role::Client)?;
        Some(client.name.as_str())
    }

    pub(crate) fn is_bound_by_generator(&self) -> bool {
        self.cell.flags.contains(&Flag::BoundByGenerator)
    }
}

/// The groups of all tables in their order, but those with a comparison of systems first, and those without a
/// number last: the order of the first screen. Comparisons of builds have their own words.
pub(crate) fn groups_by_what_is_known(suite: &SuiteReport) -> Vec<(&TableReport, Group<'_>)> {
    let tables = suite.tables.iter().filter(|table| !table.is_sequential);
    let of_table = |table| groups(suite, table).into_iter().map(move |group| (table, group));
    let mut all: Vec<(&TableReport, Group<'_>)> = tables.flat_map(of_table).collect();
    all.sort_by_key(|(table, group)| {
        let is_unranked = group.is_of_a_parameter || table.is_of_own_load();
        (!group.is_compared(), !group.is_measured(), is_unranked)
    });
    all
}

/// The groups of a table, in its order.
pub(crate) fn groups<'a>(suite: &'a SuiteReport, table: &'a TableReport) -> Vec<Group<'a>> {
    let compared = compared_axes(suite, table);
    let key = |cell: &CellReport| {
        Axes(cell.axes.0.iter().filter(|(axis, _)| !compared.contains(axis)).cloned().collect())
    };
    let mut groups: Vec<(Axes, Vec<(&CellReport, &TableCell)>)> = Vec::new();
    for entry in table.main_cells() {
        let Some(cell) = suite.cells.iter().find(|cell| cell.id == entry.id) else { continue };
        let key = key(cell);
        match groups.iter_mut().find(|(other, _)| *other == key) {
            Some((_, cells)) => cells.push((cell, entry)),
            None => groups.push((key, vec![(cell, entry)])),
        }
    }
    let keys: Vec<Axes> = groups.iter().map(|(key, _)| key.clone()).collect();
    let label = |key: &Axes| {
        let varies = |pair: &&(String, String)| keys.iter().any(|other| !other.0.contains(pair));
        named::named(key.0.iter().filter(varies))
    };
    let ids = Marks::in_table(table);
    // linerate's own systems are beside the others, and not before them.
    groups.sort_by_key(|(_, cells)| cells.iter().all(|(cell, _)| is_of_own(cell)));
    groups
        .into_iter()
        .map(|(key, cells)| {
            let labels = labels(table, &compared, &cells);
            let member = |((cell, entry), label): ((&'a CellReport, &'a TableCell), String)| Alternative {
                label,
                cell,
                entry,
                part: match ids.part(&cell.id) {
                    Part::Competitor if cell.is_limit => Part::Limit,
                    Part::Competitor if is_no_choice(table, &compared, cell) => Part::Reference,
                    // Nothing is compared with it.
                    Part::Competitor if table.is_of_own_load() && is_nothing(&compared, cell) => {
                        Part::Reference
                    }
                    part => part,
                },
                is_apart: false,
                is_own: false,
                tier: None,
            };
            let mut members: Vec<Alternative<'_>> = cells.into_iter().zip(labels).map(member).collect();
            set_apart(table, &compared, &mut members);
            tiers(table, &mut members);
            sort(table, &compared, &mut members);
            let is_of_a_parameter = are_numbers(&compared, &members);
            Group { label: label(&key), is_of_a_parameter, members }
        })
        .collect()
}

/// The suite says that nobody chooses the cell.
fn is_no_choice(table: &TableReport, compared: &BTreeSet<String>, cell: &CellReport) -> bool {
    let mut values = compared.iter().filter_map(|axis| cell.axes.get(axis));
    values.any(|value| table.no_choice.iter().any(|other| other == value))
}

/// The cell has nothing in place of what is compared.
fn is_nothing(compared: &BTreeSet<String>, cell: &CellReport) -> bool {
    let mut values = compared.iter().filter_map(|axis| cell.axes.get(axis));
    values.any(|value| NOTHING.contains(&value))
}

/// All systems of a cell are linerate's own.
fn is_of_own(cell: &CellReport) -> bool {
    !cell.systems.is_empty() && cell.systems.iter().all(|system| system.own.is_some())
}

/// Values of an axis that stand for nothing in its place.
const NOTHING: [&str; 2] = ["direct", "none"];
/// The axis whose values add to each other, and the first of them, which is no choice beside the others.
const LAYER: &str = "layer";
const PLAIN: [&str; 3] = ["tcp", "udp", "http"];

/// Limits, references and what was not compared always; others only where something is left to choose.
fn set_apart(table: &TableReport, compared: &BTreeSet<String>, members: &mut [Alternative<'_>]) {
    let is_of_layers = table.rows == LAYER || table.columns == LAYER;
    let is_no_choice = |cell: &CellReport| {
        let is_plain = cell.axes.get(LAYER).is_some_and(|layer| PLAIN.contains(&layer));
        let is_plain = is_of_layers && compared.contains(LAYER) && is_plain;
        is_plain || is_nothing(compared, cell) || is_no_choice(table, compared, cell)
    };
    let compared_here = members.iter().any(|member| member.entry.vs_baseline.is_some());
    let is_mark = |member: &Alternative<'_>| match member.part {
        Part::Limit | Part::Reference => true,
        Part::Baseline => false,
        Part::Competitor => compared_here && member.entry.value.is_some() && member.ratio().is_none(),
    };
    let is_apart = |member: &Alternative<'_>| {
        let is_baseline = member.part == Part::Baseline && is_no_choice(member.cell);
        is_mark(member) || is_baseline || member.is_own
    };
    let own: Vec<bool> = members.iter().map(|member| member.is_own_among(members)).collect();
    members.iter_mut().zip(own).for_each(|(member, is_own)| member.is_own = is_own);
    let apart: Vec<bool> = members.iter().map(is_apart).collect();
    let is_choice = |(member, is_apart): (&Alternative<'_>, &bool)| !is_apart && member.entry.value.is_some();
    let has_choice = members.iter().zip(&apart).any(is_choice);
    for (member, is_apart) in members.iter_mut().zip(apart) {
        member.is_apart = if has_choice { is_apart } else { is_mark(member) };
    }
}

/// Whether the names of what is compared are those of a parameter, such as sizes.
fn are_numbers(compared: &BTreeSet<String>, members: &[Alternative<'_>]) -> bool {
    members.iter().any(|member| {
        let mut values = compared.iter().filter_map(|axis| member.cell.axes.get(axis));
        values.any(|value| value.starts_with(|c: char| c.is_ascii_digit()))
    })
}

/// Rows apart come last; the rest is sorted, unless its names are numbers of a parameter, or its values are
/// of different loads.
fn sort(table: &TableReport, compared: &BTreeSet<String>, members: &mut [Alternative<'_>]) {
    let keeps_order = table.is_of_own_load() || are_numbers(compared, members);
    let by_part = |part: Part| {
        [Part::Baseline, Part::Competitor, Part::Reference, Part::Limit]
            .iter()
            .position(|known| *known == part)
    };
    members.sort_by(|a, b| {
        let merits = [a, b].map(|member| member.merit().filter(|_| !keeps_order));
        let by_merit = match merits {
            [Some(a), Some(b)] => b.total_cmp(&a),
            [a, b] => b.is_some().cmp(&a.is_some()),
        };
        let apart = a.is_apart.cmp(&b.is_apart);
        let part = if a.is_apart { by_part(a.part).cmp(&by_part(b.part)) } else { Ordering::Equal };
        // What loses data has no place.
        let lossy = if keeps_order { Ordering::Equal } else { a.loses().cmp(&b.loses()) };
        let absent = |member: &Alternative<'_>| !keeps_order && member.entry.value.is_none();
        apart.then(part).then(absent(a).cmp(&absent(b))).then(lossy).then(by_merit)
    });
}

/// The axes in which cells differ from their baselines; where nothing was compared the axis of the rows, and
/// beside loads the other one.
pub(super) fn compared_axes(suite: &SuiteReport, table: &TableReport) -> BTreeSet<String> {
    let cell = |id: &String| suite.cells.iter().find(|cell| cell.id == *id);
    let differing = |entry: &TableCell| {
        let (cell, with) = (cell(&entry.id)?, cell(&entry.vs_baseline.as_ref()?.with)?);
        let differs = |(axis, value): &&(String, String)| with.axes.get(axis).is_some_and(|v| v != value);
        Some(cell.axes.0.iter().filter(differs).map(|(axis, _)| axis.clone()).collect::<Vec<_>>())
    };
    let axes: BTreeSet<String> = table.main_cells().filter_map(differing).flatten().collect();
    let own = if table.rows == LOAD_AXIS { &table.columns } else { &table.rows };
    if axes.is_empty() { BTreeSet::from([own.clone()]) } else { axes }
}

/// Labels that are unique in the group: by an axis of the table, else by all that are compared.
fn labels(
    table: &TableReport,
    compared: &BTreeSet<String>,
    cells: &[(&CellReport, &TableCell)],
) -> Vec<String> {
    let named = |axis: &str, value: &str| {
        let is_number = value.starts_with(|c: char| c.is_ascii_digit());
        if is_number { format!("{axis} {value}") } else { named::short(value) }
    };
    for axis in [&table.rows, &table.columns].into_iter().filter(|axis| compared.contains(*axis)) {
        let values: Vec<&str> = cells.iter().filter_map(|(cell, _)| cell.axes.get(axis)).collect();
        if values.len() == cells.len() && values.iter().collect::<BTreeSet<_>>().len() == cells.len() {
            return values.into_iter().map(|value| named(axis, value)).collect();
        }
    }
    let all = |cell: &CellReport| {
        let here = cell.axes.0.iter().filter(|(axis, _)| compared.contains(axis));
        here.map(|(axis, value)| named(axis, value)).collect::<Vec<_>>().join(", ")
    };
    let labels: Vec<String> = cells.iter().map(|(cell, _)| all(cell)).collect();
    if labels.iter().collect::<BTreeSet<_>>().len() == labels.len() && !labels.contains(&String::new()) {
        return labels;
    }
    cells.iter().map(|(cell, _)| cell.id.clone()).collect()
}

/// The ids of cells that others are compared with.
struct Marks<'a> {
    baselines: BTreeSet<&'a str>,
    limits: BTreeSet<&'a str>,
    references: BTreeSet<&'a str>,
}

impl<'a> Marks<'a> {
    fn in_table(table: &'a TableReport) -> Self {
        let cells = || table.cells.iter();
        let share = |share: &'a Option<ShareOf>| Some(share.as_ref()?.with.as_str());
        Self {
            baselines: cells().filter_map(|cell| Some(cell.vs_baseline.as_ref()?.with.as_str())).collect(),
            limits: cells().filter_map(|cell| share(&cell.vs_limit)).collect(),
            references: cells().filter_map(|cell| share(&cell.vs_reference)).collect(),
        }
    }

    fn part(&self, id: &str) -> Part {
        match id {
            id if self.baselines.contains(id) => Part::Baseline,
            id if self.limits.contains(id) => Part::Limit,
            id if self.references.contains(id) => Part::Reference,
            _ => Part::Competitor,
        }
    }
}
