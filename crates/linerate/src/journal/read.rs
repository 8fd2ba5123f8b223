//! Reading a stored run, on all CPUs: a journal may have a hundred thousand lines.

use super::{JOURNAL_FILE, PACKED_FILE, RUN_FILE};
use crate::error::Error;
use crate::measurement::{Duet, Entry, RUN_SCHEMA, Run, Stored, Trial};
use flate2::read::MultiGzDecoder;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

/// Bytes that a thread takes at once, and the rest of their last line. Larger than nearly all lines, and
/// small beside the entries of a run.
const CHUNK: u64 = 1 << 20;
/// The longest line, many times that of the largest entry. A packed journal of a few kilobytes can have one
/// that fills the memory.
const LONGEST_LINE: u64 = 32 << 20;

/// Reads a stored run; damaged lines become warnings.
///
/// # Errors
/// There is no run, or its plan cannot be read.
pub fn read(folder: &Path) -> Result<Stored, Error> {
    let path = folder.join(RUN_FILE);
    let text = existing(&path)?.map(io::read_to_string).transpose().map_err(Error::file(&path))?;
    let text = text.ok_or_else(|| {
        Error::Input(format!(
            "{}: there is no run in it (no {RUN_FILE}); start one with `linerate run SUITE --out {0}`",
            folder.display()
        ))
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
    if let Some(file) = existing(&path)? {
        return Ok((path, Box::new(BufReader::new(file))));
    }
    match existing(&packed)? {
        Some(file) => Ok((packed, Box::new(BufReader::new(MultiGzDecoder::new(file))))),
        None => Ok((path, Box::new(io::empty()))),
    }
}

/// The file, opened to read; `None` if there is none.
pub(crate) fn existing(path: &Path) -> Result<Option<File>, Error> {
    match regular(path, OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK)) {
        Err(Error::File { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        file => file.map(Some),
    }
}

/// Opens a file of a run: a pipe or device would have no end.
pub(super) fn regular(path: &Path, options: &mut OpenOptions) -> Result<File, Error> {
    let file = options.open(path).map_err(Error::file(path))?;
    if file.metadata().map_err(Error::file(path))?.is_file() {
        return Ok(file);
    }
    Err(Error::Input(format!("{}: it is no file but a pipe, folder or device: remove it", path.display())))
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
    fn a_line_without_an_end_is_an_error_before_it_fills_the_memory() {
        let journal = BufReader::new(b"{}\n".chain(io::repeat(b'a')));
        let error = read_lines("j", journal).unwrap_err();
        assert!(error.to_string().starts_with("line 2 has more than 32 MiB"), "{error}");
    }

    #[test]
    fn a_journal_that_is_a_pipe_is_an_error() {
        let pipe = std::env::temp_dir().join(format!("linerate-journal-{}", std::process::id()));
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRUSR).unwrap();
        let error = existing(&pipe).unwrap_err();
        std::fs::remove_file(&pipe).unwrap();
        assert!(error.to_string().contains("it is no file but a pipe"), "{error}");
    }

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
