//! The lines of a journal: a unit each, as JSON, with names in place of indices.
//!
//! A journal may have a hundred thousand lines, so it is read on all CPUs.

use crate::{
    Found, Measurement, Outcome, PlannedSuite, Probe, Run, Sharing, SideWindow, Sides, Stage, Together, Unit,
    pair_id, probe_id,
};
use linerate_contract::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, BufRead, ErrorKind, Read};
use std::sync::Mutex;
use std::thread;

/// Bytes that a thread takes at once, and the rest of their last line. Larger than nearly all lines, and
/// small beside the entries of a run.
const CHUNK: u64 = 1 << 20;
/// The longest line, many times that of the largest entry. A packed journal of a few kilobytes can have one
/// that fills the memory.
const LONGEST_LINE: u64 = 32 << 20;

/// A run on disk.
#[derive(Debug)]
pub struct Stored {
    pub run: Run,
    pub journal: Journal,
}

/// What a journal has: its units in its order, and a warning for each line that cannot be read.
#[derive(Debug, Clone, Default)]
pub struct Journal {
    pub units: Vec<Unit>,
    /// Lines of cells, pairs or suites that are not in the plan.
    pub unknown: usize,
    /// Lines that cannot be read, each with file and line; their units can be made again.
    pub warnings: Vec<String>,
}

/// A unit as a line of the journal, with its end.
///
/// # Errors
/// A number that JSON has not.
pub fn line(run: &Run, unit: &Unit) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(&Line::new(run, unit))?;
    line.push(b'\n');
    Ok(line)
}

/// The journal of a run in memory; `place` is its name in warnings.
pub fn parse_journal(run: &Run, place: &str, bytes: &[u8]) -> Journal {
    read_journal(run, place, bytes).expect("memory can be read")
}

/// The journal of a run; `place` is its name in warnings.
///
/// # Errors
/// It cannot be read, or it has a line without an end.
pub fn read_journal(run: &Run, place: &str, journal: impl BufRead + Send) -> io::Result<Journal> {
    let names = Names::new(run);
    let unread = Mutex::new(Unread { journal, chunks: 0, lines: 0 });
    let parsed = Mutex::new(Parsed::default());
    let work = || -> io::Result<()> {
        loop {
            let Some(chunk) = unread.lock().expect(NO_PANIC).next_chunk()? else { return Ok(()) };
            let lines = parse_lines(&names, place, &chunk);
            parsed.lock().expect(NO_PANIC).add(chunk.index, lines);
        }
    };
    thread::scope(|scope| {
        let count = thread::available_parallelism().map_or(1, usize::from);
        let threads: Vec<_> = (0..count).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect(NO_PANIC))
    })?;
    Ok(parsed.into_inner().expect(NO_PANIC).lines)
}

/// The lines of the first chunks, and those of chunks that were parsed before an earlier one. Entries are
/// large, so each chunk's are freed as soon as they have their place.
#[derive(Default)]
struct Parsed {
    chunks: usize,
    lines: Journal,
    early: BTreeMap<usize, Journal>,
}

impl Parsed {
    fn add(&mut self, index: usize, lines: Journal) {
        self.early.insert(index, lines);
        while let Some(lines) = self.early.remove(&self.chunks) {
            self.lines.units.extend(lines.units);
            self.lines.unknown += lines.unknown;
            self.lines.warnings.extend(lines.warnings);
            self.chunks += 1;
        }
    }
}

/// No thread panics: each damaged line is a warning.
const NO_PANIC: &str = "no line of a journal ends the parser";

/// The part of a journal that no thread has taken yet.
struct Unread<J> {
    journal: J,
    /// Those that were taken before.
    chunks: usize,
    lines: usize,
}

/// Whole lines.
struct Chunk {
    index: usize,
    lines_before: usize,
    text: Vec<u8>,
}

impl<J: BufRead> Unread<J> {
    fn next_chunk(&mut self) -> io::Result<Option<Chunk>> {
        let mut text = Vec::new();
        self.journal.by_ref().take(CHUNK).read_to_end(&mut text)?;
        self.journal.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut text)?;
        let lines_before = self.lines;
        self.lines += text.iter().filter(|byte| **byte == b'\n').count();
        if text.len() as u64 >= CHUNK + LONGEST_LINE && !text.ends_with(b"\n") {
            let (line, most) = (self.lines + 1, LONGEST_LINE >> 20);
            let reason = format!("line {line} has more than {most} MiB, and no entry is that long");
            return Err(io::Error::new(ErrorKind::InvalidData, reason));
        }
        let chunk = Chunk { index: self.chunks, lines_before, text };
        self.chunks += 1;
        Ok((!chunk.text.is_empty()).then_some(chunk))
    }
}

