//! Events within the body of a response: server-sent ones (text/event-stream), lines, or what arrives.

use std::str::FromStr;

/// The kinds of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// Text that ends with an empty line (HTML Standard, section 9.2.5).
    ServerSent,
    /// Text that ends with a line feed, such as a line of JSON.
    Line,
    /// Bytes that arrive together.
    Piece,
}

impl FromStr for EventKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "sse" => Ok(Self::ServerSent),
            "lines" => Ok(Self::Line),
            "pieces" => Ok(Self::Piece),
            other => Err(format!("events are sse, lines or pieces: {other:?}")),
        }
    }
}

/// Finds the ends of events in a body that arrives in pieces of any length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Events {
    line: Line,
    /// The event under way has a line.
    event: bool,
    /// The last byte was a carriage return: a line feed behind it ends no other line.
    returned: bool,
}

/// The line under way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Line {
    #[default]
    Empty,
    /// A line that begins with a colon, and only keeps the connection open.
    Comment,
    Field,
}

impl Events {
    /// Takes the next bytes; returns how many events have ended with them.
    pub fn feed(&mut self, kind: EventKind, bytes: &[u8]) -> u32 {
        if kind == EventKind::Piece {
            return u32::from(!bytes.is_empty());
        }
        let mut ended = 0;
        for byte in bytes {
            let is_feed = *byte == b'\n';
            let ends_line = *byte == b'\r' || is_feed && !self.returned;
            self.returned = *byte == b'\r';
            if ends_line {
                let is_empty = std::mem::take(&mut self.line) == Line::Empty;
                if is_empty != (kind == EventKind::Line) {
                    ended += u32::from(std::mem::take(&mut self.event));
                }
            } else if self.line == Line::Empty && !is_feed {
                let is_comment = *byte == b':' && kind == EventKind::ServerSent;
                self.line = if is_comment { Line::Comment } else { Line::Field };
                self.event |= !is_comment;
            }
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(kind: EventKind, body: &[u8], length: usize) -> u32 {
        let mut events = Events::default();
        body.chunks(length).map(|piece| events.feed(kind, piece)).sum()
    }

    #[test]
    fn events_end_with_an_empty_line_of_any_kind_in_pieces_of_any_length() {
        for end in ["\n", "\r\n", "\r"] {
            let body = format!("data: a{end}{end}event: x{end}data: b{end}{end}{end}data: c{end}");
            for length in 1..body.len() {
                assert_eq!(count(EventKind::ServerSent, body.as_bytes(), length), 2, "{end:?} {length}");
            }
        }
    }

    #[test]
    fn lines_and_pieces_are_counted() {
        assert_eq!(count(EventKind::Line, b"{}\n\n[1]\r\nrest", 3), 2);
        assert_eq!(count(EventKind::Piece, b"123456", 4), 2);
        assert_eq!(count(EventKind::ServerSent, b": ping\n\ndata\n\n", 100), 1);
        assert!("chunks".parse::<EventKind>().is_err());
    }
}
