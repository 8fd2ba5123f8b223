//! The lines of a journal: a trial or a duet each, as JSON.
//!
//! A journal may have a hundred thousand lines, so it is read on all CPUs.

use crate::{Duet, Run, Trial};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;
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
    pub trials: Vec<Trial>,
    pub duets: Vec<Duet>,
    /// Lines that cannot be read, each with file and line; their trials can be made again.
    pub warnings: Vec<String>,
}

/// One line of the journal; its first key is `kind`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[allow(clippy::large_enum_variant, reason = "nearly all entries are trials")]
pub enum Entry {
    Trial(Trial),
    Duet(Duet),
}

/// The entries of a journal in its order, and a warning for each other line.
#[derive(Debug, Default)]
pub struct Lines {
    pub trials: Vec<Trial>,
    pub duets: Vec<Duet>,
    /// The first ones.
    pub warnings: Vec<String>,
    /// Damaged lines beyond those.
    further: usize,
}

impl Lines {
    fn warn(&mut self, warning: String) {
        if self.warnings.len() < MOST_WARNINGS {
            self.warnings.push(warning);
        } else {
            self.further += 1;
        }
    }
}

/// The lines of a journal in memory; `place` is its name in warnings.
pub fn parse_journal(place: &str, bytes: &[u8]) -> Lines {
    read_lines(place, bytes).expect("memory can be read")
}

/// The lines of a journal; `place` is its name in warnings.
///
/// # Errors
/// It cannot be read, or it has more lines, a longer line or more bytes than any run.
pub fn read_lines(place: &str, journal: impl BufRead + Send) -> io::Result<Lines> {
    let unread = Mutex::new(Unread { journal, chunks: 0, lines: 0, bytes: 0 });
    let parsed = Mutex::new(Parsed::default());
    let work = || -> io::Result<()> {
        loop {
            let Some(chunk) = unread.lock().expect(NO_PANIC).next_chunk()? else { return Ok(()) };
            let lines = parse_lines(place, &chunk);
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
    lines: Lines,
    early: BTreeMap<usize, Lines>,
}

impl Parsed {
    fn add(&mut self, index: usize, lines: Lines) {
        self.early.insert(index, lines);
        while let Some(lines) = self.early.remove(&self.chunks) {
            self.lines.trials.extend(lines.trials);
            self.lines.duets.extend(lines.duets);
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
    /// Those that were taken before.
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
            return Err(too_much(format!("line {line} has more than {most} MiB, and no entry is that long")));
        }
        self.bytes += text.len() as u64;
        if self.lines > MOST_LINES || self.bytes > MOST_BYTES {
            let most = MOST_BYTES >> 20;
            return Err(too_much(format!("no run has more than {MOST_LINES} lines or {most} MiB")));
        }
        let chunk = Chunk { index: self.chunks, lines_before, text };
        self.chunks += 1;
        Ok((!chunk.text.is_empty()).then_some(chunk))
    }
}

fn parse_lines(place: &str, chunk: &Chunk) -> Lines {
    let mut lines = Lines::default();
    for (number, line) in (chunk.lines_before + 1..).zip(chunk.text.split(|byte| *byte == b'\n')) {
        let line = line.trim_ascii_end();
        match entry(line) {
            _ if line.is_empty() => {}
            Ok(Entry::Trial(trial)) => lines.trials.push(trial),
            Ok(Entry::Duet(duet)) => lines.duets.push(duet),
            Err(what) => lines.warn(format!(
                "{place}:{number}: {what}; the line is left out, `linerate run --resume` measures it again"
            )),
        }
    }
    lines
}

fn entry(line: &[u8]) -> Result<Entry, String> {
    let entry = serde_json::from_slice(line).map_err(|error| match error.is_eof() {
        true => "cut off".to_owned(),
        false => format!("not an entry: {error}"),
    })?;
    let checked = match &entry {
        Entry::Trial(trial) => trial.check(),
        Entry::Duet(duet) => duet.check(),
    };
    checked.map(|()| entry).map_err(|reason| format!("not an entry: {reason}"))
}

fn too_much(reason: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, reason)
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum EntryKind {
    Trial,
    Duet,
}

/// Reads a line in one pass. serde's own reader of tagged enums first collects a line in a tree, with an
/// allocation for each pair of a histogram, since the tag could be last. Here it is first.
impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntryVisitor)
    }
}

