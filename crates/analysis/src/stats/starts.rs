//! How servers of the user's own start.

use super::estimate::median;
use linerate_model::{ColdStart, PlannedSuite, SideWindow, Unit};
use serde::Serialize;

/// The starts of a server in the units of a run: medians.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StartReport {
    /// The server's name.
    pub name: String,
    /// From the start of its process until it listens.
    pub listens_ms: f64,
    /// From there until the end of its first expected response.
    pub responds_ms: f64,
    /// Starts that succeeded.
    pub starts: usize,
    /// Starts that failed, after which it was started again.
    pub failed: usize,
    /// Why the first of them failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// By server, in the order of these names; without those that no unit has started.
pub fn starts<'a>(
    suites: &[PlannedSuite],
    names: impl Iterator<Item = &'a str>,
    units: impl Iterator<Item = &'a Unit>,
) -> Vec<StartReport> {
    let sides = units.filter_map(|unit| {
        let cells = [unit.sides.cell(), unit.sides.beside()?];
        let suite = suites.get(unit.suite)?;
        Some(cells.map(|cell| suite.cells[cell].id.as_str()).into_iter().zip(unit.both()?))
    });
    let sides: Vec<(&str, &SideWindow)> = sides.flatten().collect();
    let of_name = |name: &str| {
        let own = sides.iter().filter(|(cell, _)| *cell == name);
        let all: Vec<&ColdStart> = own.filter_map(|(_, side)| side.cold_start.as_ref()).collect();
        let milliseconds = |time: fn(&ColdStart) -> f64| median(all.iter().map(|start| time(start) * 1e3));
        Some(StartReport {
            name: name.to_owned(),
            listens_ms: milliseconds(|start| start.listens.as_secs_f64())?,
            responds_ms: milliseconds(|start| start.responds.as_secs_f64())?,
            starts: all.len(),
            failed: all.iter().map(|start| start.failed.len()).sum(),
            reason: all.iter().find_map(|start| start.failed.first().cloned()),
        })
    };
    names.filter_map(of_name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::Nanos;
    use linerate_model::{PlannedCell, Sharing, Sides, Together};

    #[test]
    fn starts_of_both_sides_have_medians_and_failures() {
        let side = |listens: u64, failed: &[&str]| SideWindow {
            cold_start: Some(ColdStart {
                listens: Nanos(listens * 1_000_000),
                responds: Nanos(2_000_000),
                failed: failed.iter().map(|reason| (*reason).to_owned()).collect(),
            }),
            ..SideWindow::default()
        };
        let cell = |id: &str| PlannedCell { id: id.into(), ..PlannedCell::default() };
        let suite = PlannedSuite { cells: vec![cell("a"), cell("b")], ..PlannedSuite::default() };
        let unit = |sides: [SideWindow; 2]| {
            let together = Together { sides: Some(sides), ..Together::new(Sharing::Together) };
            Unit::new(Sides::Two([1, 0]), together.into())
        };
        let units = [
            unit([side(10, &["no port"]), side(1, &[])]),
            unit([side(30, &[]), side(3, &[])]),
            unit([side(20, &[]), side(2, &[])]),
        ];
        let found = starts(&[suite], ["a", "b", "c"].into_iter(), units.iter());
        let [a, b] = &found[..] else { panic!("{found:?}") };
        assert_eq!((&*a.name, a.listens_ms, a.failed, a.starts), ("a", 2.0, 0, 3));
        assert_eq!((b.listens_ms, b.responds_ms, b.failed), (20.0, 2.0, 1));
        assert_eq!(b.reason.as_deref(), Some("no port"));
    }
}
