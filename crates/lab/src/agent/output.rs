//! The output of a process: its lines, within limits. A system that prints without end costs neither time nor
//! memory beyond them.
//!
//! Of a command of the user's own, which may log each request, the first and the last bytes are kept.

use crate::protocol::Stream;
use std::io::{self, Read};

/// Longer lines are sent in pieces: a system that prints without end must not fill the agent's memory.
const LONGEST_LINE: usize = 1 << 20;
/// Bytes of stdout; a report in JSON of a hundred connections has a tenth of them.
const MOST_LINES: usize = 50_000;
const MOST_STDOUT: usize = 16 << 20;
/// Bytes of stderr that are kept; the rest is read and dropped, so that the process never blocks.
const MOST_STDERR: usize = 256 << 10;
const MOST_STDERR_LINES: usize = 10_000;
/// Bytes of each stream of a command of the user's own: the first, and as many of the last.
pub(crate) const OF_USER: usize = 64 << 10;

/// One stream of a process, until its end.
pub(super) struct Printed<S> {
    pub(super) pipe: Option<S>,
    lines: Splitter,
}

impl<S: Read> Printed<S> {
    pub(super) fn new(stream: Stream, of_user: bool, pipe: Option<S>) -> Self {
        let last = of_user.then(Vec::new);
        Self { pipe, lines: Splitter { stream, partial: Vec::new(), lines: 0, bytes: 0, last } }
    }

    /// Every complete line that can be read; closes the stream at its end.
    pub(super) fn read_lines(&mut self) -> Vec<String> {
        let (bytes, ended) = drain(self.pipe.as_mut());
        if ended {
            self.pipe = None;
        }
        self.lines.add(&bytes, ended)
    }

    /// The reason to end the process, once: it has printed more than the limits on stdout.
    pub(super) fn excess(&mut self) -> Option<String> {
        let may_end = self.lines.stream == Stream::Stdout && self.lines.last.is_none();
        let is_excess = self.pipe.is_some() && self.lines.is_full() && may_end;
        is_excess.then(|| {
            self.pipe = None;
            format!(
                "ended by linerate: it printed more than {MOST_LINES} lines or {MOST_STDOUT} bytes on stdout"
            )
        })
    }
}

struct Splitter {
    stream: Stream,
    /// Bytes of an incomplete line.
    partial: Vec<u8>,
    lines: usize,
    bytes: usize,
    /// The last bytes, of a command of the user's own that has printed more than the first ones.
    last: Option<Vec<u8>>,
}

impl Splitter {
    fn is_full(&self) -> bool {
        match self.stream {
            // The caller ends them there.
            _ if self.last.is_some() => false,
            Stream::Stdout => self.bytes > MOST_STDOUT || self.lines >= MOST_LINES,
            Stream::Stderr => self.bytes > MOST_STDERR || self.lines >= MOST_STDERR_LINES,
        }
    }

    /// The lines that these bytes complete.
    fn add(&mut self, bytes: &[u8], ended: bool) -> Vec<String> {
        let room = if self.last.is_some() { OF_USER.saturating_sub(self.bytes) } else { bytes.len() };
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        let mut lines = self.add_first(first, ended && rest.is_empty());
        if let Some(last) = self.last.as_mut().filter(|_| !rest.is_empty()) {
            last.append(&mut self.partial);
            last.extend_from_slice(rest);
            self.bytes += rest.len();
            if last.len() > 4 * OF_USER {
                last.drain(..last.len() - OF_USER);
            }
        }
        if ended {
            lines.extend(self.last_lines());
        }
        lines
    }

    /// Each byte is looked at once.
    fn add_first(&mut self, bytes: &[u8], ended: bool) -> Vec<String> {
        let mut lines = Vec::new();
        let mut rest = bytes;
        self.bytes += bytes.len();
        while !self.is_full()
            && let Some(end) = rest.iter().position(|b| *b == b'\n')
        {
            self.partial.extend_from_slice(&rest[..end]);
            lines.push(self.take());
            rest = &rest[end + 1..];
        }
        if self.is_full() {
            self.partial.clear();
            return lines;
        }
        self.partial.extend_from_slice(rest);
        if !self.partial.is_empty() && (ended || self.partial.len() > LONGEST_LINE) {
            lines.push(self.take());
        }
        lines
    }

    /// The last lines of a command of the user's own, after one that says what is left out.
    fn last_lines(&mut self) -> Vec<String> {
        let Some(last) = self.last.take() else { return Vec::new() };
        let last = &last[last.len().saturating_sub(OF_USER)..];
        let left_out = self.bytes.saturating_sub(OF_USER + last.len());
        let text = String::from_utf8_lossy(last);
        let note = format!("[linerate: {left_out} bytes of output are left out]");
        std::iter::once(note).filter(|_| left_out > 0).chain(text.lines().map(str::to_owned)).collect()
    }