fn parse_lines(names: &Names<'_>, place: &str, chunk: &Chunk) -> Journal {
    let mut lines = Journal::default();
    for (number, line) in (chunk.lines_before + 1..).zip(chunk.text.split(|byte| *byte == b'\n')) {
        let line = line.trim_ascii_end();
        if line.is_empty() {
            continue;
        }
        match serde_json::from_slice(line).map(|line| names.unit(line)) {
            Ok(Some(unit)) => lines.units.push(unit),
            Ok(None) => lines.unknown += 1,
            Err(error) => lines.warnings.push(warning(place, number, &error)),
        }
    }
    lines
}

fn warning(place: &str, number: usize, error: &serde_json::Error) -> String {
    let what = if error.is_eof() { "cut off".to_owned() } else { format!("not an entry: {error}") };
    format!("{place}:{number}: {what}; the line is left out, `linerate run --resume` measures it again")
}

/// The names of a plan, to find the cells of a line by.
struct Names<'a>(BTreeMap<&'a str, (usize, BTreeMap<String, Sides>)>);

impl<'a> Names<'a> {
    fn new(run: &'a Run) -> Self {
        let of_suite = |(index, suite): (usize, &'a PlannedSuite)| {
            let cells = (0..suite.cells.len()).map(Sides::One);
            let pairs = suite.pairs.iter().filter_map(|pair| suite.places(pair)).map(Sides::Two);
            let probes = suite.probes.iter();
            let probes =
                probes.filter_map(|probe| Some(Sides::Probed(suite.place(&probe.cell)?, probe.role)));
            let all = cells.chain(pairs).chain(probes).map(|sides| (sides.id(suite), sides));
            (suite.name.as_str(), (index, all.collect()))
        };
        Self(run.suites.iter().enumerate().map(of_suite).collect())
    }

    /// `None` for cells that are not in the plan.
    fn unit(&self, line: Line) -> Option<Unit> {
        let (suite, names) = self.0.get(line.suite.as_str())?;
        let id = match (line.cell, line.cells, line.probe) {
            (Some(cell), _, _) => cell,
            (None, Some([cell, other]), None) => pair_id([&cell, &other]),
            (None, Some([cell, _]), Some(probe)) => probe_id(&cell, probe.role),
            (None, None, _) => return None,
        };
        let found = match line.sharing {
            None => Found::Alone(line.measurement),
            Some(sharing) => Found::Together(Together {
                sharing,
                probe: line.probe,
                sides: line.sides,
                windows: line.windows,
                strangers: line.strangers,
                stolen: line.stolen,
            }),
        };
        Some(Unit {
            suite: *suite,
            sides: *names.get(&id)?,
            number: line.round.or(line.unit)?,
            warmup: line.warmup,
            at: line.at,
            outcome: line.outcome,
            found,
            stages: line.stages,
        })
        .filter(|unit| unit.sides.is_one() == matches!(unit.found, Found::Alone(_)))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    /// A cell by itself: `cell`, `round`, `measurement`.
    Trial,
    /// Two cells: `cells`, `unit` and what follows `sharing`.
    Duet,
}

/// A unit as the journal has it, with names in place of indices.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Line {
    kind: Kind,
    suite: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cell: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cells: Option<[String; 2]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    round: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unit: Option<u32>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    warmup: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sharing: Option<Sharing>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    probe: Option<Probe>,
    at: Nanos,
    #[serde(flatten)]
    outcome: Outcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    measurement: Option<Measurement>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sides: Option<[SideWindow; 2]>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    windows: Vec<[SideWindow; 2]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    strangers: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stolen: Option<f64>,
    stages: BTreeMap<Stage, Nanos>,
}

