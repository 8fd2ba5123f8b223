//! How the two sides of a unit share the CPUs.

use super::Session;
use crate::measurement::{Sharing, Sides, Unit};
use crate::plan::Step;
use crate::stats::sharing::{Likeness, sharing};
use crate::subject::Servers;

impl Session {
    /// True if both sides of a unit may have the CPUs at the same time.
    pub(super) fn can_share(&self) -> bool {
        self.servers.as_ref().is_none_or(Servers::are_started_here) && self.lab.is_grouped()
    }

    /// The units of these cells so far.
    pub(super) fn units(&self, suite: usize, sides: Sides) -> impl Iterator<Item = &Unit> {
        self.made.units.iter().filter(move |unit| unit.suite == suite && unit.sides == sides)
    }

    /// The sharing of all units of a pair: by its table, or, of builds and commands, by their warm-up units.
    /// Turns are right for all (docs/decisions/pairs.md).
    pub(super) fn sharing_of(&self, step: &Step) -> Sharing {
        let suite = &self.run.suites[step.suite];
        let mut earlier = self.units(step.suite, step.sides).filter(|unit| !unit.warmup);
        let earlier = earlier.find_map(|unit| Some(unit.together()?.sharing));
        let (cell, is_probe) = (step.sides.cell(), step.sides.probed().is_some());
        let other = step.sides.beside().unwrap_or(cell);
        let [of_cell, of_other] = [cell, other].map(|cell| suite.cells[cell].pairs);
        let of_table = of_cell.filter(|_| of_cell == of_other && !is_probe);
        // Side by side, the other side of a probe would get what is taken.
        let can_share = self.can_share() && !is_probe;
        earlier.unwrap_or_else(|| match of_table {
            Some(Sharing::Alternating) => Sharing::Alternating,
            _ if !is_probe && self.servers.as_ref().and_then(Servers::turn).is_some() => Sharing::Alternating,
            _ if !can_share => Sharing::Turns,
            Some(sharing) => sharing,
            None if !self.run.policy().is_sequential() => Sharing::Turns,
            None if step.warmup => Sharing::Together,
            None if cell == other => self.as_most_pairs(step.suite, other),
            None => self.by_warm_up(step.suite, [cell, other]),
        })
    }

    /// A control is measured as most of the pairs are whose baseline it is, so that it has their bias.
    fn as_most_pairs(&self, suite: usize, baseline: usize) -> Sharing {
        let planned = &self.run.suites[suite];
        let pairs = planned.pairs.iter().filter(|pair| pair.no_duet.is_none());
        let pairs = pairs.filter_map(|pair| planned.places(pair));
        let others = pairs.filter(|[cell, other]| cell != other && *other == baseline);
        let found: Vec<Sharing> = others.map(|pair| self.by_warm_up(suite, pair)).collect();
        let in_turns = found.iter().filter(|sharing| **sharing == Sharing::Turns).count();
        if 2 * in_turns > found.len() { Sharing::Turns } else { Sharing::Together }
    }

    /// By a pair's warm-up unit, which runs side by side, and the first trial of each cell. A pair without
    /// them takes turns, which is right for all.
    fn by_warm_up(&self, suite: usize, cells: [usize; 2]) -> Sharing {
        let warm = self.units(suite, Sides::Two(cells)).find_map(Unit::both);
        let [cell, other] = cells.map(|cell| self.units(suite, Sides::One(cell)).find_map(Unit::measurement));
        let likeness = if self.servers.is_some() { Likeness::OF_COMMANDS } else { Likeness::OF_BUILDS };
        match (warm, cell, other) {
            (Some(sides), Some(cell), Some(other)) => sharing(sides, [cell, other], likeness),
            _ => Sharing::Turns,
        }
    }
}
