//! Reading a stored run, on all CPUs: a journal may have a hundred thousand lines.

use super::{JOURNAL_FILE, PACKED_FILE, RUN_FILE};
use crate::error::Error;
use crate::measurement::{Duet, Entry, RUN_SCHEMA, Run, Stored, Trial};
use flate2::read::MultiGzDecoder;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

/// Bytes that a thread takes at once, and the rest of their last line. Larger than nearly all lines, and
/// small beside the entries of a run.
const CHUNK: u64 = 1 << 20;

/// Reads a stored run; damaged lines become warnings.
///
/// # Errors
/// There is no run, or its plan cannot be read.
pub fn read(folder: &Path) -> Result<Stored, Error> {
    let path = folder.join(RUN_FILE);
    let text = fs::read_to_string(&path).map_err(|e| match e.kind() {
        ErrorKind::NotFound => Error::Input(format!(
            "{}: there is no run in it (no {RUN_FILE}); start one with `linerate run SUITE --out {0}`",
            folder.display()
        )),
        _ => Error::file(&path)(e),
    })?;
    let run = parse_run(&path, &text)?;
    let (path, journal) = open_journal(folder)?;
    let Lines { trials, duets, warnings } =
        read_lines(&path.display().to_string(), journal).map_err(Error::file(&path))?;
    Ok(Stored { run, trials, duets, warnings })
}

/// The journal, packed or not; empty for a run without a trial.
fn open_journal(folder: &Path) -> Result<(PathBuf, Box<dyn BufRead + Send>), Error> {
    let (path, packed) = (folder.join(JOURNAL_FILE), folder.join(PACKED_FILE));
    match File::open(&path) {
        Err(e) if e.kind() == ErrorKind::NotFound && packed.exists() => {
            let file = File::open(&packed).map_err(Error::file(&packed))?;
            Ok((packed, Box::new(BufReader::new(MultiGzDecoder::new(file)))))
        }
        Err(e) if e.kind() == ErrorKind::NotFound => Ok((path, Box::new(io::empty()))),
        other => {
            let file = other.map_err(Error::file(&path))?;
            Ok((path, Box::new(BufReader::new(file))))
        }
    }
}

fn parse_run(path: &Path, text: &str) -> Result<Run, Error> {
    let place = path.display();
    let run: Run = serde_json::from_str(text).map_err(|e| {
        Error::Input(format!(
            "{place}:{}: not a run that this linerate can read: {e}; its journal is untouched",
            e.line()
        ))
    })?;
    if run.schema != RUN_SCHEMA {
        return Err(Error::Input(format!(
            "{place}: its schema is `{}`, this linerate reads `{RUN_SCHEMA}`",
            run.schema
        )));
    }
    Ok(run)
}

/// The entries of a journal in its order, and a warning for each other line.
#[derive(Debug, Default)]
pub struct Lines {
    pub trials: Vec<Trial>,
    pub duets: Vec<Duet>,
    pub warnings: Vec<String>,
}

/// The lines of a journal in memory; `place` is its name in warnings.
#[must_use]
pub fn parse_journal(place: &str, bytes: &[u8]) -> Lines {
    read_lines(place, bytes).expect("memory can be read")
}

fn read_lines(place: &str, journal: impl BufRead + Send) -> io::Result<Lines> {
    let unread = Mutex::new(Unread { journal, chunks: 0, lines: 0 });
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
    Ok(parsed.into_inner().expect(NO_PANIC).lines)
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
        self.journal.read_until(b'\n', &mut text)?;
        let chunk = Chunk { index: self.chunks, lines_before: self.lines, text };
        self.chunks += 1;
        self.lines += chunk.text.iter().filter(|byte| **byte == b'\n').count();
        Ok((!chunk.text.is_empty()).then_some(chunk))
    }
}

fn parse_lines(place: &str, chunk: &Chunk) -> Lines {
    let mut lines = Lines::default();
    for (number, line) in (chunk.lines_before + 1..).zip(chunk.text.split(|byte| *byte == b'\n')) {
        let line = line.trim_ascii_end();
        match serde_json::from_slice(line) {
            _ if line.is_empty() => {}
            Ok(Entry::Trial(trial)) => lines.trials.push(trial),
            Ok(Entry::Duet(duet)) => lines.duets.push(duet),
            Err(error) => lines.warnings.push(warning(place, number, &error)),
        }
    }
    lines
}

fn warning(place: &str, number: usize, error: &serde_json::Error) -> String {
    let what = if error.is_eof() { "cut off".to_owned() } else { format!("not an entry: {error}") };
    format!("{place}:{number}: {what}; the line is left out, `linerate run --resume` measures it again")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUET: &str = concat!(
        r#"{"kind":"duet","suite":"s","cells":["a","b"],"unit":1,"#,
        r#""sharing":"turns","at":0,"outcome":"ok","stages":{}}"#
    );

    #[test]
    fn lines_of_many_chunks_keep_their_order_and_their_numbers() {
        let line = |unit: usize| DUET.replace(r#""unit":1"#, &format!(r#""unit":{unit}"#)) + "\n";
        let count = 3 * CHUNK as usize / DUET.len();
        let mut journal: String = (0..count).map(line).collect();
        journal.push_str("{\n\n[1]");
        let Lines { trials, duets, warnings } = parse_journal("j", journal.as_bytes());
        assert!(trials.is_empty() && duets.iter().map(|duet| duet.unit as usize).eq(0..count));
        assert_eq!(warnings.len(), 2);
        assert!(warnings[0].starts_with(&format!("j:{}: cut off", count + 1)), "{warnings:?}");
        assert!(warnings[1].starts_with(&format!("j:{}: not an entry", count + 3)), "{warnings:?}");
    }
}