    fn take(&mut self) -> String {
        self.lines += 1;
        let line = String::from_utf8_lossy(&self.partial).into_owned();
        self.partial.clear();
        line
    }
}

/// The bytes that can be read without waiting, and whether the stream is at its end.
fn drain(stream: Option<&mut impl Read>) -> (Vec<u8>, bool) {
    let Some(stream) = stream else { return (Vec::new(), true) };
    let (mut bytes, mut chunk) = (Vec::new(), [0; 16 << 10]);
    while bytes.len() < LONGEST_LINE {
        match stream.read(&mut chunk) {
            Ok(0) => return (bytes, true),
            Ok(n) => bytes.extend_from_slice(&chunk[..n]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return (bytes, e.kind() != io::ErrorKind::WouldBlock),
        }
    }
    (bytes, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(stream: Stream) -> Splitter {
        Printed::<&[u8]>::new(stream, false, None).lines
    }

    #[test]
    fn lines_are_returned_when_complete_and_at_the_end() {
        let mut stdout = lines(Stream::Stdout);
        assert_eq!(stdout.add(b"one\ntwo\nthr", false), ["one", "two"]);
        assert_eq!(stdout.add(b"", false), Vec::<String>::new());
        assert_eq!(stdout.add(b"ee\n\nfour", true), ["three", "", "four"]);
    }

    #[test]
    fn invalid_utf_8_is_replaced_in_lines() {
        assert_eq!(lines(Stream::Stdout).add(b"\xff\n", false), ["\u{fffd}"]);
    }

    #[test]
    fn a_line_without_end_is_returned_in_pieces() {
        let mut stdout = lines(Stream::Stdout);
        let pieces: Vec<String> = (0..40).flat_map(|_| stdout.add(&[b'x'; 64 << 10], false)).collect();
        assert_eq!(pieces.len(), 2);
        assert!(pieces.iter().all(|piece| piece.len() > LONGEST_LINE), "{}", pieces[0].len());
    }

    #[test]
    fn stdout_ends_at_its_limit_of_lines_or_bytes_and_the_reason_says_so_once() {
        let newlines = vec![b'\n'; 4 << 20];
        let mut output = Printed::new(Stream::Stdout, false, Some(&newlines[..]));
        let mut found = 0;
        while output.excess().is_none() {
            found += output.read_lines().len();
            assert!(output.pipe.is_some(), "the limit comes before the end of the stream");
        }
        assert_eq!(found, MOST_LINES);
        assert!(output.pipe.is_none() && output.excess().is_none());

        let mut long = lines(Stream::Stdout);
        let found: usize = (0..64).map(|_| long.add(&[b'x'; LONGEST_LINE], false).len()).sum();
        assert!(long.is_full() && found <= 16, "{found}");
        assert!(long.partial.is_empty());
    }

    #[test]
    fn of_a_users_command_the_first_and_the_last_output_is_kept_and_nothing_ends_it() {
        let lines: Vec<u8> = (0..1_000_000).flat_map(|n: u32| format!("line {n}\n").into_bytes()).collect();
        let mut output = Printed::new(Stream::Stdout, true, Some(&lines[..]));
        let mut found = Vec::new();
        while output.pipe.is_some() {
            found.extend(output.read_lines());
            assert!(output.excess().is_none());
        }
        assert_eq!((&*found[0], &*found[found.len() - 1]), ("line 0", "line 999999"));
        let left_out = found.iter().position(|line| line.contains("bytes of output are left out")).unwrap();
        assert!(left_out > 5000 && found.len() - left_out > 5000, "{left_out} of {}", found.len());
        assert!(found.iter().map(String::len).sum::<usize>() < 3 * LONGEST_LINE);
    }

    #[test]
    fn the_first_part_of_stderr_is_kept_and_the_rest_is_dropped() {
        let mut stderr = lines(Stream::Stderr);
        assert_eq!(stderr.add(b"first\n", false), ["first"]);
        let found: usize = (0..64).map(|_| stderr.add(&[b'\n'; 1 << 20], false).len()).sum();
        assert_eq!(found, 0, "the first MiB is more than the limit of bytes");
        assert!(stderr.partial.capacity() < LONGEST_LINE);
        let newlines = vec![b'\n'; 100_000];
        let mut output = Printed::new(Stream::Stderr, false, Some(&newlines[..]));
        assert_eq!(output.read_lines().len(), MOST_STDERR_LINES);
        assert!(output.excess().is_none(), "the process goes on");
    }
}
