//! The lines of a journal: a unit each, as JSON, with names in place of indices.
//!
//! A journal may have a hundred thousand lines, so it is read on all CPUs.

mod line;

use crate::{Run, Unit};
use line::{Line, Names};
use std::collections::BTreeMap;
use std::io::{self, BufRead, ErrorKind, Read};
use std::sync::Mutex;
use std::thread;

/// Bytes that a thread takes at once, and the rest of their last line. Larger than nearly all lines, and
/// small beside the entries of a run.
const CHUNK: u64 = 1 << 20;
/// Lines of a journal, and bytes once it is unpacked: a hundred times those of the largest run.
const MOST_LINES: usize = 200_000;
const MOST_BYTES: u64 = 1 << 30;
/// Warnings that are kept; a packed journal of some kilobytes can have millions of damaged lines.
const MOST_WARNINGS: usize = 10;
/// The longest line, many times that of the largest entry. A packed journal of a few kilobytes can have one
/// that fills the memory.
const LONGEST_LINE: u64 = 32 << 20;

/// A run on disk.
#[derive(Debug)]
pub struct Stored {
    pub run: Run,
    pub journal: Journal,
}

/// The content of a journal: its units in its order, and a warning for each line that cannot be read.
#[derive(Debug, Clone, Default)]
pub struct Journal {
    pub units: Vec<Unit>,
    /// Lines of cells, pairs or suites that are not in the plan.
    pub unknown: usize,
    /// Lines that cannot be read, each with file and line; their units can be made again.
    pub warnings: Vec<String>,
    /// Lines that cannot be read beyond the first ones, which are in the warnings.
    pub further: usize,
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

impl Journal {
    fn warn(&mut self, warning: String) {
        if self.warnings.len() < MOST_WARNINGS {
            self.warnings.push(warning);
        } else {
            self.further += 1;
        }
    }
}

/// The journal of a run; `place` is its name in warnings.
///
/// # Errors
/// The journal cannot be read, or it has more lines, a longer line or more bytes than any run.
pub fn read_journal(run: &Run, place: &str, journal: impl BufRead + Send) -> io::Result<Journal> {
    let names = Names::new(run);
    let unread = Mutex::new(Unread { journal, chunks: 0, lines: 0, bytes: 0 });
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
    let mut lines = parsed.into_inner().expect(NO_PANIC).lines;
    if lines.further > 0 {
        lines.warnings.push(format!("{place}: and {} more lines that are left out", lines.further));
    }
    Ok(lines)
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
            lines.warnings.into_iter().for_each(|warning| self.lines.warn(warning));
            self.lines.further += lines.further;
            self.chunks += 1;
        }
    }
}

/// No thread panics: each damaged line is a warning.
const NO_PANIC: &str = "no line of a journal ends the parser";

/// The part of a journal that no thread has taken yet.
struct Unread<J> {
    journal: J,
    /// Chunks that were taken before.
    chunks: usize,
    lines: usize,
    bytes: u64,
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
        self.bytes += text.len() as u64;
        if self.lines > MOST_LINES || self.bytes > MOST_BYTES {
            let most = MOST_BYTES >> 20;
            let reason = format!("no run has more than {MOST_LINES} lines or {most} MiB");
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
        match entry(names, line) {
            Ok(Some(unit)) => lines.units.push(unit),
            Ok(None) => lines.unknown += 1,
            Err(what) => lines.warn(format!(
                "{place}:{number}: {what}; the line is left out, `linerate run --resume` measures it again"
            )),
        }
    }
    lines
}

fn entry(names: &Names<'_>, line: &[u8]) -> Result<Option<Unit>, String> {
    let line = serde_json::from_slice(line).map_err(|error| match error.is_eof() {
        true => "cut off".to_owned(),
        false => format!("not an entry: {error}"),
    })?;
    let unit = names.unit(line);
    let checked = unit.as_ref().map_or(Ok(()), Unit::check);
    checked.map(|()| unit).map_err(|reason| format!("not an entry: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PlannedCell, PlannedPair, PlannedSuite, Sides};
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
        let at_rate = DUET.replace(
            r#""sharing":"turns""#,
            r#""sharing":"alternating","second_load":{"per_second":5,"of_capacity":[0.5,10.0]}"#,
        );
        let text = format!("{DUET}\n{trial}\n{at_rate}\n");
        let run = run();
        let read = read_journal(&run, "j", text.as_bytes()).unwrap();
        let units: Vec<(Sides, u32)> = read.units.iter().map(|unit| (unit.sides, unit.number)).collect();
        let expected = [(Sides::Two([1, 0]), 1), (Sides::One(0), 2), (Sides::AtRate([1, 0]), 1)];
        assert_eq!(units, expected, "{:?}", read.warnings);
        let written = read.units.iter().flat_map(|unit| line(&run, unit).unwrap()).collect::<Vec<u8>>();
        assert_eq!(String::from_utf8(written).unwrap(), text);
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
        let read = read_journal(&run(), "j", lines.join("\n").as_bytes()).unwrap();
        assert_eq!((read.units.len(), read.unknown, read.warnings.len()), (0, 4, 1));
    }

    #[test]
    fn a_line_without_an_end_is_an_error_before_it_fills_the_memory() {
        let journal = BufReader::new(b"{}\n".chain(io::repeat(b'a')));
        let error = read_journal(&Run::default(), "j", journal).unwrap_err();
        assert!(error.to_string().starts_with("line 2 has more than 32 MiB"), "{error}");
    }

    #[test]
    fn damaged_lines_are_counted_and_named_up_to_a_limit() {
        let Journal { warnings, .. } = read_journal(&run(), "j", "x\n".repeat(100_000).as_bytes()).unwrap();
        assert_eq!(warnings.len(), MOST_WARNINGS + 1);
        assert!(warnings[9].starts_with("j:10: not an entry"), "{warnings:?}");
        assert_eq!(warnings[10], "j: and 99990 more lines that are left out");
        let error = read_journal(&run(), "j", BufReader::new(&*vec![b'\n'; MOST_LINES + 1])).unwrap_err();
        assert!(error.to_string().starts_with("no run has more than 200000 lines"), "{error}");
    }

    #[test]
    fn a_unit_with_a_number_that_no_run_has_is_left_out() {
        let line = DUET.replace(r#""unit":1"#, r#""unit":4294967295"#);
        let Journal { units, warnings, .. } = read_journal(&run(), "j", line.as_bytes()).unwrap();
        assert!(units.is_empty() && warnings[0].contains("unit: 4294967295 is above"), "{warnings:?}");
    }

    #[test]
    fn lines_of_many_chunks_keep_their_order_and_their_numbers() {
        let line = |unit: usize| DUET.replace(r#""unit":1"#, &format!(r#""unit":{unit}"#)) + "\n";
        let count = 3 * CHUNK as usize / DUET.len();
        let mut journal: String = (0..count).map(line).collect();
        journal.push_str("{\n\n[1]");
        let Journal { units, warnings, .. } = read_journal(&run(), "j", journal.as_bytes()).unwrap();
        assert!(units.iter().map(|unit| unit.number as usize).eq(0..count));
        assert_eq!(warnings.len(), 2);
        assert!(warnings[0].starts_with(&format!("j:{}: cut off", count + 1)), "{warnings:?}");
        assert!(warnings[1].starts_with(&format!("j:{}: not an entry", count + 3)), "{warnings:?}");
    }
}