impl Line {
    fn new(run: &Run, unit: &Unit) -> Self {
        let suite = &run.suites[unit.suite];
        let id = |cell: usize| suite.cells[cell].id.clone();
        let together = unit.together();
        let cell = unit.sides.cell();
        let beside = unit.sides.beside();
        Self {
            kind: if beside.is_none() { Kind::Trial } else { Kind::Duet },
            suite: suite.name.clone(),
            cell: beside.is_none().then(|| id(cell)),
            cells: beside.map(|other| [id(cell), id(other)]),
            round: beside.is_none().then_some(unit.number),
            unit: beside.map(|_| unit.number),
            warmup: unit.warmup,
            sharing: together.map(|both| both.sharing),
            probe: together.and_then(|both| both.probe),
            at: unit.at,
            outcome: unit.outcome.clone(),
            measurement: unit.measurement().cloned(),
            sides: together.and_then(|both| both.sides.clone()),
            windows: together.map(|both| both.windows.clone()).unwrap_or_default(),
            strangers: together.and_then(|both| both.strangers),
            stolen: together.and_then(|both| both.stolen),
            stages: unit.stages.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PlannedCell, PlannedPair};
    use std::io::BufReader;

    const DUET: &str = concat!(
        r#"{"kind":"duet","suite":"s","cells":["a","b"],"unit":1,"#,
        r#""sharing":"turns","at":0,"outcome":"ok","stages":{}}"#
    );

    /// A plan of two cells and their pair.
    fn run() -> Run {
        let cell = |id: &str| PlannedCell { id: id.to_owned(), ..PlannedCell::default() };
        let pair = PlannedPair { cells: ["a".to_owned(), "b".to_owned()], no_duet: None };
        let (cells, pairs) = (vec![cell("b"), cell("a")], vec![pair]);
        let suite = PlannedSuite { name: "s".to_owned(), cells, pairs, ..PlannedSuite::default() };
        Run { suites: vec![suite], ..Run::default() }
    }

    #[test]
    fn a_line_is_written_as_it_was_read_and_has_indices_between() {
        let trial = concat!(
            r#"{"kind":"trial","suite":"s","cell":"b","round":2,"warmup":true,"at":7,"#,
            r#""outcome":"unsupported","reason":"no","stages":{"raise":5}}"#
        );
        let run = run();
        let read = parse_journal(&run, "j", format!("{DUET}\n{trial}\n").as_bytes());
        let units: Vec<(Sides, u32)> = read.units.iter().map(|unit| (unit.sides, unit.number)).collect();
        assert_eq!(units, [(Sides::Two([1, 0]), 1), (Sides::One(0), 2)], "{:?}", read.warnings);
        let written = read.units.iter().flat_map(|unit| line(&run, unit).unwrap()).collect::<Vec<u8>>();
        assert_eq!(String::from_utf8(written).unwrap(), format!("{DUET}\n{trial}\n"));
    }

    #[test]
    fn lines_of_cells_that_are_not_in_the_plan_are_counted_and_those_of_no_kind_are_warnings() {
        let lines = [
            DUET.replace(r#""s""#, r#""t""#),
            DUET.replace(r#""b""#, r#""c""#),
            DUET.replace(r#"["a","b"]"#, r#"["b","a"]"#),
            DUET.replace(r#""sharing":"turns","#, ""),
            DUET.replace("duet", "solo"),
        ];
        let read = parse_journal(&run(), "j", lines.join("\n").as_bytes());
        assert_eq!((read.units.len(), read.unknown, read.warnings.len()), (0, 4, 1));
    }

    #[test]
    fn a_line_without_an_end_is_an_error_before_it_fills_the_memory() {
        let journal = BufReader::new(b"{}\n".chain(io::repeat(b'a')));
        let error = read_journal(&Run::default(), "j", journal).unwrap_err();
        assert!(error.to_string().starts_with("line 2 has more than 32 MiB"), "{error}");
    }

    #[test]
    fn lines_of_many_chunks_keep_their_order_and_their_numbers() {
        let line = |unit: usize| DUET.replace(r#""unit":1"#, &format!(r#""unit":{unit}"#)) + "\n";
        let count = 3 * CHUNK as usize / DUET.len();
        let mut journal: String = (0..count).map(line).collect();
        journal.push_str("{\n\n[1]");
        let Journal { units, warnings, .. } = parse_journal(&run(), "j", journal.as_bytes());
        assert!(units.iter().map(|unit| unit.number as usize).eq(0..count));
        assert_eq!(warnings.len(), 2);
        assert!(warnings[0].starts_with(&format!("j:{}: cut off", count + 1)), "{warnings:?}");
        assert!(warnings[1].starts_with(&format!("j:{}: not an entry", count + 3)), "{warnings:?}");
    }
}