struct EntryVisitor;

impl<'de> Visitor<'de> for EntryVisitor {
    type Value = Entry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a trial or a duet that begins with its kind")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut line: A) -> Result<Entry, A::Error> {
        if line.next_key::<String>()?.as_deref() != Some("kind") {
            return Err(A::Error::custom("the first key is not `kind`"));
        }
        Ok(match line.next_value()? {
            EntryKind::Trial => Entry::Trial(Trial::deserialize(MapAccessDeserializer::new(line))?),
            EntryKind::Duet => Entry::Duet(Duet::deserialize(MapAccessDeserializer::new(line))?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    const DUET: &str = concat!(
        r#"{"kind":"duet","suite":"s","cells":["a","b"],"unit":1,"#,
        r#""sharing":"turns","at":0,"outcome":"ok","stages":{}}"#
    );

    #[test]
    fn a_line_is_read_as_it_was_written_and_needs_its_kind_first() {
        let duet =
            r#""suite":"s","cells":["a","b"],"unit":1,"sharing":"turns","at":0,"outcome":"ok","stages":{}"#;
        let line = format!(r#"{{"kind":"duet",{duet}}}"#);
        let entry: Entry = serde_json::from_str(&line).unwrap();
        assert!(matches!(entry, Entry::Duet(_)));
        assert_eq!(serde_json::to_string(&entry).unwrap(), line);
        for wrong in [format!(r#"{{{duet},"kind":"duet"}}"#), format!(r#"{{"kind":"solo",{duet}}}"#)] {
            assert!(serde_json::from_str::<Entry>(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_line_without_an_end_is_an_error_before_it_fills_the_memory() {
        let journal = BufReader::new(b"{}\n".chain(io::repeat(b'a')));
        let error = read_lines("j", journal).unwrap_err();
        assert!(error.to_string().starts_with("line 2 has more than 32 MiB"), "{error}");
    }

    #[test]
    fn damaged_lines_are_counted_and_the_first_of_them_are_named() {
        let Lines { warnings, .. } = parse_journal("j", "x\n".repeat(100_000).as_bytes());
        assert_eq!(warnings.len(), MOST_WARNINGS + 1);
        assert!(warnings[9].starts_with("j:10: not an entry"), "{warnings:?}");
        assert_eq!(warnings[10], "j: and 99990 more lines that are left out");
    }

    #[test]
    fn a_journal_with_more_lines_than_any_run_is_an_error() {
        let error = read_lines("j", BufReader::new(&*vec![b'\n'; MOST_LINES + 1])).unwrap_err();
        assert!(error.to_string().starts_with("no run has more than 200000 lines"), "{error}");
    }

    #[test]
    fn a_unit_with_a_number_that_no_run_has_is_left_out() {
        let line = |unit: u32| DUET.replace(r#""unit":1"#, &format!(r#""unit":{unit}"#));
        let Lines { duets, warnings, .. } = parse_journal("j", line(u32::MAX).as_bytes());
        assert!(
            duets.is_empty() && warnings[0].contains("unit: 4294967295 is above 1000000"),
            "{warnings:?}"
        );
    }

    #[test]
    fn lines_of_many_chunks_keep_their_order_and_their_numbers() {
        let line = |unit: usize| DUET.replace(r#""unit":1"#, &format!(r#""unit":{unit}"#)) + "\n";
        let count = 3 * CHUNK as usize / DUET.len();
        let mut journal: String = (0..count).map(line).collect();
        journal.push_str("{\n\n[1]");
        let Lines { trials, duets, warnings, .. } = parse_journal("j", journal.as_bytes());
        assert!(trials.is_empty() && duets.iter().map(|duet| duet.unit as usize).eq(0..count));
        assert_eq!(warnings.len(), 2);
        assert!(warnings[0].starts_with(&format!("j:{}: cut off", count + 1)), "{warnings:?}");
        assert!(warnings[1].starts_with(&format!("j:{}: not an entry", count + 3)), "{warnings:?}");
    }
}
