//! The colour of a system: one in all figures of a page, by its place in the suites.

use super::lines::PlotLine;
use crate::layout;
use crate::model::SuiteReport;
use std::collections::BTreeSet;

/// Colours with dashes in the style sheet.
const COLOURS: usize = 12;
/// Further lines of the same colours.
const VARIANTS: [&str; 3] = ["", " wide", " thin"];

/// The names of a report's systems, in the order of its suites.
pub(crate) struct Colours(Vec<String>);

impl Colours {
    pub(crate) fn new(suites: &[SuiteReport]) -> Self {
        let mut names: Vec<String> = Vec::new();
        for table in suites.iter().flat_map(|suite| &suite.tables) {
            for value in table.row_values.iter().chain(&table.column_values) {
                let name = layout::short(value);
                if !name.starts_with(|first: char| first.is_ascii_digit()) && !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        Self(names)
    }

    /// The classes of the lines of a figure. A second line of a system has the system's colour, too; a line
    /// that is of no system has one that the others leave.
    pub(super) fn classes(&self, lines: &[&PlotLine]) -> Vec<String> {
        let systems: Vec<Option<usize>> = lines.iter().map(|line| self.place(&line.name)).collect();
        let taken: BTreeSet<usize> = systems.iter().flatten().map(|at| at % COLOURS).collect();
        let mut free = (0..).filter(|at| !taken.contains(&(at % COLOURS)) || taken.len() >= COLOURS);
        let mut used = BTreeSet::new();
        let class = |system: Option<usize>| {
            let at = system.or_else(|| free.next()).unwrap_or(0);
            let mut variants = (at / COLOURS).min(VARIANTS.len() - 1)..VARIANTS.len();
            let colour = at % COLOURS;
            let last = VARIANTS.len() - 1;
            let variant = variants.find(|one| used.insert((colour, *one))).unwrap_or(last);
            format!("s s{colour}{}", VARIANTS[variant])
        };
        systems.into_iter().map(class).collect()
    }

    /// The place of the system that a line is named after: `go`, `system go`, `system go, streams 10`.
    fn place(&self, line: &str) -> Option<usize> {
        let of_part = |part: &str| {
            let value = part.split_once(' ').map_or(part, |(_, value)| value);
            self.0.iter().position(|name| name == part || name == value)
        };
        self.0.iter().position(|name| name == line).or_else(|| line.split(", ").find_map(of_part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(names: &[&str]) -> Vec<String> {
        let systems = ["nginx", "go", "h2o"].map(str::to_owned).into_iter();
        let all = Colours(systems.chain((3..20).map(|i| format!("other{i}"))).collect());
        let line = |name: &&str| PlotLine {
            name: (*name).to_owned(),
            points: vec![],
            band: vec![],
            has_dots: false,
        };
        let lines: Vec<PlotLine> = names.iter().map(line).collect();
        all.classes(&lines.iter().collect::<Vec<_>>())
    }

    #[test]
    fn a_system_has_its_colour_whatever_the_order_and_the_number_of_lines() {
        assert_eq!(classes(&["h2o", "nginx"]), ["s s2", "s s0"]);
        assert_eq!(classes(&["system go, streams 10", "server h2o"]), ["s s1", "s s2"]);
        assert_eq!(classes(&["other13", "go"]), ["s s1 wide", "s s1"]);
    }

    #[test]
    fn two_lines_of_a_system_differ_and_other_lines_have_colours_that_are_left() {
        assert_eq!(classes(&["go, size 1", "go, size 2"]), ["s s1", "s s1 wide"]);
        assert_eq!(classes(&["streams 1", "nginx", "streams 2"]), ["s s1", "s s0", "s s2"]);
    }
}
